"""What the user sees: tables, JSON, the live view, and the output while a command waits."""
