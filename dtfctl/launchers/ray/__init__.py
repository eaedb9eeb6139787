"""Ray as an engine: a placement group gives the hosts, and calls of an actor on each are the pipe to it.

    request ..... what Ray is asked for
    bridge ...... the driver, a program of its own; it alone imports ray, and holds the actors
"""
