"""Spark as an engine: executors are the hosts, and connections from them to the driver are the pipes.

    request ..... what Spark is asked for
    bridge ...... the driver of `dtfctl up`, a program of its own
    executors ... the driver's part: gets the slots, starts a process on each host, and asks it; also of a user's driver
    task ........ the short task of Spark that starts the process, and leaves
    there ....... that process
    link ........ what both ends of a connection say
    words ....... the reason in an error of Spark
    probe ....... whether a master answers

No task of Spark lasts: the slots stay free for the jobs that feed the training.
"""
