"""Exchange: how values change hands, within a task and between tasks."""
