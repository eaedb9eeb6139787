"""Executors: how a partition of a graph runs at one task."""
