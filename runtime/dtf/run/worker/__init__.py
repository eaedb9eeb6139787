"""Workers: what a task does for the masters of its cluster."""
