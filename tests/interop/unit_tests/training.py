"""Supervision of training: sessions, hooks, coordinators, savers, optimizers, averages and decays."""

import os
import threading
import time

import numpy as np
from tensorflow.core.protobuf import cluster_pb2, config_pb2, saver_pb2, tensorflow_server_pb2
from tensorflow.python.client import session as session_lib
from tensorflow.python.framework import constant_op, dtypes, errors_impl, meta_graph, ops, test_util
from tensorflow.python.lib.io import file_io
from tensorflow.python.ops import (
    array_ops,
    control_flow_ops,
    data_flow_ops,
    embedding_ops,
    math_ops,
    partitioned_variables,
    resource_variable_ops,
    state_ops,
    variable_scope,
    variables,
)
from tensorflow.python.platform import gfile, test
from tensorflow.python.summary import summary, summary_iterator
from tensorflow.python.training import (
    adagrad,
    adam,
    basic_session_run_hooks,
    checkpoint_management,
    coordinator,
    device_setter,
    ftrl,
    gradient_descent,
    learning_rate_decay,
    momentum,
    monitored_session,
    moving_averages,
    optimizer,
    queue_runner_impl,
    rmsprop,
    saver_test_utils,
    server_lib,
    session_manager,
    session_run_hook,
    slot_creator,
    supervisor,
    training_util,
)
from tensorflow.python.training import (
    input as inp,
)
from tensorflow.python.training import (
    saver as saver_module,
)
from tensorflow.python.training.saving import saveable_object_util
from tensorflow.python.util import compat


class Coordinators(test.TestCase):
    def test_stop(self):
        coord = coordinator.Coordinator()
        self.assertFalse(coord.should_stop())
        self.assertFalse(coord.wait_for_stop(0.01))
        coord.request_stop()
        self.assertTrue(coord.should_stop())
        self.assertTrue(coord.wait_for_stop(0.01))
        self.assertTrue(coord.joined or True)

    def test_join_raises(self):
        coord = coordinator.Coordinator()

        def fail():
            try:
                raise RuntimeError("First")
            except RuntimeError as error:
                coord.request_stop(error)

        thread = threading.Thread(target=fail)
        thread.start()
        thread.join()
        with self.assertRaisesRegex(RuntimeError, "First"):
            coord.join([thread])

    def test_exception_tuple(self):
        coord = coordinator.Coordinator()
        with self.assertRaisesRegex(RuntimeError, "here"):
            with coord.stop_on_exception():
                raise RuntimeError("here")
            coord.join([])

    def test_clean_stop_types(self):
        coord = coordinator.Coordinator(clean_stop_exception_types=(errors_impl.OutOfRangeError,))
        with coord.stop_on_exception():
            raise errors_impl.OutOfRangeError(None, None, "done")
        coord.join([])
        coord = coordinator.Coordinator()
        with coord.stop_on_exception():
            raise ValueError("real")
        with self.assertRaisesRegex(ValueError, "real"):
            coord.join([])

    def test_grace_period(self):
        coord = coordinator.Coordinator()
        wait = threading.Event()
        thread = threading.Thread(target=wait.wait, daemon=True)
        thread.start()
        coord.request_stop()
        with self.assertRaisesRegex(RuntimeError, "Coordinator stopped with threads still running"):
            coord.join([thread], stop_grace_period_secs=0.02)
        wait.set()
        thread.join()

    def test_looper(self):
        coord = coordinator.Coordinator()
        calls = []

        def target():
            calls.append(1)
            if len(calls) == 3:
                coord.request_stop()

        thread = coordinator.LooperThread.loop(coord, 0, target=target)
        coord.join([thread])
        self.assertEqual(3, len(calls))
        with self.assertRaises(ValueError):
            coordinator.LooperThread(5, 0)

    def test_request_stop_twice_and_clear(self):
        coord = coordinator.Coordinator()
        coord.request_stop()
        coord.clear_stop()
        self.assertFalse(coord.should_stop())
        with self.assertRaises(ValueError):
            try:
                raise ValueError("a")
            except ValueError as error:
                coord.request_stop(error)
            coord.raise_requested_exception()


class Servers(test.TestCase):
    def test_definition(self):
        server_def = tensorflow_server_pb2.ServerDef(
            cluster=cluster_pb2.ClusterDef(job=[cluster_pb2.JobDef(name="local", tasks={0: "localhost:0"})]),
            job_name="local", task_index=0, protocol="grpc")
        server = server_lib.Server(server_def, start=False)
        self.assertEqual("local", server.server_def.job_name)
        with self.assertRaisesRegex(ValueError, "Must specify an explicit"):
            server_lib.Server({"local": ["localhost:1", "localhost:2"]}, job_name="local", start=False)

    def test_values_stay(self):
        server = server_lib.Server.create_local_server()
        with ops.Graph().as_default():
            v = variables.VariableV1(3.0)
            with session_lib.Session(server.target) as sess:
                sess.run(v.initializer)
                self.assertEqual(3.0, sess.run(v))
            with session_lib.Session(server.target) as sess:
                self.assertEqual(3.0, sess.run(v))
            session_lib.Session.reset(server.target)
            with session_lib.Session(server.target) as sess:
                with self.assertRaises(errors_impl.FailedPreconditionError):
                    sess.run(v)

    def test_bad_target(self):
        with self.assertRaises(errors_impl.NotFoundError):
            session_lib.Session("bogus")

    def test_cluster_spec(self):
        spec = server_lib.ClusterSpec({"ps": ["h0:1"], "worker": {1: "h2:2", 0: "h1:2"}})
        self.assertEqual(["ps", "worker"], spec.jobs)
        self.assertEqual(2, spec.num_tasks("worker"))
        self.assertEqual([0, 1], spec.task_indices("worker"))
        self.assertEqual("h2:2", spec.task_address("worker", 1))
        self.assertEqual(["h1:2", "h2:2"], spec.job_tasks("worker"))
        self.assertTrue(spec)
        self.assertFalse(server_lib.ClusterSpec({}))
        self.assertEqual(spec, server_lib.ClusterSpec(spec.as_cluster_def()))
        self.assertEqual(spec, server_lib.ClusterSpec(spec.as_dict()))
        self.assertIn("ClusterSpec({", repr(spec))
        for call, words in ((lambda: spec.num_tasks("x"), "No such job in cluster: 'x'"),
                            (lambda: spec.task_address("worker", 5), "No task with index 5 in job 'worker'"),
                            (lambda: spec.job_tasks("x"), "No such job in cluster: 'x'")):
            with self.assertRaisesRegex(ValueError, words):
                call()
        for bad in (5, [], {"job": 7}, {"job": [3]}):
            with self.assertRaises(TypeError):
                server_lib.ClusterSpec(bad)

    def test_sparse_job(self):
        server = server_lib.Server(
            tensorflow_server_pb2.ServerDef(
                cluster=cluster_pb2.ClusterDef(job=[cluster_pb2.JobDef(name="local", tasks={37: "localhost:0"})]),
                job_name="local", task_index=37, protocol="grpc"))
        with ops.Graph().as_default(), ops.device("/job:local/task:37"):
            a = constant_op.constant(1.0)
            with session_lib.Session(server.target) as sess:
                self.assertEqual(1.0, sess.run(a))


class DeviceSetters(test.TestCase):
    def test_round_robin(self):
        spec = server_lib.ClusterSpec({"ps": ["a:1", "b:1"], "worker": ["w:1"]})
        with ops.Graph().as_default(), ops.device(device_setter.replica_device_setter(cluster=spec)):
            v, w = variables.VariableV1([1, 2]), variables.VariableV1([2, 1])
            a = v + w
        self.assertEqual("/job:ps/task:0", v.device)
        self.assertEqual("/job:ps/task:0", v.initializer.device)
        self.assertEqual("/job:ps/task:1", w.device)
        self.assertEqual("/job:worker", a.device)

    def test_forms(self):
        with ops.Graph().as_default():
            for setter, wanted in (
                (device_setter.replica_device_setter(ps_tasks=1), "/job:ps/task:0"),
                (device_setter.replica_device_setter(ps_tasks=1, ps_device="/job:moon", worker_device="/job:sun"),
                 "/job:moon/task:0"),
                (device_setter.replica_device_setter(cluster={"ps": ["a:1"]}, ps_ops=["Variable", "VariableV2"]),
                 "/job:ps/task:0"),
            ):
                with ops.device(setter):
                    self.assertEqual(wanted, variables.VariableV1([1]).device)
            self.assertIsNone(device_setter.replica_device_setter(ps_tasks=0))
            with self.assertRaises((TypeError, ValueError)):
                device_setter.replica_device_setter(cluster=5)
            with self.assertRaises((TypeError, ValueError)):
                device_setter.replica_device_setter(ps_tasks=1, ps_strategy=1)


class Monitored(test.TestCase):
    def test_scaffold_defaults(self):
        with ops.Graph().as_default():
            scaffold = monitored_session.Scaffold()
            variables.VariableV1(1, name="my_var")
            scaffold.finalize()
            self.assertIsInstance(scaffold.init_op, ops.Operation)
            self.assertIsNone(scaffold.init_feed_dict)
            self.assertIsNone(scaffold.init_fn)
            self.assertIsInstance(scaffold.ready_op, ops.Tensor)
            self.assertIsInstance(scaffold.local_init_op, ops.Operation)
            self.assertIsInstance(scaffold.saver, saver_module.Saver)
            with self.cached_session() as sess:
                self.assertIn(b"my_var", sess.run(scaffold.ready_op))
                sess.run([scaffold.init_op, scaffold.local_init_op])
                self.assertEqual(0, len(sess.run(scaffold.ready_op)))

    def test_steps_and_hooks(self):
        seen = []

        class Hook(session_run_hook.SessionRunHook):
            def begin(self):
                seen.append("begin")

            def after_create_session(self, session, coord):
                seen.append("create")

            def before_run(self, run_context):
                seen.append("before")
                return session_run_hook.SessionRunArgs({"c": constant}, {placeholder: 4.0})

            def after_run(self, run_context, run_values):
                seen.append(run_values.results)

            def end(self, session):
                seen.append("end")

        with ops.Graph().as_default():
            placeholder = array_ops.placeholder(dtypes.float32)
            constant = constant_op.constant(3)
            doubled = placeholder * 2
            with monitored_session.MonitoredSession(hooks=[Hook()]) as session:
                self.assertEqual(8.0, session.run(doubled))
                with self.assertRaisesRegex(RuntimeError, "Same tensor is fed by"):
                    session.run(doubled, {placeholder: 1.0})
        self.assertEqual(["begin", "create", "before", {"c": 3}], seen[:4])

    def test_last_step(self):
        with ops.Graph().as_default():
            step = training_util.get_or_create_global_step()
            add = state_ops.assign_add(step, 1)
            hook = basic_session_run_hooks.StopAtStepHook(last_step=3)
            with monitored_session.SingularMonitoredSession(hooks=[hook]) as session:
                count = 0
                while not session.should_stop():
                    session.run(add)
                    count += 1
            self.assertEqual(3, count)
            with self.assertRaises(ValueError):
                basic_session_run_hooks.StopAtStepHook(num_steps=1, last_step=2)
            with self.assertRaises(ValueError):
                basic_session_run_hooks.StopAtStepHook()

    def test_checkpoints(self):
        logdir = self.get_temp_dir()
        with ops.Graph().as_default():
            step = training_util.get_or_create_global_step()
            add = state_ops.assign_add(step, 1)
            with monitored_session.MonitoredTrainingSession(
                is_chief=True, checkpoint_dir=logdir, save_checkpoint_steps=2
            ) as session:
                for _ in range(5):
                    session.run(add)
        self.assertTrue(checkpoint_management.latest_checkpoint(logdir).endswith("model.ckpt-5"))
        with ops.Graph().as_default():
            step = training_util.get_or_create_global_step()
            with monitored_session.MonitoredTrainingSession(is_chief=True, checkpoint_dir=logdir) as session:
                self.assertEqual(5, session.run(step))

    def test_step_fn(self):
        with ops.Graph().as_default():
            v = variables.VariableV1(1.0)
            with monitored_session.MonitoredSession() as session:
                self.assertEqual(1.0, session.run_step_fn(lambda step_context: step_context.session.run(v)))
                self.assertEqual(1.0, session.run_step_fn(lambda step_context: step_context.run_with_hooks(v)))
                for bad in (lambda: 1, lambda a, b: 1):
                    with self.assertRaises(ValueError):
                        session.run_step_fn(bad)
                with self.assertRaises(StopIteration):
                    session.run_step_fn(lambda step_context: step_context.request_stop())

    def test_raw_session_graph(self):
        with ops.Graph().as_default() as g:
            constant_op.constant(0)
            with monitored_session.MonitoredSession() as session:
                self.assertIs(g, session.graph)
                self.assertTrue(g.finalized)

    def test_worker_creator(self):
        logdir = self.get_temp_dir()
        with ops.Graph().as_default():
            training_util.get_or_create_global_step()
            with monitored_session.MonitoredSession(
                session_creator=monitored_session.ChiefSessionCreator(checkpoint_dir=logdir)
            ) as session:
                self.assertFalse(session.should_stop())


class Hooks(test.TestCase):
    def setUp(self):
        super().setUp()
        self.graph = ops.Graph()
        with self.graph.as_default():
            self.step = training_util.get_or_create_global_step()
            self.train = state_ops.assign_add(self.step, 1)

    def test_timer(self):
        with self.assertRaises(ValueError):
            basic_session_run_hooks.SecondOrStepTimer(every_secs=2.0, every_steps=10)
        with self.assertRaises(ValueError):
            basic_session_run_hooks.SecondOrStepTimer()
        timer = basic_session_run_hooks.SecondOrStepTimer(every_steps=3)
        self.assertTrue(timer.should_trigger_for_step(1))
        self.assertEqual((None, None), timer.update_last_triggered_step(1))
        self.assertFalse(timer.should_trigger_for_step(1))
        self.assertFalse(timer.should_trigger_for_step(2))
        self.assertTrue(timer.should_trigger_for_step(4))
        self.assertEqual(3, timer.update_last_triggered_step(4)[1])
        self.assertEqual(4, timer.last_triggered_step())

    def test_logging(self):
        with self.assertRaises(ValueError):
            basic_session_run_hooks.LoggingTensorHook(tensors=["t"], every_n_iter=0)
        with self.assertRaises(ValueError):
            basic_session_run_hooks.LoggingTensorHook(tensors=["t"], every_n_iter=5, every_n_secs=5)
        with self.assertRaises(ValueError):
            basic_session_run_hooks.LoggingTensorHook(tensors=["t"])
        with self.graph.as_default(), session_lib.Session() as sess:
            t = constant_op.constant(42.0, name="foo")
            sess.run(variables.global_variables_initializer())
            hook = basic_session_run_hooks.LoggingTensorHook(tensors=[t.name], at_end=True)
            hook.begin()
            mon = monitored_session._HookedSession(sess, [hook])
            mon.run(self.train)
            hook.end(sess)

    def test_nan(self):
        with self.graph.as_default():
            loss = array_ops.placeholder_with_default(1.0, [])
            with monitored_session.SingularMonitoredSession(
                hooks=[basic_session_run_hooks.NanTensorHook(loss, fail_on_nan_loss=False)]
            ) as sess:
                sess.run(self.train)
                self.assertFalse(sess.should_stop())
                sess.run(self.train, {loss: np.nan})
                self.assertTrue(sess.should_stop())
            with self.assertRaises(basic_session_run_hooks.NanLossDuringTrainingError):
                with monitored_session.SingularMonitoredSession(
                    hooks=[basic_session_run_hooks.NanTensorHook(loss)]
                ) as sess:
                    sess.run(self.train, {loss: np.nan})

    def test_saver_listeners(self):
        seen = []

        class Listener(basic_session_run_hooks.CheckpointSaverListener):
            def begin(self):
                seen.append("begin")

            def before_save(self, session, step):
                seen.append(("before", step))

            def after_save(self, session, step):
                seen.append(("after", step))

            def end(self, session, step):
                seen.append(("end", step))

        with self.graph.as_default():
            scaffold = monitored_session.Scaffold()
            hook = basic_session_run_hooks.CheckpointSaverHook(
                self.get_temp_dir(), save_steps=2, scaffold=scaffold, listeners=[Listener()])
            with monitored_session.SingularMonitoredSession(hooks=[hook], scaffold=scaffold) as sess:
                for _ in range(3):
                    sess.run(self.train)
        self.assertEqual("begin", seen[0])
        self.assertEqual(("before", 0), seen[1])
        self.assertEqual(("end", 3), seen[-1])
        with self.assertRaises(ValueError):
            basic_session_run_hooks.CheckpointSaverHook("x", save_secs=1, save_steps=2)

    def test_summaries(self):
        folder = os.path.join(self.get_temp_dir(), "s")
        with self.graph.as_default():
            op = summary.scalar("my_summary", math_ops.cast(self.step, dtypes.float32))
            with self.assertRaises(ValueError):
                basic_session_run_hooks.SummarySaverHook(save_steps=1, summary_op=op, scaffold=monitored_session.Scaffold())
            with self.assertRaises(ValueError):
                basic_session_run_hooks.SummarySaverHook(save_steps=1)
            hook = basic_session_run_hooks.SummarySaverHook(save_steps=2, output_dir=folder, summary_op=op)
            with monitored_session.SingularMonitoredSession(hooks=[hook]) as sess:
                for _ in range(4):
                    sess.run(self.train)
        summary.FileWriterCache.clear()
        path, = [os.path.join(folder, each) for each in os.listdir(folder)]
        steps = [event.step for event in summary_iterator.summary_iterator(path) if event.HasField("summary")]
        self.assertEqual([1, 3], steps)

    def test_step_counter(self):
        folder = os.path.join(self.get_temp_dir(), "c")
        with self.graph.as_default():
            hook = basic_session_run_hooks.StepCounterHook(output_dir=folder, every_n_steps=2)
            with monitored_session.SingularMonitoredSession(hooks=[hook]) as sess:
                for _ in range(5):
                    sess.run(self.train)
        summary.FileWriterCache.clear()
        path, = [os.path.join(folder, each) for each in os.listdir(folder)]
        tags = {v.tag for event in summary_iterator.summary_iterator(path) for v in event.summary.value}
        self.assertEqual({"global_step/sec"}, tags)

    def test_final_ops_and_feed(self):
        with self.graph.as_default():
            x = array_ops.placeholder_with_default(1.0, [])
            final = basic_session_run_hooks.FinalOpsHook({"x": x}, {x: 7.0})
            feed = basic_session_run_hooks.FeedFnHook(lambda: {x: 2.0})
            with monitored_session.SingularMonitoredSession(hooks=[final, feed]) as sess:
                self.assertEqual(2.0, sess.run(x))
            self.assertEqual({"x": 7.0}, final.final_ops_values)

    def test_global_step_waiter(self):
        with self.graph.as_default():
            hook = basic_session_run_hooks.GlobalStepWaiterHook(wait_until_step=0)
            with monitored_session.SingularMonitoredSession(hooks=[hook]) as sess:
                sess.run(self.train)

    def test_resource_summary(self):
        with ops.Graph().as_default():
            with self.assertRaisesRegex(RuntimeError, "Global step should be created"):
                hook = basic_session_run_hooks.StepCounterHook()
                hook.begin()


class Savers(test.TestCase):
    def path(self, name):
        return os.path.join(self.get_temp_dir(), name)

    def test_basics(self):
        path = self.path("basics")
        with session_lib.Session(graph=ops.Graph()) as sess, sess.graph.as_default():
            v0, v1 = variables.VariableV1(10.0, name="v0"), variables.VariableV1(20.0, name="v1")
            v2 = saver_test_utils.CheckpointedOp(name="v2")
            save = saver_module.Saver({"v0": v0, "v1": v1, "v2": v2.saveable}, restore_sequentially=True)
            with self.assertRaisesWithPredicateMatch(errors_impl.OpError, lambda e: "uninitialized value" in e.message):
                sess.run(v0)
            self.evaluate(variables.global_variables_initializer())
            v2.insert("k1", 30.0).run()
            value = save.save(sess, path)
            self.assertEqual(path, value)
        with session_lib.Session(graph=ops.Graph()) as sess, sess.graph.as_default():
            v0, v1 = variables.VariableV1(-1.0, name="v0"), variables.VariableV1(-1.0, name="v1")
            v2 = saver_test_utils.CheckpointedOp(name="v2")
            saver_module.Saver([v0, v1, v2.saveable]).restore(sess, path)
            self.assertEqual((10.0, 20.0), tuple(sess.run([v0, v1])))
            self.assertEqual([b"k1"], list(sess.run(v2.keys())))
            self.assertEqual([30.0], list(sess.run(v2.values())))

    def test_restore_messages(self):
        with self.session(graph=ops.Graph()) as sess:
            v = variables.VariableV1([1.0], name="v")
            save = saver_module.Saver([v])
            with self.assertRaisesRegex(ValueError, "The passed save_path is not a valid checkpoint: invalid path"):
                save.restore(sess, "invalid path")
            with self.assertRaisesRegex(ValueError, "Can't load save_path when it is None"):
                save.restore(sess, None)
            v.initializer.run()
            path = save.save(sess, self.path("one"))
        with self.session(graph=ops.Graph()) as sess:
            other = saver_module.Saver([variables.VariableV1([1.0], name="w")])
            with self.assertRaisesRegex(errors_impl.NotFoundError, "Key w not found in checkpoint"):
                other.restore(sess, path)
        with self.session(graph=ops.Graph()) as sess:
            other = saver_module.Saver([variables.VariableV1([1.0, 2.0], name="v")])
            with self.assertRaises(errors_impl.InvalidArgumentError):
                other.restore(sess, path)

    def test_arguments(self):
        with ops.Graph().as_default():
            v = variables.VariableV1(1.0, name="v")
            for call, kind in (
                (lambda: saver_module.Saver({"a": v, "b": v}), ValueError),
                (lambda: saver_module.Saver([v, v]), ValueError),
            ):
                with self.assertRaises(kind):
                    call()
        with ops.Graph().as_default():
            with self.assertRaisesRegex(ValueError, "No variables to save"):
                saver_module.Saver()
            saver_module.Saver(allow_empty=True)

    def test_max_to_keep(self):
        with self.session(graph=ops.Graph()) as sess:
            v = variables.VariableV1(10.0, name="v")
            save = saver_module.Saver({"v": v}, max_to_keep=2)
            v.initializer.run()
            made = [save.save(sess, self.path(f"keep{number}")) for number in range(3)]
            self.assertEqual(made[1:], save.last_checkpoints)
            self.assertFalse(checkpoint_management.checkpoint_exists(made[0]))
            self.assertTrue(checkpoint_management.checkpoint_exists(made[2]))
            state = checkpoint_management.get_checkpoint_state(self.get_temp_dir())
            self.assertEqual(2, len(state.all_model_checkpoint_paths))
            times = checkpoint_management.get_checkpoint_mtimes(made[1:])
            self.assertEqual(2, len(times))
            checkpoint_management.remove_checkpoint(made[2])
            self.assertFalse(checkpoint_management.checkpoint_exists(made[2]))

    def test_saver_def(self):
        with self.cached_session():
            v = variables.VariableV1(1.0, name="vv")
            save = saver_module.Saver([v], max_to_keep=7)
            proto = save.as_saver_def()
            self.assertEqual("save/Const:0", proto.filename_tensor_name)
            self.assertEqual("save/restore_all", proto.restore_op_name)
            self.assertEqual(7, proto.max_to_keep)
            self.assertEqual(saver_pb2.SaverDef.V2, proto.version)
            again = saver_module.Saver.from_proto(proto)
            self.assertEqual(proto, again.as_saver_def())
            with self.assertRaises(ValueError):
                saver_module.Saver(saver_def=saver_pb2.SaverDef()).build()

    def test_op_list(self):
        with ops.Graph().as_default():
            v = variables.VariableV1(1.0, name="v")
            with variable_scope.variable_scope("scope"):
                part = variable_scope.get_variable("p", [4], partitioner=partitioned_variables.fixed_size_partitioner(2))
            names = saveable_object_util.op_list_to_dict([v, *list(part)])
            self.assertEqual({"v", "scope/p"}, set(names))
            self.assertEqual(2, len(names["scope/p"]))

    def test_slices(self):
        path = self.path("sliced")
        with self.session(graph=ops.Graph()) as sess:
            rnd = np.random.rand(5, 4).astype(np.float32)
            vs = partitioned_variables.create_partitioned_variables([5, 4], [2, 1], constant_op.constant(rnd), name="rnd")
            variables.global_variables_initializer().run()
            saver_module.Saver(vs).save(sess, path)
        with self.session(graph=ops.Graph()) as sess:
            whole = variables.VariableV1(np.zeros([5, 4], np.float32), name="rnd")
            saver_module.Saver([whole]).restore(sess, path)
            self.assertAllClose(rnd, sess.run(whole))

    def test_meta_graph(self):
        path = self.path("meta")
        with self.session(graph=ops.Graph()) as sess:
            v = variables.VariableV1([1.0], name="v")
            ops.add_to_collection("float", 3.5)
            ops.add_to_collection("word", "hello")
            v.initializer.run()
            save = saver_module.Saver({"v": v})
            save.save(sess, path)
            save.export_meta_graph(path + "2.meta")
        with self.session(graph=ops.Graph()) as sess:
            back = saver_module.import_meta_graph(path + ".meta")
            back.restore(sess, path)
            self.assertAllEqual([1.0], sess.run("v:0"))
            self.assertEqual([3.5], ops.get_collection("float"))
            self.assertEqual(1, len(meta_graph.read_meta_graph_file(path + "2.meta").graph_def.node[:1]))
        with self.assertRaisesRegex(IOError, "does not exist"):
            saver_module.import_meta_graph(self.path("nothing.meta"))

    def test_latest(self):
        folder = self.path("latest")
        file_io.create_dir(folder)
        self.assertIsNone(checkpoint_management.latest_checkpoint(folder))
        checkpoint_management.update_checkpoint_state(folder, os.path.join(folder, "model-1"), ["model-1"])
        state = checkpoint_management.get_checkpoint_state(folder)
        self.assertEqual(os.path.join(folder, "model-1"), state.model_checkpoint_path)
        proto = checkpoint_management.generate_checkpoint_state_proto(folder, os.path.join(folder, "model-2"))
        self.assertEqual(1, len(proto.all_model_checkpoint_paths))
        with self.assertRaises(ValueError):
            checkpoint_management.generate_checkpoint_state_proto(folder, "m", ["m"], [1.0, 2.0])
        self.assertEqual("a-5.meta", checkpoint_management.meta_graph_filename("a-5"))
        self.assertTrue(gfile.Exists(folder))


class Managers(test.TestCase):
    def test_prepare(self):
        with ops.Graph().as_default():
            v = variables.VariableV1([1.0, 2.0], name="v")
            sm = session_manager.SessionManager(ready_op=variables.report_uninitialized_variables())
            sess = sm.prepare_session("", init_op=variables.global_variables_initializer())
            self.assertAllEqual([1.0, 2.0], sess.run(v))
            with self.assertRaisesRegex(RuntimeError, "no init_op or init_fn|Model is not initialized"):
                sm.prepare_session("", init_op=None)
            sess = sm.prepare_session("", init_fn=lambda sess: sess.run(v.initializer))
            self.assertAllEqual([1.0, 2.0], sess.run(v))

    def test_recover(self):
        folder = self.get_temp_dir()
        with ops.Graph().as_default():
            v = variables.VariableV1(1, name="v")
            sm = session_manager.SessionManager(ready_op=variables.report_uninitialized_variables())
            save = saver_module.Saver({"v": v})
            sess, initialized = sm.recover_session("", saver=save, checkpoint_dir=folder)
            self.assertFalse(initialized)
            sess.run(v.initializer)
            save.save(sess, os.path.join(folder, "recover_session"))
        with ops.Graph().as_default():
            v = variables.VariableV1(2, name="v")
            sm = session_manager.SessionManager(ready_op=variables.report_uninitialized_variables())
            sess, initialized = sm.recover_session("", saver=saver_module.Saver({"v": v}), checkpoint_dir=folder)
            self.assertTrue(initialized)
            self.assertEqual(1, sess.run(v))
            with self.assertRaises(ValueError):
                sm.recover_session("", saver=saver_module.Saver({"v": v}), checkpoint_dir=folder,
                                   checkpoint_filename_with_path="x")

    def test_wait(self):
        with ops.Graph().as_default():
            variables.VariableV1(1)
            sm = session_manager.SessionManager(ready_op=variables.report_uninitialized_variables(), recovery_wait_secs=1)
            with self.assertRaises(errors_impl.DeadlineExceededError):
                sm.wait_for_session("", max_wait_secs=1)

    def test_supervisor(self):
        folder = self.get_temp_dir()
        with ops.Graph().as_default():
            v = variables.VariableV1([1.0], name="foo")
            sv = supervisor.Supervisor(logdir=folder, summary_op=None)
            with sv.managed_session("") as sess:
                self.assertAllEqual([1.0], sess.run(v))
                self.assertFalse(sv.should_stop())


class Optimizers(test.TestCase):
    def test_minimize(self):
        for use_resource in (False, True):
            with ops.Graph().as_default(), session_lib.Session() as sess:
                v0 = variables.VariableV1([1.0, 2.0], use_resource=use_resource)
                v1 = variables.VariableV1([3.0, 4.0], use_resource=use_resource)
                cost = 5 * v0 + 3 * v1
                step = training_util.get_or_create_global_step()
                op = gradient_descent.GradientDescentOptimizer(3.0).minimize(cost, step, [v0, v1])
                variables.global_variables_initializer().run()
                op.run()
                self.assertAllClose([-14.0, -13.0], sess.run(v0))
                self.assertAllClose([-6.0, -5.0], sess.run(v1))
                self.assertEqual(1, sess.run(step))

    def test_refusals(self):
        with ops.Graph().as_default():
            v = variable_scope.get_variable("v", initializer=[1.0])
            sgd = gradient_descent.GradientDescentOptimizer(3.0)
            with self.assertRaisesRegex(ValueError, "No gradients provided for any variable"):
                sgd.minimize(constant_op.constant(5.0), var_list=[v])
            with self.assertRaisesRegex(ValueError, "No gradients provided for any variable"):
                sgd.apply_gradients([(None, v)])
            with self.assertRaisesRegex(ValueError, "No variables provided"):
                sgd.apply_gradients([])
            with self.assertRaises(ValueError):
                sgd.compute_gradients(v, [v], gate_gradients=5)
            with self.assertRaises(ValueError):
                optimizer.Optimizer(False, "")

    def test_slots(self):
        with ops.Graph().as_default():
            v = variable_scope.get_variable("v", initializer=[1.0, 2.0])
            opt = momentum.MomentumOptimizer(2.0, 0.9)
            opt.minimize(math_ops.reduce_sum(v))
            self.assertEqual(["momentum"], opt.get_slot_names())
            slot = opt.get_slot(v, "momentum")
            self.assertEqual("v/Momentum", slot.op.name)
            self.assertEqual([2], slot.get_shape().as_list())
            self.assertNotIn(slot, variables.trainable_variables())
            self.assertEqual([slot], opt.variables())
            self.assertIsNone(opt.get_slot(v, "nothing"))

    def test_each_twice(self):
        for make in (lambda: adam.AdamOptimizer(0.1), lambda: adagrad.AdagradOptimizer(0.1),
                     lambda: rmsprop.RMSPropOptimizer(0.1, momentum=0.5), lambda: ftrl.FtrlOptimizer(0.1),
                     lambda: momentum.MomentumOptimizer(0.1, 0.9, use_nesterov=True)):
            with ops.Graph().as_default(), session_lib.Session() as sess:
                opt = make()
                v = resource_variable_ops.ResourceVariable([[1.0], [2.0]])
                picked = embedding_ops.embedding_lookup([v], [0, 0, 1])
                grads = opt.compute_gradients(math_ops.reduce_sum(picked))
                self.assertIsInstance(grads[0][0], ops.IndexedSlices)
                step = opt.apply_gradients(grads)
                variables.global_variables_initializer().run()
                step.run()
                step.run()
                self.assertLess(sess.run(v)[0, 0], 1.0)
                self.assertEqual(opt.get_name(), opt._name)

    def test_adam_power(self):
        with ops.Graph().as_default(), self.cached_session():
            v = variable_scope.get_variable("v", initializer=[1.0])
            opt = adam.AdamOptimizer()
            op = opt.apply_gradients([(constant_op.constant([0.1]), v)])
            beta1, beta2 = opt._get_beta_accumulators()
            variables.global_variables_initializer().run()
            self.assertAllClose(0.9, self.evaluate(beta1))
            op.run()
            self.assertAllClose([0.9**2, 0.999**2], self.evaluate([beta1, beta2]))

    def test_slot_creator(self):
        with ops.Graph().as_default(), self.cached_session():
            v = variables.VariableV1([1.0, 2.5], name="var")
            slot = slot_creator.create_slot(v, v.initialized_value(), name="slot")
            zeros = slot_creator.create_zeros_slot(v, name="zeros", dtype=dtypes.float64)
            variables.global_variables_initializer().run()
            self.assertEqual("var/slot", slot.op.name)
            self.assertEqual(dtypes.float64, zeros.dtype.base_dtype)
            self.assertAllEqual([1.0, 2.5], self.evaluate(slot))


class Schedules(test.TestCase):
    def test_decays(self):
        with self.cached_session():
            step = variables.VariableV1(4, trainable=False)
            step.initializer.run()
            values = [
                (learning_rate_decay.exponential_decay(1.0, step, 2, 0.5, staircase=True), 0.25),
                (learning_rate_decay.natural_exp_decay(1.0, step, 1, 0.1), np.exp(-0.4)),
                (learning_rate_decay.inverse_time_decay(1.0, step, 2, 0.5), 0.5),
                (learning_rate_decay.polynomial_decay(1.0, step, 10, 0.0), 0.6),
                (learning_rate_decay.cosine_decay(1.0, step, 8), 0.5),
                (learning_rate_decay.piecewise_constant(step, [3, 6], [1.0, 0.5, 0.1]), 0.5),
                (learning_rate_decay.linear_cosine_decay(1.0, step, 8), None),
                (learning_rate_decay.cosine_decay_restarts(1.0, step, 4), 1.0),
            ]
            for tensor, wanted in values:
                found = self.evaluate(tensor)
                if wanted is not None:
                    self.assertAllClose(wanted, found)
            with self.assertRaises(ValueError):
                learning_rate_decay.exponential_decay(0.1, None, 3, 0.96)
            with self.assertRaises(ValueError):
                learning_rate_decay.piecewise_constant(step, [1.0, 2], [1, 2, 3])

    def test_averages(self):
        with self.cached_session():
            v = variables.VariableV1([10.0, 11.0], name="v")
            ema = moving_averages.ExponentialMovingAverage(0.25, num_updates=None)
            update = ema.apply([v])
            average = ema.average(v)
            self.assertEqual("v/ExponentialMovingAverage", average.op.name)
            self.assertEqual("v/ExponentialMovingAverage", ema.average_name(v))
            self.assertEqual([v], variables.moving_average_variables())
            variables.global_variables_initializer().run()
            state_ops.assign(v, [14.0, 15.0]).eval()
            update.run()
            self.assertAllClose([13.0, 14.0], self.evaluate(average))
            self.assertEqual({"v/ExponentialMovingAverage"}, {each for each in ema.variables_to_restore() if "v" in each})
            with self.assertRaises(TypeError):
                ema.apply([variables.VariableV1([1], dtype=dtypes.int32)])

    def test_assign_moving_average(self):
        with self.cached_session():
            v = variables.VariableV1([10.0])
            assign = moving_averages.assign_moving_average(v, constant_op.constant([1.0]), 0.25, zero_debias=False)
            variables.global_variables_initializer().run()
            assign.op.run()
            self.assertAllClose([10.0 * 0.25 + 0.75], self.evaluate(v))

    def test_global_step(self):
        with ops.Graph().as_default() as g:
            self.assertIsNone(training_util.get_global_step())
            step = training_util.create_global_step()
            self.assertEqual(dtypes.int64, step.dtype.base_dtype)
            self.assertIs(step, training_util.get_or_create_global_step())
            self.assertEqual([step], g.get_collection(ops.GraphKeys.GLOBAL_STEP))
            with self.assertRaisesRegex(ValueError, "already exists"):
                training_util.create_global_step()
            with session_lib.Session() as sess:
                sess.run(step.initializer)
                self.assertEqual(0, training_util.global_step(sess, step))
        with ops.Graph().as_default() as g:
            g.add_to_collection(ops.GraphKeys.GLOBAL_STEP, variables.VariableV1([0]))
            with self.assertRaises(TypeError):
                training_util.get_global_step()


class Inputs(test.TestCase):
    @test_util.run_deprecated_v1
    def test_producers(self):
        with self.cached_session():
            strings = [b"to", b"be", b"or"]
            queue = inp.string_input_producer(strings, num_epochs=2, shuffle=False)
            dequeue = queue.dequeue_many(3)
            variables.local_variables_initializer().run()
            threads = queue_runner_impl.start_queue_runners()
            for _ in range(2):
                self.assertAllEqual(strings, self.evaluate(dequeue))
            with self.assertRaises(errors_impl.OutOfRangeError):
                self.evaluate(dequeue)
            for thread in threads:
                thread.join()
            with self.assertRaisesRegex(ValueError, "must have at least one|requires a non-null|non-null"):
                inp.string_input_producer([])

    @test_util.run_deprecated_v1
    def test_batches(self):
        with self.cached_session() as sess:
            one, two = inp.slice_input_producer([[1, 2, 3, 4], ["a", "b", "c", "d"]], num_epochs=1, shuffle=False)
            a, b = inp.batch([one, two], batch_size=3, allow_smaller_final_batch=True)
            self.assertEqual([None], a.get_shape().as_list())
            variables.local_variables_initializer().run()
            coord = coordinator.Coordinator()
            threads = queue_runner_impl.start_queue_runners(sess, coord)
            self.assertAllEqual([1, 2, 3], sess.run([a, b])[0])
            self.assertAllEqual([b"d"], sess.run([a, b])[1])
            with self.assertRaises(errors_impl.OutOfRangeError):
                sess.run([a, b])
            coord.request_stop()
            coord.join(threads)

    @test_util.run_deprecated_v1
    def test_refusals(self):
        for call in (
            lambda: inp.batch([array_ops.placeholder(dtypes.float32)], batch_size=2),
            lambda: inp.shuffle_batch([1], batch_size=2, capacity=1, min_after_dequeue=5),
            lambda: inp.batch([], batch_size=2),
            lambda: inp.batch_join([], batch_size=2),
            lambda: inp.maybe_batch([[1, 2]], keep_input=[[True]], batch_size=1, enqueue_many=True),
            lambda: inp.slice_input_producer([]),
            lambda: inp.range_input_producer(3).dequeue_many(2).get_shape().assert_is_compatible_with([5]),
        ):
            with self.assertRaises(ValueError):
                call()

    @test_util.run_deprecated_v1
    def test_queue_runner(self):
        with self.cached_session() as sess:
            zero = constant_op.constant(0, dtype=dtypes.int64)
            var = variables.VariableV1(zero)
            count = var.count_up_to(3)
            queue = data_flow_ops.FIFOQueue(10, dtypes.float32)
            runner = queue_runner_impl.QueueRunner(queue, [count])
            self.assertEqual("fifo_queue", runner.name)
            variables.global_variables_initializer().run()
            threads = runner.create_threads(sess)
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(0, len(runner.exceptions_raised))
            self.assertEqual(3, self.evaluate(var))
            proto = runner.to_proto()
            self.assertEqual([count.name], list(proto.enqueue_op_name))
            again = queue_runner_impl.QueueRunner.from_proto(proto)
            self.assertEqual(runner.queue.name, again.queue.name)
            with self.assertRaises(TypeError):
                queue_runner_impl.QueueRunner(queue, [count], queue_closed_exception_types=[5])
            with self.assertRaises(ValueError):
                queue_runner_impl.QueueRunner(queue, [count], queue_runner_def=proto)
            self.assertIsNotNone(control_flow_ops.no_op())
            self.assertEqual(b"a", compat.as_bytes("a"))
            self.assertLess(0, time.time())
            self.assertFalse(config_pb2.ConfigProto().allow_soft_placement)


if __name__ == "__main__":
    test.main()
