"""Disks that are full or refuse to be written: the error names the file, and nothing half done is left.

On real file systems of a mount namespace of the test's own; skipped where such a one cannot be made.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap

import pytest

PRELUDE = """
import json, os, subprocess, sys
import numpy as np
import dtf as tf

folder = sys.argv[1]


def mount(options):
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], check=True)


def outcome(action, *arguments, **more):
    try:
        return ["done", str(action(*arguments, **more))]
    except Exception as error:
        return [type(error).__name__, str(error)]
"""


def run_in_namespace(program, folder):
    """Runs a program as the root of a mount namespace; it finds `folder`, where it may mount."""
    command = ["unshare", "--map-root-user", "--mount", sys.executable, "-c", PRELUDE + textwrap.dedent(program)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    finished = subprocess.run(
        [*command, str(folder)], capture_output=True, text=True, env=environment, timeout=60, check=False
    )
    assert finished.returncode == 0, finished.stderr[-3000:]
    return json.loads(finished.stdout.splitlines()[-1])


@pytest.fixture(autouse=True)
def _namespaces(tmp_path):
    command = ["unshare", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "tmpfs", str(tmp_path)]
    try:
        possible = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        possible = False
    if not possible:
        pytest.skip("mount namespaces cannot be made here")


def test_a_save_onto_a_full_disk_names_it_and_the_checkpoint_before_stays_the_latest(tmp_path):
    found = run_in_namespace(
        """
        mount("size=512k")
        small = tf.get_variable("small", initializer=tf.zeros([1000]))
        large = tf.get_variable("large", initializer=tf.zeros([200_000]))
        results = {}
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            savers = {"whole": tf.train.Saver(), "sharded": tf.train.Saver(sharded=True)}
            before = tf.train.Saver([small]).save(session, f"{folder}/before", write_meta_graph=False)
            kept = sorted(os.listdir(folder))
            for name, saver in savers.items():
                results[name] = outcome(saver.save, session, f"{folder}/{name}")
                results[name].append(sorted(os.listdir(folder)) == kept)
            results["latest"] = tf.train.latest_checkpoint(folder) == before
            results["restored"] = outcome(tf.train.Saver([small]).restore, session, before)[0]
            # The data fits, the meta graph does not.
            with open(f"{folder}/filler", "wb") as filler:
                filler.write(bytes(os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize - 3 * 4096))
            kept = sorted(os.listdir(folder))
            results["meta"] = outcome(tf.train.Saver([small]).save, session, f"{folder}/late")
            results["latest after"] = tf.train.latest_checkpoint(folder) == before
            results["left"] = [name for name in sorted(os.listdir(folder)) if ".tmp" in name or "temp" in name]
        print(json.dumps(results))
        """,
        tmp_path,
    )
    for name in ("whole", "sharded"):
        kind, message, nothing_left = found[name]
        assert (kind, nothing_left) == ("ResourceExhaustedError", True), found[name]
        assert f"{tmp_path}/{name}" in message and "No space left on device" in message
    assert found["meta"][0] == "ResourceExhaustedError" and f"{tmp_path}/late" in found["meta"][1]
    assert found["latest"] and found["latest after"] and found["restored"] == "done" and found["left"] == []


def test_files_that_do_not_fit_or_may_not_be_written_are_named(tmp_path):
    found = run_in_namespace(
        """
        mount("size=64k")
        big = b"x" * 100_000
        results = {}

        def write_records():
            with tf.python_io.TFRecordWriter(f"{folder}/records") as writer:
                writer.write(big)

        def write_file():
            with tf.gfile.GFile(f"{folder}/file", "w") as file:
                file.write(big)

        tf.constant(big, name="big")
        graph_def = tf.get_default_graph().as_graph_def()
        actions = {
            "records": write_records,
            "file": write_file,
            "graph.pb": lambda: tf.train.write_graph(graph_def, folder, "graph.pb", as_text=False),
            "model.meta": lambda: tf.train.export_meta_graph(f"{folder}/model.meta"),
        }
        results["full"] = {name: outcome(action) for name, action in actions.items()}
        results["left"] = [name for name in os.listdir(folder) if name not in ("records", "file")]
        subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
        actions["checkpoint"] = lambda: tf.train.update_checkpoint_state(folder, f"{folder}/model")
        actions["events"] = lambda: tf.summary.FileWriter(f"{folder}/events")
        v = tf.get_variable("v", initializer=1.0)
        with tf.Session() as session:
            session.run(v.initializer)
            actions["saved"] = lambda: tf.train.Saver().save(session, f"{folder}/saved")
            results["read-only"] = {name: outcome(action) for name, action in actions.items()}
        print(json.dumps(results))
        """,
        tmp_path,
    )
    for name, (kind, message) in found["full"].items():
        assert kind == "ResourceExhaustedError" and f"{tmp_path}/{name}" in message, (name, kind, message)
    assert found["left"] == []
    for name, (kind, message) in found["read-only"].items():
        assert kind not in ("done", "OSError", "ValueError"), (name, kind, message)
        assert f"{tmp_path}/{name}" in message and "Read-only file system" in message, (name, kind, message)


def test_a_checkpoint_removed_while_it_is_read_is_not_found(tmp_path):
    import dtf as tf

    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.get_variable("v", initializer=1.0)
        session.run(v.initializer)
        saver = tf.train.Saver()
        path = saver.save(session, str(tmp_path / "model"))
        reader = tf.train.load_checkpoint(path)
        os.remove(f"{path}.data-00000-of-00001")
        with pytest.raises(tf.errors.NotFoundError, match="model.data-00000-of-00001"):
            reader.get_tensor("v")
        with pytest.raises(tf.errors.NotFoundError, match="model.data-00000-of-00001"):
            saver.restore(session, path)
