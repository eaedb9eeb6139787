"""Checkpoints: savers and their options, meta graphs, states of folders, readers, initial values from files."""

import glob
import math
import os
import shutil
import time

import numpy as np
from google.protobuf.any_pb2 import Any
from tensorflow.core.protobuf import config_pb2, meta_graph_pb2, queue_runner_pb2, saver_pb2
from tensorflow.python import pywrap_tensorflow
from tensorflow.python.client import session
from tensorflow.python.framework import constant_op, dtypes, errors, graph_io, meta_graph, ops
from tensorflow.python.framework import function as framework_function
from tensorflow.python.lib.io import file_io
from tensorflow.python.ops import (
    array_ops,
    control_flow_ops,
    data_flow_ops,
    gradients_impl,
    init_ops,
    io_ops,
    math_ops,
    nn_ops,
    partitioned_variables,
    random_ops,
    resource_variable_ops,
    state_ops,
    variable_scope,
    variables,
)
from tensorflow.python.platform import gfile, test
from tensorflow.python.summary import summary
from tensorflow.python.training import (
    adam,
    checkpoint_management,
    checkpoint_utils,
    gradient_descent,
    queue_runner_impl,
    saver_test_utils,
)
from tensorflow.python.training import saver as saver_module
from tensorflow.python.training.checkpoint_state_pb2 import CheckpointState
from tensorflow.python.training.saving import saveable_object, saveable_object_util
from tensorflow.python.util import compat


class SaverCase(test.TestCase):
    def folder(self, name):
        path = os.path.join(self.get_temp_dir(), self.id().rpartition(".")[2], name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return path

    def fresh(self):
        return self.session(graph=ops.Graph())


class SaveAndRestore(SaverCase):
    def basics(self, variable_op, version=saver_pb2.SaverDef.V2):
        save_path = self.folder("basics")
        with self.session(graph=ops.Graph()) as sess:
            v0 = variable_op(10.0, name="v0")
            v1 = variable_op(20.0, name="v1")
            v2 = saver_test_utils.CheckpointedOp(name="v2")
            v2_init = v2.insert("k1", 30.0)
            self.evaluate(variables.global_variables_initializer())
            save = saver_module.Saver(
                {"v0": v0, "v1": v1, "v2": v2.saveable}, restore_sequentially=True, write_version=version
            )
            v2_init.run()
            self.assertEqual(10.0, self.evaluate(v0))
            self.assertEqual(b"k1", self.evaluate(v2.keys()))
            self.assertEqual(30.0, self.evaluate(v2.values()))
            val = save.save(sess, save_path)
            self.assertIsInstance(val, str)
            self.assertEqual(save_path, val)
        with self.session(graph=ops.Graph()) as sess:
            v0 = variable_op(-1.0, name="v0")
            v1 = variable_op(-1.0, name="v1")
            v2 = saver_test_utils.CheckpointedOp(name="v2")
            save = saver_module.Saver({"v0": v0, "v1": v1, "v2": v2.saveable}, write_version=version)
            with self.assertRaisesWithPredicateMatch(
                errors.OpError, lambda e: "uninitialized" in e.message or "Error while reading" in e.message
            ):
                self.evaluate(v0)
            self.assertEqual(0, len(self.evaluate(v2.keys())))
            save.restore(sess, save_path)
            self.assertEqual([10.0, 20.0], self.evaluate([v0, v1]))
            self.assertEqual(b"k1", self.evaluate(v2.keys()))
            self.assertEqual(30.0, self.evaluate(v2.values()))

    def test_ref_variables(self):
        self.basics(variables.VariableV1)

    def test_resource_variables(self):
        self.basics(resource_variable_ops.ResourceVariable)

    def test_version_1(self):
        self.basics(variables.VariableV1, saver_pb2.SaverDef.V1)

    def test_int64(self):
        save_path = self.folder("int64")
        with self.fresh() as sess:
            v = variables.VariableV1(np.int64(15), name="v")
            save = saver_module.Saver({"v": v}, restore_sequentially=True)
            self.evaluate(variables.global_variables_initializer())
            self.assertEqual(save_path, save.save(sess, save_path))
        with self.fresh() as sess:
            v = variables.VariableV1(np.int64(-1), name="v")
            save = saver_module.Saver({"v": v})
            with self.assertRaisesWithPredicateMatch(errors.OpError, lambda e: "uninitialized value v" in e.message):
                self.evaluate(v)
            save.restore(sess, save_path)
            self.assertEqual(np.int64(15), self.evaluate(v))

    def test_resource_handle_in_list(self):
        save_path = self.folder("h")
        with self.fresh() as sess:
            v = resource_variable_ops.ResourceVariable(1.0, name="v")
            save = saver_module.Saver([v])
            self.evaluate(v.initializer)
            save.save(sess, save_path)
            self.assertIn("v", dict(checkpoint_utils.list_variables(save_path)))

    def test_some_errors(self):
        with ops.Graph().as_default():
            v0 = variables.VariableV1([10.0], name="v0")
            v1 = variables.VariableV1([20.0], name="v1")
            v2 = variables.VariableV1([20.0], name="v2")
            v2._set_save_slice_info(variables.Variable.SaveSliceInfo("v1", [1], [0], [1]))
            with self.assertRaisesRegex(ValueError, "same name: v1"):
                saver_module.Saver([v0, v1, v2])
            saver_module.Saver({"v0": v0, "v1": v1})
            with self.assertRaisesRegex((ValueError, TypeError), "."):
                saver_module.Saver({"vee": [v0, v1], "v2": v2})
            with self.assertRaisesRegex(TypeError, "Variable"):
                saver_module.Saver({"v1": constant_op.constant(1.0), "v2": 7})
            with self.assertRaisesRegex(ValueError, "multiple|more than one|The same saveable|twice|both"):
                saver_module.Saver({"a": v0, "b": v0})

    def test_same_name(self):
        with ops.Graph().as_default():
            v0 = variables.VariableV1([10.0], name="v")
            with self.assertRaisesRegex(ValueError, "same name: v"):
                saver_module.Saver([v0, v0])

    def test_caching_device(self):
        save_path = self.folder("c")
        with self.fresh() as sess:
            v = resource_variable_ops.ResourceVariable([1], caching_device="/cpu:0", name="v")
            self.evaluate(variables.global_variables_initializer())
            save = saver_module.Saver([v])
            save.save(sess, save_path)
            self.assertAllEqual([1], self.evaluate(v))
            save2 = saver_module.Saver([v])
            save2.restore(sess, save_path)
            self.assertEqual(self.evaluate(v), [1])

    def test_partitioned_variable_by_name(self):
        save_path = self.folder("p")
        with self.fresh() as sess:
            v = variable_scope.get_variable(
                "w",
                [4, 2],
                partitioner=partitioned_variables.fixed_size_partitioner(2),
                initializer=init_ops.constant_initializer(3.0),
            )
            self.evaluate(variables.global_variables_initializer())
            for listed in ({"other": v}, [v], list(v)):
                saver_module.Saver(listed).save(sess, save_path)
            self.assertEqual(["w"], [name for name, _ in checkpoint_utils.list_variables(save_path)])
            self.assertAllEqual(np.full((4, 2), 3.0), checkpoint_utils.load_variable(save_path, "w"))

    def test_nothing_to_save(self):
        with ops.Graph().as_default():
            with self.assertRaisesRegex(ValueError, "No variables to save"):
                saver_module.Saver()
            with self.assertRaisesRegex(ValueError, "No variables to save"):
                saver_module.Saver([])

    def test_allow_empty(self):
        save_path = self.folder("e")
        with self.fresh() as sess:
            constant_op.constant(1)
            saver = saver_module.Saver(allow_empty=True)
            val = saver.save(sess, save_path)
            self.assertIsNone(val)
        with self.fresh() as sess:
            constant_op.constant(1)
            saver = saver_module.Saver(allow_empty=True)
            saver.restore(sess, save_path)

    def test_defers_building(self):
        save_path = self.folder("d")
        with self.fresh() as sess:
            saver = saver_module.Saver(defer_build=True)
            v = variables.VariableV1(1.0, name="v")
            self.evaluate(v.initializer)
            with self.assertRaisesRegex(RuntimeError, "call build|not been built|build\\(\\)"):
                saver.save(sess, save_path)
            saver.build()
            saver.save(sess, save_path)
            self.assertEqual(["v"], [name for name, _ in checkpoint_utils.list_variables(save_path)])

    def test_gpu_and_device_kept(self):
        save_path = self.folder("g")
        with self.session(graph=ops.Graph(), config=config_pb2.ConfigProto(allow_soft_placement=True)) as sess:
            with sess.graph.device("/device:GPU:0"):
                v0_1 = variables.VariableV1(123.45, name="v")
            save = saver_module.Saver({"v0": v0_1})
            self.evaluate(variables.global_variables_initializer())
            save.save(sess, save_path)
            for op in sess.graph.get_operations():
                if op.type in ("SaveV2", "RestoreV2"):
                    self.assertNotIn("GPU", op.device)

    def test_shared_server(self):
        from tensorflow.python.training import server_lib

        save_path = self.folder("s")
        server = server_lib.Server.create_local_server()
        with ops.Graph().as_default(), session.Session(server.target) as sess:
            v0 = variables.VariableV1(10.0, name="v0")
            save = saver_module.Saver([v0])
            sess.run(v0.initializer)
            save.save(sess, save_path)
            sess.run(v0.assign(5.0))
            save.restore(sess, save_path)
            self.assertEqual(10.0, sess.run(v0))

    def test_variables_of_two_savers(self):
        save_path = self.folder("t")
        with self.fresh() as sess:
            var = resource_variable_ops.ResourceVariable(1.0, name="v")
            self.evaluate(var.initializer)
            first, second = saver_module.Saver([var]), saver_module.Saver([var])
            first.save(sess, save_path)
            self.evaluate(var.assign(4.0))
            second.restore(sess, save_path)
            self.assertEqual(1.0, self.evaluate(var))

    def test_bad_path(self):
        with self.fresh() as sess:
            v = variables.VariableV1(1.0)
            self.evaluate(v.initializer)
            saver = saver_module.Saver([v])
            with self.assertRaisesRegex(ValueError, "The passed save_path is not a valid checkpoint"):
                saver.restore(sess, self.folder("never_written"))
            with self.assertRaisesRegex(ValueError, "Can't load save_path when it is None"):
                saver.restore(sess, None)

    def test_unreachable_folder(self):
        save_path = os.path.join(self.get_temp_dir(), "no such folder", "deeper", "model")
        with self.fresh() as sess:
            v = variables.VariableV1(1.0)
            self.evaluate(v.initializer)
            saver = saver_module.Saver([v])
            with self.assertRaisesRegex(ValueError, "Parent directory of .* doesn't exist, can't save"):
                saver.save(sess, save_path)

    def test_save_path_is_folder(self):
        path = self.folder("x")
        with self.fresh() as sess:
            v = variables.VariableV1(1.0, name="v")
            self.evaluate(v.initializer)
            saver = saver_module.Saver([v])
            where = saver.save(sess, path, global_step=3)
            self.assertEqual(path + "-3", where)
            where = saver.save(sess, path, global_step=constant_op.constant(4))
            self.assertEqual(path + "-4", where)
            step = variables.VariableV1(5, name="global_step")
            self.evaluate(step.initializer)
            self.assertEqual(path + "-5", saver.save(sess, path, global_step=step))
            with self.assertRaises(ValueError):
                saver.save(sess, path, latest_filename="a/b")
            with self.assertRaises((TypeError, ValueError)):
                saver.save(37, path)

    def test_graph_mismatch_message(self):
        path = self.folder("m")
        with self.fresh() as sess:
            a = variables.VariableV1(1.0, name="a")
            self.evaluate(a.initializer)
            saver_module.Saver([a]).save(sess, path)
        with self.fresh() as sess:
            b = variables.VariableV1(1.0, name="b")
            with self.assertRaisesRegex(errors.NotFoundError, "Key b not found in checkpoint"):
                saver_module.Saver([b]).restore(sess, path)
        with self.fresh() as sess:
            a = variables.VariableV1([1.0, 2.0], name="a")
            with self.assertRaisesRegex(
                errors.InvalidArgumentError, "a mismatch between the current graph and the graph"
            ):
                saver_module.Saver([a]).restore(sess, path)

    def test_feeds_of_saver(self):
        path = self.folder("f")
        with self.fresh() as sess:
            v = variables.VariableV1(1.0, name="v")
            self.evaluate(v.initializer)
            saver = saver_module.Saver([v])
            saver_def = saver.as_saver_def()
            got = sess.run(saver_def.save_tensor_name, {saver_def.filename_tensor_name: path})
            self.assertEqual(compat.as_bytes(path), got)
            sess.run(saver_def.restore_op_name, {saver_def.filename_tensor_name: path})
            self.assertEqual("save/Const:0", saver_def.filename_tensor_name)
            self.assertEqual("save/control_dependency:0", saver_def.save_tensor_name)
            self.assertEqual("save/restore_all", saver_def.restore_op_name)
            again = saver_module.Saver(saver_def=saver_def)
            again.restore(sess, path)

    def test_name_of_saver(self):
        with ops.Graph().as_default():
            variables.VariableV1(1.0, name="v")
            saver = saver_module.Saver(name="mine")
            self.assertTrue(saver.saver_def.filename_tensor_name.startswith("mine/"))
            with ops.name_scope("outer"):
                saver = saver_module.Saver()
            self.assertTrue(saver.saver_def.filename_tensor_name.startswith("outer/save/"))

    def test_reshape(self):
        path = self.folder("r")
        with self.fresh() as sess:
            v = variables.VariableV1(np.arange(6, dtype=np.float32).reshape(2, 3), name="v")
            self.evaluate(v.initializer)
            saver_module.Saver([v]).save(sess, path)
        with self.fresh() as sess:
            v = variables.VariableV1(np.zeros((3, 2), np.float32), name="v")
            saver_module.Saver([v], reshape=True).restore(sess, path)
            self.assertAllEqual(np.arange(6).reshape(3, 2), self.evaluate(v))


class Sharded(SaverCase):
    def get_meta(self):
        return None

    def test_sharded(self):
        save_path = self.folder("sharded")
        config = config_pb2.ConfigProto(device_count={"CPU": 2})
        with session.Session("", config=config, graph=ops.Graph()) as sess:
            with sess.graph.device("/cpu:0"):
                v0 = variables.VariableV1(10, name="v0")
                t0 = saver_test_utils.CheckpointedOp(name="t0")
            with sess.graph.device("/cpu:1"):
                v1 = variables.VariableV1(20, name="v1")
                t1 = saver_test_utils.CheckpointedOp(name="t1")
            save = saver_module.Saver(
                {"v0": v0, "v1": v1, "t0": t0.saveable, "t1": t1.saveable},
                sharded=True,
                write_version=saver_pb2.SaverDef.V1,
            )
            sess.run(variables.global_variables_initializer())
            t0.insert("k1", 30.0).run(session=sess)
            t1.insert("k2", 40.0).run(session=sess)
            val = save.save(sess, save_path)
            self.assertEqual(save_path + "-?????-of-00002", val)
            self.assertTrue(gfile.Exists(save_path + ".meta"))
            self.assertEqual(2, len(glob.glob(save_path + "-?????-of-00002")))
        with session.Session("", config=config, graph=ops.Graph()) as sess:
            with sess.graph.device("/cpu:0"):
                v0 = variables.VariableV1(111, name="v0")
            save = saver_module.Saver({"v0": v0}, write_version=saver_pb2.SaverDef.V1, sharded=True)
            sess.run(variables.global_variables_initializer())
            save.restore(sess, save_path + "-00000-of-00002")
            self.assertEqual(10, sess.run(v0))
        with session.Session("", config=config, graph=ops.Graph()) as sess:
            with sess.graph.device("/cpu:0"):
                v0 = variables.VariableV1(111, name="v0")
            with sess.graph.device("/cpu:1"):
                v1 = variables.VariableV1(222, name="v1")
            save = saver_module.Saver({"v0": v0, "v1": v1}, write_version=saver_pb2.SaverDef.V1, sharded=True)
            save.restore(sess, save_path + "-?????-of-?????")
            self.assertEqual([10, 20], sess.run([v0, v1]))
            self.assertEqual(
                save_path + "-?????-of-00002", checkpoint_management.latest_checkpoint(os.path.dirname(save_path))
            )

    def test_sharded_version_2(self):
        save_path = self.folder("sharded2")
        config = config_pb2.ConfigProto(device_count={"CPU": 2})
        with session.Session("", config=config, graph=ops.Graph()) as sess:
            with sess.graph.device("/cpu:0"):
                v0 = variables.VariableV1(10, name="v0")
            with sess.graph.device("/cpu:1"):
                v1 = variables.VariableV1(20, name="v1")
            save = saver_module.Saver({"v0": v0, "v1": v1}, sharded=True)
            sess.run(variables.global_variables_initializer())
            self.assertEqual(save_path, save.save(sess, save_path))
            self.assertTrue(save.saver_def.sharded)
            self.assertEqual(1, len(glob.glob(save_path + ".index")))
            sess.run([v0.assign(1), v1.assign(1)])
            save.restore(sess, save_path)
            self.assertEqual([10, 20], sess.run([v0, v1]))

    def partitioned(self, call_saver_with_dict=False):
        save_path = self.folder(f"part{call_saver_with_dict}")
        var_full_shape = [10, 3]
        var_name = "my_var"

        def save_and_get(partitioner):
            with self.session(graph=ops.Graph()) as sess:
                if partitioner:
                    vs = [
                        variable_scope.get_variable(
                            var_name,
                            shape=var_full_shape,
                            initializer=init_ops.random_uniform_initializer(),
                            partitioner=partitioner,
                        )
                    ]
                else:
                    vs = [
                        variable_scope.get_variable(
                            var_name, shape=var_full_shape, initializer=init_ops.random_uniform_initializer()
                        )
                    ]
                sess.run(variables.global_variables_initializer())
                value = vs[0].as_tensor().eval() if partitioner else vs[0].eval()
                saver = saver_module.Saver({var_name: vs[0]} if call_saver_with_dict else vs)
                saver.save(sess, save_path)
                return value

        def restore(partitioner):
            with self.session(graph=ops.Graph()) as sess:
                v = variable_scope.get_variable(
                    var_name, shape=var_full_shape, initializer=init_ops.zeros_initializer(), partitioner=partitioner
                )
                saver = saver_module.Saver({var_name: v} if call_saver_with_dict else [v])
                saver.restore(sess, save_path)
                return v.as_tensor().eval() if partitioner else v.eval()

        fixed = partitioned_variables.fixed_size_partitioner
        for first, second in ((None, fixed(3)), (fixed(3), fixed(5)), (fixed(2), None), (fixed(5, axis=0), fixed(2))):
            self.assertAllEqual(save_and_get(first), restore(second))

    def test_partitioned(self):
        self.partitioned()

    def test_partitioned_as_dictionary(self):
        self.partitioned(True)


class Kept(SaverCase):
    def check_state(self, save_dir, saver, expected):
        state = checkpoint_management.get_checkpoint_state(save_dir)
        self.assertEqual(
            [os.path.basename(each) for each in expected],
            [os.path.basename(each) for each in state.all_model_checkpoint_paths],
        )

    def test_max_to_keep_not_sharded(self):
        save_dir = os.path.dirname(self.folder("x"))
        with self.fresh() as sess:
            v = variables.VariableV1(10.0, name="v")
            save = saver_module.Saver({"v": v}, max_to_keep=2)
            self.evaluate(variables.global_variables_initializer())
            self.assertEqual([], save.last_checkpoints)
            s1 = save.save(sess, os.path.join(save_dir, "s1"))
            self.assertEqual([s1], save.last_checkpoints)
            self.assertTrue(checkpoint_management.checkpoint_exists(s1))
            s2 = save.save(sess, os.path.join(save_dir, "s2"))
            self.assertEqual([s1, s2], save.last_checkpoints)
            s3 = save.save(sess, os.path.join(save_dir, "s3"))
            self.assertEqual([s2, s3], save.last_checkpoints)
            self.assertFalse(checkpoint_management.checkpoint_exists(s1))
            self.assertTrue(checkpoint_management.checkpoint_exists(s3))
            self.check_state(save_dir, save, [s2, s3])
            save2 = saver_module.Saver({"v": v})
            save2.set_last_checkpoints(save.last_checkpoints)
            save3 = saver_module.Saver({"v": v}, max_to_keep=2)
            save3.set_last_checkpoints_with_time([(s3, time.time())])
            self.assertEqual([s3], save3.last_checkpoints)
            s1 = save.save(sess, os.path.join(save_dir, "s1"))
            self.assertEqual([s3, s1], save.last_checkpoints)
            self.assertFalse(checkpoint_management.checkpoint_exists(s2))
            s1 = save2.save(sess, os.path.join(save_dir, "s1"))
            self.assertEqual([s2, s3, s1], save2.last_checkpoints)

    def test_max_to_keep_sharded(self):
        save_dir = os.path.dirname(self.folder("x"))
        with session.Session("", config=config_pb2.ConfigProto(device_count={"CPU": 2}), graph=ops.Graph()) as sess:
            with sess.graph.device("/cpu:0"):
                v0 = variables.VariableV1(111, name="v0")
            with sess.graph.device("/cpu:1"):
                v1 = variables.VariableV1(222, name="v1")
            save = saver_module.Saver({"v0": v0, "v1": v1}, sharded=True, max_to_keep=2)
            sess.run(variables.global_variables_initializer())
            s1 = save.save(sess, os.path.join(save_dir, "s1"))
            self.assertEqual([s1], save.last_checkpoints)
            s2 = save.save(sess, os.path.join(save_dir, "s2"))
            self.assertEqual([s1, s2], save.last_checkpoints)
            s3 = save.save(sess, os.path.join(save_dir, "s3"))
            self.assertEqual([s2, s3], save.last_checkpoints)
            self.assertEqual(0, len(gfile.Glob(s1 + "*")))
            self.assertFalse(gfile.Exists(checkpoint_management.meta_graph_filename(s1)))
            self.assertTrue(gfile.Exists(checkpoint_management.meta_graph_filename(s2)))
            self.assertTrue(checkpoint_management.checkpoint_exists(s2))

    def test_no_max(self):
        save_dir = os.path.dirname(self.folder("x"))
        with self.fresh() as sess:
            v = variables.VariableV1(10.0, name="v")
            self.evaluate(v.initializer)
            for count in (None, 0):
                save = saver_module.Saver({"v": v}, max_to_keep=count)
                first = save.save(sess, os.path.join(save_dir, "s1"))
                self.assertEqual([], save.last_checkpoints)
                second = save.save(sess, os.path.join(save_dir, "s2"))
                self.assertEqual([], save.last_checkpoints)
                self.assertTrue(checkpoint_management.checkpoint_exists(first))
                self.assertTrue(checkpoint_management.checkpoint_exists(second))

    def test_no_meta_graph(self):
        save_dir = os.path.dirname(self.folder("x"))
        with self.fresh() as sess:
            v = variables.VariableV1(10.0, name="v")
            save = saver_module.Saver({"v": v})
            self.evaluate(variables.global_variables_initializer())
            s1 = save.save(sess, os.path.join(save_dir, "s1"), write_meta_graph=False)
            self.assertTrue(checkpoint_management.checkpoint_exists(s1))
            self.assertFalse(gfile.Exists(checkpoint_management.meta_graph_filename(s1)))

    def test_keep_every_n_hours(self):
        save_dir = os.path.dirname(self.folder("x"))
        with self.fresh() as sess, test.mock.patch.object(saver_module, "time") as mock_time:
            mock_time.time.return_value = 1000.0
            v = variables.VariableV1([10.0], name="v")
            self.evaluate(variables.global_variables_initializer())
            save = saver_module.Saver({"v": v}, max_to_keep=2, keep_checkpoint_every_n_hours=0.7 / 3600)
            self.assertEqual([], save.last_checkpoints)
            mock_time.time.return_value = 1000.75
            s1 = save.save(sess, os.path.join(save_dir, "s1"))
            mock_time.time.return_value = 1000.8
            s2 = save.save(sess, os.path.join(save_dir, "s2"))
            self.assertEqual([s1, s2], save.last_checkpoints)
            mock_time.time.return_value = 1000.9
            s3 = save.save(sess, os.path.join(save_dir, "s3"))
            self.assertEqual([s2, s3], save.last_checkpoints)
            self.assertTrue(checkpoint_management.checkpoint_exists(s1))
            mock_time.time.return_value = 1001.0
            s4 = save.save(sess, os.path.join(save_dir, "s4"))
            self.assertEqual([s3, s4], save.last_checkpoints)
            self.assertFalse(checkpoint_management.checkpoint_exists(s2))
            self.assertTrue(checkpoint_management.checkpoint_exists(s1))

    def test_recover_last_checkpoints(self):
        save_dir = os.path.dirname(self.folder("x"))
        with self.fresh() as sess:
            v = variables.VariableV1(10.0, name="v")
            self.evaluate(v.initializer)
            save = saver_module.Saver({"v": v}, max_to_keep=10)
            s1 = save.save(sess, os.path.join(save_dir, "ckpt-1"))
            s2 = save.save(sess, os.path.join(save_dir, "ckpt-2"))
            s3 = save.save(sess, os.path.join(save_dir, "ckpt-3"))
            self.assertEqual([s1, s2, s3], save.last_checkpoints)
            fresh = saver_module.Saver({"v": v}, max_to_keep=10)
            fresh.recover_last_checkpoints([s1, s2, s3, os.path.join(save_dir, "gone")])
            self.assertEqual([s1, s2, s3], fresh.last_checkpoints)
            s4 = fresh.save(sess, os.path.join(save_dir, "ckpt-4"))
            self.assertEqual([s1, s2, s3, s4], fresh.last_checkpoints)

    def test_relative_paths(self):
        save_dir = os.path.dirname(self.folder("x"))
        with self.fresh() as sess:
            v = variables.VariableV1(1.0, name="v")
            self.evaluate(v.initializer)
            saver = saver_module.Saver([v], save_relative_paths=True)
            saver.save(sess, os.path.join(save_dir, "model"), global_step=1)
            text = file_io.read_file_to_string(os.path.join(save_dir, "checkpoint"))
            self.assertIn('model_checkpoint_path: "model-1"', text)
            self.assertNotIn(save_dir, text)
            moved = save_dir + "_moved"
            shutil.rmtree(moved, ignore_errors=True)
            shutil.move(save_dir, moved)
            latest = checkpoint_management.latest_checkpoint(moved)
            self.assertEqual(os.path.join(moved, "model-1"), latest)
            saver.restore(sess, latest)

    def test_relative_without_folder(self):
        here = os.getcwd()
        work = os.path.dirname(self.folder("x"))
        os.chdir(work)
        try:
            with self.fresh() as sess:
                v = variables.VariableV1(1.0, name="v")
                self.evaluate(v.initializer)
                saver = saver_module.Saver([v])
                saver.save(sess, "model", write_meta_graph=False)
                self.assertEqual(
                    "./model", os.path.join(".", checkpoint_management.latest_checkpoint(".").lstrip("./"))
                )
                self.evaluate(v.assign(2.0))
                saver.restore(sess, "model")
                self.assertEqual(1.0, self.evaluate(v))
        finally:
            os.chdir(here)

    def test_latest_filename(self):
        save_dir = os.path.dirname(self.folder("x"))
        with self.fresh() as sess:
            v = variables.VariableV1(1.0, name="v")
            self.evaluate(v.initializer)
            saver = saver_module.Saver([v])
            path = saver.save(sess, os.path.join(save_dir, "m"), latest_filename="newest")
            self.assertIsNone(checkpoint_management.latest_checkpoint(save_dir))
            self.assertEqual(path, checkpoint_management.latest_checkpoint(save_dir, "newest"))
            saver.save(sess, os.path.join(save_dir, "n"), write_state=False, latest_filename="other")
            self.assertIsNone(checkpoint_management.latest_checkpoint(save_dir, "other"))


class States(SaverCase):
    def test_proto(self):
        save_dir = self.folder("state")
        os.makedirs(save_dir, exist_ok=True)
        paths = [os.path.join(save_dir, f"model-{number}") for number in range(2)]
        ckpt = checkpoint_management.generate_checkpoint_state_proto(save_dir, paths[1], paths)
        self.assertEqual(paths[1], ckpt.model_checkpoint_path)
        self.assertEqual(paths, list(ckpt.all_model_checkpoint_paths))
        self.assertEqual(0, len(ckpt.all_model_checkpoint_timestamps))
        ckpt = checkpoint_management.generate_checkpoint_state_proto(
            "relative", "relative/model-1", ["relative/model-0"]
        )
        self.assertEqual("model-1", ckpt.model_checkpoint_path)
        self.assertEqual(["model-0", "model-1"], list(ckpt.all_model_checkpoint_paths))

    def test_timestamps_must_match(self):
        with self.assertRaises(ValueError):
            checkpoint_management.generate_checkpoint_state_proto(
                "a", "a/m", ["a/m"], all_model_checkpoint_timestamps=[1.0, 2.0]
            )

    def test_update(self):
        save_dir = self.folder("state")
        os.makedirs(save_dir, exist_ok=True)
        abs_path = os.path.join(save_dir, "model-0")
        checkpoint_management.update_checkpoint_state(save_dir, abs_path, all_model_checkpoint_paths=[abs_path])
        ckpt = checkpoint_management.get_checkpoint_state(save_dir)
        self.assertTrue(os.path.isabs(ckpt.model_checkpoint_path))
        self.assertEqual(abs_path, ckpt.model_checkpoint_path)
        self.assertEqual([abs_path], list(ckpt.all_model_checkpoint_paths))

    def test_update_with_same_names(self):
        save_dir = self.folder("state")
        os.makedirs(save_dir, exist_ok=True)
        with self.assertRaisesRegex(RuntimeError, "conflicts with path used for checkpoint state"):
            checkpoint_management.update_checkpoint_state(save_dir, os.path.join(save_dir, "checkpoint"))

    def test_incomplete_file(self):
        save_dir = self.folder("state")
        os.makedirs(save_dir, exist_ok=True)
        with open(os.path.join(save_dir, "checkpoint"), "w") as file:
            file.write("")
        with self.assertRaises(ValueError):
            checkpoint_management.get_checkpoint_state(save_dir)

    def test_broken_file(self):
        save_dir = self.folder("state")
        os.makedirs(save_dir, exist_ok=True)
        with open(os.path.join(save_dir, "checkpoint"), "w") as file:
            file.write('model_checkpoint_path: "a" : broken {')
        self.assertIsNone(checkpoint_management.get_checkpoint_state(save_dir))
        self.assertIsNone(checkpoint_management.latest_checkpoint(save_dir))

    def test_times_and_removal(self):
        save_dir = os.path.dirname(self.folder("x"))
        with self.fresh() as sess:
            v = variables.VariableV1(1.0, name="v")
            self.evaluate(v.initializer)
            saver = saver_module.Saver([v])
            paths = [saver.save(sess, os.path.join(save_dir, f"m{number}")) for number in range(2)]
        times = checkpoint_management.get_checkpoint_mtimes(paths)
        self.assertEqual(2, len(times))
        self.assertTrue(times[0] <= times[1])
        self.assertEqual([], checkpoint_management.get_checkpoint_mtimes([os.path.join(save_dir, "gone")]))
        checkpoint_management.remove_checkpoint(paths[0])
        self.assertFalse(checkpoint_management.checkpoint_exists(paths[0]))
        self.assertFalse(gfile.Exists(paths[0] + ".meta"))
        self.assertTrue(checkpoint_management.checkpoint_exists(paths[1]))
        checkpoint_management.remove_checkpoint(os.path.join(save_dir, "gone"), saver_pb2.SaverDef.V2)

    def test_meta_graph_filename(self):
        self.assertEqual("/a/m-5.meta", checkpoint_management.meta_graph_filename("/a/m-5"))
        self.assertEqual("/a/m.meta", checkpoint_management.meta_graph_filename("/a/m-?????-of-00002"))

    def test_proto_of_state(self):
        state = CheckpointState()
        state.model_checkpoint_path = "m"
        state.all_model_checkpoint_timestamps.append(1.5)
        state.last_preserved_timestamp = 2.5
        self.assertEqual(state, CheckpointState.FromString(state.SerializeToString()))


class MetaGraphs(SaverCase):
    def test_collection_definitions(self):
        path = self.folder("metafile")
        with self.fresh():
            v0 = variables.VariableV1([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], name="v0")
            control_flow_ops.cond(
                math_ops.less(v0[0, 0], 10), lambda: math_ops.add(v0, 1), lambda: math_ops.subtract(v0, 1)
            )
            control_flow_ops.while_loop(lambda i: math_ops.less(i, 10), lambda i: [i + 1], [0])
            variables.VariableV1(10.0, name="count")
            queue = data_flow_ops.FIFOQueue(10, dtypes.float32, shapes=[[]], name="q")
            runner = queue_runner_impl.QueueRunner(queue, [queue.enqueue([1.0])])
            queue_runner_impl.add_queue_runner(runner)
            ops.add_to_collection("user_defined_string_collection", "hello")
            ops.add_to_collection("int_collection", 3)
            ops.add_to_collection("float_collection", 3.5)
            ops.add_to_collection("user_defined_bytes_collection", b"raw")
            ops.add_to_collection("tensors", v0.value())
            any_buf = Any()
            any_buf.Pack(queue_runner_pb2.QueueRunnerDef(queue_name="test_queue"))
            ops.add_to_collection("user_defined_any_collection", any_buf)
            self.evaluate(variables.global_variables_initializer())
            save = saver_module.Saver(max_to_keep=10)
            save.export_meta_graph(path, collection_list=["int_collection"])
            little = meta_graph.read_meta_graph_file(path)
            self.assertEqual(["int_collection"], list(little.collection_def))
            meta_graph_def = save.export_meta_graph(path)
            self.assertTrue(meta_graph_def.HasField("saver_def"))
            self.assertTrue(meta_graph_def.HasField("graph_def"))
            self.assertNotEqual("", meta_graph_def.meta_info_def.tensorflow_version)
            self.assertNotEqual("", meta_graph_def.meta_info_def.tensorflow_git_version)
            kinds = {name: each.WhichOneof("kind") for name, each in meta_graph_def.collection_def.items()}
            self.assertEqual("int64_list", kinds["int_collection"])
            self.assertEqual("float_list", kinds["float_collection"])
            self.assertEqual("bytes_list", kinds["user_defined_bytes_collection"])
            self.assertEqual("bytes_list", kinds["variables"])
            self.assertEqual("bytes_list", kinds["queue_runners"])
            self.assertEqual("node_list", kinds["tensors"])
            self.assertEqual("any_list", kinds["user_defined_any_collection"])
            self.assertEqual("bytes_list", kinds["cond_context"])
            self.assertEqual("bytes_list", kinds["while_context"])
        with ops.Graph().as_default():
            saver_module.import_meta_graph(path)
            self.assertEqual([3], ops.get_collection("int_collection"))
            self.assertEqual([3.5], ops.get_collection("float_collection"))
            self.assertEqual(1, len(ops.get_collection(ops.GraphKeys.QUEUE_RUNNERS)))
            self.assertEqual(2, len(variables.global_variables()))
            again = saver_module.export_meta_graph()
            self.assertEqual(set(kinds), set(again.collection_def))

    def test_collection_after_import(self):
        path = self.folder("m")
        with ops.Graph().as_default():
            v = variables.VariableV1(1.0, name="v")
            ops.add_to_collection("vs", v)
            ops.add_to_collection("ops", v.initializer)
            saver_module.export_meta_graph(path, collection_list=["vs", "ops"])
        with ops.Graph().as_default():
            saver_module.import_meta_graph(path)
            self.assertEqual(1, len(ops.get_collection("ops")))
            self.assertEqual("v/Assign", ops.get_collection("ops")[0].name)
            self.assertEqual(1, len(ops.get_collection("vs")))

    def test_no_variables(self):
        path = self.folder("m")
        with ops.Graph().as_default():
            constant_op.constant(1.0, name="c")
            saver_module.export_meta_graph(path)
        with ops.Graph().as_default():
            self.assertIsNone(saver_module.import_meta_graph(path))
            ops.get_default_graph().get_tensor_by_name("c:0")

    def test_variables_without_saver(self):
        path = self.folder("m")
        with ops.Graph().as_default():
            variables.VariableV1(1.0, name="v")
            saver_module.export_meta_graph(path)
        with ops.Graph().as_default():
            saver = saver_module.import_meta_graph(path)
            self.assertIsInstance(saver, saver_module.Saver)

    def test_multi_saver_collection(self):
        path = self.folder("savers")
        with self.fresh() as sess:
            v0 = variables.VariableV1([[1.0, 2.0]], name="v0")
            v1 = variables.VariableV1(11.0, name="v1")
            saver0 = saver_module.Saver({"v0": v0}, name="saver0")
            saver1 = saver_module.Saver({"v1": v1}, name="saver1")
            ops.add_to_collection("savers", saver0)
            ops.add_to_collection("savers", saver1)
            self.evaluate(variables.global_variables_initializer())
            saver0.export_meta_graph(path)
            saver0.save(sess, path + "0")
            saver1.save(sess, path + "1")
        with self.fresh() as sess:
            new_saver = saver_module.import_meta_graph(path)
            self.assertIsNotNone(new_saver)
            savers = ops.get_collection("savers")
            self.assertEqual(2, len(savers))
            new_saver.restore(sess, path + "0")
            v0 = sess.graph.get_tensor_by_name("v0:0")
            self.assertAllEqual([[1.0, 2.0]], self.evaluate(v0))
            savers[1].restore(sess, path + "1")
            self.assertEqual(11.0, self.evaluate(sess.graph.get_tensor_by_name("v1:0")))

    def test_binary_and_text(self):
        path = self.folder("m")
        with ops.Graph().as_default():
            v = variables.VariableV1(10.0, name="v0")
            saver = saver_module.Saver([v])
            binary = saver.export_meta_graph(path)
            saver.export_meta_graph(path + ".txt", as_text=True)
        text = file_io.read_file_to_string(path + ".txt")
        self.assertIn("saver_def {", text)
        with ops.Graph().as_default():
            saver_module.import_meta_graph(path + ".txt")
        self.assertProtoEquals(binary, meta_graph.read_meta_graph_file(path))
        self.assertProtoEquals(binary, meta_graph.read_meta_graph_file(path + ".txt"))

    def test_strip_default_attrs(self):
        with ops.Graph().as_default():
            math_ops.complex(constant_op.constant([1.0]), constant_op.constant([2.0]), name="complex")
            v = variables.VariableV1(1.0)
            saver = saver_module.Saver([v])
            for strip in (True, False):
                exported = saver.export_meta_graph(strip_default_attrs=strip)
                (node,) = [each for each in exported.graph_def.node if each.name == "complex"]
                self.assertEqual(not strip, "T" in node.attr)
                self.assertEqual(strip, exported.meta_info_def.stripped_default_attrs)

    def test_clear_devices(self):
        path = self.folder("m")
        with ops.Graph().as_default():
            with ops.device("/job:ps/replica:0/task:0/device:GPU:0"):
                v = variables.VariableV1([1.0, 2.0], name="v")
            saver_module.export_meta_graph(path, clear_devices=True)
            saver_module.Saver([v]).export_meta_graph(path + "2")
        with ops.Graph().as_default() as g:
            meta_graph.import_scoped_meta_graph(path)
            self.assertTrue(all(not op.device for op in g.get_operations()))
        with ops.Graph().as_default() as g:
            saver_module.import_meta_graph(path + "2", clear_devices=True)
            self.assertTrue(all(not op.device for op in g.get_operations()))
        with self.fresh() as sess:
            saver_module.import_meta_graph(path + "2", clear_devices=True)
            sess.run("v/Assign")
            self.assertAllEqual([1.0, 2.0], sess.run("v:0"))

    def test_clear_devices_in_values(self):
        with ops.Graph().as_default():
            with ops.device("/job:ps"):
                v = variables.VariableV1(1.0, name="v")
            with ops.device("/job:worker"):
                math_ops.add(v, 1.0, name="result")
            exported = saver_module.export_meta_graph(clear_devices=True)
            self.assertEqual({""}, {node.device for node in exported.graph_def.node})

    def test_import_into_scope(self):
        path = self.folder("m")
        with self.fresh() as sess:
            v = variables.VariableV1(5.0, name="v")
            self.evaluate(v.initializer)
            saver_module.Saver([v]).save(sess, path)
        with self.fresh() as sess:
            saver = saver_module.import_meta_graph(path + ".meta", import_scope="new")
            saver.restore(sess, path)
            self.assertEqual(5.0, sess.run("new/v:0"))
            self.assertEqual("new/v:0", variables.global_variables()[0].name)
            self.assertTrue(saver.saver_def.filename_tensor_name.startswith("new/save/"))

    def test_import_in_name_scope(self):
        path = self.folder("m")
        with self.fresh() as sess:
            v = variables.VariableV1(5.0, name="v")
            self.evaluate(v.initializer)
            saver_module.Saver([v]).save(sess, path)
        with self.fresh() as sess:
            with ops.name_scope("outer"):
                saver = saver_module.import_meta_graph(path + ".meta", import_scope="new")
            self.assertEqual(["outer/new/v:0"], [each.name for each in variables.global_variables()])
            saver.restore(sess, path)

    def test_gradients_after_import(self):
        path = self.folder("m")
        with self.fresh():
            image = array_ops.placeholder(dtypes.float32, [None, 4], name="image")
            weights = variables.VariableV1(np.ones((4, 2), np.float32), name="weights")
            with ops.name_scope("hidden"):
                hidden = nn_ops.relu(math_ops.matmul(image, weights), name="out")
            ops.add_to_collection("logits", hidden)
            saver_module.Saver().export_meta_graph(path)
        with self.fresh() as sess:
            saver_module.import_meta_graph(path)
            logits = ops.get_collection("logits")[0]
            self.assertEqual([None, 2], logits.shape.as_list())
            loss = math_ops.reduce_mean(logits)
            train = gradient_descent.GradientDescentOptimizer(0.1).minimize(loss)
            sess.run(variables.global_variables_initializer())
            sess.run(train, {"image:0": np.ones((1, 4))})
            self.assertAllClose(np.full((4, 2), 0.95), sess.run("weights:0"))

    def check_loop(self, build):
        path = self.folder("loop")
        with self.fresh() as sess:
            start = variables.VariableV1(1.0, name="start")
            out = array_ops.identity(build(start), name="out")
            self.evaluate(variables.global_variables_initializer())
            expected = self.evaluate([out, gradients_impl.gradients(out, start)[0]])
        with self.fresh() as sess:
            start = variables.VariableV1(1.0, name="start")
            array_ops.identity(build(start), name="out")
            saver = saver_module.Saver()
            saver.export_meta_graph(path)
        with self.fresh() as sess:
            saver_module.import_meta_graph(path, import_scope="imported")
            (var,) = variables.global_variables()
            out = sess.graph.get_tensor_by_name("imported/out:0")
            (gradient,) = gradients_impl.gradients(out, var)
            sess.run(variables.global_variables_initializer())
            self.assertAllClose(expected, sess.run([out, gradient]))

    def test_while_loop(self):
        self.check_loop(
            lambda v: control_flow_ops.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2.0), [0, v.value()])[1]
        )

    def test_nested_while_loop(self):
        def body(i, x):
            _, y = control_flow_ops.while_loop(lambda j, y: j < 2, lambda j, y: (j + 1, y * 3.0), [0, x])
            return i + 1, y

        self.check_loop(lambda v: control_flow_ops.while_loop(lambda i, x: i < 2, body, [0, v.value()])[1])

    def test_cond(self):
        self.check_loop(lambda v: control_flow_ops.cond(v > 0.0, lambda: v * 5.0, lambda: v * 7.0))

    def test_while_in_cond(self):
        self.check_loop(
            lambda v: control_flow_ops.cond(
                v > 0.0,
                lambda: control_flow_ops.while_loop(lambda x: x < 10.0, lambda x: x * 3.0, [v * 1.0]),
                lambda: v * 7.0,
            )
        )

    def test_cond_in_while(self):
        self.check_loop(
            lambda v: control_flow_ops.while_loop(
                lambda i, x: i < 3,
                lambda i, x: (i + 1, control_flow_ops.cond(i < 1, lambda: x * 2.0, lambda: x + 1.0)),
                [0, v.value()],
            )[1]
        )

    def test_scoped_export(self):
        path = self.folder("scoped")
        with self.fresh() as sess:
            images = constant_op.constant(1.2, shape=[2, 4], name="images")
            with ops.name_scope("hidden1"):
                weights = variables.VariableV1(np.ones((4, 3), np.float32), name="weights")
                hidden1 = nn_ops.relu(math_ops.matmul(images, weights), name="relu")
            with ops.name_scope("hidden2"):
                weights2 = variables.VariableV1(np.ones((3, 2), np.float32), name="weights")
                math_ops.matmul(hidden1, weights2, name="out")
            self.evaluate(variables.global_variables_initializer())
            saver_module.Saver({"hidden1/weights": weights}).save(sess, path + "_v")
            exported, var_list = meta_graph.export_scoped_meta_graph(
                filename=path, graph=sess.graph, export_scope="hidden1"
            )
            self.assertEqual(["weights:0"], sorted(var_list))
            self.assertIn("unbound_inputs", exported.collection_def)
        with self.fresh() as sess:
            images = constant_op.constant(2.0, shape=[2, 4], name="images")
            new_vars = meta_graph.import_scoped_meta_graph(
                path, graph=sess.graph, input_map={"$unbound_inputs_images": images}, import_scope="new"
            )
            self.assertEqual(["weights:0"], list(new_vars))
            sess.run(variables.global_variables_initializer())
            self.assertAllEqual(np.full((2, 3), 8.0), sess.run("new/relu:0"))

    def test_scoped_with_unbound_refused(self):
        path = self.folder("scoped")
        with ops.Graph().as_default() as g:
            outside = constant_op.constant(1.0, name="outside")
            with ops.name_scope("part"):
                math_ops.add(outside, 1.0, name="sum")
            meta_graph.export_scoped_meta_graph(filename=path, graph=g, export_scope="part")
        with ops.Graph().as_default() as g:
            with self.assertRaisesRegex(ValueError, "Graph contains unbound inputs"):
                meta_graph.import_scoped_meta_graph(path, graph=g, import_scope="new")

    def test_scoped_copy(self):
        with ops.Graph().as_default() as g:
            with ops.name_scope("hidden1"):
                image = constant_op.constant([[1.0]], name="images")
                weights = variables.VariableV1([[3.0]], name="weights")
                math_ops.matmul(image, weights, name="out")
            meta_graph.copy_scoped_meta_graph(from_scope="hidden1", to_scope="hidden2")
            with session.Session(graph=g) as sess:
                sess.run(variables.global_variables_initializer())
                self.assertAllEqual([[3.0]], sess.run("hidden2/out:0"))
            with self.assertRaises(ValueError):
                meta_graph.copy_scoped_meta_graph(from_scope="hidden1", to_scope="hidden1", from_graph=g, to_graph=g)

    def test_export_clears_savers(self):
        with ops.Graph().as_default():
            v = variables.VariableV1(1.0, name="v")
            saver0, saver1 = saver_module.Saver([v]), saver_module.Saver([v])
            ops.add_to_collection(ops.GraphKeys.SAVERS, saver0)
            ops.add_to_collection(ops.GraphKeys.SAVERS, saver1)
            both = saver0.export_meta_graph()
            one = saver0.export_meta_graph(clear_extraneous_savers=True)
            self.assertLess(len(one.graph_def.node), len(both.graph_def.node))
            self.assertEqual(2, len(both.collection_def["savers"].bytes_list.value))
            self.assertEqual(1, len(one.collection_def["savers"].bytes_list.value))
            self.assertFalse(any("save_1" in node.name for node in one.graph_def.node))

    def test_import_errors(self):
        with ops.Graph().as_default():
            with self.assertRaises(IOError):
                saver_module.import_meta_graph(self.folder("never"))
            with self.assertRaises((ValueError, IOError)):
                path = self.folder("broken")
                with open(path, "w") as file:
                    file.write("no graph at all {")
                saver_module.import_meta_graph(path)
            with self.assertRaises((TypeError, AttributeError)):
                saver_module.import_meta_graph(3)

    def test_export_errors(self):
        with ops.Graph().as_default():
            with self.assertRaises((TypeError, ValueError)):
                saver_module.export_meta_graph(saver_def=saver_pb2.SaverDef(), graph_def=3)
        with self.assertRaisesRegex(TypeError, "."):
            meta_graph.create_meta_graph_def(saver_def=3)

    def test_function_library(self):
        with ops.Graph().as_default() as g:

            @framework_function.Defun(dtypes.float32)
            def double(x):
                return x * 2.0

            double(constant_op.constant(3.0, name="in"))
            exported = meta_graph.create_meta_graph_def(graph_def=g.as_graph_def())
        with self.fresh() as sess:
            saver_module.import_meta_graph(exported)
            out = sess.graph.get_operations()[-1]
            self.assertEqual(6.0, sess.run(out.outputs[0]))

    def test_return_elements(self):
        with ops.Graph().as_default():
            constant_op.constant(1.0, name="one")
            exported = saver_module.export_meta_graph()
        with ops.Graph().as_default():
            found = saver_module._import_meta_graph_with_return_elements(exported, return_elements=["one:0"])
            self.assertEqual("one:0", found[1][0].name)

    def test_summaries_survive(self):
        path = self.folder("m")
        with self.fresh():
            summary.scalar("s", constant_op.constant(1.0))
            saver_module.export_meta_graph(path)
        with self.fresh() as sess:
            saver_module.import_meta_graph(path)
            self.assertIn(b"s", sess.run(summary.merge_all()))

    def test_write_graph(self):
        folder = self.folder("graphs")
        with ops.Graph().as_default() as g:
            constant_op.constant(1.0, name="c")
            text = graph_io.write_graph(g, folder, "graph.pbtxt")
            self.assertEqual(os.path.join(folder, "graph.pbtxt"), text)
            self.assertTrue(gfile.Exists(text))
            binary = graph_io.write_graph(g.as_graph_def(), os.path.join(folder, "l1", "l2"), "graph.pb", as_text=False)
            self.assertTrue(gfile.Exists(binary))

    def test_any_collection_type(self):
        message = meta_graph_pb2.MetaGraphDef()
        message.collection_def["x"].int64_list.value.append(3)
        self.assertEqual("int64_list", message.collection_def["x"].WhichOneof("kind"))


class Builders(SaverCase):
    def test_custom_builder(self):
        path = self.folder("b")

        class Builder(saver_module.BaseSaverBuilder):
            calls = []

            def save_op(self, filename_tensor, saveables):
                self.calls.append("save")
                return super().save_op(filename_tensor, saveables)

            def restore_op(self, filename_tensor, saveable, preferred_shard):
                self.calls.append("restore")
                return super().restore_op(filename_tensor, saveable, preferred_shard)

        with self.fresh() as sess:
            v = variables.VariableV1(1.0, name="v")
            self.evaluate(v.initializer)
            saver = saver_module.Saver([v], builder=Builder(saver_pb2.SaverDef.V2))
            saver.save(sess, path)
            self.evaluate(v.assign(3.0))
            saver.restore(sess, path)
            self.assertEqual(1.0, self.evaluate(v))
            self.assertIn("save", Builder.calls)
            self.assertIn("restore", Builder.calls)

    def test_spec_and_saveable(self):
        with ops.Graph().as_default():
            t = constant_op.constant([1.0, 2.0])
            spec = saveable_object.SaveSpec(t, "slice", "name")
            self.assertEqual(("slice", "name", dtypes.float32), (spec.slice_spec, spec.name, spec.dtype))
            self.assertIs(spec.tensor, t)
            lazy = saveable_object.SaveSpec(lambda: t, "", "n", dtype=dtypes.float32, device="/cpu:0")
            self.assertIs(lazy.tensor, t)
            self.assertEqual("/cpu:0", lazy.device)
            with self.assertRaises(AssertionError):
                saveable_object.SaveSpec(lambda: t, "", "n")
            saveable = saveable_object.SaveableObject(t.op, [spec], "whole")
            self.assertEqual("whole", saveable.name)
            self.assertIs(saveable.op, t.op)
            with self.assertRaisesRegex(ValueError, "Calling an abstract method"):
                saveable.restore([t], [None])

    def test_names_at_saver_module(self):
        builder = saver_module.BaseSaverBuilder
        self.assertIs(builder.SaveSpec, saveable_object.SaveSpec)
        self.assertIs(builder.SaveableObject, saveable_object.SaveableObject)
        with ops.Graph().as_default():
            v = variables.VariableV1([1.0], name="v")
            (found,) = saveable_object_util.saveable_objects_for_op(v, "v")
            self.assertEqual("v", found.name)
            self.assertEqual(["v"], [each.name for each in found.specs])
            self.assertEqual(["v"], list(saveable_object_util.op_list_to_dict([v])))

    def test_custom_saveable(self):
        path = self.folder("s")

        class Doubled(saver_module.BaseSaverBuilder.SaveableObject):
            def __init__(self, var, name):
                self._var = var
                spec = saver_module.BaseSaverBuilder.SaveSpec(var * 2.0, "", name)
                super().__init__(var, [spec], name)

            def restore(self, restored_tensors, restored_shapes):
                return self._var.assign(restored_tensors[0] / 2.0)

        with self.fresh() as sess:
            v = variables.VariableV1(21.0, name="v")
            self.evaluate(v.initializer)
            saver = saver_module.Saver([Doubled(v, "twice")])
            saver.save(sess, path)
            self.assertEqual(42.0, checkpoint_utils.load_variable(path, "twice"))
            self.evaluate(v.assign(0.0))
            saver.restore(sess, path)
            self.assertEqual(21.0, self.evaluate(v))

    def test_saveables_collection(self):
        path = self.folder("s")
        with self.fresh() as sess:
            v2 = saver_test_utils.CheckpointedOp(name="v2")
            ops.add_to_collection(ops.GraphKeys.SAVEABLE_OBJECTS, v2.saveable)
            v1 = variables.VariableV1(1.0, name="v1")
            self.evaluate(v1.initializer)
            v2.insert("k", 3.0).run()
            saver_module.Saver().save(sess, path)
            names = [name for name, _ in checkpoint_utils.list_variables(path)]
            self.assertEqual(["v1", "v2-keys", "v2-values"], sorted(names))

    def test_slices(self):
        info = variables.Variable.SaveSliceInfo("part", [4, 2], [2, 0], [2, 2])
        self.assertEqual("4 2 2,2:0,2", info.spec)
        self.assertEqual("part", info.full_name)
        copy = variables.Variable.SaveSliceInfo(save_slice_info_def=info.to_proto())
        self.assertEqual(info.spec, copy.spec)


class Readers(SaverCase):
    def written(self, version=saver_pb2.SaverDef.V2):
        path = self.folder("ckpt")
        with self.fresh() as sess:
            v0 = variables.VariableV1([[1, 2, 3], [4, 5, 6]], dtype=dtypes.float32, name="v0")
            v1 = variables.VariableV1([[[1], [2]], [[3], [4]], [[5], [6]]], dtype=dtypes.float32, name="v1")
            sess.run(variables.global_variables_initializer())
            saver = saver_module.Saver({"v0": v0, "v1": v1}, write_version=version)
            return saver.save(sess, path)

    def check(self, version):
        path = self.written(version)
        reader = pywrap_tensorflow.NewCheckpointReader(path)
        self.assertTrue(reader.has_tensor("v0"))
        self.assertTrue(reader.has_tensor("v1"))
        self.assertFalse(reader.has_tensor("v2"))
        debug_string = reader.debug_string()
        self.assertTrue(compat.as_bytes("v0 (DT_FLOAT) [2,3]") in debug_string)
        self.assertTrue(compat.as_bytes("v1 (DT_FLOAT) [3,2,1]") in debug_string)
        var_map = reader.get_variable_to_shape_map()
        self.assertEqual([2, 3], var_map["v0"])
        self.assertEqual([3, 2, 1], var_map["v1"])
        self.assertEqual(dtypes.float32, reader.get_variable_to_dtype_map()["v0"])
        self.assertAllEqual([[1, 2, 3], [4, 5, 6]], reader.get_tensor("v0"))
        with self.assertRaisesRegex(errors.NotFoundError, "v3 not found in checkpoint"):
            reader.get_tensor("v3")

    def test_version_2(self):
        self.check(saver_pb2.SaverDef.V2)

    def test_version_1(self):
        self.check(saver_pb2.SaverDef.V1)

    def test_nonexistent(self):
        with self.assertRaisesRegex(errors.NotFoundError, "Unsuccessful TensorSliceReader|Failed to find any matching"):
            pywrap_tensorflow.NewCheckpointReader("non-existent")

    def test_load_and_list(self):
        path = self.written()
        for where in (path, os.path.dirname(path)):
            self.assertEqual([("v0", [2, 3]), ("v1", [3, 2, 1])], checkpoint_utils.list_variables(where))
            self.assertAllEqual([[1, 2, 3], [4, 5, 6]], checkpoint_utils.load_variable(where, "v0"))
            self.assertAllEqual([2, 3], checkpoint_utils.load_checkpoint(where).get_variable_to_shape_map()["v0"])
        with self.assertRaises((errors.OpError, ValueError)):
            checkpoint_utils.load_variable(self.get_temp_dir() + "/nowhere", "v0")

    def test_waiting(self):
        folder = self.folder("waits")
        os.makedirs(folder, exist_ok=True)
        self.assertIsNone(checkpoint_utils.wait_for_new_checkpoint(folder, seconds_to_sleep=0, timeout=0))
        path = self.written()
        folder = os.path.dirname(path)
        self.assertEqual(path, checkpoint_utils.wait_for_new_checkpoint(folder, seconds_to_sleep=0, timeout=0.5))
        self.assertIsNone(checkpoint_utils.wait_for_new_checkpoint(folder, path, seconds_to_sleep=0, timeout=0))

    def test_iterator(self):
        path = self.written()
        found = list(checkpoint_utils.checkpoints_iterator(os.path.dirname(path), timeout=0))
        self.assertEqual([path], found)
        calls = []

        def once_more():
            calls.append(1)
            return len(calls) == 2

        found = list(
            checkpoint_utils.checkpoints_iterator(
                os.path.dirname(path), timeout=0.01, min_interval_secs=0, timeout_fn=once_more
            )
        )
        self.assertEqual([path], found)
        self.assertEqual(2, len(calls))


class InitialValues(SaverCase):
    def written(self, partitions=False):
        path = self.folder("ckpt")
        with self.fresh() as sess:
            v1 = variable_scope.get_variable("var1", [1, 10])
            v2 = variable_scope.get_variable("var2", [10, 10])
            v3 = variable_scope.get_variable("var3", [100, 100])
            with variable_scope.variable_scope("useful_scope"):
                v4 = variable_scope.get_variable("var4", [9, 9])
            whole = [v1, v2, v3, v4]
            if partitions:
                whole.append(
                    variable_scope.get_variable(
                        "part",
                        [100, 100],
                        partitioner=partitioned_variables.variable_axis_size_partitioner(max_shard_bytes=100 * 100),
                    )
                )
            sess.run(variables.global_variables_initializer())
            values = sess.run([each.as_tensor() if hasattr(each, "as_tensor") else each for each in whole])
            saver_module.Saver().save(sess, path)
            return path, values

    def test_names_and_scopes(self):
        path, (v1, v2, v3, v4) = self.written()
        with self.fresh() as sess:
            with variable_scope.variable_scope("some_scope"):
                my1 = variable_scope.get_variable("my1", [1, 10])
                with variable_scope.variable_scope("some_other_scope"):
                    my2 = variable_scope.get_variable("my2", [10, 10])
                    with variable_scope.variable_scope("other_useful_scope"):
                        my4 = variable_scope.get_variable("var4", [9, 9])
            my3 = variable_scope.get_variable("my3", [100, 100])
            checkpoint_utils.init_from_checkpoint(
                path, {"var1": "some_scope/my1", "useful_scope/": "some_scope/some_other_scope/other_useful_scope/"}
            )
            checkpoint_utils.init_from_checkpoint(path, {"var2": "some_scope/some_other_scope/my2", "var3": my3})
            sess.run(variables.global_variables_initializer())
            for mine, theirs in ((my1, v1), (my2, v2), (my3, v3), (my4, v4)):
                self.assertAllEqual(theirs, self.evaluate(mine))
            self.assertTrue(my1.op.get_attr("shared_name") in (b"", b"some_scope/my1"))

    def test_initial_value_changes(self):
        path, (v1, *_) = self.written()
        with self.fresh():
            with variable_scope.variable_scope("some_scope"):
                my1 = variable_scope.get_variable("my1", [1, 10], initializer=init_ops.zeros_initializer())
            before = my1.initialized_value()
            checkpoint_utils.init_from_checkpoint(path, {"var1": my1})
            self.evaluate(variables.global_variables_initializer())
            self.assertAllEqual(v1, self.evaluate(my1))
            self.assertAllEqual(v1, self.evaluate(before))
            self.assertAllEqual(v1, self.evaluate(my1.initial_value))

    def test_root_scope(self):
        path, (v1, v2, v3, v4) = self.written()
        for assignment in ({"/": "some_scope/"},):
            with self.fresh() as sess:
                with variable_scope.variable_scope("some_scope"):
                    my1 = variable_scope.get_variable("var1", [1, 10])
                    my2 = variable_scope.get_variable("var2", [10, 10])
                    with variable_scope.variable_scope("useful_scope"):
                        my4 = variable_scope.get_variable("var4", [9, 9])
                checkpoint_utils.init_from_checkpoint(path, assignment)
                sess.run(variables.global_variables_initializer())
                for mine, theirs in ((my1, v1), (my2, v2), (my4, v4)):
                    self.assertAllEqual(theirs, self.evaluate(mine))

    def test_to_root_scope(self):
        path, (*_, v4) = self.written()
        with self.fresh() as sess:
            my4 = variable_scope.get_variable("var4", [9, 9])
            checkpoint_utils.init_from_checkpoint(path, {"useful_scope/": "/"})
            sess.run(variables.global_variables_initializer())
            self.assertAllEqual(v4, self.evaluate(my4))

    def test_partitioned(self):
        path, values = self.written(partitions=True)
        with self.fresh() as sess:
            with variable_scope.variable_scope("some_scope"):
                my1 = variable_scope.get_variable(
                    "my1",
                    [100, 100],
                    initializer=init_ops.zeros_initializer(),
                    partitioner=partitioned_variables.variable_axis_size_partitioner(max_shard_bytes=100 * 100),
                )
                my1_list = list(my1)
            checkpoint_utils.init_from_checkpoint(path, {"part": my1_list})
            sess.run(variables.global_variables_initializer())
            self.assertAllEqual(values[-1], self.evaluate(my1.as_tensor()))
        with self.fresh() as sess:
            with variable_scope.variable_scope("some_scope"):
                my1 = variable_scope.get_variable(
                    "my1", [100, 100], partitioner=partitioned_variables.fixed_size_partitioner(3)
                )
            checkpoint_utils.init_from_checkpoint(path, {"part": "some_scope/my1"})
            sess.run(variables.global_variables_initializer())
            self.assertAllEqual(values[-1], self.evaluate(my1.as_tensor()))

    def test_missing(self):
        path, _ = self.written()
        with self.fresh():
            with variable_scope.variable_scope("some_scope"):
                variable_scope.get_variable("my1", [10, 10], initializer=init_ops.zeros_initializer())
                variable_scope.get_variable("my2", [1, 10], initializer=init_ops.zeros_initializer())
                variable_scope.get_variable("my4", [10, 10], initializer=init_ops.zeros_initializer())
            with self.assertRaises(ValueError):
                checkpoint_utils.init_from_checkpoint(path, {"no_var": "some_scope/my1"})
            with self.assertRaises(ValueError):
                checkpoint_utils.init_from_checkpoint(path, {"var1": "some_scope/my1"})
            with self.assertRaises(ValueError):
                checkpoint_utils.init_from_checkpoint(path, {"no_scope/": "some_scope/"})
            with self.assertRaises(ValueError):
                checkpoint_utils.init_from_checkpoint(path, {"var1": "nowhere/my1"})
            with self.assertRaises(ValueError):
                checkpoint_utils.init_from_checkpoint(path, {"useful_scope": "some_scope/"})

    def test_resource_variables(self):
        path, (v1, *_) = self.written()
        with self.fresh() as sess:
            mine = variable_scope.get_variable("mine", [1, 10], use_resource=True)
            checkpoint_utils.init_from_checkpoint(path, {"var1": mine})
            sess.run(variables.global_variables_initializer())
            self.assertAllEqual(v1, self.evaluate(mine))

    def test_many_times_in_dictionary(self):
        path, (v1, *_) = self.written()
        with self.fresh() as sess:
            first = variable_scope.get_variable("a", [1, 10])
            checkpoint_utils.init_from_checkpoint(path, {"var1": first})
            checkpoint_utils.init_from_checkpoint(os.path.dirname(path), {"var1": "a"})
            sess.run(variables.global_variables_initializer())
            self.assertAllEqual(v1, self.evaluate(first))


class SaveOps(SaverCase):
    def test_save_and_restore(self):
        path = self.folder("v2")
        with self.fresh() as sess:
            save = io_ops.save_v2(
                path, ["a", "b"], ["", ""], [constant_op.constant([1.0, 2.0]), constant_op.constant(3)]
            )
            sess.run(save)
            a, b = io_ops.restore_v2(path, ["a", "b"], ["", ""], [dtypes.float32, dtypes.int32])
            self.assertAllEqual([1.0, 2.0], self.evaluate(a))
            self.assertEqual(3, self.evaluate(b))
            (part,) = io_ops.restore_v2(path, ["a"], ["2 1,1"], [dtypes.float32])
            self.assertAllEqual([2.0], self.evaluate(part))

    def test_sharded_names(self):
        with self.fresh():
            from tensorflow.python.ops import gen_io_ops

            self.assertEqual(b"foo-00004-of-00100", gen_io_ops.sharded_filename("foo", 4, 100).eval())
            self.assertEqual(b"foo-?????-of-00100", gen_io_ops.sharded_filespec("foo", 100).eval())

    def test_files(self):
        path = self.folder("file")
        with self.fresh() as sess:
            sess.run(io_ops.write_file(path, constant_op.constant(b"some \x00 text")))
            self.assertEqual(b"some \x00 text", io_ops.read_file(path).eval())
            found = io_ops.matching_files(path + "*").eval()
            self.assertEqual([compat.as_bytes(path)], list(found))
            both = io_ops.matching_files([path + "*", path + "?"]).eval()
            self.assertEqual([compat.as_bytes(path)], list(both))
            deeper = os.path.join(self.folder("deep"), "er", "file")
            sess.run(io_ops.write_file(deeper, "x"))
            self.assertTrue(os.path.exists(deeper))

    def test_nan_and_types(self):
        path = self.folder("types")
        with self.fresh() as sess:
            values = {
                "half": np.array([1.5], np.float16),
                "double": np.array([math.pi]),
                "text": np.array([b"a", b"bc"], object),
                "truth": np.array([True, False]),
                "complex": np.array([1 + 2j], np.complex64),
                "small": np.array([-3], np.int8),
                "bytes": np.array([200], np.uint8),
                "nan": np.array([np.nan], np.float32),
            }
            vs = {name: variables.VariableV1(constant_op.constant(value), name=name) for name, value in values.items()}
            sess.run(variables.global_variables_initializer())
            saver_module.Saver(vs).save(sess, path)
            for name, value in values.items():
                got = checkpoint_utils.load_variable(path, name)
                self.assertAllEqual(value, got)
                self.assertEqual(value.dtype, got.dtype)

    def test_random_order(self):
        path = self.folder("r")
        with self.fresh() as sess:
            a = variables.VariableV1(random_ops.random_normal([3]), name="a")
            with ops.control_dependencies([a.initializer]):
                b = variables.VariableV1(a.initialized_value() + 1.0, name="b")
            sess.run(variables.global_variables_initializer())
            optimizer = adam.AdamOptimizer(0.1)
            optimizer.minimize(math_ops.reduce_sum(a * b))
            sess.run(variables.variables_initializer(optimizer.variables()))
            saver_module.Saver().save(sess, path)
            names = {name for name, _ in checkpoint_utils.list_variables(path)}
            self.assertEqual(
                {"a", "b", "a/Adam", "a/Adam_1", "b/Adam", "b/Adam_1", "beta1_power", "beta2_power"}, names
            )
            self.assertAllEqual(sess.run(a), checkpoint_utils.load_variable(path, "a"))
            state_ops.assign(a, [1.0, 2.0, 3.0]).eval()
            self.assertEqual(b"", b"")


if __name__ == "__main__":
    test.main()
