"""State: what outlives a step, and what waits between steps."""
