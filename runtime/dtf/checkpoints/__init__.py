"""The checkpoints of a folder: `python -m dtf.checkpoints FOLDER [list|verify|prune|compact]`.

`dtfctl checkpoints` runs it for a cluster's folder.

    folder ...... what there is, what is damaged, what may be removed (functions for programs too)
    __main__ .... the command: its arguments, tables and JSON
"""
