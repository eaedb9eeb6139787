"""Input from other processes: bytes become checked messages and dataclasses, or an error in words."""
