"""Sessions of a training: what recovers, what stops, and who learns of an error; with TensorFlow's names only.

    python -m tests.interop.training_behaviours dtf
"""

from __future__ import annotations

import os
import sys
import tempfile
from typing import Any

from tests.interop.behaviours import outcome, plain, run_all


class Hooks:
    """Hooks for these behaviours, as classes of the runtime at hand."""

    def __init__(self, tf: Any) -> None:
        class Recorder(tf.train.SessionRunHook):
            """Notes every call."""

            def __init__(self, heard: list[Any], name: str = "") -> None:
                self.heard = heard
                self.name = name

            def begin(self) -> None:
                self.heard.append(f"{self.name}begin")

            def after_create_session(self, session: Any, coord: Any) -> None:
                self.heard.append(f"{self.name}created")

            def before_run(self, run_context: Any) -> Any:
                self.heard.append(f"{self.name}before")

            def after_run(self, run_context: Any, run_values: Any) -> None:
                self.heard.append(f"{self.name}after")

            def end(self, session: Any) -> None:
                self.heard.append(f"{self.name}end")

        class Failing(tf.train.SessionRunHook):
            """Raises an error in one of its methods, as often as it is told to."""

            def __init__(self, where: str, error: Any, times: int = 1) -> None:
                self.where = where
                self.error = error
                self.times = times

            def _maybe(self, where: str) -> None:
                if where == self.where and self.times > 0:
                    self.times -= 1
                    raise self.error

            def begin(self) -> None:
                self._maybe("begin")

            def after_create_session(self, session: Any, coord: Any) -> None:
                self._maybe("created")

            def before_run(self, run_context: Any) -> Any:
                self._maybe("before")

            def after_run(self, run_context: Any, run_values: Any) -> None:
                self._maybe("after")

            def end(self, session: Any) -> None:
                self._maybe("end")

        class Options(tf.train.SessionRunHook):
            """Asks for RunOptions, and notes which came."""

            def __init__(self, options: Any = None, feed: Any = None, fetches: Any = None) -> None:
                self.args = tf.train.SessionRunArgs(fetches, feed, options)
                self.got: Any = None
                self.metadata: Any = None

            def before_run(self, run_context: Any) -> Any:
                return self.args

            def after_run(self, run_context: Any, run_values: Any) -> None:
                self.got = run_values.options
                self.metadata = run_values.run_metadata
                self.results = run_values.results

        class Stopping(tf.train.SessionRunHook):
            def after_run(self, run_context: Any, run_values: Any) -> None:
                run_context.request_stop()

        self.Recorder, self.Failing, self.Options, self.Stopping = Recorder, Failing, Options, Stopping


def errors_of(tf: Any) -> dict[str, Any]:
    return {
        "aborted": tf.errors.AbortedError(None, None, "x"),
        "unavailable": tf.errors.UnavailableError(None, None, "x"),
        "out of range": tf.errors.OutOfRangeError(None, None, "x"),
        "stop iteration": StopIteration("x"),
        "cancelled": tf.errors.CancelledError(None, None, "x"),
        "deadline": tf.errors.DeadlineExceededError(None, None, "x"),
        "value": ValueError("x"),
    }


def report(coord: Any, error: BaseException) -> None:
    """Reports an error to a coordinator as a thread does: where it is handled."""
    try:
        raise error
    except BaseException:
        coord.request_stop(sys.exc_info())


def order_of_calls(tf: Any) -> Any:
    hooks = Hooks(tf)
    found: dict[str, Any] = {}
    for kind in ("MonitoredSession", "SingularMonitoredSession"):
        with tf.Graph().as_default():
            heard: list[Any] = []
            with getattr(tf.train, kind)(hooks=[hooks.Recorder(heard, "1 "), hooks.Recorder(heard, "2 ")]) as session:
                session.run(tf.constant(1) if kind == "x" else session.graph.get_operations()[0:0])
            found[kind] = heard
    return found


def errors_of_hooks(tf: Any) -> Any:
    """An error of each kind in each method of a hook: how the block ends, and what another hook has heard."""
    hooks = Hooks(tf)
    found: dict[str, Any] = {}
    for where in ("begin", "created", "before", "after", "end"):
        for name, error in errors_of(tf).items():
            for kind in ("MonitoredSession", "SingularMonitoredSession"):
                with tf.Graph().as_default():
                    one = tf.constant(1)
                    heard: list[Any] = []

                    def loop(kind=kind, heard=heard, where=where, error=error, one=one) -> Any:
                        runs = 0
                        recorder = hooks.Recorder(heard)
                        with getattr(tf.train, kind)(hooks=[recorder, hooks.Failing(where, error)]) as session:
                            while not session.should_stop() and runs < 3:
                                runs += 1
                                session.run(one)
                        return runs

                    found[f"{kind} {where} {name}"] = [outcome(loop), heard]
    return found


def errors_of_the_body(tf: Any) -> Any:
    hooks = Hooks(tf)
    found: dict[str, Any] = {}
    for name, error in errors_of(tf).items():
        for kind in ("MonitoredSession", "SingularMonitoredSession"):
            with tf.Graph().as_default():
                heard: list[Any] = []

                def body(kind=kind, heard=heard, error=error) -> Any:
                    with getattr(tf.train, kind)(hooks=[hooks.Recorder(heard)]):
                        raise error

                found[f"{kind} {name}"] = [outcome(body), heard]
    return found


def errors_of_the_coordinator(tf: Any) -> Any:
    """An error that a thread reports: seen by should_stop, by run, by close and at the end of the block."""
    found: dict[str, Any] = {}
    for name, error in errors_of(tf).items():
        for kind in ("MonitoredSession", "SingularMonitoredSession"):
            with tf.Graph().as_default():
                one = tf.constant(1)

                class Keep(tf.train.SessionRunHook):
                    def after_create_session(self, session: Any, coord: Any) -> None:
                        self.coord = coord

                keep = Keep()

                def loop(kind=kind, keep=keep, error=error, one=one) -> Any:
                    steps: list[Any] = []
                    try:
                        with getattr(tf.train, kind)(hooks=[keep]) as session:
                            session.run(one)
                            report(keep.coord, error)
                            steps.append(outcome(session.should_stop))
                            steps.append(outcome(session.run, one))
                            steps.append(outcome(session.should_stop))
                    except Exception as raised:
                        steps.append(type(raised).__name__)
                    return steps

                found[f"{kind} {name}"] = outcome(loop)
    return found


def close_after_an_error_of_the_coordinator(tf: Any) -> Any:
    found: dict[str, Any] = {}
    for name, error in errors_of(tf).items():
        for kind in ("MonitoredSession", "SingularMonitoredSession"):
            with tf.Graph().as_default():

                class Keep(tf.train.SessionRunHook):
                    def after_create_session(self, session: Any, coord: Any) -> None:
                        self.coord = coord

                keep = Keep()
                session = getattr(tf.train, kind)(hooks=[keep])
                report(keep.coord, error)
                found[f"{kind} {name}"] = [outcome(session.close), outcome(session.should_stop)]
    return found


def closing(tf: Any) -> Any:
    found: dict[str, Any] = {}
    for kind in ("MonitoredSession", "SingularMonitoredSession"):
        with tf.Graph().as_default() as graph:

            def inside(kind=kind) -> Any:
                with getattr(tf.train, kind)() as session:
                    session.close()
                return "left"

            def twice(kind=kind) -> Any:
                session = getattr(tf.train, kind)()
                session.close()
                session.close()
                return "left"

            found[f"{kind} inside"] = outcome(inside)
            found[f"{kind} twice"] = outcome(twice)
            session = getattr(tf.train, kind)()
            found[f"{kind} finalized"] = graph.finalized
            session.close()
            found[f"{kind} afterwards"] = [
                outcome(session.should_stop), outcome(lambda s=session: s.graph), graph.finalized,
            ]
            with getattr(tf.train, kind)() as session:
                found[f"{kind} graph"] = session.graph is graph
            found[f"{kind} is a context"] = outcome(lambda s=session: s.__enter__() is s)
    return found


def recovery(tf: Any) -> Any:
    """Which errors make a MonitoredSession anew, and when."""
    found: dict[str, Any] = {}
    for name, error in errors_of(tf).items():
        with tf.Graph().as_default():
            state = tf.Variable(0, name="state")
            add = tf.assign_add(state, 1)
            made: list[Any] = []

            class Creator(tf.train.SessionCreator):
                def __init__(self) -> None:
                    self.chief = tf.train.ChiefSessionCreator()

                def create_session(self, made=made) -> Any:
                    made.append(1)
                    return self.chief.create_session()

            failing = Hooks(tf).Failing("before", error, times=0)

            def loop(failing=failing, made=made, add=add) -> Any:
                values = []
                with tf.train.MonitoredSession(session_creator=Creator(), hooks=[failing]) as session:
                    for turn in range(4):
                        if turn == 2:
                            failing.times = 2
                        values.append(plain(session.run(add)))
                return [values, len(made)]

            found[name] = outcome(loop)
    return found


def should_stop_after_a_loss(tf: Any) -> Any:
    """The coordinator has been told of a lost task; should_stop is asked, then a run is made."""
    found: dict[str, Any] = {}
    for name in ("aborted", "unavailable", "value", "out of range"):
        with tf.Graph().as_default():
            one = tf.constant(1)
            made: list[Any] = []

            class Keep(tf.train.SessionRunHook):
                def after_create_session(self, session: Any, coord: Any, made=made) -> None:
                    self.coord = coord
                    made.append(1)

            keep = Keep()

            def loop(keep=keep, made=made, name=name, one=one) -> Any:
                seen: list[Any] = []
                with tf.train.MonitoredSession(hooks=[keep]) as session:
                    report(keep.coord, errors_of(tf)[name])
                    seen.append(outcome(session.should_stop))
                    seen.append(len(made))
                    seen.append(outcome(session.run, one))
                    seen.append(len(made))
                return seen

            found[name] = outcome(loop)
    return found


def step_functions(tf: Any) -> Any:
    hooks = Hooks(tf)
    found: dict[str, Any] = {}
    for kind in ("MonitoredSession", "SingularMonitoredSession"):
        with tf.Graph().as_default():
            x = tf.placeholder(tf.float32, [], name="x")
            y = x * 2.0
            heard: list[Any] = []

            class Model:
                def __init__(self, x: Any, y: Any) -> None:
                    self.x, self.y = x, y

                def step(self, step_context: Any) -> Any:
                    return plain(step_context.session.run(self.y, {self.x: 5.0}))

            model = Model(x, y)

            def with_stop(step_context: Any) -> Any:
                step_context.request_stop()
                return "not reached"

            def loop(kind=kind, heard=heard, x=x, y=y, with_stop=with_stop, model=model) -> Any:
                seen: list[Any] = []
                with getattr(tf.train, kind)(hooks=[hooks.Recorder(heard)]) as session:
                    seen.append(outcome(
                        session.run_step_fn, lambda step_context: plain(step_context.session.run(y, {x: 2.0}))))
                    seen.append(outcome(
                        session.run_step_fn, lambda step_context: plain(step_context.run_with_hooks(y, {x: 3.0}))))
                    seen.append(outcome(session.run_step_fn, model.step))
                    for wrong in (
                        lambda: 1, lambda a: 1, lambda step_context, other: 1, lambda step_context=None, **more: 1,
                        3, lambda *step_context: 1,
                    ):
                        seen.append(outcome(session.run_step_fn, wrong))
                    seen.append(session.should_stop())
                    seen.append(outcome(session.run_step_fn, with_stop))
                    seen.append(outcome(session.should_stop))
                    seen.append(outcome(session.run, y, feed_dict={x: 1.0}))
                return seen

            found[kind] = [outcome(loop), heard]
    return found


def stop_of_a_step_function_ends_the_block(tf: Any) -> Any:
    found: dict[str, Any] = {}
    hooks = Hooks(tf)
    for kind in ("MonitoredSession", "SingularMonitoredSession"):
        for how in ("request_stop", "stop iteration", "out of range", "aborted", "value"):
            with tf.Graph().as_default():
                heard: list[Any] = []
                count: list[int] = []

                def maker(how=how, count=count) -> Any:
                    def step(step_context: Any) -> Any:
                        count.append(1)
                        if len(count) == 2:
                            if how == "request_stop":
                                step_context.request_stop()
                            raise errors_of(tf)[how]
                        return 7

                    return step

                stepping = maker()

                def loop(kind=kind, heard=heard, step=stepping, count=count) -> Any:
                    values = []
                    with getattr(tf.train, kind)(hooks=[hooks.Recorder(heard)]) as session:
                        while not session.should_stop() and len(count) < 5:
                            values.append(session.run_step_fn(step))
                    return values

                found[f"{kind} {how}"] = [outcome(loop), len(count), heard]
    return found


def run_options(tf: Any) -> Any:
    """The caller's RunOptions and those of two hooks become one."""
    hooks = Hooks(tf)
    found: dict[str, Any] = {}

    makers = {
        "none": lambda: None,
        "empty": tf.RunOptions,
        "software": lambda: tf.RunOptions(trace_level=tf.RunOptions.SOFTWARE_TRACE),
        "full": lambda: tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE),
        "timeout": lambda: tf.RunOptions(timeout_in_ms=60000),
        "longer": lambda: tf.RunOptions(timeout_in_ms=90000),
        "partitions": lambda: tf.RunOptions(output_partition_graphs=True),
        "oom": lambda: tf.RunOptions(report_tensor_allocations_upon_oom=True),
        "pool": lambda: tf.RunOptions(inter_op_thread_pool=-1),
    }
    for name, caller, first, second in [
        (f"{a}, {b}, {c}", makers[a], makers[b], makers[c])
        for a in ("none", "empty", "full", "oom")
        for b in ("none", "empty", "timeout", "software", "partitions", "pool")
        for c in ("none", "full", "longer", "oom")
    ]:
        with tf.Graph().as_default():
            one = tf.constant(1, name="one") + 1
            pair = [hooks.Options(first()), hooks.Options(second())]
            with tf.train.SingularMonitoredSession(hooks=pair) as session:
                session.run(one, options=caller())
            found[name] = [
                None if each.got is None else [
                    int(each.got.trace_level), int(each.got.timeout_in_ms), int(each.got.inter_op_thread_pool),
                    bool(each.got.output_partition_graphs), bool(each.got.report_tensor_allocations_upon_oom),
                ]
                for each in pair
            ] + ([] if "oom" in name else [[bool(each.metadata.step_stats.dev_stats) for each in pair]])
    return found


def debug_options(tf: Any) -> Any:
    """Debug watches of the caller and of two hooks come together."""

    def debug(url: str, **more: Any) -> Any:
        options = tf.RunOptions()
        watch = options.debug_options.debug_tensor_watch_opts.add()
        watch.node_name = "one"
        watch.debug_urls.append(url)
        for name, value in more.items():
            setattr(options.debug_options, name, value)
        return options

    hooks = Hooks(tf)
    found: list[Any] = []
    seen: list[Any] = []

    class Recording:
        """Stands for the session under the hooks: a session with debug watches needs a listener."""

        def __init__(self, session: Any) -> None:
            self.session = session
            self.graph = session.graph

        def run(self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
            seen.append(options)
            return self.session.run(fetches, feed_dict)

        def __getattr__(self, name: str) -> Any:
            return getattr(self.session, name)

    class Creator(tf.train.SessionCreator):
        def create_session(self) -> Any:
            return Recording(tf.Session())

    one = tf.constant(1, name="one")
    pair = [hooks.Options(debug("file:///a")), hooks.Options(debug("file:///b", reset_disk_byte_usage=True))]
    with tf.train.MonitoredSession(Creator(), hooks=pair) as session:
        session.run(one, options=debug("file:///c"))
        session.run(one)
    for options in seen:
        found.append([
            [list(watch.debug_urls) for watch in options.debug_options.debug_tensor_watch_opts],
            options.debug_options.reset_disk_byte_usage,
        ])
    return found


def merged_feeds_and_fetches(tf: Any) -> Any:
    hooks = Hooks(tf)
    x = tf.placeholder(tf.float32, [], name="x")
    y = tf.placeholder(tf.float32, [], name="y")
    total = x + y
    found: dict[str, Any] = {}
    cases = {
        "by two": ([hooks.Options(feed={x: 1.0}), hooks.Options(feed={y: 2.0})], None),
        "by caller": ([hooks.Options(feed={x: 1.0})], {y: 5.0}),
        "twice by hooks": ([hooks.Options(feed={x: 1.0}), hooks.Options(feed={x: 2.0, y: 1.0})], None),
        "twice": ([hooks.Options(feed={x: 1.0, y: 3.0})], {x: 5.0}),
        "nested fetches": (
            [hooks.Options(feed={x: 1.0, y: 3.0}, fetches={"a": [x, (y, total)], "b": total})], None),
        "wrong fetches": ([hooks.Options(feed={x: 1.0, y: 3.0}, fetches="nothing:0")], None),
        "empty fetches": ([hooks.Options(feed={x: 1.0, y: 3.0}, fetches=[])], None),
    }
    for name, (pair, feed) in cases.items():
        with tf.train.SingularMonitoredSession(hooks=pair) as session:
            given = dict(feed) if feed else None
            result = outcome(session.run, total, feed_dict=feed)
            found[name] = [result, plain(getattr(pair[0], "results", None)), feed == given]
    return found


def stop_requests(tf: Any) -> Any:
    hooks = Hooks(tf)
    one = tf.constant(1)
    found: list[Any] = []
    with tf.train.MonitoredSession(hooks=[hooks.Stopping()]) as session:
        found.append(session.should_stop())
        found.append(outcome(session.run, one))
        found.append(session.should_stop())
        found.append(outcome(session.run, one))
    return found


def training_session_arguments(tf: Any) -> Any:
    """MonitoredTrainingSession with each of its arguments, seen by the files that it leaves."""
    found: dict[str, Any] = {}
    for name, keywords in {
        "nothing": {}, "steps": {"save_checkpoint_steps": 2}, "no checkpoints": {"save_checkpoint_secs": None},
        "zero": {"save_checkpoint_secs": 0}, "both": {"save_checkpoint_secs": 100, "save_checkpoint_steps": 3},
        "summaries": {"save_summaries_steps": 1}, "no summaries": {"save_summaries_steps": None},
        "both summaries": {"save_summaries_steps": 1, "save_summaries_secs": 10},
        "no counting": {"log_step_count_steps": None}, "worker": {"is_chief": False},
        "no graph": {"save_graph_def": False}, "summary_dir": {"summary_dir": "sub"},
    }.items():
        with tf.Graph().as_default():
            step = tf.train.get_or_create_global_step()
            train = tf.assign_add(step, 1)
            tf.summary.scalar("x", tf.constant(1.0))
            folder = tempfile.mkdtemp()
            if "summary_dir" in keywords:
                keywords = {"summary_dir": os.path.join(folder, "sub")}
            heard: list[Any] = []
            recorder = Hooks(tf).Recorder(heard)
            extra = {"max_wait_secs": 0.1} if "is_chief" in keywords else {}

            def run(keywords=keywords, extra=extra, folder=folder, recorder=recorder, train=train) -> Any:
                with tf.train.MonitoredTrainingSession(
                    checkpoint_dir=folder, chief_only_hooks=[recorder], **keywords, **extra
                ) as session:
                    for _ in range(5):
                        session.run(train)
                return "left"

            ended = outcome(run)
            names = sorted({
                "events" if "events" in name else name for name in os.listdir(folder) if name != "sub"
            })
            found[name] = [ended, names, len(heard)]
    return found


BEHAVIOURS = [
    order_of_calls, errors_of_hooks, errors_of_the_body, errors_of_the_coordinator,
    close_after_an_error_of_the_coordinator, closing, recovery, should_stop_after_a_loss, step_functions,
    stop_of_a_step_function_ends_the_block, run_options, debug_options, merged_feeds_and_fetches, stop_requests,
    training_session_arguments,
]  # fmt: skip

if __name__ == "__main__":
    run_all(BEHAVIOURS)
