"""The supervisor's decisions and their application. The owner of clock, disk and sockets is daemon.py."""
