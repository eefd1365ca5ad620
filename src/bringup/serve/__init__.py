"""Starting engines and keeping them: command lines, readiness, failures by name, restarts, and no orphans."""
