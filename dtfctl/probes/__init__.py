"""Whether tasks are ready, alive, or about to be taken away."""
