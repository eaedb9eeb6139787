"""Trainers in the style of well-known repositories, as small as sensible: each leaves its losses in `LOSSES`."""
