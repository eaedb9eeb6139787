"""Kubernetes: each process of a task is a pod, and the pods of a run belong to one object.

    api ........ requests to the API server, and streams     watch ... changes of pods, from a list on
    launcher ... a base.HostLauncher: starts and ends pods   pods .... what a pod's state says, in words
    objects .... what a run has in its namespace             logs .... the output of pods, into the run's logs
    provision .. whether a run could start there; cleans up

A pod is no host with a keeper: exits come from its status, logs and probes from its kubelet, and nothing of dtfctl
runs in it. So any image will do, and the API server may be away: pods go on, and a new list tells what has become of
them.
"""
