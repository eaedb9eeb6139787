"""dtfctl: one YAML file becomes a running, supervised cluster. README.md beside this file is the tour."""

__version__ = "0.1.0"
