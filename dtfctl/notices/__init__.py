"""Messages to the outside about what happens to a cluster, the key `notify` of the cluster file: documents (the
message of each event), sender (runs the commands, bounded), webhook (the program that posts to a URL)."""
