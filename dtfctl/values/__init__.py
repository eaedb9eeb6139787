"""What is known of a cluster, as frozen values: plan, run, tasks, hosts, history. Pure: no clock, no disk."""
