"""The commands, a room for each group. Functions here parse and print; what they do is the other modules'.

    frame ....... what all of them share: options, choosing a cluster, errors and exit statuses
    lifecycle ... up, down, wait            tasks .... restart, stop, start, scale, exec
    inspect ..... status, ls, events, top   logs ..... logs
    figures ..... metrics                   tracing .. trace, explain
    curves ...... plot, tensorboard         page ..... ui
    places ...... promote (the backup of a durable ps serves; without a supervisor too)
    moving ...... move, drain, balance (tasks go to other hosts; places of durable ps live)
    checkpoints . checkpoints (dtf's command, run on the cluster's folder)
    keys ........ explain-key               synonyms . words of other tools
    files ....... validate, config, expand, schema, init
    hosts ....... ssh, doctor               manual ... help, completion
    in_job ...... commands on a cluster in a job of Slurm

Imports stand inside the functions, but for click and the verbs of requests, so that --help and mistakes are answered
at once.
"""
