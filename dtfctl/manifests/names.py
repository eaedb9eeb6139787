"""Which names Kubernetes takes: labels of DNS (RFC 1035), for a cluster, its jobs and its tasks. Pure."""

from __future__ import annotations

import re

LABEL_MAX = 63
SUFFIX_MAX = 11
"""So much longer than a task's name a pod's is at most: a Job appends five letters, a restart its number."""

_LABEL = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?")
_MUST = 'use lower-case letters, digits and "-", and begin with a letter'


def wrong_cluster(name: str) -> str:
    """What is wrong with a cluster's name, or ""; it becomes that of a Service."""
    if _LABEL.fullmatch(name):
        return ""
    return f'Kubernetes does not take "{name}" as the name of a cluster; {_MUST}: name: ...'


def wrong_job(cluster: str, job: str, replicas: int) -> str:
    """What is wrong with a job's name, or ""; its tasks are called CLUSTER-JOB-INDEX."""
    if not _LABEL.fullmatch(job):
        return f'Kubernetes does not take "{job}" as the name of a job; {_MUST}'
    longest = task_name(cluster, job, max(0, replicas - 1))
    if len(longest) + SUFFIX_MAX > LABEL_MAX:
        most = LABEL_MAX - SUFFIX_MAX
        return f'the name "{longest}" of a pod is too long: {len(longest)} letters of at most {most}'
    return ""


def job_name(cluster: str, job: str) -> str:
    return f"{cluster}-{job}"


def task_name(cluster: str, job: str, index: int) -> str:
    """The host name of a task's pod."""
    return f"{cluster}-{job}-{index}"
