"""The text from which podman, buildah and docker build a small image of a cluster. Pure."""

from __future__ import annotations

import os
import shlex

from dtfctl.values.plan import ClusterPlan

_TEXT = """\
# Build it beside the cluster file: podman build -t {image} .
ARG BASE=python:3.12-slim
FROM ${{BASE}}

# The package, or the path or URL of a wheel; [tls] is for `security: tls`.
ARG DTF={dtf}
RUN pip install --no-cache-dir "${{DTF}}"
{requirements}
WORKDIR {folder}
COPY . {folder}

# Not root. A volume for checkpoints must be writable for this group (fsGroup).
USER 1000:1000
"""
_REQUIREMENTS = """
COPY {files} /tmp/requirements/
RUN cd /tmp/requirements && pip install --no-cache-dir {words} && rm -r /tmp/requirements
"""


def text(plan: ClusterPlan) -> str:
    """`requirements:` of the file are installed; the folder of the file becomes that of the image."""
    files = list(dict.fromkeys(file for task in plan.tasks() for file in task.settings.requirements.files))
    below = [os.path.relpath(file, plan.folder) for file in files]
    own = [file for file in below if not file.startswith("..")]
    requirements = ""
    if own:
        words = " ".join(f"-r {shlex.quote(os.path.basename(file))}" for file in own)
        requirements = _REQUIREMENTS.format(files=" ".join(map(shlex.quote, own)), words=words)
    host = plan.hosts[0]
    return _TEXT.format(
        image=plan.kubernetes.image or plan.name,
        dtf="dtf[tls]" if plan.security == "tls" else "dtf",
        requirements=requirements,
        folder=host.folder or "/app",
    )
