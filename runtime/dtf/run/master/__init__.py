"""Masters: the sessions of a task, their graphs, and their compiled steps."""
