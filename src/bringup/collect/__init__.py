"""I/O in, facts out: the only readers of files, hosts and indexes."""
