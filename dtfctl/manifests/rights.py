"""What a run does in its namespace, as RBAC names it: what is asked for before a start, and what a Role needs. Pure."""

from __future__ import annotations

Right = tuple[str, str]

RIGHTS: tuple[Right, ...] = (
    *(("create", "configmaps"), ("get", "configmaps"), ("delete", "configmaps")),
    *(("create", "services"), ("get", "services"), ("delete", "services")),
    *(("create", "secrets"), ("delete", "secrets")),
    *(("create", "pods"), ("delete", "pods"), ("list", "pods"), ("watch", "pods")),
    ("get", "pods/log"),
)
"""(verb, resource), all of the core group. None is more than a run needs: a test takes away one after the other."""
