"""Whether a cluster could start here: questions to each host, and what can be read from programs and flags."""
