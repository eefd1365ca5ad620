"""Log signatures, one table a family. Knowledge only: `bringup.explain.logs` walks it."""
