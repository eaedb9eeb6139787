"""Ray as an engine: a placement group gives the hosts, and calls of an actor on each are the pipe to it.

    group ....... asks for the group before a run, and gives it back
    launcher .... RemoteLauncher, and a guard that ends on the host what a dead actor leaves
    pipe ........ a command on a host
    client ...... dtfctl's end of the socket to the bridge
    bridge ...... a program of its own, the driver; it alone imports ray, and holds the actor
"""
