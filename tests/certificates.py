"""Credentials for tests, made as dtfctl makes them: an authority for each cluster, kept for the whole test run."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

pytest.importorskip("cryptography")

from dtf.wire import credentials  # noqa: E402
from dtfctl.storage import certificates


@cache
def authority(cluster: str):
    return certificates.make_authority(cluster)


def environment(folder: Path, cluster: str = "trial, run 1", task: str = "worker:0", hosts: tuple[str, ...] = ()):
    """The variables of a task, whose files are written to `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    key, certificate = certificates.issue(authority(cluster), task, hosts)
    contents = {
        certificates.CA_VARIABLE: certificates.pem(authority(cluster)[1]),
        certificates.CERTIFICATE_VARIABLE: certificates.pem(certificate),
        certificates.KEY_VARIABLE: certificates.pem_of_key(key),
    }
    paths = {}
    for name, content in contents.items():
        path = folder / f"{cluster} {task} {name}.pem"
        path.write_bytes(content)
        paths[name] = str(path)
    return paths


def credentials_of(folder: Path, cluster: str = "trial, run 1", task: str = "worker:0", hosts: tuple[str, ...] = ()):
    found = credentials.from_environment(environment(folder, cluster, task, hosts))
    assert found is not None
    return found
