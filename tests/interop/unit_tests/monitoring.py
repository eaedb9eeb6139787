"""The layers of a monitored session, hooks with replaced clocks, evaluation, supervisors and queue runners."""

import collections
import os
import threading
import time

from tensorflow.core.framework import summary_pb2
from tensorflow.core.protobuf import config_pb2
from tensorflow.python.client import session as session_lib
from tensorflow.python.framework import constant_op, dtypes, errors_impl, meta_graph, ops, test_util
from tensorflow.python.ops import (
    array_ops,
    control_flow_ops,
    data_flow_ops,
    math_ops,
    resource_variable_ops,
    state_ops,
    variable_scope,
    variables,
)
from tensorflow.python.platform import gfile, test, tf_logging
from tensorflow.python.summary import summary, summary_iterator
from tensorflow.python.summary.writer import writer_cache
from tensorflow.python.training import (
    basic_session_run_hooks,
    checkpoint_management,
    coordinator,
    evaluation,
    monitored_session,
    queue_runner_impl,
    server_lib,
    session_manager,
    session_run_hook,
    supervisor,
    training_util,
)
from tensorflow.python.training import saver as saver_lib


class Case(test.TestCase):
    def folder(self):
        path = os.path.join(self.get_temp_dir(), self.id().rpartition(".")[2])
        os.makedirs(path, exist_ok=True)
        return path


class StopAtN(monitored_session._WrappedSession):
    def __init__(self, sess, n):
        super().__init__(sess)
        self._count, self._n = 0, n

    def _check_stop(self):
        if self._count == self._n:
            return True
        self._count += 1
        return False


class Wrapped(test.TestCase):
    @test_util.run_deprecated_v1
    def test_properties(self):
        with self.cached_session() as sess:
            constant_op.constant(0.0)
            wrapped = monitored_session._WrappedSession(sess)
            self.assertEqual(sess.graph, wrapped.graph)
            self.assertEqual(sess.sess_str, wrapped.sess_str)

    @test_util.run_deprecated_v1
    def test_stops_on_close(self):
        with self.cached_session() as sess:
            wrapped = monitored_session._WrappedSession(sess)
            self.assertFalse(wrapped.should_stop())
            wrapped.close()
            self.assertTrue(wrapped.should_stop())

    @test_util.run_deprecated_v1
    def test_stop_of_subclass(self):
        with self.cached_session() as sess:
            wrapped = StopAtN(sess, 3)
            for _ in range(3):
                self.assertFalse(wrapped.should_stop())
            self.assertTrue(wrapped.should_stop())

    @test_util.run_deprecated_v1
    def test_stop_of_inner(self):
        with self.cached_session() as sess:
            outer = monitored_session._WrappedSession(StopAtN(sess, 5))
            for _ in range(5):
                self.assertFalse(outer.should_stop())
            self.assertTrue(outer.should_stop())

    @test_util.run_deprecated_v1
    def test_close_twice(self):
        with self.cached_session() as sess:
            wrapped = monitored_session._WrappedSession(sess)
            wrapped.close()
            self.assertTrue(wrapped.should_stop())
            wrapped.close()
            self.assertTrue(wrapped.should_stop())

    @test_util.run_deprecated_v1
    def test_run(self):
        with self.cached_session() as sess:
            c = constant_op.constant(0)
            v = array_ops.identity(c)
            self.assertEqual(42, sess.run(v, feed_dict={c: 42}))
            self.assertEqual(51, monitored_session._WrappedSession(sess).run(v, feed_dict={c: 51}))


def busy_wait_for_coord_stop(coord):
    while not coord.should_stop():
        time.sleep(0.001)


class Coordinated(test.TestCase):
    @test_util.run_deprecated_v1
    def test_run_and_properties(self):
        with self.cached_session() as sess:
            c = constant_op.constant(0)
            v = array_ops.identity(c)
            coord_sess = monitored_session._CoordinatedSession(sess, coordinator.Coordinator())
            self.assertEqual(42, coord_sess.run(v, feed_dict={c: 42}))
            self.assertEqual(sess.graph, coord_sess.graph)
            self.assertEqual(sess.sess_str, coord_sess.sess_str)

    @test_util.run_deprecated_v1
    def test_stops(self):
        with self.cached_session() as sess:
            constant_op.constant(0.0)
            coord_sess = monitored_session._CoordinatedSession(sess, coordinator.Coordinator())
            self.assertFalse(coord_sess.should_stop())
            coord_sess.close()
            self.assertTrue(coord_sess.should_stop())
        with self.cached_session() as sess:
            coord = coordinator.Coordinator()
            coord_sess = monitored_session._CoordinatedSession(sess, coord)
            self.assertFalse(coord_sess.should_stop())
            coord.request_stop()
            self.assertTrue(coord_sess.should_stop())

    @test_util.run_deprecated_v1
    def test_main_thread_error_is_no_stop(self):
        with self.cached_session() as sess:
            c = constant_op.constant([0])
            v = array_ops.identity(c)
            coord = coordinator.Coordinator()
            coord_sess = monitored_session._CoordinatedSession(sess, coord)
            self.assertFalse(coord_sess.should_stop())
            with self.assertRaisesRegex(TypeError, "None has invalid type|None.* invalid type"):
                coord_sess.run([None], feed_dict={c: [1]})
            self.assertFalse(coord.should_stop())
            self.assertFalse(coord_sess.should_stop())
            self.assertAllEqual([1], coord_sess.run(v, feed_dict={c: [1]}))

    @test_util.run_deprecated_v1
    def test_threads_stop_on_close(self):
        with self.cached_session() as sess:
            constant_op.constant(0)
            coord = coordinator.Coordinator()
            threads = [threading.Thread(target=busy_wait_for_coord_stop, args=(coord,)) for _ in range(3)]
            for t in threads:
                coord.register_thread(t)
                t.start()
            coord_sess = monitored_session._CoordinatedSession(sess, coord)
            coord_sess.close()
            for t in threads:
                self.assertFalse(t.is_alive())
            self.assertTrue(coord.should_stop())
            self.assertTrue(coord_sess.should_stop())

    @test_util.run_deprecated_v1
    def test_error_of_coordinator(self):
        assertion = control_flow_ops.Assert(
            array_ops.placeholder_with_default(False, []), ["coord error"])
        with self.cached_session() as sess:
            coord = coordinator.Coordinator()
            coord_sess = monitored_session._CoordinatedSession(sess, coord)
            try:
                raise ValueError("from a thread")
            except ValueError as error:
                coord.request_stop(error)
            with self.assertRaisesRegex(errors_impl.InvalidArgumentError, "coord error"):
                coord_sess.run([assertion])
            with self.assertRaisesRegex(ValueError, "from a thread"):
                coord_sess.should_stop()


class AbortAtN:
    def __init__(self, sess, n):
        self._sess, self._count = sess, n

    def close(self):
        pass

    def run(self, *args, **kwargs):
        if self._count == 0:
            raise errors_impl.AbortedError("Aborted at N", None, None)
        self._count -= 1
        return self._sess.run(*args, **kwargs)


class Recoverable(test.TestCase):
    class Creator:
        def __init__(self, sess):
            self._sess = sess

        def create_session(self):
            return self._sess

    @test_util.run_deprecated_v1
    def test_run(self):
        with self.cached_session() as sess:
            c = constant_op.constant(0)
            v = array_ops.identity(c)
            recoverable = monitored_session._RecoverableSession(self.Creator(sess))
            self.assertEqual(51, recoverable.run(v, feed_dict={c: 51}))
            self.assertEqual(sess.graph, recoverable.graph)
            self.assertEqual(sess.sess_str, recoverable.sess_str)

    @test_util.run_deprecated_v1
    def test_recovery(self):
        with self.cached_session() as sess:
            class Counting:
                def __init__(self):
                    self.sessions = [AbortAtN(sess, x) for x in (0, 1, 2, 0)]

                def create_session(self):
                    return self.sessions.pop()

            creator = Counting()
            c = constant_op.constant(0)
            v = array_ops.identity(c)
            recoverable = monitored_session._RecoverableSession(creator)
            self.assertEqual(3, len(creator.sessions))
            for value, left in ((51, 2), (42, 2), (21, 1)):
                self.assertEqual(value, recoverable.run(v, feed_dict={c: value}))
                self.assertEqual(left, len(creator.sessions))
            with self.assertRaises(IndexError):
                recoverable.run(v, feed_dict={c: -1})


class FakeSession(monitored_session._WrappedSession):
    def __init__(self, sess):
        super().__init__(sess)
        self.args_called = {}

    def run(self, fetches, **kwargs):
        self.args_called = dict(kwargs)
        return super().run(fetches)


class FakeHook(session_run_hook.SessionRunHook):
    def __init__(self):
        self.should_stop = False
        self.request = None
        self.call_counter = {"begin": 0, "after_create_session": 0, "before_run": 0, "after_run": 0, "end": 0}
        self.last_run_context = None
        self.last_run_values = None

    def begin(self):
        self.call_counter["begin"] += 1

    def after_create_session(self, session, coord):
        self.call_counter["after_create_session"] += 1

    def before_run(self, run_context):
        self.call_counter["before_run"] += 1
        self.last_run_context = run_context
        return self.request

    def after_run(self, run_context, run_values):
        self.call_counter["after_run"] += 1
        self.last_run_values = run_values
        if self.should_stop:
            run_context.request_stop()

    def end(self, session):
        self.call_counter["end"] += 1


class Hooked(test.TestCase):
    def test_passes_all_arguments(self):
        with ops.Graph().as_default(), session_lib.Session() as sess:
            mock_run = FakeSession(sess)
            mon_sess = monitored_session._HookedSession(sess=mock_run, hooks=[])
            a_tensor = constant_op.constant([0], name="a_tensor")
            output = mon_sess.run(
                fetches=a_tensor, feed_dict="a_feed", options="an_option", run_metadata="a_metadata")
            self.assertEqual(output, [0])
            self.assertEqual(
                mock_run.args_called, {"feed_dict": "a_feed", "options": "an_option", "run_metadata": "a_metadata"})

    def test_calls_hooks(self):
        with ops.Graph().as_default(), session_lib.Session() as sess:
            mock_hook, mock_hook2 = FakeHook(), FakeHook()
            mon_sess = monitored_session._HookedSession(sess=sess, hooks=[mock_hook, mock_hook2])
            a_tensor = constant_op.constant([0], name="a_tensor")
            mon_sess.run(a_tensor)
            for hook in (mock_hook, mock_hook2):
                self.assertEqual(hook.last_run_values, session_run_hook.SessionRunValues(
                    results=None, options=config_pb2.RunOptions(), run_metadata=config_pb2.RunMetadata()))
                self.assertEqual(hook.last_run_context.original_args, session_run_hook.SessionRunArgs(a_tensor))
                self.assertEqual(hook.last_run_context.session, sess)
                self.assertEqual(0, hook.call_counter["begin"])
                self.assertEqual(0, hook.call_counter["after_create_session"])
                self.assertEqual(1, hook.call_counter["before_run"])
                self.assertEqual(1, hook.call_counter["after_run"])

    def test_should_stop(self):
        with ops.Graph().as_default(), session_lib.Session() as sess:
            mock_hook, mock_hook2 = FakeHook(), FakeHook()
            mon_sess = monitored_session._HookedSession(sess=sess, hooks=[mock_hook, mock_hook2])
            constant_op.constant([0], name="a_tensor")
            mon_sess.run(fetches="a_tensor")
            self.assertFalse(mon_sess.should_stop())
            mock_hook.should_stop = True
            mon_sess.run(fetches="a_tensor")
            self.assertTrue(mon_sess.should_stop())

    def test_fetches_of_hooks(self):
        with ops.Graph().as_default(), session_lib.Session() as sess:
            mock_hook, mock_hook2 = FakeHook(), FakeHook()
            mon_sess = monitored_session._HookedSession(sess=sess, hooks=[mock_hook, mock_hook2])
            a_tensor = constant_op.constant([0], name="a_tensor")
            another = constant_op.constant([5], name="another_tensor")
            third = constant_op.constant([10], name="third_tensor")
            mock_hook.request = session_run_hook.SessionRunArgs([another])
            mock_hook2.request = session_run_hook.SessionRunArgs([third])
            output = mon_sess.run(fetches=a_tensor)
            self.assertEqual(output, [0])
            self.assertEqual(mock_hook.last_run_values.results, [5])
            self.assertEqual(mock_hook2.last_run_values.results, [10])

    def test_only_hooks_feed(self):
        with ops.Graph().as_default(), session_lib.Session() as sess:
            mock_hook, mock_hook2 = FakeHook(), FakeHook()
            mon_sess = monitored_session._HookedSession(sess=sess, hooks=[mock_hook, mock_hook2])
            a_tensor = constant_op.constant([0], name="a_tensor")
            b_tensor = constant_op.constant([0], name="b_tensor")
            add_tensor = a_tensor + b_tensor
            mock_hook.request = session_run_hook.SessionRunArgs(None, feed_dict={a_tensor: [5]})
            mock_hook2.request = session_run_hook.SessionRunArgs(None, feed_dict={b_tensor: [10]})
            self.assertEqual(mon_sess.run(fetches=add_tensor), [15])

    def test_hooks_and_user_feed(self):
        with ops.Graph().as_default(), session_lib.Session() as sess:
            mock_hook, mock_hook2 = FakeHook(), FakeHook()
            mon_sess = monitored_session._HookedSession(sess=sess, hooks=[mock_hook, mock_hook2])
            a, b, c = (constant_op.constant([0]) for _ in range(3))
            mock_hook.request = session_run_hook.SessionRunArgs(None, feed_dict={a: [5]})
            mock_hook2.request = session_run_hook.SessionRunArgs(None, feed_dict={b: [10]})
            feed_dict = {c: [20]}
            self.assertEqual(mon_sess.run(a + b + c, feed_dict=feed_dict), [35])
            self.assertEqual(1, len(feed_dict))

    def test_feed_conflicts(self):
        with ops.Graph().as_default(), session_lib.Session() as sess:
            mock_hook, mock_hook2 = FakeHook(), FakeHook()
            mon_sess = monitored_session._HookedSession(sess=sess, hooks=[mock_hook, mock_hook2])
            a_tensor, b_tensor = constant_op.constant([0]), constant_op.constant([0])
            add_tensor = a_tensor + b_tensor
            mock_hook.request = session_run_hook.SessionRunArgs(None, feed_dict={a_tensor: [5]})
            mock_hook2.request = session_run_hook.SessionRunArgs(None, feed_dict={a_tensor: [10]})
            with self.assertRaisesRegex(RuntimeError, "Same tensor is fed"):
                mon_sess.run(fetches=add_tensor)
            mock_hook2.request = session_run_hook.SessionRunArgs(None, feed_dict={b_tensor: [10]})
            with self.assertRaisesRegex(RuntimeError, "Same tensor is fed"):
                mon_sess.run(fetches=add_tensor, feed_dict={b_tensor: [10]})


class RunOptionsSaver(session_run_hook.SessionRunHook):
    def __init__(self):
        self.options = []

    def after_run(self, run_context, run_values):
        self.options.append(run_values.options)


class Monitored(Case):
    def test_defaults(self):
        with ops.Graph().as_default():
            a_var = variables.VariableV1(0)
            with monitored_session.MonitoredSession() as session:
                self.assertEqual(0, session.run(a_var))

    def test_restores(self):
        logdir = self.folder()
        with ops.Graph().as_default():
            gstep = training_util.get_or_create_global_step()
            scaffold = monitored_session.Scaffold()
            do_step = state_ops.assign_add(gstep, 1)
            with monitored_session.MonitoredSession(
                    monitored_session.ChiefSessionCreator(scaffold)) as session:
                for expected in (1, 2):
                    self.assertEqual(expected, session.run(do_step))
                saver_lib._get_saver_or_default().save(
                    session._tf_sess(), os.path.join(logdir, "step-2"))
            with monitored_session.MonitoredSession(
                    monitored_session.ChiefSessionCreator(checkpoint_dir=logdir)) as session:
                self.assertEqual(2, session.run(gstep))
                self.assertEqual(3, session.run(do_step))
            with monitored_session.MonitoredSession(monitored_session.ChiefSessionCreator(
                    checkpoint_filename_with_path=checkpoint_management.latest_checkpoint(logdir))) as session:
                self.assertEqual(2, session.run(gstep))

    def test_step_1_and_last_step(self):
        with ops.Graph().as_default():
            gstep = training_util.get_or_create_global_step()
            do_step = state_ops.assign_add(gstep, 1)
            hooks = [basic_session_run_hooks.StopAtStepHook(last_step=5)]
            with monitored_session.MonitoredSession(hooks=hooks) as session:
                steps = 0
                while not session.should_stop():
                    session.run(do_step)
                    steps += 1
            self.assertEqual(5, steps)

    def test_num_steps_after_restart(self):
        logdir = self.folder()
        with ops.Graph().as_default():
            gstep = training_util.get_or_create_global_step()
            do_step = state_ops.assign_add(gstep, 1)

            def train():
                with monitored_session.MonitoredTrainingSession(
                        checkpoint_dir=logdir, hooks=[basic_session_run_hooks.StopAtStepHook(num_steps=3)],
                        save_checkpoint_secs=100) as session:
                    while not session.should_stop():
                        result = session.run(do_step)
                return result

            self.assertEqual(3, train())
            self.assertEqual(6, train())

    def check_recovery(self, raises_in, error):
        class Raiser(session_run_hook.SessionRunHook):
            raised = False

            def before_run(self, run_context):
                if raises_in == "before" and not self.raised:
                    self.raised = True
                    raise error(None, None, "Abort")

            def after_run(self, run_context, run_values):
                if raises_in == "after" and not self.raised:
                    self.raised = True
                    raise error(None, None, "Abort")

        logdir = self.folder() + raises_in + error.__name__
        os.makedirs(logdir, exist_ok=True)
        with ops.Graph().as_default():
            gstep = training_util.get_or_create_global_step()
            do_step = state_ops.assign_add(gstep, 1)
            hook = Raiser()
            scaffold = monitored_session.Scaffold()
            with monitored_session.MonitoredSession(
                    monitored_session.ChiefSessionCreator(scaffold, checkpoint_dir=logdir), hooks=[hook]) as session:
                self.assertEqual(0, session.run(gstep))
                session.run(do_step)
                self.assertTrue(hook.raised)

    def test_recovers(self):
        for raises_in in ("before", "after"):
            for error in (errors_impl.AbortedError, errors_impl.UnavailableError):
                self.check_recovery(raises_in, error)

    def test_errors_of_runs(self):
        for error, leaves in ((errors_impl.OutOfRangeError, False), (errors_impl.DeadlineExceededError, True),
                              (ValueError, True), (errors_impl.CancelledError, True)):
            class Raiser(session_run_hook.SessionRunHook):
                def after_run(self, run_context, run_values, error=error):
                    if run_values.results == 3:
                        raise error("stop") if error is ValueError else error(None, None, "stop")

                def before_run(self, run_context):
                    return session_run_hook.SessionRunArgs(self.step)

                def begin(self):
                    self.step = training_util.get_global_step()

            with ops.Graph().as_default():
                do_step = state_ops.assign_add(training_util.get_or_create_global_step(), 1)

                def train(do_step=do_step, Raiser=Raiser):
                    with monitored_session.MonitoredSession(hooks=[Raiser()]) as session:
                        for _ in range(6):
                            session.run(do_step)

                if leaves:
                    with self.assertRaisesRegex(error, "stop"):
                        train()
                else:
                    train()

    def test_graph(self):
        with ops.Graph().as_default() as g:
            with monitored_session.MonitoredSession() as session:
                self.assertEqual(g, session.graph)

    def test_graph_finalized(self):
        with ops.Graph().as_default() as g:
            a_var = variables.VariableV1(0)
            with monitored_session.MonitoredSession() as session:
                self.assertEqual(0, session.run(a_var))
                with self.assertRaises(RuntimeError):
                    variables.VariableV1(0)
            self.assertFalse(g.finalized)
        with ops.Graph().as_default() as g:
            training_util.get_or_create_global_step()
            variables.VariableV1(0)
            monitored_session.Scaffold().finalize()
            monitored_session.MonitoredSession().close()
            self.assertTrue(g.finalized)

    def test_merged_options(self):
        with ops.Graph().as_default():
            my_const = constant_op.constant(42, name="my_const")
            _ = constant_op.constant(24, name="my_const_2")

            class Watch(session_run_hook.SessionRunHook):
                def __init__(self, level, timeout, inter_op, partition, name):
                    self.args = level, timeout, inter_op, partition, name

                def before_run(self, run_context):
                    level, timeout, inter_op, partition, name = self.args
                    options = config_pb2.RunOptions(
                        trace_level=level, timeout_in_ms=timeout, inter_op_thread_pool=inter_op,
                        output_partition_graphs=partition)
                    return session_run_hook.SessionRunArgs(None, None, options=options)

            with monitored_session.MonitoredSession(hooks=[
                    Watch(2, 60000, 0, False, "my_const"), Watch(3, 30000, 0, False, "my_const_2"),
                    ]) as session:
                saver = RunOptionsSaver()
                session._hooks.append(saver)
                self.assertEqual(42, session.run(my_const))
            if saver.options:
                options = saver.options[0]
                self.assertEqual(3, options.trace_level)
                self.assertEqual(60000, options.timeout_in_ms)

    def test_given_options_merge(self):
        with ops.Graph().as_default():
            my_const = constant_op.constant(42, name="my_const")
            saver = RunOptionsSaver()
            with monitored_session.MonitoredSession(hooks=[saver]) as session:
                options = config_pb2.RunOptions(trace_level=config_pb2.RunOptions.FULL_TRACE, timeout_in_ms=60000)
                metadata = config_pb2.RunMetadata()
                session.run(my_const, options=options, run_metadata=metadata)
            self.assertEqual(60000, saver.options[0].timeout_in_ms)
            self.assertGreater(len(metadata.step_stats.dev_stats), 0)

    def test_with_and_close(self):
        with ops.Graph().as_default():
            with self.assertRaisesRegex(RuntimeError, "Session is already closed|already closed"):
                with monitored_session.MonitoredSession() as session:
                    session.close()

    def test_step_function_forms(self):
        with ops.Graph().as_default():
            c = array_ops.placeholder(dtypes.float32)
            v = array_ops.identity(c)
            with monitored_session.MonitoredSession() as session:
                for bad in (lambda: None, lambda a, b: None, lambda step_context, other: None):
                    with self.assertRaisesRegex(ValueError, "step_context|may either have"):
                        session.run_step_fn(bad)
                self.assertNear(3.2, session.run_step_fn(
                    lambda step_context: step_context.session.run(v, feed_dict={c: 3.2})), 0.1)

                class Model:
                    def step(self, step_context):
                        return step_context.run_with_hooks(fetches=v, feed_dict={c: 4.5})

                self.assertNear(4.5, session.run_step_fn(Model().step), 0.1)

    def test_step_function_recovers(self):
        with ops.Graph().as_default():
            c = array_ops.placeholder(dtypes.float32)
            v = array_ops.identity(c)
            calls = []

            def step_fn(step_context):
                calls.append(1)
                if len(calls) == 1:
                    raise errors_impl.AbortedError(None, None, "Abort")
                return step_context.run_with_hooks(v, {c: 1.5})

            with monitored_session.MonitoredSession() as session:
                self.assertEqual(1.5, session.run_step_fn(step_fn))
            self.assertEqual(2, len(calls))

    def test_step_function_stops(self):
        with ops.Graph().as_default():
            hook = FakeHook()
            with monitored_session.MonitoredSession(hooks=[hook]) as session:
                while not session.should_stop():
                    session.run_step_fn(lambda step_context: step_context.request_stop())
                    self.fail("An exception should be raised on the line above.")
            self.assertEqual(0, hook.call_counter["before_run"])
            self.assertEqual(1, hook.call_counter["end"])

    def test_singular(self):
        logdir = self.folder()
        with ops.Graph().as_default():
            gstep = training_util.get_or_create_global_step()
            do_step = state_ops.assign_add(gstep, 1)
            hook = FakeHook()
            with monitored_session.SingularMonitoredSession(hooks=[hook], checkpoint_dir=logdir) as session:
                self.assertEqual(1, session.run(do_step))
                saver_lib._get_saver_or_default().save(session.raw_session(), os.path.join(logdir, "step-1"))
            self.assertIsNone(session.raw_session())
            self.assertEqual(1, hook.call_counter["end"])
            with monitored_session.SingularMonitoredSession(checkpoint_dir=logdir) as session:
                self.assertEqual(1, session.run(gstep))
                self.assertIsInstance(session.raw_session(), session_lib.Session)

    def test_singular_does_not_recover(self):
        with ops.Graph().as_default():
            do_step = state_ops.assign_add(training_util.get_or_create_global_step(), 1)

            class Raiser(session_run_hook.SessionRunHook):
                def after_run(self, run_context, run_values):
                    raise errors_impl.AbortedError(None, None, "Abort")

            with self.assertRaisesRegex(errors_impl.AbortedError, "Abort"):
                with monitored_session.SingularMonitoredSession(hooks=[Raiser()]) as session:
                    session.run(do_step)

    def test_training_session_files(self):
        logdir = self.folder()
        with ops.Graph().as_default():
            gstep = training_util.get_or_create_global_step()
            new_gstep = state_ops.assign_add(gstep, 1)
            summary.scalar("my_summary_tag", new_gstep * 2)
            with monitored_session.MonitoredTrainingSession(
                    is_chief=True, checkpoint_dir=logdir, save_summaries_steps=100, log_step_count_steps=10) as session:
                for _ in range(101):
                    session.run(new_gstep)
        writer_cache.FileWriterCache.clear()
        path = [each for each in gfile.Glob(os.path.join(logdir, "events*"))][0]
        tags = {value.tag for event in summary_iterator.summary_iterator(path) for value in event.summary.value}
        self.assertEqual({"global_step/sec", "my_summary_tag"}, tags)
        self.assertTrue(gfile.Exists(os.path.join(logdir, "graph.pbtxt")))
        self.assertEqual(101, int(checkpoint_management.latest_checkpoint(logdir).rpartition("-")[2]))

    def test_training_session_options(self):
        logdir = self.folder()
        with ops.Graph().as_default():
            new_gstep = state_ops.assign_add(training_util.get_or_create_global_step(), 1)
            with monitored_session.MonitoredTrainingSession(
                    is_chief=True, checkpoint_dir=logdir, save_checkpoint_steps=100, log_step_count_steps=10,
                    save_graph_def=False) as session:
                for _ in range(100):
                    session.run(new_gstep)
            self.assertEqual(100, int(checkpoint_management.latest_checkpoint(logdir).rpartition("-")[2]))
            self.assertFalse(gfile.Exists(os.path.join(logdir, "graph.pbtxt")))
        with ops.Graph().as_default():
            gstep = training_util.get_or_create_global_step()
            with monitored_session.MonitoredTrainingSession(is_chief=True, checkpoint_dir=logdir) as session:
                self.assertEqual(100, session.run(gstep))

    def test_custom_scaffold(self):
        with ops.Graph().as_default():
            v = variables.VariableV1(1.0)
            more = v.assign_add(1.0)
            scaffold = monitored_session.Scaffold(
                init_op=v.assign(7.0).op, ready_op=constant_op.constant([], dtypes.string), summary_op=None,
                init_fn=lambda scaffold, sess: sess.run(more))
            with monitored_session.MonitoredTrainingSession(scaffold=scaffold) as session:
                self.assertEqual(8.0, session.run(v))


class MockedHooks(Case):
    def run_steps(self, hook, times, mock_time, build=None):
        """The steps at which a training saves, with the clock set before each."""
        gstep = training_util.get_or_create_global_step()
        train_op = training_util._increment_global_step(1)
        init = variables.global_variables_initializer()
        hook.begin()
        if build:
            build.finalize()
        with session_lib.Session() as sess:
            sess.run(init)
            hook.after_create_session(sess, None)
            mon_sess = monitored_session._HookedSession(sess, [hook])
            for now in times:
                mock_time.return_value = now
                mon_sess.run(train_op)
                yield sess.run(gstep)
            hook.end(sess)

    @test.mock.patch("time.time")
    def test_saver_seconds(self, mock_time):
        now = 1484695987.209386
        mock_time.return_value = now
        folder = self.folder()
        with ops.Graph().as_default():
            scaffold = monitored_session.Scaffold()
            hook = basic_session_run_hooks.CheckpointSaverHook(folder, save_secs=2, scaffold=scaffold)
            seen = []
            for _ in self.run_steps(hook, [now + 0.1 * each for each in range(1, 60)], mock_time, scaffold):
                path = checkpoint_management.latest_checkpoint(folder)
                step = int(path.rpartition("-")[2])
                if step not in seen:
                    seen.append(step)
            self.assertEqual(len(seen), len(set(seen)))
            self.assertIn(len(seen), (3, 4))

    @test.mock.patch("time.time")
    def test_timer_seconds(self, mock_time):
        mock_time.return_value = 1000.0
        timer = basic_session_run_hooks.SecondOrStepTimer(every_secs=1.0)
        self.assertTrue(timer.should_trigger_for_step(1))
        timer.update_last_triggered_step(1)
        self.assertFalse(timer.should_trigger_for_step(1))
        self.assertFalse(timer.should_trigger_for_step(2))
        mock_time.return_value += 1.0
        self.assertFalse(timer.should_trigger_for_step(1))
        self.assertTrue(timer.should_trigger_for_step(2))
        self.assertEqual((1.0, 1), timer.update_last_triggered_step(2))

    @test.mock.patch("time.time")
    def test_summary_seconds(self, mock_time):
        now = 1484695987.209386
        mock_time.return_value = now
        with ops.Graph().as_default():
            writer = FakeWriter()
            summary.scalar("s", constant_op.constant(1.0))
            hook = basic_session_run_hooks.SummarySaverHook(
                save_secs=2, summary_writer=writer, summary_op=summary.merge_all())
            for _ in self.run_steps(hook, [now + 0.5 * each for each in range(10)], mock_time):
                pass
            self.assertEqual([1, 5, 9], sorted(each for each in writer.steps if each))

    @test.mock.patch.object(time, "sleep")
    def test_global_step_waiter(self, mock_sleep):
        with ops.Graph().as_default():
            gstep = training_util.get_or_create_global_step()
            hook = basic_session_run_hooks.GlobalStepWaiterHook(wait_until_step=1000)
            hook.begin()
            assign = gstep.assign(1000)
            with session_lib.Session() as sess:
                sess.run(variables.global_variables_initializer())

                def advance(*args):
                    sess.run(assign)

                mock_sleep.side_effect = advance
                hook.before_run(session_run_hook.SessionRunContext(
                    original_args=session_run_hook.SessionRunArgs([]), session=sess))
                self.assertEqual(1, mock_sleep.call_count)
                hook.before_run(session_run_hook.SessionRunContext(
                    original_args=session_run_hook.SessionRunArgs([]), session=sess))
                self.assertEqual(1, mock_sleep.call_count)

    def test_step_counter(self):
        with ops.Graph().as_default() as g:
            writer = FakeWriter()
            training_util.get_or_create_global_step()
            train_op = training_util._increment_global_step(1)
            hook = basic_session_run_hooks.StepCounterHook(summary_writer=writer, every_n_steps=10)
            hook.begin()
            with session_lib.Session(graph=g) as sess:
                sess.run(variables.global_variables_initializer())
                mon_sess = monitored_session._HookedSession(sess, [hook])
                with test.mock.patch.object(tf_logging, "warning") as mock_log:
                    for _ in range(30):
                        time.sleep(0.001)
                        mon_sess.run(train_op)
                    self.assertIsNone(mock_log.call_args)
                hook.end(sess)
            self.assertEqual([11, 21], sorted(writer.steps))
            for step in (11, 21):
                value = writer.summaries[step][0].value[0]
                self.assertEqual("global_step/sec", value.tag)
                self.assertGreater(value.simple_value, 0)

    def test_step_counter_warns(self):
        with ops.Graph().as_default() as g, session_lib.Session() as sess:
            training_util.get_or_create_global_step()
            c = constant_op.constant(0)
            hook = basic_session_run_hooks.StepCounterHook(summary_writer=FakeWriter(), every_n_steps=1)
            hook._set_steps_per_run(1)
            hook.begin()
            sess.run(variables.global_variables_initializer())
            mon_sess = monitored_session._HookedSession(sess, [hook])
            mon_sess.run(c)
            mon_sess.run(c)
            with test.mock.patch.object(tf_logging, "log_first_n") as mock_log:
                mon_sess.run(c)
                self.assertIn("global_step", str(mock_log.call_args) + str(g.get_all_collection_keys()))
            hook.end(sess)

    def test_logging_prints(self):
        with ops.Graph().as_default(), session_lib.Session() as sess:
            t = constant_op.constant(42.0, name="foo")
            train_op = constant_op.constant(3)
            hook = basic_session_run_hooks.LoggingTensorHook(tensors=[t.name], every_n_iter=10, at_end=True)
            hook.begin()
            mon_sess = monitored_session._HookedSession(sess, [hook])
            sess.run(variables.global_variables_initializer())
            with test.mock.patch.object(tf_logging, "info") as mock_log:
                mon_sess.run(train_op)
                self.assertRegex(str(mock_log.call_args), t.name)
                for _ in range(3):
                    mock_log.reset_mock()
                    for _ in range(9):
                        mon_sess.run(train_op)
                        self.assertIsNone(mock_log.call_args)
                    mon_sess.run(train_op)
                    self.assertRegex(str(mock_log.call_args), t.name)
                mock_log.reset_mock()
                hook.end(sess)
                self.assertRegex(str(mock_log.call_args), t.name)

    @test.mock.patch("time.time")
    def test_logging_seconds(self, mock_time):
        mock_time.return_value = 1000.0
        with ops.Graph().as_default(), session_lib.Session() as sess:
            t = constant_op.constant(42.0, name="foo")
            train_op = constant_op.constant(3)
            hook = basic_session_run_hooks.LoggingTensorHook(tensors={"foo": t}, every_n_secs=1.0)
            hook.begin()
            mon_sess = monitored_session._HookedSession(sess, [hook])
            with test.mock.patch.object(tf_logging, "info") as mock_log:
                mon_sess.run(train_op)
                self.assertRegex(str(mock_log.call_args), "foo")
                mock_log.reset_mock()
                mon_sess.run(train_op)
                self.assertIsNone(mock_log.call_args)
                mock_time.return_value = 1001.0
                mon_sess.run(train_op)
                self.assertRegex(str(mock_log.call_args), "foo")
            hook.end(sess)

    def test_nan(self):
        with ops.Graph().as_default(), session_lib.Session() as sess:
            loss = array_ops.placeholder_with_default(float("nan"), [])
            hook = basic_session_run_hooks.NanTensorHook(loss, fail_on_nan_loss=False)
            hook.begin()
            mon_sess = monitored_session._HookedSession(sess, [hook])
            mon_sess.run(math_ops.log(loss))
            self.assertTrue(mon_sess.should_stop())
            mon_sess = monitored_session._HookedSession(sess, [basic_session_run_hooks.NanTensorHook(loss)])
            with self.assertRaises(basic_session_run_hooks.NanLossDuringTrainingError):
                mon_sess.run(loss)

    def test_listeners(self):
        events = []

        class Listener(basic_session_run_hooks.CheckpointSaverListener):
            def begin(self):
                events.append("begin")

            def before_save(self, session, global_step_value):
                events.append(f"before {global_step_value}")

            def after_save(self, session, global_step_value):
                events.append(f"after {global_step_value}")

            def end(self, session, global_step_value):
                events.append(f"end {global_step_value}")

        with ops.Graph().as_default():
            do_step = state_ops.assign_add(training_util.get_or_create_global_step(), 1)
            hook = basic_session_run_hooks.CheckpointSaverHook(self.folder(), save_steps=3, listeners=[Listener()])
            with monitored_session.SingularMonitoredSession(hooks=[hook]) as session:
                for _ in range(4):
                    session.run(do_step)
        self.assertEqual(["begin", "before 0", "after 0"], events[:3])
        self.assertEqual("end 4", events[-1])

    def test_saver_arguments(self):
        with self.assertRaisesRegex(ValueError, "exactly one of|Can not provide both"):
            basic_session_run_hooks.CheckpointSaverHook("a", save_secs=10, save_steps=20)
        with self.assertRaises(ValueError):
            basic_session_run_hooks.CheckpointSaverHook("a", saver=saver_lib.Saver(allow_empty=True),
                                                        scaffold=monitored_session.Scaffold(), save_steps=1)
        with self.assertRaises(ValueError):
            basic_session_run_hooks.SummarySaverHook(
                scaffold=monitored_session.Scaffold(), summary_op=constant_op.constant("s"), save_steps=1)
        with self.assertRaises(ValueError):
            basic_session_run_hooks.SummarySaverHook(save_steps=1)
        with self.assertRaises(ValueError):
            basic_session_run_hooks.StepCounterHook(every_n_steps=10, every_n_secs=5)
        with self.assertRaises(ValueError):
            basic_session_run_hooks.StopAtStepHook()
        with self.assertRaises(ValueError):
            basic_session_run_hooks.StopAtStepHook(num_steps=10, last_step=20)
        with self.assertRaises(ValueError):
            basic_session_run_hooks.LoggingTensorHook(tensors=["t"])
        with self.assertRaises(ValueError):
            basic_session_run_hooks.LoggingTensorHook(tensors=["t"], every_n_iter=5, every_n_secs=5)
        with self.assertRaises(ValueError):
            basic_session_run_hooks.LoggingTensorHook(tensors=["t"], every_n_iter=0)

    def test_profiler(self):
        folder = self.folder()
        with ops.Graph().as_default():
            do_step = state_ops.assign_add(training_util.get_or_create_global_step(), 1)
            hook = basic_session_run_hooks.ProfilerHook(save_steps=2, output_dir=folder)
            with monitored_session.SingularMonitoredSession(hooks=[hook]) as session:
                session.run(do_step)
                self.assertEqual(0, len(gfile.Glob(os.path.join(folder, "timeline-*.json"))))
                for _ in range(4):
                    session.run(do_step)
        self.assertEqual(2, len(gfile.Glob(os.path.join(folder, "timeline-*.json"))))

    def test_final_ops(self):
        with ops.Graph().as_default(), session_lib.Session() as sess:
            hook = basic_session_run_hooks.FinalOpsHook([constant_op.constant([1, 2]), "Const:0"])
            hook.begin()
            self.assertIsNone(hook.final_ops_values)
            hook.end(sess)
            self.assertAllEqual([[1, 2], [1, 2]], hook.final_ops_values)

    def test_feed_function(self):
        with ops.Graph().as_default(), session_lib.Session() as sess:
            x, y = array_ops.placeholder(dtypes.int32), array_ops.placeholder(dtypes.int32)
            hook = basic_session_run_hooks.FeedFnHook(lambda: {x: 4, y: 6})
            mon_sess = monitored_session._HookedSession(sess, [hook])
            self.assertEqual(10, mon_sess.run(x + y))

    def test_elements(self):
        with ops.Graph().as_default() as g:
            t = constant_op.constant(1.0, name="t")
            self.assertIs(t, basic_session_run_hooks._as_graph_element("t:0"))
            self.assertIs(t, basic_session_run_hooks._as_graph_element("t"))
            self.assertIs(t, basic_session_run_hooks._as_graph_element(t))
            self.assertIs(t.op, basic_session_run_hooks._as_graph_element(t.op))
            v = resource_variable_ops.ResourceVariable(1.0)
            basic_session_run_hooks._as_graph_element(v)
            self.assertIs(g, t.graph)
        with ops.Graph().as_default():
            with self.assertRaises(ValueError):
                basic_session_run_hooks._as_graph_element(t)


class FakeWriter:
    def __init__(self):
        self.summaries = {}

    @property
    def steps(self):
        return list(self.summaries)

    def add_summary(self, message, step=None):
        if isinstance(message, bytes):
            message = summary_pb2.Summary.FromString(message)
        self.summaries.setdefault(step, []).append(message)

    def add_session_log(self, session_log, global_step=None):
        pass

    def flush(self):
        pass

    def close(self):
        pass


class Evaluations(Case):
    def saved(self, value=3.0):
        path = os.path.join(self.folder(), "model")
        with ops.Graph().as_default(), session_lib.Session() as sess:
            training_util.get_or_create_global_step()
            v = variable_scope.get_variable("v", [], initializer=lambda *args, **kwargs: constant_op.constant(value))
            sess.run(variables.global_variables_initializer())
            saver_lib.Saver().save(sess, path)
            self.assertIsNotNone(v)
        return path

    def test_once(self):
        path = self.saved()
        with ops.Graph().as_default():
            training_util.get_or_create_global_step()
            v = variable_scope.get_variable("v", [])
            total = variable_scope.get_variable(
                "total", [], collections=[ops.GraphKeys.LOCAL_VARIABLES], trainable=False,
                initializer=lambda *args, **kwargs: constant_op.constant(0.0))
            update = state_ops.assign_add(total, v)
            hook = evaluation._StopAfterNEvalsHook(4)
            got = evaluation._evaluate_once(
                checkpoint_path=path, eval_ops=update, final_ops={"total": total}, hooks=[hook])
            self.assertEqual({"total": 12.0}, got)

    def test_no_eval_ops(self):
        path = self.saved(2.0)
        with ops.Graph().as_default():
            v = variable_scope.get_variable("v", [])
            got = evaluation._evaluate_once(checkpoint_path=path, final_ops=v * 2.0)
            self.assertEqual(4.0, got)

    def test_no_final_ops(self):
        path = self.saved(2.0)
        with ops.Graph().as_default():
            v = variable_scope.get_variable("v", [])
            self.assertIsNone(evaluation._evaluate_once(
                checkpoint_path=path, eval_ops=v, hooks=[evaluation._StopAfterNEvalsHook(1)]))

    def test_step_variable(self):
        with ops.Graph().as_default() as g:
            step = evaluation._get_or_create_eval_step()
            self.assertIs(step, evaluation._get_or_create_eval_step())
            self.assertEqual([step], g.get_collection(ops.GraphKeys.EVAL_STEP))
            self.assertIn(step, variables.local_variables())
            g.add_to_collection(ops.GraphKeys.EVAL_STEP, step)
            with self.assertRaisesRegex(ValueError, "Multiple tensors added to tf.GraphKeys.EVAL_STEP"):
                evaluation._get_or_create_eval_step()

    def test_feeds(self):
        path = self.saved(2.0)
        with ops.Graph().as_default():
            v = variable_scope.get_variable("v", [])
            x = array_ops.placeholder(dtypes.float32, [])
            got = evaluation._evaluate_once(
                checkpoint_path=path, eval_ops=[v * x], feed_dict={x: 1.0}, final_ops=v * x,
                final_ops_feed_dict={x: 10.0}, hooks=[evaluation._StopAfterNEvalsHook(2)])
            self.assertEqual(20.0, got)


class Managed(Case):
    def test_prepare_succeeds(self):
        with ops.Graph().as_default():
            p = array_ops.placeholder(dtypes.float32, shape=(3,))
            v = variables.VariableV1(p, name="v")
            sm = session_manager.SessionManager(ready_op=variables.report_uninitialized_variables())
            sess = sm.prepare_session("", init_op=variables.global_variables_initializer(),
                                      init_feed_dict={p: [1.0, 2.0, 3.0]})
            self.assertAllClose([1.0, 2.0, 3.0], sess.run(v))

    def test_prepare_with_function(self):
        with ops.Graph().as_default():
            v = variables.VariableV1([125], name="v")
            sm = session_manager.SessionManager(ready_op=variables.report_uninitialized_variables())
            sess = sm.prepare_session("", init_fn=lambda sess: sess.run(v.initializer))
            self.assertAllClose([125], sess.run(v))

    def test_prepare_fails(self):
        with ops.Graph().as_default():
            variables.VariableV1(1, name="v")
            sm = session_manager.SessionManager(ready_op=variables.report_uninitialized_variables())
            with self.assertRaisesRegex(RuntimeError, "Init operations did not make model ready"):
                sm.prepare_session("", init_op=control_flow_ops.no_op())
            sm = session_manager.SessionManager(
                ready_op=variables.report_uninitialized_variables(), ready_for_local_init_op=None)
            with self.assertRaisesRegex(RuntimeError, "no init_op or init_fn|Model is not initialized"):
                sm.prepare_session("")

    def test_prepare_not_ready_for_local(self):
        with ops.Graph().as_default():
            v = variables.VariableV1(1, name="v")
            variables.VariableV1(v, name="x", collections=[ops.GraphKeys.LOCAL_VARIABLES])
            sm = session_manager.SessionManager(
                ready_op=variables.report_uninitialized_variables(),
                ready_for_local_init_op=variables.report_uninitialized_variables(variables.global_variables()),
                local_init_op=variables.local_variables_initializer())
            with self.assertRaisesRegex(RuntimeError, "Init operations did not make model ready for local_init"):
                sm.prepare_session("", init_op=control_flow_ops.no_op())

    def test_local_init_depends_on_global(self):
        with ops.Graph().as_default():
            v = variables.VariableV1([3, 2, 1], name="v")
            w = variables.VariableV1(v, name="w", trainable=False, collections=[ops.GraphKeys.LOCAL_VARIABLES])
            sm = session_manager.SessionManager(
                ready_op=variables.report_uninitialized_variables(),
                ready_for_local_init_op=variables.report_uninitialized_variables(variables.global_variables()),
                local_init_op=w.initializer)
            sess = sm.prepare_session("", init_op=v.initializer)
            self.assertAllEqual([3, 2, 1], sess.run(w))

    def test_recover(self):
        folder = self.folder()
        with ops.Graph().as_default():
            v = variables.VariableV1(1, name="v")
            sm = session_manager.SessionManager(ready_op=variables.report_uninitialized_variables())
            saver = saver_lib.Saver({"v": v})
            sess, initialized = sm.recover_session("", saver=saver, checkpoint_dir=folder)
            self.assertFalse(initialized)
            sess.run(v.initializer)
            saver.save(sess, os.path.join(folder, "m"))
        with ops.Graph().as_default():
            v = variables.VariableV1(2, name="v")
            sm2 = session_manager.SessionManager(ready_op=variables.report_uninitialized_variables())
            sess, initialized = sm2.recover_session("", saver=saver_lib.Saver({"v": v}), checkpoint_dir=folder)
            self.assertTrue(initialized)
            self.assertEqual(1, sess.run(v))
            sess, initialized = sm2.recover_session(
                "", saver=saver_lib.Saver({"v": v}), checkpoint_filename_with_path=os.path.join(folder, "m"))
            self.assertTrue(initialized)
            with self.assertRaisesRegex(ValueError, "both|Can not provide both"):
                sm2.recover_session("", saver=saver_lib.Saver({"v": v}), checkpoint_dir=folder,
                                    checkpoint_filename_with_path="x")

    def test_recover_without_saver(self):
        with ops.Graph().as_default():
            variables.VariableV1(1, name="v")
            sm = session_manager.SessionManager(ready_op=variables.report_uninitialized_variables())
            _, initialized = sm.recover_session("", checkpoint_dir=self.folder())
            self.assertFalse(initialized)

    def test_recover_fails(self):
        with ops.Graph().as_default():
            v = variables.VariableV1(1, name="v")
            w = variables.VariableV1(1, name="w")
            saver = saver_lib.Saver({"v": v})
            folder = self.folder()
            with session_lib.Session() as sess:
                sess.run(v.initializer)
                saver.save(sess, os.path.join(folder, "m"))
            sm = session_manager.SessionManager(ready_op=variables.report_uninitialized_variables())
            sess, initialized = sm.recover_session("", saver=saver, checkpoint_dir=folder)
            self.assertFalse(initialized)
            self.assertIsNotNone(w)

    def test_wait(self):
        server = server_lib.Server.create_local_server()
        with ops.Graph().as_default():
            v = variables.VariableV1(1, name="v")
            with session_lib.Session(server.target) as sess:
                sess.run(v.initializer)
            sm = session_manager.SessionManager(
                ready_op=variables.report_uninitialized_variables(), recovery_wait_secs=1)
            sess = sm.wait_for_session(server.target, max_wait_secs=3)
            self.assertEqual(1, sess.run(v))

    def test_wait_fails(self):
        with ops.Graph().as_default():
            variables.VariableV1(1, name="v")
            sm = session_manager.SessionManager(
                ready_op=variables.report_uninitialized_variables(), recovery_wait_secs=0.1)
            with self.assertRaises(errors_impl.DeadlineExceededError):
                sm.wait_for_session("", max_wait_secs=0.3)

    def test_graph_argument(self):
        g = ops.Graph()
        with g.as_default():
            v = variables.VariableV1(1, name="v")
            ready = variables.report_uninitialized_variables()
            init = v.initializer
        sm = session_manager.SessionManager(ready_op=ready, graph=g)
        sess = sm.prepare_session("", init_op=init)
        self.assertIs(g, sess.graph)


class Supervised(Case):
    def test_basics(self):
        with ops.Graph().as_default():
            my_op = constant_op.constant(1.0)
            sv = supervisor.Supervisor(logdir=self.folder())
            sess = sv.prepare_or_wait_for_session("")
            for _ in range(10):
                self.assertEqual(1.0, sess.run(my_op))
            sess.close()
            sv.stop()

    def test_managed(self):
        with ops.Graph().as_default():
            my_op = constant_op.constant(1.0)
            sv = supervisor.Supervisor(logdir=self.folder())
            with sv.managed_session("") as sess:
                for _ in range(10):
                    sess.run(my_op)
                self.assertFalse(sv.should_stop())
            self.assertTrue(sv.should_stop())

    def test_errors_leave(self):
        with ops.Graph().as_default():
            sv = supervisor.Supervisor(logdir=self.folder())
            with self.assertRaisesRegex(RuntimeError, "failing here"):
                with sv.managed_session("") as sess:
                    self.assertIsNotNone(sess)
                    raise RuntimeError("failing here")
            self.assertTrue(sv.should_stop())
        with ops.Graph().as_default():
            sv = supervisor.Supervisor(logdir=self.folder())
            with sv.managed_session(""):
                raise errors_impl.OutOfRangeError(None, None, "clean")

    def test_session_config(self):
        with ops.Graph().as_default():
            with ops.device("/cpu:1"):
                my_op = constant_op.constant([1.0])
            sv = supervisor.Supervisor(logdir=self.folder())
            sess = sv.prepare_or_wait_for_session("", config=config_pb2.ConfigProto(device_count={"CPU": 2}))
            self.assertAllEqual([1.0], sess.run(my_op))
            sess.close()
            sv.stop()

    def test_chief_services(self):
        folder = self.folder()
        with ops.Graph().as_default():
            const = constant_op.constant([1.0, 2.0, 3.0])
            summary.scalar("c1", const[0])
            summary.scalar("c2", const[1])
            summ = summary.merge_all()
            sv = supervisor.Supervisor(logdir=folder, summary_op=None)
            sess = sv.prepare_or_wait_for_session("")
            self.assertIsNotNone(sv.summary_writer)
            sv.summary_computed(sess, sess.run(summ))
            sess.close()
            time.sleep(0.05)
            sv.stop()
        found = list(summary_iterator.summary_iterator(gfile.Glob(os.path.join(folder, "*events*"))[0]))
        self.assertTrue(found[0].file_version)
        self.assertTrue(any(event.graph_def for event in found))
        self.assertTrue(any(event.meta_graph_def for event in found))
        tags = [value.tag for event in found for value in event.summary.value]
        self.assertEqual(["c1", "c2"], tags)
        logs = [event.session_log.status for event in found if event.HasField("session_log")]
        self.assertEqual([2], logs)

    def test_no_logdir(self):
        with ops.Graph().as_default():
            const = constant_op.constant([1.0])
            summary.scalar("c1", const[0])
            summ = summary.merge_all()
            sv = supervisor.Supervisor(logdir="", summary_op=None)
            sess = sv.prepare_or_wait_for_session("")
            with self.assertRaisesRegex(RuntimeError, "requires a summary writer"):
                sv.summary_computed(sess, sess.run(summ))
            self.assertIsNone(sv.start_standard_services(sess))
            self.assertIsNone(sv.summary_writer)

    def test_not_chief(self):
        with ops.Graph().as_default():
            const = constant_op.constant([1.0])
            summary.scalar("c1", const[0])
            summ = summary.merge_all()
            sv = supervisor.Supervisor(logdir=self.folder(), is_chief=False, summary_op=None, init_op=None)
            self.assertIsNone(sv.summary_writer)
            self.assertFalse(sv.is_chief)
            with session_lib.Session() as sess:
                with self.assertRaises(RuntimeError):
                    sv.summary_computed(sess, sess.run(summ))
                with self.assertRaises(RuntimeError):
                    sv.start_standard_services(sess)

    def test_init_op_variants(self):
        with ops.Graph().as_default():
            v = variables.VariableV1([1.0, 2.0, 3.0], name="v")
            sv = supervisor.Supervisor(logdir=self.folder())
            sess = sv.prepare_or_wait_for_session("")
            self.assertAllClose([1.0, 2.0, 3.0], sess.run(v))
            sv.stop()
        with ops.Graph().as_default():
            p = array_ops.placeholder(dtypes.float32, shape=(3,))
            v = variables.VariableV1(p, name="v")
            sv = supervisor.Supervisor(
                logdir=self.folder() + "2", init_op=variables.global_variables_initializer(),
                init_feed_dict={p: [1.0, 2.0, 3.0]})
            self.assertAllClose([1.0, 2.0, 3.0], sv.prepare_or_wait_for_session("").run(v))
            sv.stop()
        with ops.Graph().as_default():
            v = variables.VariableV1([1.0], name="v")
            sv = supervisor.Supervisor(
                logdir=self.folder() + "3", init_op=None, init_fn=lambda sess: sess.run(v.initializer))
            self.assertAllClose([1.0], sv.prepare_or_wait_for_session("").run(v))
            sv.stop()

    def test_init_op_fails(self):
        with ops.Graph().as_default():
            variables.VariableV1([1.0], name="v")
            variables.VariableV1([2.0], name="w")
            sv = supervisor.Supervisor(logdir=self.folder(), init_op=variables.global_variables()[0].initializer)
            with self.assertRaisesRegex(RuntimeError, "Variables not initialized: w"):
                sv.prepare_or_wait_for_session("")
        with ops.Graph().as_default():
            variables.VariableV1([1.0], name="v")
            sv = supervisor.Supervisor(logdir=self.folder(), init_op=None, local_init_op=None)
            with self.assertRaisesRegex(RuntimeError, "no init_op or init_fn or local_init_op was given"):
                sv.prepare_or_wait_for_session("")

    def test_ready_for_local(self):
        with ops.Graph().as_default():
            v = variables.VariableV1(1, name="v")
            w = variables.VariableV1(v, trainable=False, collections=[ops.GraphKeys.LOCAL_VARIABLES], name="w")
            sv = supervisor.Supervisor(
                logdir=self.folder(), ready_for_local_init_op=variables.report_uninitialized_variables(
                    variables.global_variables()))
            sess = sv.prepare_or_wait_for_session("")
            self.assertEqual(1, sess.run(w))
            sv.stop()

    def test_queue_runners(self):
        with ops.Graph().as_default():
            p = constant_op.constant([1, 2, 3])
            queue = data_flow_ops.FIFOQueue(10, dtypes.int32, shapes=[[3]])
            queue_runner_impl.add_queue_runner(queue_runner_impl.QueueRunner(queue, [queue.enqueue([p])]))
            out = queue.dequeue()
            sv = supervisor.Supervisor(logdir=self.folder())
            sess = sv.prepare_or_wait_for_session("")
            self.assertAllEqual([1, 2, 3], sess.run(out))
            sv.stop()

    def test_checkpoint_continues(self):
        folder = self.folder()
        with ops.Graph().as_default():
            v = variables.VariableV1([10.10], name="foo")
            assign = v.assign([20.20])
            sv = supervisor.Supervisor(logdir=folder, save_model_secs=0)
            with sv.managed_session("") as sess:
                sess.run(assign)
                sv.saver.save(sess, sv.save_path)
        with ops.Graph().as_default():
            v = variables.VariableV1([1.0], name="foo")
            sv = supervisor.Supervisor(logdir=folder)
            with sv.managed_session("") as sess:
                self.assertAllClose([20.20], sess.run(v))

    def test_properties(self):
        with ops.Graph().as_default():
            step = variables.VariableV1(3, name="global_step")
            sv = supervisor.Supervisor(logdir=self.folder(), save_summaries_secs=7, save_model_secs=9)
            self.assertEqual((7, 9), (sv.save_summaries_secs, sv.save_model_secs))
            self.assertEqual(step.name, sv.global_step.name)
            self.assertIsInstance(sv.coord, coordinator.Coordinator)
            self.assertIsInstance(sv.session_manager, session_manager.SessionManager)
            self.assertTrue(sv.save_path.endswith("model.ckpt"))
            self.assertIsNotNone(sv.ready_op)
            self.assertIsNotNone(sv.init_op)

    def test_loop(self):
        with ops.Graph().as_default():
            sv = supervisor.Supervisor(logdir=self.folder())
            with sv.managed_session(""):
                calls = []
                last = sv.loop(0.01, lambda: calls.append(1))
                while len(calls) < 3:
                    time.sleep(0.01)
                sv.request_stop()
                last.join()
            self.assertGreater(len(calls), 2)

    def test_graph_argument(self):
        g = ops.Graph()
        with g.as_default():
            c = constant_op.constant(2.0)
        sv = supervisor.Supervisor(graph=g, logdir=self.folder())
        with sv.managed_session("") as sess:
            self.assertIs(g, sess.graph)
            self.assertEqual(2.0, sess.run(c))


MockOp = collections.namedtuple("MockOp", ["name"])


class QueueRunners(test.TestCase):
    def run_threads(self, sess, runner, coord=None):
        threads = runner.create_threads(sess, coord=coord)
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        return threads

    @test_util.run_deprecated_v1
    def test_basic(self):
        with self.cached_session() as sess:
            zero64 = constant_op.constant(0, dtype=dtypes.int64)
            var = variables.VariableV1(zero64)
            count_up_to = var.count_up_to(3)
            queue = data_flow_ops.FIFOQueue(10, dtypes.float32)
            self.evaluate(variables.global_variables_initializer())
            qr = queue_runner_impl.QueueRunner(queue, [count_up_to])
            threads = qr.create_threads(sess)
            self.assertEqual(sorted(t.name for t in threads), ["QueueRunnerThread-fifo_queue-CountUpTo:0"])
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            self.assertEqual(0, len(qr.exceptions_raised))
            self.assertEqual(3, self.evaluate(var))

    @test_util.run_deprecated_v1
    def test_two_ops(self):
        with self.cached_session() as sess:
            zero64 = constant_op.constant(0, dtype=dtypes.int64)
            var0, var1 = variables.VariableV1(zero64), variables.VariableV1(zero64)
            queue = data_flow_ops.FIFOQueue(10, dtypes.float32)
            qr = queue_runner_impl.QueueRunner(queue, [var0.count_up_to(3), var1.count_up_to(30)])
            self.evaluate(variables.global_variables_initializer())
            self.assertEqual(2, len(self.run_threads(sess, qr)))
            self.assertEqual((3, 30), (self.evaluate(var0), self.evaluate(var1)))

    @test_util.run_deprecated_v1
    def test_errors_are_kept(self):
        with self.cached_session() as sess:
            queue = data_flow_ops.FIFOQueue(10, dtypes.float32)
            qr = queue_runner_impl.QueueRunner(queue, [MockOp("i fail"), MockOp("so fail")])
            self.assertEqual(2, len(self.run_threads(sess, qr)))
            self.assertEqual(2, len(qr.exceptions_raised))
            for each in qr.exceptions_raised:
                self.assertIn("Operation not in the graph", str(each))

    @test_util.run_deprecated_v1
    def test_real_queue(self):
        with self.cached_session() as sess:
            q0 = data_flow_ops.FIFOQueue(3, dtypes.float32)
            enqueue0 = q0.enqueue((10.0,))
            qr = queue_runner_impl.QueueRunner(q0, [enqueue0, enqueue0])
            threads = qr.create_threads(sess, start=True)
            self.assertEqual([10.0] * 5, [self.evaluate(q0.dequeue()) for _ in range(5)])
            sess.run(q0.close(cancel_pending_enqueues=True))
            for t in threads:
                t.join()

    @test_util.run_deprecated_v1
    def test_coordinator(self):
        with self.cached_session() as sess:
            queue = data_flow_ops.FIFOQueue(10, dtypes.float32)
            qr = queue_runner_impl.QueueRunner(queue, [MockOp("i fail"), MockOp("so fail")])
            coord = coordinator.Coordinator()
            threads = qr.create_threads(sess, coord)
            for t in threads:
                t.start()
            with self.assertRaisesRegex(ValueError, "Operation not in the graph"):
                coord.join()
            self.assertEqual(0, len(qr.exceptions_raised))

    @test_util.run_deprecated_v1
    def test_grace_period(self):
        with self.cached_session() as sess:
            queue = data_flow_ops.FIFOQueue(0 + 1, dtypes.float32)
            enqueue = queue.enqueue((10.0,))
            dequeue = queue.dequeue()
            qr = queue_runner_impl.QueueRunner(queue, [enqueue])
            coord = coordinator.Coordinator()
            qr.create_threads(sess, coord, start=True)
            self.evaluate(dequeue)
            coord.request_stop()
            coord.join(stop_grace_period_secs=5.0)

    @test_util.run_deprecated_v1
    def test_no_multi_threads_twice(self):
        with self.cached_session() as sess:
            queue = data_flow_ops.FIFOQueue(1, dtypes.float32)
            qr = queue_runner_impl.QueueRunner(queue, [queue.enqueue((10.0,))])
            coord = coordinator.Coordinator()
            first = qr.create_threads(sess, coord, start=True)
            self.assertTrue(first)
            self.assertEqual([], qr.create_threads(sess, coord, start=True))
            coord.request_stop()
            coord.join()

    @test_util.run_deprecated_v1
    def test_names(self):
        with self.cached_session() as sess:
            queue = data_flow_ops.FIFOQueue(10, dtypes.float32, name="queue")
            coord = coordinator.Coordinator()
            qr = queue_runner_impl.QueueRunner(queue, [control_flow_ops.no_op(name="first"), control_flow_ops.no_op(name="other")])
            threads = qr.create_threads(sess, coord=coord)
            self.assertEqual(
                ["QueueRunnerThread-queue-close_on_stop", "QueueRunnerThread-queue-first",
                 "QueueRunnerThread-queue-other"], sorted(t.name for t in threads))

    @test_util.run_deprecated_v1
    def test_starting(self):
        with self.cached_session() as sess:
            var = variables.VariableV1(constant_op.constant(0, dtype=dtypes.int64))
            queue = data_flow_ops.FIFOQueue(10, dtypes.float32)
            init = variables.global_variables_initializer()
            qr = queue_runner_impl.QueueRunner(queue, [var.count_up_to(3)])
            queue_runner_impl.add_queue_runner(qr)
            init.run()
            threads = queue_runner_impl.start_queue_runners(sess)
            for t in threads:
                t.join()
            self.assertEqual(0, len(qr.exceptions_raised))
            self.assertEqual(3, self.evaluate(var))

    def test_starting_without_session(self):
        with ops.Graph().as_default():
            with self.assertRaisesRegex(ValueError, "Cannot start queue runners: No default session"):
                queue_runner_impl.start_queue_runners()
            with self.assertRaisesRegex(TypeError, "tf.Session"):
                queue_runner_impl.start_queue_runners("a string")

    @test_util.run_deprecated_v1
    def test_definition(self):
        queue = data_flow_ops.FIFOQueue(10, dtypes.float32, name="queue")
        enqueue_op = control_flow_ops.no_op(name="enqueue")
        close_op = control_flow_ops.no_op(name="close")
        cancel_op = control_flow_ops.no_op(name="cancel")
        qr0 = queue_runner_impl.QueueRunner(
            queue, [enqueue_op], close_op, cancel_op,
            queue_closed_exception_types=(errors_impl.OutOfRangeError, errors_impl.CancelledError))
        qr0_proto = qr0.to_proto()
        qr0_recon = queue_runner_impl.QueueRunner.from_proto(qr0_proto)
        self.assertEqual("queue", qr0_recon.queue.name)
        self.assertEqual(1, len(qr0_recon.enqueue_ops))
        self.assertEqual(enqueue_op, qr0_recon.enqueue_ops[0])
        self.assertEqual(close_op, qr0_recon.close_op)
        self.assertEqual(cancel_op, qr0_recon.cancel_op)
        self.assertEqual(
            (errors_impl.OutOfRangeError, errors_impl.CancelledError), qr0_recon.queue_closed_exception_types)
        qr0_legacy = queue_runner_impl.QueueRunner(queue, [enqueue_op], close_op, cancel_op).to_proto()
        del qr0_legacy.queue_closed_exception_types[:]
        found = queue_runner_impl.QueueRunner.from_proto(qr0_legacy)
        self.assertEqual((errors_impl.OutOfRangeError,), found.queue_closed_exception_types)

    @test_util.run_deprecated_v1
    def test_bad_arguments(self):
        queue = data_flow_ops.FIFOQueue(10, dtypes.float32, name="queue")
        with self.assertRaises(ValueError):
            queue_runner_impl.QueueRunner(queue, [])
        with self.assertRaises(ValueError):
            queue_runner_impl.QueueRunner(None, [control_flow_ops.no_op()])
        with self.assertRaises(TypeError):
            queue_runner_impl.QueueRunner(queue, [control_flow_ops.no_op()], queue_closed_exception_types="bad")
        self.assertIsNotNone(meta_graph)


class Steps(test.TestCase):
    def test_increment(self):
        with ops.Graph().as_default(), session_lib.Session() as sess:
            with self.assertRaises(ValueError):
                training_util._increment_global_step(1)
            self.assertIsNone(training_util._get_or_create_global_step_read())
            gstep = training_util.create_global_step()
            self.assertIsNone(training_util._get_global_step_read())
            read = training_util._get_or_create_global_step_read()
            self.assertIs(read, training_util._get_or_create_global_step_read())
            self.assertIs(read, training_util._get_global_step_read())
            add = training_util._increment_global_step(2)
            sess.run(gstep.initializer)
            self.assertEqual(0, sess.run([read, add])[0])
            self.assertEqual(2, sess.run(gstep))

    def test_invalid(self):
        with ops.Graph().as_default() as g:
            self.assertIsNone(training_util.get_global_step())
            variables.VariableV1(0.0, trainable=False, dtype=dtypes.float32, name=ops.GraphKeys.GLOBAL_STEP)
            with self.assertRaisesRegex(TypeError, "does not have integer type"):
                training_util.get_global_step()
            with self.assertRaisesRegex(TypeError, "does not have integer type"):
                training_util.get_global_step(g)
        with ops.Graph().as_default():
            variables.VariableV1([0], trainable=False, dtype=dtypes.int32, name=ops.GraphKeys.GLOBAL_STEP)
            with self.assertRaisesRegex(TypeError, "not scalar"):
                training_util.get_global_step()

    def test_twice(self):
        with ops.Graph().as_default() as g:
            training_util.create_global_step()
            with self.assertRaisesRegex(ValueError, "already exists"):
                training_util.create_global_step()
            self.assertIs(training_util.get_or_create_global_step(g), training_util.get_global_step(g))

    def test_reads(self):
        with ops.Graph().as_default() as g:
            self.assertEqual(0, len(g.get_collection(training_util.GLOBAL_STEP_READ_KEY)))
            training_util.get_or_create_global_step()
            self.assertIsNotNone(training_util._get_or_create_global_step_read(g))
            self.assertEqual(1, len(g.get_collection(training_util.GLOBAL_STEP_READ_KEY)))

    def test_value(self):
        with ops.Graph().as_default() as g, session_lib.Session() as sess:
            step = training_util.create_global_step(g)
            sess.run(step.initializer)
            self.assertEqual(0, training_util.global_step(sess, step))
            self.assertIs(step, training_util.get_global_step())
            sess.run(state_ops.assign(step, 42))
            self.assertEqual(42, training_util.global_step(sess, step))


if __name__ == "__main__":
    test.main()
