"""`dtf.compat.v1` is the package `dtf` itself under another name."""

from dtf import *  # noqa: F403
