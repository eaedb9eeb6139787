"""SyncReplicasOptimizer: workers whose gradients are averaged before each update, as if they were one.

Owns the graph that makes the workers wait for each other, and the hook that starts and ends it. The accumulators
(`ops/data_flow.py`) average the gradients; the inner optimizer makes the update.

    worker                                            chief, in a thread beside its own steps
    ------                                            ---------------------------------------
    computes gradients                                takes the mean of `replicas_to_aggregate` gradients of each
    adds them to an accumulator beside each variable     accumulator, as soon as they are there
    takes a token from the queue beside the           updates the variables and the global step
       global step; its value is the next local step  puts a token for each worker into the queue

An accumulator drops a gradient whose local step is before the global step. The accumulators and the queue have
the same names in every worker's graph, and in TensorFlow's. TensorFlow workers can thus join a dtf job, and dtf
workers a TensorFlow job. A worker whose gradients differ from the chief's gets an error instead of waiting
for ever.

A worker holds a token while it computes. One that is killed loses it, and begins without one when it returns; the
one token too many costs one stale gradient. A worker that ends in good order returns it, so that the others continue.
A chief that is killed between the gradients and the tokens of an update leaves all others waiting for these. A chief
that restarts therefore begins anew: it drops the accumulated gradients and gives each other worker a token.

In an elastic job the numbers of gradients and tokens follow the workers that exist (`elastic_replicas`). The chief then
counts the workers' reports, takes all gradients that are there, and gives a token to each worker that waits.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/train/SyncReplicasOptimizer
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from typing import Any

import numpy as np

from dtf import logging
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import colocate_with, control_dependencies, device, name_scope
from dtf.build.graph import GraphKeys
from dtf.build.ops import data_flow as data_flow_ops
from dtf.build.ops import filling as filling_ops
from dtf.build.ops import ordering
from dtf.build.ops.array import placeholder_with_default
from dtf.build.sparse import IndexedSlices
from dtf.build.tensor import Operation, Tensor
from dtf.build.variable_collections import global_variables, report_uninitialized_variables
from dtf.build.variables import Variable
from dtf.train import preemption
from dtf.train.elastic_replicas import Membership, ReportQueue
from dtf.train.optimizer import Optimizer
from dtf.train.queue_runner import QueueRunner
from dtf.train.same_graph import GradientsOfChief
from dtf.train.session_run_hook import SessionRunHook
from dtf.wire import errors
from dtf.wire.cluster import is_elastic

__all__ = ["SyncReplicasOptimizer"]


class SyncReplicasOptimizer(Optimizer):
    """Averages the gradients of several workers for each update that the optimizer inside makes.

    `apply_gradients` gives the worker's train op; the hook of `make_session_run_hook`, given to the session of every
    worker, does the rest.

    Attributes:
      local_step_init_op: brings a worker's local step to the global step.
      chief_init_op: the same for the chief's local step, and for the accumulators.
      ready_for_local_init_op: the names of the variables that these need and that are not initialized.

    All three exist after `apply_gradients`, for programs without the hook.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/train/SyncReplicasOptimizer
    """

    local_step_init_op: Operation
    chief_init_op: Operation
    ready_for_local_init_op: Tensor

    def __init__(
        self,
        opt: Optimizer,
        replicas_to_aggregate: int,
        total_num_replicas: int | None = None,
        variable_averages: Any = None,
        variables_to_average: Any = None,
        use_locking: bool = False,
        name: str = "sync_replicas",
    ) -> None:
        """
        Args:
          opt: computes the gradients and makes the updates.
          replicas_to_aggregate: the number of gradients in one update.
          total_num_replicas: the number of workers, `replicas_to_aggregate` by default. More than that: the slowest
            ones' gradients are dropped. Fewer: workers compute several gradients for one update.
          variable_averages: an ExponentialMovingAverage to move after each update.
          variables_to_average: its variables; all trainable ones by default.
          use_locking: not used; the accumulators lock themselves.
          name: the scope of the accumulators.

        In an elastic job (`cluster_spec: elastic` of dtfctl, or DTF_ELASTIC=1 in the environment of all its tasks) the
        two numbers are those of the start. They follow the workers that join and leave: as many backups remain, or as
        many gradients of each worker.
        """
        super().__init__(use_locking, name)
        self._opt = opt
        self._replicas_to_aggregate = replicas_to_aggregate
        self._total_num_replicas = replicas_to_aggregate if total_num_replicas is None else total_num_replicas
        self._tokens_per_step = max(self._total_num_replicas, replicas_to_aggregate)
        self._variable_averages = variable_averages
        self._variables_to_average = variables_to_average
        self._global_step: Any = None
        self._token_queue: Any = None
        self._chief_queue_runner: QueueRunner | None = None
        self._gradients: list[str] = []
        self._accumulators: list[tuple[Any, str]] = []
        self._reports: ReportQueue | None = None
        logging.info(
            "SyncReplicas: %d gradients make an update, %d workers compute them",
            replicas_to_aggregate,
            self._total_num_replicas,
        )

    def compute_gradients(self, *args: Any, **kwargs: Any) -> list[tuple[Any, Any]]:
        """Computes the inner optimizer's gradients."""
        return self._opt.compute_gradients(*args, **kwargs)

    def apply_gradients(
        self, grads_and_vars: Iterable[tuple[Any, Any]], global_step: Any = None, name: str | None = None
    ) -> Any:
        """The worker's train op: hands its gradients in, and waits for a token of a step to compute the next ones for.

        Args:
          grads_and_vars: as `compute_gradients` gives them.
          global_step: the variable that counts the updates.
          name: of the update that the chief makes.

        Returns:
          An int64 scalar, the new local step.

        Raises:
          ValueError: there are no variables, `global_step` is None, or a gradient is neither a Tensor nor
            IndexedSlices.
        """
        pairs = list(grads_and_vars)
        if not pairs:
            raise ValueError("Must supply at least one variable")
        if global_step is None:
            raise ValueError("Global step is required to check staleness")
        self._global_step = global_step
        token_type = global_step.dtype.base_dtype
        # An op without a variable's type remains on the worker where a device setter sends variables to the ps.
        anchor = ordering.no_op()
        with colocate_with(anchor):
            local_step = Variable(
                0,
                trainable=False,
                collections=[GraphKeys.LOCAL_VARIABLES],
                dtype=token_type,
                use_resource=False,
                name="sync_rep_local_step",
            )
            self.local_step_init_op = local_step.assign(convert_to_tensor(global_step)).op
        if is_elastic():
            self._reports = ReportQueue(global_step.device, anchor, local_step)
            self.local_step_init_op = ordering.group(self.local_step_init_op, self._reports.init_op)
        self.ready_for_local_init_op = report_uninitialized_variables(global_variables())

        accumulators, hand_in, means = [], [], []
        required: Any = self._replicas_to_aggregate
        tokens: Any = self._tokens_per_step
        if self._reports is not None:
            required, tokens = (placeholder_with_default(count, []) for count in (required, tokens))
            self._required, self._token_count = required, tokens
        with name_scope(None, self._name) as scope:
            for grad, variable in pairs:
                if grad is None:
                    means.append((None, variable))
                    continue
                kind = "sparse" if isinstance(grad, IndexedSlices) else "dense"
                self._gradients.append(f"{variable.name} {variable.get_shape()} {kind}")
                with device(variable.device):
                    accumulator = _accumulator(grad, variable)
                    accumulators.append((accumulator, variable.device))
                    hand_in.append(_hand_in(accumulator, grad, local_step))
                    means.append((_take(accumulator, required), variable))
        with device(global_step.device):
            update = self._opt.apply_gradients(means, global_step, name)
            self._token_queue = data_flow_ops.FIFOQueue(
                -1, [token_type], shapes=[[]], name="sync_token_q", shared_name="sync_token_q"
            )
            if self._reports is not None:
                hand_in = [self._reports.report_hand_in(hand_in)]
            with control_dependencies(hand_in):
                token = self._token_queue.dequeue()
        with control_dependencies([] if self._reports is None else [self._reports.note_token(token)]):
            train_op = local_step.assign(token)
        with device(global_step.device), control_dependencies([update]):
            given = self._tokens(tokens)
            finish = self._token_queue.enqueue_many(given)
            self._step_of_update = given[0]
        if self._variable_averages is not None:
            with device(global_step.device), control_dependencies([finish]):
                finish = self._variable_averages.apply(self._variables_to_average)
        with device(global_step.device):
            self._chief_queue_runner = QueueRunner(self._token_queue, [finish])
        self._accumulators = accumulators
        with name_scope(scope):
            self.chief_init_op = self._make_chief_init_op(accumulators)
        return train_op

    def get_chief_queue_runner(self) -> QueueRunner:
        """The queue runner that makes the updates, for a chief that has no hook; it closes the queue at its stop.

        Raises:
          ValueError: `apply_gradients` was not called.
        """
        if self._chief_queue_runner is None:
            raise ValueError("Should be called after apply_gradients().")
        return self._chief_queue_runner

    def get_init_tokens_op(self, num_tokens: int = -1) -> Operation:
        """The op that puts the first tokens into the queue, for a chief that has no hook.

        num_tokens: `replicas_to_aggregate` if negative.

        Raises:
          ValueError: `apply_gradients` was not called, or there would be too few for the first update.
        """
        if self._token_queue is None:
            raise ValueError("get_init_tokens_op() should be called after apply_gradients().")
        needed = self._replicas_to_aggregate - self._total_num_replicas
        if num_tokens < 0:
            num_tokens = self._replicas_to_aggregate
        elif num_tokens < needed:
            raise ValueError(f"Too few tokens to finish the first step: {num_tokens} (given) vs {needed} (needed)")
        if num_tokens == 0:
            return ordering.no_op(name="no_init_tokens")
        return self._add_tokens_op(num_tokens)

    def make_session_run_hook(self, is_chief: bool, num_tokens: int = -1) -> SessionRunHook:
        """The hook for a worker's session. num_tokens: of the chief, see `get_init_tokens_op`."""
        if self._reports is not None:
            return _ElasticHook(self, self._reports, is_chief)
        return _SyncReplicasOptimizerHook(self, is_chief, num_tokens)

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        """A slot of the optimizer inside."""
        return self._opt.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> list[str]:
        """The slots' names of the optimizer inside."""
        return self._opt.get_slot_names(*args, **kwargs)

    def variables(self) -> list[Any]:
        """The variables of the optimizer inside."""
        return self._opt.variables()

    def _gradients_of_chief(self) -> GradientsOfChief:
        return GradientsOfChief(f"{self._name}_gradients_of_chief", self._global_step.device, self._gradients)

    def _add_tokens_op(self, count: int) -> Operation:
        with device(self._global_step.device):
            return self._token_queue.enqueue_many(self._tokens(count))

    def _tokens(self, count: int | Tensor) -> Tensor:
        """`count` times the global step, read after what it depends on."""
        step = self._global_step  # a variable, or the reference tensor of one
        return filling_ops.fill([count], step if isinstance(step, Tensor) else step.read_value())

    def _make_chief_init_op(self, accumulators: list[tuple[Any, str]]) -> Operation:
        ready = [self.local_step_init_op]
        step = convert_to_tensor(self._global_step)
        for accumulator, where in accumulators:
            with device(where):
                ready.append(accumulator.set_global_step(step, name="SetGlobalStep"))
        return ordering.group(*ready)


class _SyncReplicasOptimizerHook(SessionRunHook):
    """Brings a worker's steps and accumulators up to date in each new session; the chief's makes the updates too.

    The chief's thread ends with its session. A recreated session keeps the queue open, because a closed queue cannot
    be reopened. `end` closes it; this ends all workers that wait for a token. A chief that is preempted will be
    back, and lets them wait.
    """

    def __init__(self, optimizer: SyncReplicasOptimizer, is_chief: bool, num_tokens: int) -> None:
        self._optimizer = optimizer
        self._is_chief = is_chief
        self._num_tokens = num_tokens

    def begin(self) -> None:
        if self._optimizer._chief_queue_runner is None:
            raise ValueError("SyncReplicasOptimizer.apply_gradients should be called before using the hook.")
        self._runner = self._optimizer.get_chief_queue_runner()
        self._gradients = self._optimizer._gradients_of_chief()
        if self._is_chief:
            self._init_op = ordering.group(self._optimizer.chief_init_op, self._gradients.tell_op)
            self._init_tokens_op = self._optimizer.get_init_tokens_op(self._num_tokens)
            others = self._optimizer._total_num_replicas - 1
            self._begin_anew = _BeginAnew(self._optimizer, others) if 0 <= self._num_tokens < others else None
        else:
            self._init_op = self._optimizer.local_step_init_op
            self._give_back_op = self._optimizer._add_tokens_op(1)

    def after_create_session(self, session: Any, coord: Any) -> None:
        _check_ready(session, self._optimizer)
        if not self._is_chief:
            session.run(self._init_op)
            self._gradients.compare(session, coord.wait_for_stop)
            return
        tokens_op = self._init_tokens_op
        if self._begin_anew is not None and self._gradients.are_told(session):
            self._begin_anew.forget_gradients(session)
            tokens_op = self._begin_anew.tokens_op
        session.run(self._init_op)
        try:
            session.run(tokens_op)
        except errors.CancelledError:
            logging.info("The training is over: an earlier chief process has closed the queue of tokens.")
            coord.request_stop()
            return
        threading.Thread(
            target=_guarded,
            args=(_make_updates, session, coord, self._runner.enqueue_ops[0]),
            name="SyncReplicas-updates",
            daemon=True,
        ).start()

    def end(self, session: Any) -> None:
        if self._is_chief and preemption.has_arrived():
            return
        try:
            session.run(self._runner.close_op if self._is_chief else self._give_back_op)
        except errors.OpError as error:  # the queue is closed already, or its task has ended
            logging.vlog(1, "Ignored exception: %s", error)


class _ElasticHook(SessionRunHook):
    """Makes a worker a member of an elastic job for the time of its session; the chief's makes the updates too.

    The first tokens that programs ask for are not given: each member gets one when it has handed in a gradient.
    """

    def __init__(self, optimizer: SyncReplicasOptimizer, reports: ReportQueue, is_chief: bool) -> None:
        self._optimizer = optimizer
        self._reports = reports
        self._is_chief = is_chief

    def begin(self) -> None:
        optimizer = self._optimizer
        self._runner = optimizer.get_chief_queue_runner()
        self._gradients = optimizer._gradients_of_chief()
        self._init_op = optimizer.local_step_init_op
        self._reports.make_worker_ops()
        with device(optimizer._global_step.device):
            self._is_over = optimizer._token_queue.is_closed()
            self._give_op = optimizer._token_queue.enqueue_many(optimizer._tokens(optimizer._token_count))
        if self._is_chief:
            self._init_op = ordering.group(self._init_op, optimizer.chief_init_op, self._gradients.tell_op)
            self._reports.make_chief_ops()
            self._begin_anew = _BeginAnew(optimizer, 1)

    def after_create_session(self, session: Any, coord: Any) -> None:
        _check_ready(session, self._optimizer)
        if session.run(self._is_over):
            logging.info("The training is over: an earlier chief process has closed the queue of tokens.")
            coord.request_stop()
            return
        # A chief that died within an update has taken some gradients of it: the members compute all of them again.
        are_whole = not self._is_chief or self._begin_anew.are_whole(session)
        if not are_whole:
            self._begin_anew.forget_gradients(session)
        session.run(self._init_op)
        if not self._is_chief:
            self._gradients.compare(session, coord.wait_for_stop)
        self._reports.join(session)
        self._reports.keep_reporting(session, coord)
        if self._is_chief:
            threading.Thread(
                target=_guarded,
                args=(self._make_updates, session, coord, are_whole),
                name="SyncReplicas-updates",
                daemon=True,
            ).start()

    def end(self, session: Any) -> None:
        if self._is_chief and preemption.has_arrived():
            return
        try:
            if self._is_chief:
                session.run(self._runner.close_op)
                self._reports.close(session)
            else:
                self._reports.leave(session)
        except errors.OpError as error:  # the queue is closed already, or its task has ended
            logging.vlog(1, "Ignored exception: %s", error)

    def _make_updates(self, session: Any, coord: Any, trusts: bool) -> None:
        optimizer = self._optimizer
        step = int(session.run(optimizer._global_step))
        aggregate, total = optimizer._replicas_to_aggregate, optimizer._total_num_replicas
        membership = Membership(aggregate, total, step, time.monotonic(), trusts)
        update = optimizer._chief_queue_runner.enqueue_ops[0]  # type: ignore[union-attr]
        count = 0
        while not coord.should_stop():
            try:
                reports = self._reports.reports(session, count)
            except (errors.OutOfRangeError, errors.CancelledError):  # closed: the training is over
                return
            before, now = membership.members, time.monotonic()
            for report in reports:
                membership.hear(report, now)
            membership.lose(now)
            if membership.members != before:
                logging.info(
                    "SyncReplicas: %d workers take part, %d gradients make an update",
                    len(membership.members),
                    membership.required(now),
                )
            if membership.is_due(now):
                feed = {optimizer._required: 1, optimizer._token_count: max(1, membership.waiting())}
                step = int(session.run([optimizer._step_of_update, update], feed)[0])
                membership.updated(step, time.monotonic())
            tokens = membership.tokens_due(now)
            if tokens:
                session.run(self._give_op, {optimizer._token_count: tokens})
            count = membership.missing(now)


class _BeginAnew:
    """Recovers a restarted chief: gives tokens to workers that may wait for tokens of the previous chief
    process."""

    def __init__(self, optimizer: SyncReplicasOptimizer, others: int) -> None:
        self._counts, self._takes = [], []
        for accumulator, where in optimizer._accumulators:
            with device(where):
                self._counts.append(accumulator.num_accumulated())
                taken = _take(accumulator, 1)
            self._takes.append(taken.values.op if isinstance(taken, IndexedSlices) else taken.op)
        self.tokens_op = optimizer._add_tokens_op(others)

    def are_whole(self, session: Any) -> bool:
        """Whether each variable has as many gradients: no update was interrupted while it took them."""
        return len(set(session.run(self._counts))) <= 1

    def forget_gradients(self, session: Any) -> None:
        counts = session.run(self._counts)
        session.run([take for count, take in zip(counts, self._takes, strict=True) if count])


def _make_updates(session: Any, coord: Any, update_op: Operation) -> None:
    """Makes one update after the other until the session ends."""
    update = session.make_callable(update_op)
    while not coord.should_stop():
        update()


def _guarded(make_updates: Any, session: Any, coord: Any, *arguments: Any) -> None:
    """Runs what makes updates; its errors reach the session's next run."""
    try:
        make_updates(session, coord, *arguments)
    except Exception as error:
        if not coord.should_stop():
            coord.request_stop(error)


def _check_ready(session: Any, optimizer: SyncReplicasOptimizer) -> None:
    """Raises RuntimeError while variables that the local steps need are not initialized."""
    missing = session.run(optimizer.ready_for_local_init_op)
    if np.size(missing):
        names = ", ".join(name.decode() for name in np.ravel(missing))
        raise RuntimeError(f"Local steps cannot be set: variables not initialized: {names}")


def _accumulator(grad: Any, variable: Any) -> Any:
    shared_name = f"{variable.name}/grad_accum"
    if isinstance(grad, IndexedSlices):
        # TensorFlow fixes the scalar's shape; rows are not checked.
        return data_flow_ops.SparseConditionalAccumulator(grad.dtype, shape=[], shared_name=shared_name)
    if isinstance(grad, Tensor):
        return data_flow_ops.ConditionalAccumulator(grad.dtype, shape=variable.get_shape(), shared_name=shared_name)
    raise ValueError(f"The gradient of {variable.name} is neither a Tensor nor IndexedSlices: {grad!r}")


def _hand_in(accumulator: Any, grad: Any, local_step: Variable) -> Operation:
    step = convert_to_tensor(local_step)
    if isinstance(grad, IndexedSlices):
        return accumulator.apply_indexed_slices_grad(grad, local_step=step)
    return accumulator.apply_grad(grad, local_step=step)


def _take(accumulator: Any, count: int) -> Any:
    if isinstance(accumulator, data_flow_ops.SparseConditionalAccumulator):
        return accumulator.take_indexed_slices_grad(count)
    return accumulator.take_grad(count)
