"""Meta graphs: a graph with its collections as one message and back."""

from __future__ import annotations

import pytest

import dtf as tf
from dtf import train
from dtf.train import meta_graph, meta_graph_import
from dtf.wire.pb import meta_graph_pb2, queue_runner_pb2, variable_pb2


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def build():
    """Returns the result op; leaves a variable of each kind, a queue runner and some collections."""
    with tf.device("/job:ps/task:0"):
        w = tf.get_variable("w", initializer=tf.constant([1.0, 2.0]))
        b = tf.get_variable("b", initializer=tf.constant(1.0), use_resource=True, trainable=False)
    train.get_or_create_global_step()
    queue = tf.FIFOQueue(3, [tf.float32], shapes=[[]], name="queue")
    train.add_queue_runner(train.QueueRunner(queue, [queue.enqueue(5.0)]))
    y = tf.add(w, b, name="y")
    for name, value in {"nodes": y, "numbers": 3, "rates": 0.5, "words": "hello"}.items():
        tf.add_to_collection(name, value)
    return y


def test_collections_go_into_their_lists(graph):
    build()
    message = train.export_meta_graph()
    kinds = {key: value.WhichOneof("kind") for key, value in message.collection_def.items()}
    assert kinds == {
        "global_step": "bytes_list",
        "nodes": "node_list",
        "numbers": "int64_list",
        "queue_runners": "bytes_list",
        "rates": "float_list",
        "trainable_variables": "bytes_list",
        "variables": "bytes_list",
        "words": "bytes_list",
    }
    first = variable_pb2.VariableDef.FromString(message.collection_def["variables"].bytes_list.value[0])
    assert (first.variable_name, first.initializer_name, first.snapshot_name) == ("w:0", "w/Assign", "w/read:0")
    runner = queue_runner_pb2.QueueRunnerDef.FromString(message.collection_def["queue_runners"].bytes_list.value[0])
    assert runner.queue_name == "queue"
    assert message.graph_def == graph.as_graph_def(add_shapes=True)


@pytest.mark.parametrize("as_text", [False, True])
def test_an_exported_graph_runs_when_it_is_imported(tmp_path, as_text):
    build()
    path = str(tmp_path / "folder" / "model.meta")
    train.export_meta_graph(path, as_text=as_text, saver_def=train.Saver().saver_def)
    with tf.Graph().as_default(), tf.Session() as session:
        saver = train.import_meta_graph(path, clear_devices=True)
        assert [v.name for v in tf.global_variables()] == ["w:0", "b:0", "global_step:0"]
        assert tf.trainable_variables() == tf.global_variables()[:1]
        assert train.get_global_step() is tf.global_variables()[2]
        assert tf.get_collection("numbers") == [3]
        assert tf.get_collection("words") == [b"hello"]
        session.run(tf.global_variables_initializer())
        assert session.run(tf.get_collection("nodes")[0]).tolist() == [2.0, 3.0]
        (runner,) = tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS)
        assert runner.enqueue_ops[0].name == "queue_enqueue"
        saved = saver.save(session, str(tmp_path / "model"))
    assert train.list_variables(saved) == [("b", []), ("global_step", []), ("w", [2])]


def test_a_graph_may_be_imported_twice_under_two_scopes(tmp_path):
    build()
    message = train.export_meta_graph(saver_def=train.Saver().saver_def, clear_devices=True)
    with tf.Graph().as_default(), tf.Session() as session:
        savers = [train.import_meta_graph(message, import_scope=scope) for scope in ("first", "second")]
        assert [saver.saver_def.restore_op_name for saver in savers] == [
            "first/save/restore_all",
            "second/save/restore_all",
        ]
        session.run(tf.global_variables_initializer())
        path = savers[0].save(session, str(tmp_path / "model"), write_meta_graph=False)
        savers[1].restore(session, path)
        assert session.run("second/y:0").tolist() == [2.0, 3.0]


def test_a_scope_is_exported_without_its_prefix():
    with tf.name_scope("inner"):
        v = tf.Variable(2.0, name="v")
        tf.identity(v, name="out")
    outside = tf.constant(1.0)
    message = train.export_meta_graph(export_scope="inner")
    assert "out" in [node.name for node in message.graph_def.node]
    with tf.Graph().as_default(), tf.Session() as session:
        variables = meta_graph_import.import_scoped_meta_graph(message, import_scope="elsewhere")
        assert list(variables) == ["v:0"]
        session.run(variables["v:0"].initializer)
        assert session.run("elsewhere/out:0") == 2.0
    with tf.name_scope("inner/"):
        tf.identity(outside)
    message = train.export_meta_graph(export_scope="inner")
    assert message.collection_def["unbound_inputs"].bytes_list.value == [f"$unbound_inputs_{outside.op.name}".encode()]
    with tf.Graph().as_default() as graph:
        with pytest.raises(ValueError, match="Graph contains unbound inputs"):
            meta_graph_import.import_scoped_meta_graph(message)
        given = {f"$unbound_inputs_{outside.op.name}": tf.constant(7.0)}
        meta_graph_import.import_scoped_meta_graph(message, import_scope="copy", input_map=given)
        with tf.Session() as session:
            assert session.run(graph.get_tensor_by_name("copy/Identity:0")) == 7.0


def test_inputs_may_be_mapped_at_the_import():
    x = tf.placeholder(tf.float32, [], name="x")
    tf.add(x, 1.0, name="y")
    message = train.export_meta_graph()
    with tf.Graph().as_default(), tf.Session() as session:
        assert train.import_meta_graph(message, input_map={"x:0": tf.constant(4.0)}) is None
        assert session.run("y:0") == 5.0


def test_without_a_saver_def_a_saver_is_made_if_there_are_variables():
    tf.Variable(1.0)
    message = train.export_meta_graph()
    with tf.Graph().as_default():
        assert isinstance(train.import_meta_graph(message), train.Saver)


def test_default_attributes_may_be_left_out():
    tf.matmul(tf.zeros([1, 1]), tf.zeros([1, 1]), name="m")
    message = train.export_meta_graph(strip_default_attrs=True)
    (node,) = [node for node in message.graph_def.node if node.name == "m"]
    assert sorted(node.attr) == ["T", "_output_shapes"]
    assert message.meta_info_def.stripped_default_attrs


def test_savers_other_than_the_one_given_may_be_left_out():
    tf.Variable(1.0)
    first, second = train.Saver(), train.Saver()
    for saver in (first, second):
        tf.add_to_collection(tf.GraphKeys.SAVERS, saver)
    assert len(train.export_meta_graph().collection_def["savers"].bytes_list.value) == 2
    message = second.export_meta_graph(clear_extraneous_savers=True)
    assert list(message.collection_def["savers"].bytes_list.value) == [second.saver_def.SerializeToString()]


def test_entries_without_a_form_in_a_file_are_left_out():
    tf.add_to_collection("odd", object())
    tf.add_to_collection(("a", "tuple"), 1)
    assert not train.export_meta_graph().collection_def


def test_a_collection_may_have_its_own_message():
    class Rate:
        def __init__(self, value):
            self.value = value

        def to_proto(self, export_scope=None):
            return meta_graph_pb2.TensorInfo(name=self.value)

    meta_graph.register_proto_function(
        "own",
        meta_graph_pb2.TensorInfo,
        to_proto=Rate.to_proto,
        from_proto=lambda proto, import_scope=None: Rate(proto.name),
    )
    tf.add_to_collection("own", Rate("fast"))
    message = train.export_meta_graph()
    with tf.Graph().as_default():
        train.import_meta_graph(message)
        assert tf.get_collection("own")[0].value == "fast"


def test_files_that_are_no_meta_graphs_are_refused(tmp_path):
    with pytest.raises(tf.errors.NotFoundError, match=r"does not exist"):
        train.import_meta_graph(str(tmp_path / "nothing.meta"))
    (tmp_path / "bad.meta").write_bytes(b"\xff\xfenot a message")
    with pytest.raises(ValueError, match="Cannot parse"):
        train.import_meta_graph(str(tmp_path / "bad.meta"))


def test_conditionals_and_loops_survive_the_round_trip():
    x = tf.placeholder(tf.float32, [], name="x")
    chosen = tf.cond(x > 0.0, lambda: x * 2.0, lambda: x - 1.0)
    looped = tf.while_loop(lambda i: i < 10.0, lambda i: i + chosen, [x])
    tf.identity(looped, name="out")
    message = train.export_meta_graph()
    with tf.Graph().as_default(), tf.Session() as session:
        train.import_meta_graph(message)
        assert session.run("out:0", {"x:0": 3.0}) == 15.0


@pytest.mark.parametrize("as_text", [False, True])
def test_a_graph_is_written_as_text_or_bytes(tmp_path, graph, as_text):
    from google.protobuf import text_format

    build()
    path = train.write_graph(graph, str(tmp_path / "logs"), "graph", as_text=as_text)
    assert path == str(tmp_path / "logs" / "graph")
    data = (tmp_path / "logs" / "graph").read_bytes()
    read = type(graph.as_graph_def())()
    if as_text:
        text_format.Parse(data.decode(), read)
    else:
        read.ParseFromString(data)
    assert read == graph.as_graph_def()
