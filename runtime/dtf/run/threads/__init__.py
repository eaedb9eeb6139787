"""Threads: pools, the reader thread, and how work is cancelled."""
