"""Kills of everything in a cluster whose training is known exactly: a campaign drawn from a seed.

    trainer ... the training, and what cannot be in a state of it
    cluster ... its processes by role, on this machine or on hosts made of namespaces
    campaign .. operations, moments, kills, and whether all is well after each
    slurm ..... the same training as a job of Slurm: kills of tasks, steps, slurmd, nodes, and requeues
    checks .... what must be true of logs, checkpoints and history (pure)

`python -m tests.e2e.chaos --seed 1 --kills 50 --security tls --hosts namespaces` runs one.
"""
