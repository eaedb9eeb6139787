"""Savers: what is saved, under which names, what is kept, and what is said of a bad checkpoint."""

from __future__ import annotations

import os

import numpy as np
import pytest

import dtf as tf
from dtf import train
from dtf.build.saveable_object import SaveableObject
from dtf.testing import LocalCluster
from dtf.train import saver as saver_module
from dtf.wire.pb import saver_pb2


@pytest.fixture(autouse=True)
def session():
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def variable(name, value, **arguments):
    return tf.get_variable(name, initializer=tf.constant(value), **arguments)


def initialize(session):
    session.run(tf.global_variables_initializer())


def names_in(prefix):
    return [name for name, _ in train.list_variables(prefix)]


@pytest.mark.parametrize("sharded", [False, True])
@pytest.mark.parametrize("use_resource", [False, True])
def test_what_is_saved_is_restored_in_another_session(session, tmp_path, sharded, use_resource):
    v = variable("v", [1.0, 2.0], use_resource=use_resource)
    n = variable("n", np.int64(3), use_resource=use_resource)
    s = variable("s", [b"a", b"bc"]) if not use_resource else n
    initialize(session)
    saver = train.Saver(sharded=sharded)
    path = saver.save(session, str(tmp_path / "model"))
    assert path == str(tmp_path / "model")
    with tf.Session() as other:
        saver.restore(other, path)
        assert other.run(v).tolist() == [1.0, 2.0]
        assert other.run(n) == 3
        assert other.run(s).tolist() == session.run(s).tolist()
    assert sorted(os.listdir(tmp_path)) == ["checkpoint", "model.data-00000-of-00001", "model.index", "model.meta"]


def test_ops_have_the_names_that_tensorflow_gives_them(session):
    variable("v", 1.0)
    variable("r", 2.0, use_resource=True)
    saver = train.Saver(max_to_keep=7, keep_checkpoint_every_n_hours=2)
    assert saver.saver_def == saver_pb2.SaverDef(
        filename_tensor_name="save/Const:0",
        save_tensor_name="save/control_dependency:0",
        restore_op_name="save/restore_all",
        max_to_keep=7,
        keep_checkpoint_every_n_hours=2,
        version=saver_pb2.SaverDef.V2,
    )
    ops = {op.name: op.type for op in session.graph.get_operations() if op.name.startswith("save/")}
    expected = {
        "save/filename/input": "Const",
        "save/filename": "PlaceholderWithDefault",
        "save/Const": "PlaceholderWithDefault",
        "save/SaveV2/tensor_names": "Const",
        "save/SaveV2/shape_and_slices": "Const",
        "save/SaveV2": "SaveV2",
        "save/control_dependency": "Identity",
        "save/RestoreV2/tensor_names": "Const",
        "save/RestoreV2": "RestoreV2",
        "save/AssignVariableOp": "AssignVariableOp",
        "save/Assign": "Assign",
        "save/restore_all": "NoOp",
    }
    assert {name: ops.get(name) for name in expected} == expected


def test_a_dictionary_says_the_names_in_the_checkpoint(session, tmp_path):
    v, w = variable("v", 1.0), variable("w", 2.0)
    initialize(session)
    path = train.Saver({"first": v, "second": w}).save(session, str(tmp_path / "model"))
    assert names_in(path) == ["first", "second"]
    swapped = train.Saver({"first": w, "second": v})
    swapped.restore(session, path)
    assert session.run([v, w]) == [2.0, 1.0]


def test_the_parts_of_a_variable_are_saved_as_one_and_read_in_other_parts(session, tmp_path):
    value = np.arange(14, dtype=np.float32).reshape(7, 2)
    with tf.variable_scope("three"):
        three = tf.get_variable("v", initializer=tf.constant(value), partitioner=tf.fixed_size_partitioner(3))
    with tf.variable_scope("two"):
        two = tf.get_variable("v", initializer=tf.zeros([7, 2]), partitioner=tf.fixed_size_partitioner(2))
    with tf.variable_scope("one"):
        one = tf.get_variable("v", initializer=tf.zeros([7, 2]))
    initialize(session)
    path = train.Saver(list(three)).save(session, str(tmp_path / "model"))
    assert train.list_variables(path) == [("three/v", [7, 2])]
    train.Saver({"three/v": two}).restore(session, path)
    np.testing.assert_array_equal(session.run(tf.convert_to_tensor(two)), value)
    train.Saver({"three/v": one}).restore(session, path)
    np.testing.assert_array_equal(session.run(one), value)
    path = train.Saver({"three/v": one}).save(session, str(tmp_path / "whole"))
    session.run(tf.global_variables_initializer())
    train.Saver({"three/v": list(two)}).restore(session, path)
    np.testing.assert_array_equal(session.run(tf.convert_to_tensor(two)), value)


def test_a_partition_of_one_part_is_saved_under_the_whole_name(session, tmp_path):
    variable("v", [[1.0], [2.0]], partitioner=tf.fixed_size_partitioner(1))
    initialize(session)
    path = train.Saver().save(session, str(tmp_path / "model"))
    assert train.list_variables(path) == [("v", [2, 1])]
    assert train.load_variable(path, "v").tolist() == [[1.0], [2.0]]


def test_each_ps_writes_a_file_of_its_own_and_the_last_merges_them(tmp_path):
    with LocalCluster({"ps": 2, "worker": 1}) as cluster, tf.Graph().as_default() as graph:
        with tf.device(train.replica_device_setter(cluster=cluster.cluster_spec)):
            v, w = variable("v", 1.0), variable("w", 2.0)
        saver = train.Saver(sharded=True)
        merge = graph.get_operation_by_name("save/MergeV2Checkpoints")
        assert tf.DeviceSpec.from_string(merge.device).task == 1
        with tf.Session(cluster.target("worker")) as session:
            session.run(tf.global_variables_initializer())
            path = saver.save(session, str(tmp_path / "model"), global_step=5)
        assert sorted(os.listdir(tmp_path)) == [
            "checkpoint",
            "model-5.data-00000-of-00002",
            "model-5.data-00001-of-00002",
            "model-5.index",
            "model-5.meta",
        ]
        with tf.Session(cluster.target("worker")) as session:
            session.run(tf.assign(v, 9.0))
            saver.restore(session, path)
            assert session.run([v, w]) == [1.0, 2.0]


def test_only_the_last_checkpoints_are_kept(session, tmp_path):
    variable("v", 1.0)
    initialize(session)
    saver = train.Saver(max_to_keep=2)
    paths = [saver.save(session, str(tmp_path / "model"), global_step=step) for step in range(4)]
    assert saver.last_checkpoints == paths[2:]
    assert [train.checkpoint_exists(path) for path in paths] == [False, False, True, True]
    assert sorted(path for path in os.listdir(tmp_path) if path.endswith(".meta")) == ["model-2.meta", "model-3.meta"]
    state = train.get_checkpoint_state(str(tmp_path))
    assert state.model_checkpoint_path == paths[3]
    assert list(state.all_model_checkpoint_paths) == paths[2:]


def test_one_checkpoint_of_so_many_hours_is_kept_for_good(session, tmp_path):
    variable("v", 1.0)
    initialize(session)
    clock = Clock()
    saver = train.Saver(max_to_keep=1, keep_checkpoint_every_n_hours=1, clock=clock)
    paths = []
    for step in range(7):
        paths.append(saver.save(session, str(tmp_path / "model"), global_step=step))
        clock.now += 1200.0
    assert [step for step, path in enumerate(paths) if train.checkpoint_exists(path)] == [4, 6]


def test_all_are_kept_when_the_bound_is_none_and_the_state_names_the_last(session, tmp_path):
    variable("v", 1.0)
    initialize(session)
    saver = train.Saver(max_to_keep=None)
    paths = [saver.save(session, str(tmp_path / "model"), global_step=step) for step in range(7)]
    assert all(train.checkpoint_exists(path) for path in paths)
    assert list(train.get_checkpoint_state(str(tmp_path)).all_model_checkpoint_paths) == paths[-1:]


def test_a_new_process_takes_over_what_the_old_one_left(session, tmp_path):
    variable("v", 1.0)
    initialize(session)
    old = train.Saver(max_to_keep=3)
    paths = [old.save(session, str(tmp_path / "model"), global_step=step) for step in range(3)]
    train.remove_checkpoint(paths[1])
    new = train.Saver(max_to_keep=2)
    new.recover_last_checkpoints(train.get_checkpoint_state(str(tmp_path)).all_model_checkpoint_paths)
    assert new.last_checkpoints == [paths[0], paths[2]]
    new.save(session, str(tmp_path / "model"), global_step=3)
    assert not train.checkpoint_exists(paths[0])
    assert train.checkpoint_exists(paths[2])


def test_last_checkpoints_can_be_set_with_their_times(session):
    variable("v", 1.0)
    saver = train.Saver()
    saver.set_last_checkpoints_with_time([("a", 1.0), ("b", 2.0)])
    assert saver.last_checkpoints == ["a", "b"]


def test_a_crash_in_the_middle_of_a_save_leaves_the_checkpoint_before_it(session, tmp_path, monkeypatch):
    variable("v", 1.0)
    initialize(session)
    saver = train.Saver()
    before = saver.save(session, str(tmp_path / "model"), global_step=1)

    def crash(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(saver_module, "update_checkpoint_state", crash)
    with pytest.raises(KeyboardInterrupt):
        saver.save(session, str(tmp_path / "model"), global_step=2)
    assert train.latest_checkpoint(str(tmp_path)) == before


def test_the_state_never_names_a_checkpoint_without_its_meta_graph(session, tmp_path, monkeypatch):
    variable("v", 1.0)
    initialize(session)
    saver = train.Saver()
    seen = []
    update = saver_module.update_checkpoint_state

    def look(folder, path, *rest, **named):
        seen.append(os.path.exists(f"{path}.meta") and train.checkpoint_exists(path))
        update(folder, path, *rest, **named)

    monkeypatch.setattr(saver_module, "update_checkpoint_state", look)
    saver.save(session, str(tmp_path / "model"))
    assert seen == [True]


def test_paths_in_the_state_file_may_be_relative(session, tmp_path):
    variable("v", 1.0)
    initialize(session)
    path = train.Saver(save_relative_paths=True).save(session, str(tmp_path / "model"))
    assert 'model_checkpoint_path: "model"' in (tmp_path / "checkpoint").read_text()
    assert train.latest_checkpoint(str(tmp_path)) == path


def test_names_may_be_padded_and_files_left_out(session, tmp_path):
    variable("v", 1.0)
    step = variable("global_step", np.int64(12), trainable=False)
    initialize(session)
    saver = train.Saver(pad_step_number=True)
    path = saver.save(
        session, str(tmp_path / "model"), global_step=step, write_meta_graph=False, write_state=False
    )
    assert path == str(tmp_path / "model-00000012")
    assert sorted(os.listdir(tmp_path)) == ["model-00000012.data-00000-of-00001", "model-00000012.index"]
    saver.save(session, str(tmp_path / "model"), latest_filename="newest", meta_graph_suffix="graph")
    assert {"newest", "model.graph"} <= set(os.listdir(tmp_path))
    assert train.latest_checkpoint(str(tmp_path), "newest") == str(tmp_path / "model")


def test_a_saver_may_be_built_later(session, tmp_path):
    saver = train.Saver(defer_build=True)
    with pytest.raises(RuntimeError, match="build"):
        saver.save(session, str(tmp_path / "model"))
    variable("v", 1.0)
    saver.build()
    initialize(session)
    assert names_in(saver.save(session, str(tmp_path / "model"))) == ["v"]


def test_nothing_to_save_is_an_error_unless_it_is_allowed(session, tmp_path):
    with pytest.raises(ValueError, match="No variables to save"):
        train.Saver()
    saver = train.Saver(allow_empty=True)
    assert saver.save(session, str(tmp_path / "model")) is None
    saver.restore(session, str(tmp_path / "model"))


def test_variables_may_be_restored_one_after_the_other(session, tmp_path):
    v, w = variable("v", 1.0), variable("w", [2.0])
    initialize(session)
    saver = train.Saver(restore_sequentially=True)
    path = saver.save(session, str(tmp_path / "model"))
    session.run([tf.assign(v, 0.0), tf.assign(w, [0.0])])
    saver.restore(session, path)
    assert session.run(v) == 1.0
    assert session.graph.get_operation_by_name("save/Assign_1").type == "Assign"
    assert len([op for op in session.graph.get_operations() if op.type == "RestoreV2"]) == 2


def test_a_reshaping_saver_restores_into_another_shape(session, tmp_path):
    v, w = variable("v", [[1.0, 2.0]]), variable("w", [0.0, 0.0])
    initialize(session)
    path = train.Saver({"v": v}).save(session, str(tmp_path / "model"))
    train.Saver({"v": w}, reshape=True).restore(session, path)
    assert session.run(w).tolist() == [1.0, 2.0]


def test_a_saver_def_is_as_good_as_the_saver(session, tmp_path):
    v = variable("v", 1.0)
    initialize(session)
    first = train.Saver(max_to_keep=1)
    second = train.Saver.from_proto(first.to_proto())
    assert second.as_saver_def() == first.as_saver_def()
    path = second.save(session, str(tmp_path / "model"))
    session.run(tf.assign(v, 3.0))
    second.restore(session, path)
    assert session.run(v) == 1.0


def test_a_savers_own_objects_are_saved_too(session, tmp_path):
    v = variable("v", 1.0, collections=[])

    class Doubled(SaveableObject):
        """Saves twice the value."""

        def __init__(self):
            from dtf.train.saveable import SaveSpec

            super().__init__(v, [SaveSpec(v * 2.0, "", "twice")], "twice")

        def restore(self, restored_tensors, restored_shapes):
            return tf.assign(v, restored_tensors[0] / 2.0)

    tf.add_to_collection(tf.GraphKeys.SAVEABLE_OBJECTS, Doubled())
    session.run(v.initializer)
    saver = train.Saver()
    path = saver.save(session, str(tmp_path / "model"))
    assert train.load_variable(path, "twice") == 2.0
    session.run(tf.assign(v, 0.0))
    saver.restore(session, path)
    assert session.run(v) == 1.0


def test_get_saver_or_default_makes_one_sharded_saver(session):
    variable("v", 1.0)
    saver = saver_module.get_saver_or_default()
    assert saver.saver_def.sharded
    assert saver_module.get_saver_or_default() is saver
    tf.add_to_collection(tf.GraphKeys.SAVERS, train.Saver())
    with pytest.raises(RuntimeError, match="More than one item"):
        saver_module.get_saver_or_default()


def test_a_name_twice_and_things_that_are_no_variables_are_refused(session):
    v = variable("v", 1.0)
    with pytest.raises(ValueError, match="same name"):
        train.Saver([v, v])
    with pytest.raises(ValueError, match="two names"):
        train.Saver({"a": v, "b": v})
    with pytest.raises(TypeError, match="not a Variable"):
        train.Saver([tf.constant(1.0)])
    with pytest.raises(ValueError, match="deferred"):
        train.Saver([v], defer_build=True)


def test_a_path_without_a_checkpoint_is_refused(session, tmp_path):
    variable("v", 1.0)
    saver = train.Saver()
    with pytest.raises(ValueError, match="The passed save_path is not a valid checkpoint"):
        saver.restore(session, str(tmp_path / "nothing"))
    with pytest.raises(ValueError, match="None"):
        saver.restore(session, None)


def test_a_missing_variable_is_named(session, tmp_path):
    v = variable("v", 1.0)
    initialize(session)
    path = train.Saver({"old_name": v}).save(session, str(tmp_path / "model"))
    with pytest.raises(tf.errors.NotFoundError, match="Key v not found in checkpoint") as caught:
        train.Saver([v]).restore(session, path)
    assert "Restoring from checkpoint failed" in str(caught.value)


def test_another_shape_is_refused_with_both_shapes(session, tmp_path):
    v, w = variable("v", [1.0, 2.0]), variable("w", [0.0, 0.0, 0.0])
    initialize(session)
    path = train.Saver({"x": v}).save(session, str(tmp_path / "model"))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"Assign requires shapes of both tensors to match") as e:
        train.Saver({"x": w}).restore(session, path)
    assert "[3]" in str(e.value) and "[2]" in str(e.value)


def test_a_damaged_checkpoint_is_said_to_be_damaged(session, tmp_path):
    variable("v", np.zeros(100, np.float32))
    initialize(session)
    saver = train.Saver()
    path = saver.save(session, str(tmp_path / "model"))
    with open(f"{path}.data-00000-of-00001", "r+b") as file:
        file.truncate(100)
    with pytest.raises(tf.errors.DataLossError, match="model"):
        saver.restore(session, path)


def test_a_folder_that_cannot_exist_is_named(session, tmp_path):
    variable("v", 1.0)
    initialize(session)
    (tmp_path / "no").write_text("a file")
    with pytest.raises(ValueError, match="Parent directory of .* doesn't exist"):
        train.Saver().save(session, str(tmp_path / "no" / "model"))


def test_a_state_file_name_with_a_folder_is_refused(session, tmp_path):
    variable("v", 1.0)
    initialize(session)
    with pytest.raises(ValueError, match="path components"):
        train.Saver().save(session, str(tmp_path / "model"), latest_filename="a/b")


def test_variables_are_initialised_from_a_checkpoint(session, tmp_path):
    variable("old/v", [1.0, 2.0])
    variable("old/w", 3.0)
    initialize(session)
    path = train.Saver().save(session, str(tmp_path / "model"))
    with tf.Graph().as_default(), tf.Session() as other:
        v, w = tf.get_variable("new/v", [2]), tf.get_variable("new/w", [], use_resource=True)
        x = tf.get_variable("x", [])
        train.init_from_checkpoint(str(tmp_path), {"old/": "new/"})
        train.init_from_checkpoint(path, {"old/w": x})
        other.run(tf.global_variables_initializer())
        assert [value.tolist() for value in other.run([v, w, x])] == [[1.0, 2.0], 3.0, 3.0]
        with pytest.raises(ValueError, match="not found"):
            train.init_from_checkpoint(path, {"nothing": x})
        with pytest.raises(ValueError, match="doesn't match"):
            train.init_from_checkpoint(path, {"old/v": x})


def test_variables_are_warm_started_by_their_names(session, tmp_path):
    variable("hidden/v", [1.0, 2.0])
    variable("old", 3.0)
    tf.get_variable("parts", initializer=tf.constant([[1.0], [2.0], [3.0]]), partitioner=tf.fixed_size_partitioner(2))
    initialize(session)
    path = train.Saver().save(session, str(tmp_path / "model"))
    with tf.Graph().as_default(), tf.Session() as other:
        v, new = tf.get_variable("hidden/v", [2]), tf.get_variable("new", [], trainable=False, use_resource=True)
        parts = tf.get_variable("parts", [3, 1], partitioner=tf.fixed_size_partitioner(3))
        train.warm_start(path)
        train.warm_start(str(tmp_path), ["new"], var_name_to_prev_var_name={"new": "old"})
        other.run(tf.global_variables_initializer())
        assert [value.tolist() for value in other.run([v, new])] == [[1.0, 2.0], 3.0]
        assert other.run(tf.convert_to_tensor(parts)).tolist() == [[1.0], [2.0], [3.0]]
        with pytest.raises(ValueError, match="new"):
            train.warm_start(path, [new])


def test_a_checkpoint_can_be_looked_into(session, tmp_path):
    variable("v", [[1.0, 2.0]])
    variable("text", b"abc")
    initialize(session)
    path = train.Saver().save(session, str(tmp_path / "model"))
    reader = train.load_checkpoint(str(tmp_path))
    assert reader.get_variable_to_shape_map() == {"text": [], "v": [1, 2]}
    assert reader.get_variable_to_dtype_map() == {"text": tf.string, "v": tf.float32}
    assert reader.has_tensor("v") and not reader.has_tensor("w")
    assert reader.get_tensor("text") == b"abc"
    assert b"v (DT_FLOAT) [1,2]" in reader.debug_string()
    with pytest.raises(tf.errors.NotFoundError):
        train.NewCheckpointReader(path).get_tensor("w")
    with pytest.raises(ValueError, match="Couldn't find"):
        train.load_checkpoint(str(tmp_path.parent))
