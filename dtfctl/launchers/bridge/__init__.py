"""Engines whose own client speaks from a process beside dtfctl: the bridge. Ray and Spark share what is here.

    group ....... asks the engine for hosts before a run, and gives them back
    launcher .... RemoteLauncher, and a guard that ends on the host what the engine has taken back
    pipe ........ a command on a host
    client ...... dtfctl's end of the socket to the bridge
    server ...... the bridge's end; an Engine is what it asks for hosts
    commands .... runs the commands on a host

The last two run in the engine's Python, which need not have dtfctl: they need nothing but Python.
"""
