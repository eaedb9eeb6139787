"""A checkpoint with its meta graph moves between the two runtimes, in both directions, and training goes on from it."""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import numpy as np
import pytest

import dtf as tf
from dtf import train
from dtf.wire.increments import compact, opened
from tests.interop import meta_graph_programs as programs
from tests.interop import table_programs
from tests.interop.tensorflow_process import needs_tensorflow, run

pytestmark = needs_tensorflow

PROGRAM = """
from tests.interop import meta_graph_programs

print(json.dumps(getattr(meta_graph_programs, sys.argv[1])(tf, *sys.argv[2:])))
"""


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


@pytest.fixture(scope="module")
def begun(tensorflow, tmp_path_factory):
    """{who: (checkpoint, losses after it)}: the same training, begun by each."""
    folder = tmp_path_factory.mktemp("begun")
    theirs = tensorflow.run(PROGRAM, "begin", str(folder / "theirs"))
    with tf.Graph().as_default():
        return {"theirs": theirs, "ours": programs.begin(tf, str(folder / "ours"))}


@pytest.mark.parametrize("who", ["ours", "theirs"])
def test_each_trains_on_from_the_others_meta_graph(tensorflow, begun, tmp_path, who):
    prefix, losses = begun[who]
    theirs = tensorflow.run(PROGRAM, "go_on", prefix, str(tmp_path / "again"))
    ours = json.loads(json.dumps(programs.go_on(tf, prefix, str(tmp_path / "once_more"))))
    np.testing.assert_allclose([ours.pop("losses"), theirs.pop("losses")], [losses, losses], rtol=1e-5)
    assert ours.pop("again").replace("once_more", "again") == theirs["again"]
    assert ours == {name: value for name, value in theirs.items() if name != "again"}
    # What the other's runtime wrote with these same ops is read again.
    with tf.Graph().as_default(), tf.Session() as session:
        train.import_meta_graph(prefix + ".meta").restore(session, theirs["again"])
        assert session.run(train.get_global_step()) == 6


def test_what_a_meta_graph_tells_is_the_same(begun):
    ours, theirs = (
        programs.told(tf.MetaGraphDef.FromString(Path(f"{begun[who][0]}.meta").read_bytes()))
        for who in ("ours", "theirs")
    )
    assert ours == theirs and ours["all_ops"] and ours["versions"]


@pytest.mark.parametrize("who", ["ours", "theirs"])
def test_scopes_devices_and_parts_of_a_meta_graph_are_the_same(tensorflow, begun, who):
    prefix = begun[who][0]
    theirs = tensorflow.run(PROGRAM, "imported_twice", prefix)
    ours = json.loads(json.dumps(programs.imported_twice(tf, prefix)))
    for scope in ("one", "two"):
        np.testing.assert_allclose(ours.pop(scope), theirs.pop(scope), rtol=1e-6)
    np.testing.assert_allclose(ours["imported"][1], theirs["imported"][1], rtol=1e-6)
    ours["imported"][1] = theirs["imported"][1] = None
    assert ours == theirs


def test_text_and_stripped_forms_go_both_ways(tensorflow, begun, tmp_path):
    prefix = begun["ours"][0]
    for name, arguments in (("text", {"as_text": True}), ("stripped", {"strip_default_attrs": True})):
        with tf.Graph().as_default():
            saver = train.import_meta_graph(f"{prefix}.meta")
            saver.export_meta_graph(f"{tmp_path}/ours.{name}", **arguments)
        found = tensorflow.run(
            """
            saver = tf.train.import_meta_graph(sys.argv[1])
            saver.export_meta_graph(sys.argv[2], **json.loads(sys.argv[3]))
            with tf.Session() as session:
                saver.restore(session, sys.argv[4])
                print(json.dumps(float(session.run("loss:0", {"x:0": [[1.0, 2.0]], "t:0": [[1.0]]}))))
            """,
            f"{tmp_path}/ours.{name}",
            f"{tmp_path}/theirs.{name}",
            json.dumps(arguments),
            prefix,
        )
        with tf.Graph().as_default(), tf.Session() as session:
            train.import_meta_graph(f"{tmp_path}/theirs.{name}").restore(session, prefix)
            assert session.run("loss:0", {"x:0": [[1.0, 2.0]], "t:0": [[1.0]]}) == pytest.approx(found)
        assert (tmp_path / f"ours.{name}").read_bytes().isascii() == (name == "text")


def graph_tools(tf, folder):
    """What tf.graph_util and write_graph make of a model with variables of each kind."""
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    ids = tf.placeholder(tf.int32, [None], name="ids")
    w = tf.get_variable("w", initializer=tf.constant([[1.0], [2.0]]))
    r = tf.get_variable("r", initializer=tf.constant([1.0]), use_resource=True)
    table = tf.get_variable("table", initializer=tf.ones([3, 2]), use_resource=True)
    rows = tf.gather(table, ids)
    with tf.control_dependencies([tf.identity(x, name="watched")]):
        y = tf.add(tf.matmul(x, w) + r, tf.reduce_sum(rows), name="y")
    tf.add(y, 1.0, name="unused")
    found = {}
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        graph_def = session.graph.as_graph_def()
        part = tf.graph_util.extract_sub_graph(graph_def, ["y"])
        frozen = tf.graph_util.convert_variables_to_constants(session, graph_def, ["y"])
        some = tf.graph_util.convert_variables_to_constants(session, graph_def, ["y"], ["w"])
        small = tf.graph_util.remove_training_nodes(frozen, ["y"])
    found["refused"] = []
    for nodes in ("y", ["nowhere"]):
        try:
            tf.graph_util.extract_sub_graph(graph_def, nodes)
        except Exception as error:
            found["refused"].append(type(error).__name__)
    for name, message in {"part": part, "frozen": frozen, "some": some, "small": small}.items():
        found[name] = sorted([node.name, node.op] for node in message.node if node.op in KINDS)
        path = tf.train.write_graph(message, folder, f"{name}.pbtxt", as_text=name != "small")
        found[f"{name}_path"] = path.removeprefix(folder)
    return found


KINDS = (
    "VariableV2",
    "VarHandleOp",
    "Placeholder",
    "MatMul",
    "ReadVariableOp",
    "ResourceGather",
    "GatherV2",
)


def run_frozen(tf, folder):
    """Runs the frozen graph that a folder has, whoever made it."""
    with open(f"{folder}/small.pbtxt", "rb") as file:
        message = tf.GraphDef.FromString(file.read())
    with tf.Graph().as_default(), tf.Session() as session:
        (y,) = tf.import_graph_def(message, return_elements=["y:0"], name="")
        return session.run(y, {"x:0": [[1.0, 2.0]], "ids:0": [0, 2]}).tolist()


def test_graphs_are_cut_and_frozen_as_tensorflow_does(tensorflow, tmp_path):
    (tmp_path / "ours").mkdir()
    (tmp_path / "theirs").mkdir()
    ours = json.loads(json.dumps(graph_tools(tf, f"{tmp_path}/ours")))
    theirs, results = tensorflow.run(
        f"KINDS = {KINDS!r}\n"
        + inspect.getsource(graph_tools)
        + inspect.getsource(run_frozen)
        + "made = graph_tools(tf, sys.argv[1] + '/theirs')\n"
        + "print(json.dumps([made, [run_frozen(tf, f'{sys.argv[1]}/{who}') for who in ('ours', 'theirs')]]))",
        str(tmp_path),
    )
    assert ours == theirs
    assert results == [[[10.0]], [[10.0]]]
    assert [run_frozen(tf, f"{tmp_path}/{who}") for who in ("ours", "theirs")] == results


@pytest.mark.parametrize("who", ["ours", "theirs"])
def test_tables_go_both_ways(tensorflow, tmp_path, who):
    program = """
    from tests.interop import table_programs

    print(json.dumps(getattr(table_programs, sys.argv[1])(tf, sys.argv[2])))
    """
    prefix = str(tmp_path / "m")
    if who == "ours":
        saved = table_programs.save(tf, prefix)
        assert tensorflow.run(program, "load", prefix) == saved
    else:
        saved = tensorflow.run(program, "save", prefix)
        assert table_programs.load(tf, prefix) == saved
    assert saved[0] == [2, 1, table_programs.COUNT - 1, table_programs.COUNT]


def test_tensorflow_reads_a_compacted_increment(tmp_path):
    with tf.Graph().as_default(), tf.Session() as session:
        table = tf.get_variable("table", [4000, 16], initializer=tf.random_uniform_initializer(), use_resource=True)
        step = table.scatter_add(tf.IndexedSlices(tf.ones([2, 16]), tf.constant([3, 3999])))
        saver = tf.train.Saver(increments=5, sharded=True)
        session.run(table.initializer)
        saver.save(session, str(tmp_path / "model"), 1)
        session.run(step)
        prefix = saver.save(session, str(tmp_path / "model"), 2)
        expected = session.run(table)
    assert opened(prefix).bases()
    assert compact(prefix)
    found = run(
        """
        reader = tf.train.load_checkpoint(sys.argv[1])
        table = reader.get_tensor("table")
        print(json.dumps([list(reader.get_variable_to_shape_map()), table[[0, 3, 3999], :2].tolist()]))
        """,
        prefix,
    )
    assert found == [["table"], expected[[0, 3, 3999], :2].tolist()]
