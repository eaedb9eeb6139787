"""Pictures for notebooks: the tasks of a cluster and the curves of a folder, and the words that show them."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import types
from pathlib import Path

import pytest

import dtf as tf
from dtf import notebook
from dtf.testing import LocalCluster


def test_a_picture_has_tasks_and_a_line_for_each_run():
    curves = {"loss": {".": [(0, 3.0), (10, 1.0)], "worker-1": [(0, 2.0), (10, float("nan"))]}}
    text = notebook.render([("ps:0", "h:1", "running"), ("worker:0", "h:2", "not running")], curves)
    assert text.count("<polyline") == 2 and text.count("<tr>") == 3
    assert "loss: 2 (from 1 to 3)" in text and "nan" not in text


def test_names_from_outside_stay_text():
    text = notebook.render([("<script>", "&", "running")], {"<b>": {"<i>": [(0, 1.0), (1, 2.0)]}})
    assert "<script>" not in text and "<b>" not in text and "<i>" not in text


def test_scalars_are_read_by_tag_and_run(tmp_path):
    for run in (tmp_path, tmp_path / "worker-1"):
        writer = tf.summary.FileWriter(str(run))
        for step in range(3):
            summary = tf.Summary(value=[tf.Summary.Value(tag="loss", simple_value=float(step))])
            writer.add_summary(summary, step)
        writer.close()
    assert notebook.scalars(str(tmp_path)) == {
        "loss": {".": [(0, 0.0), (1, 1.0), (2, 2.0)], "worker-1": [(0, 0.0), (1, 1.0), (2, 2.0)]}
    }
    assert notebook.scalars(str(tmp_path / "none")) == {}


def test_the_extension_shows_a_cluster_by_its_name(monkeypatch, capsys):
    magics, formatters, shown = {}, {}, []
    formatter = types.SimpleNamespace(for_type=lambda kind, function: formatters.update({kind: function}))
    ipython = types.SimpleNamespace(
        user_ns={},
        register_magic_function=lambda function, kind, name: magics.update({name: function}),
        display_formatter=types.SimpleNamespace(formatters={"text/html": formatter}),
    )
    notebook.load_ipython_extension(ipython)
    monkeypatch.setattr(notebook, "show", lambda *arguments: shown.append(arguments))
    with LocalCluster({"ps": 1, "worker": 1}) as cluster:
        ipython.user_ns["cluster"] = cluster
        magics["dtf"]("cluster logs 2.5")
        magics["dtf"]("cluster")
        assert formatters[LocalCluster](cluster).count("running") == 2
    assert shown == [(cluster, "logs", 2.5), (cluster, "", 0.0)]
    magics["dtf"]("other")
    assert "other is not a LocalCluster" in capsys.readouterr().out


CELLS = """
%load_ext dtf
from dtf.testing import LocalCluster
formatter = get_ipython().display_formatter.formatters["text/html"]
formatter.enabled = True  # as in a notebook
with LocalCluster({"ps": 1, "worker": 1}) as cluster:
    get_ipython().run_line_magic("dtf", "cluster")
    print(formatter(cluster))
%dtf nothing
"""


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("IPython") is None, reason="IPython is not installed")
def test_a_real_ipython_loads_the_package_and_shows_a_cluster(tmp_path):
    (tmp_path / "cells.ipy").write_text(CELLS)
    root = Path(__file__).resolve().parents[2]
    environment = {**os.environ, "IPYTHONDIR": str(tmp_path / "profile"), "PYTHONPATH": f"{root}:{root / 'runtime'}"}
    done = subprocess.run(
        [sys.executable, "-m", "IPython", "--colors=NoColor", "cells.ipy"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert "IPython.core.display.HTML object" in done.stdout, done.stdout + done.stderr
    assert done.stdout.count(">running<") == 2
    assert "nothing is not a LocalCluster" in done.stdout
