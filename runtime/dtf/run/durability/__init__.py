"""State of a task that outlives its process: see runtime/durability.md."""
