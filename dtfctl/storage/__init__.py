"""The state folder: its layout, its owner, the SQLite file in it, and the keys of a run."""
