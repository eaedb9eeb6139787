"""Fuzz targets: what comes from outside, changed at random with a seed. A finding becomes a line of its corpus."""
