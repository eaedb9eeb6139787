"""Requests of commands to the supervisor of a cluster: both ends of the Unix socket, and their protocol."""
