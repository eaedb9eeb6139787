"""AllReduceOptimizer: workers that average their gradients among themselves, in a ring, without parameter servers.

Owns the graph that packs, reduces and unpacks gradients, and the hook that copies the chief's variables to all
workers. The collective ops (`run.exchange.ring`) move the values between workers. The inner optimizer makes the
update; each worker applies it to its own copy of the variables.

    with tf.device(f"/job:worker/task:{task}"):                      # all of the graph, variables too
        ...
        optimizer = tf.train.AllReduceOptimizer(tf.train.AdamOptimizer(0.01), num_workers)
        train_op = optimizer.minimize(loss, global_step=tf.train.get_or_create_global_step())
    hook = optimizer.make_session_run_hook(is_chief)
    with tf.train.MonitoredTrainingSession(server.target, is_chief, folder, hooks=[hook]) as session:
        while not session.should_stop():
            session.run(train_op, ...)

Every worker trains in a session of its own at its own server. All take the same steps at the same time: the mean of n
batches' gradients equals the gradient of one combined batch. Variables change only after all gradients of the step
have arrived. If a worker is lost in mid-step, the other workers' variables keep their values from the step before.

When a worker is lost, the others' sessions are recreated and wait for it. The chief continues from its current step: it
saves its values, and keeps them over the recovery. It goes back to a checkpoint only when it was lost itself.

At the end all workers wait until the chief has saved the trained variables. A chief lost before that point needs the
other workers to repeat its last steps. From then on the chief needs no other worker. A worker that restarts after the
training is over (`last_step`) ends at once and reports success. A worker that restarts even later waits in vain
for the others; its supervisor already knows that the chief has succeeded.

Source: A. Sergeev, M. Del Balso, "Horovod: fast and easy distributed deep learning in TensorFlow", 2018.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import threading
import weakref
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any

from dtf import logging
from dtf.build.apply import apply_op
from dtf.build.constant import constant
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import control_dependencies, device, get_default_graph, name_scope
from dtf.build.graph import GraphKeys
from dtf.build.ops import array as array_ops
from dtf.build.ops import joining as joining_ops
from dtf.build.ops import ordering
from dtf.build.ops import state as state_ops
from dtf.build.sparse import IndexedSlices
from dtf.build.tensor import Operation, Tensor
from dtf.build.variable_collections import global_variables, global_variables_initializer
from dtf.train import preemption
from dtf.train.optimizer import Optimizer
from dtf.train.scaffold import Scaffold
from dtf.train.session_run_hook import SessionRunHook
from dtf.train.training_util import get_global_step
from dtf.wire import dtypes, errors
from dtf.wire.device import DeviceSpec
from dtf.wire.pb import config_pb2

__all__ = ["AllReduceOptimizer"]

BYTES_PER_PACK = 4 << 20
"""Gradients are reduced together up to this size. A round costs more (0.7 ms) than copying a pack, but a much larger
pack waits longer for its last gradient."""

_FAREWELL_S = 10.0
"""How long the chief, which has saved all, waits at its end for the others to know it."""

_BROADCAST_DTYPES = (dtypes.float32, dtypes.float64, dtypes.float16, dtypes.int32, dtypes.int64, dtypes.bool)


class AllReduceOptimizer(Optimizer):
    """Averages gradients over all workers; each worker then applies the inner optimizer's update.

    Sparse gradients (IndexedSlices) are made dense first; a large embedding is better kept on parameter servers.
    """

    def __init__(
        self,
        opt: Optimizer,
        num_workers: int,
        group_key: int = 1,
        bytes_per_pack: int = BYTES_PER_PACK,
        name: str = "all_reduce",
    ) -> None:
        """
        Args:
          opt: computes the gradients and makes the updates.
          num_workers: how many workers there are, this one included.
          group_key: tells the group of these workers from other groups of the cluster.
          bytes_per_pack: gradients are reduced together up to this size.
          name: the scope of the reductions.

        Raises:
          ValueError: there are no workers.
        """
        if num_workers < 1:
            raise ValueError(f"There must be at least one worker, not {num_workers}.")
        super().__init__(False, name)
        self._opt = opt
        self._num_workers = num_workers
        self._group_key = group_key
        self._bytes_per_pack = bytes_per_pack

    def compute_gradients(self, *args: Any, **kwargs: Any) -> list[tuple[Any, Any]]:
        """Computes the inner optimizer's gradients of this worker's own batch."""
        return self._opt.compute_gradients(*args, **kwargs)

    def apply_gradients(
        self, grads_and_vars: Iterable[tuple[Any, Any]], global_step: Any = None, name: str | None = None
    ) -> Operation:
        """The train op: averages the gradients over all workers and updates this worker's variables with the means.

        Args:
          grads_and_vars: the result of `compute_gradients`; every worker must pass the same variables in the same
              order.
          global_step: this worker's own global step; all workers count alike.
          name: of the update.

        Raises:
          ValueError: there are no variables, or one is on a parameter server, where every worker would update it.
        """
        pairs = list(grads_and_vars)
        if not pairs:
            raise ValueError("Must supply at least one variable")
        for _, variable in pairs:
            if DeviceSpec.from_string(variable.device or "").job == "ps":
                raise ValueError(
                    f"Variable {variable.name} is on {variable.device}, but every worker needs a copy of its own: "
                    "put variables on the worker, as with tf.device(worker), without a replica_device_setter."
                )
        places = [place for place, (grad, _) in enumerate(pairs) if grad is not None]
        with name_scope(None, self._name):
            given = [_dense(pairs[place][0]) for place in places]
            means: list[Any] = self._means(given)
            # All or nothing: no variable moves on while the mean of another may still fail.
            with control_dependencies(means):
                means = [array_ops.identity(mean) for mean in means]
        reduced = dict(zip(places, means, strict=True))
        applied = [(reduced.get(place), variable) for place, (_, variable) in enumerate(pairs)]
        return self._opt.apply_gradients(applied, global_step, name)

    def make_session_run_hook(
        self, is_chief: bool, max_wait_secs: float = 1800, last_step: int | None = None
    ) -> SessionRunHook:
        """The hook for every worker's session: gives the others the chief's variables whenever a session begins.

        Args:
          is_chief: whether this worker's initial variables are copied to all others.
          max_wait_secs: how long the workers wait for each other at that.
          last_step: the global step at which the training ends; a chief that restarts at or after it ends
              at once.
        """
        return _AllReduceHook(self._num_workers, self._group_key, is_chief, max_wait_secs, last_step)

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        """A slot of the optimizer inside."""
        return self._opt.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> list[str]:
        """The slots' names of the optimizer inside."""
        return self._opt.get_slot_names(*args, **kwargs)

    def variables(self) -> list[Any]:
        """The variables of the optimizer inside."""
        return self._opt.variables()

    def _means(self, gradients: Sequence[Tensor]) -> list[Tensor]:
        """The mean of each gradient over the workers, in the same order."""
        means: dict[int, Tensor] = {}
        for pack in _packs(gradients, self._bytes_per_pack):
            if len(pack) == 1:
                means[pack[0]] = self._reduced(gradients[pack[0]])
                continue
            sizes = [_size(gradients[place]) for place in pack]
            flat = joining_ops.concat([array_ops.reshape(gradients[place], [-1]) for place in pack], 0)
            parts = joining_ops.split(self._reduced(flat), sizes, 0)
            for place, part in zip(pack, parts, strict=True):
                means[place] = array_ops.reshape(part, gradients[place].shape.as_list())
        return [means[place] for place in range(len(gradients))]

    def _reduced(self, value: Tensor) -> Tensor:
        return apply_op(
            "CollectiveReduce",
            input=value,
            group_size=self._num_workers,
            group_key=self._group_key,
            instance_key=_next_instance_key(),
            merge_op="Add",
            final_op="Div",
            subdiv_offsets=[0],
        )


class _AllReduceHook(SessionRunHook):
    """Gives all workers the chief's variables in each new session, and keeps the chief's over a recovery.

    A worker other than the chief initialises its own copy first, as part of its local initialisation.
    """

    def __init__(
        self, num_workers: int, group_key: int, is_chief: bool, max_wait_secs: float, last_step: int | None
    ) -> None:
        self._is_chief = is_chief
        self._last_step = last_step
        self._is_over = False
        self._keys: dict[str, Any] = {
            "group_size": num_workers, "group_key": group_key, "timeout_seconds": max_wait_secs,
        }  # fmt: skip
        self._kept: list[Any] = []

    def begin(self) -> None:
        graph = get_default_graph()
        variables = [each for each in global_variables() if each.dtype.base_dtype in _BROADCAST_DTYPES]
        for each in global_variables():
            if each.dtype.base_dtype not in _BROADCAST_DTYPES:
                logging.warning("Variable %s is %s, which is not broadcast.", each.name, each.dtype.base_dtype.name)
        self._variables = variables
        self._step_place = _place_of(get_global_step(), variables)
        described = "; ".join(f"{each.op.name} {each.dtype.base_dtype.name} {each.shape}" for each in variables)
        self._fingerprint = int.from_bytes(hashlib.sha256(described.encode()).digest()[:7], "big")
        with name_scope("broadcast"):
            self._chiefs_fingerprint = self._shared(constant(self._fingerprint, dtypes.int64))
            shared = []
            for each in variables:
                with device(each.device):
                    shared.append(self._shared(convert_to_tensor(each.read_value()) if self._is_chief else each))
            self._sync = ordering.group(
                *(
                    value.op if self._is_chief else state_ops.assign(each, value).op
                    for each, value in zip(variables, shared, strict=True)
                )
            )
            self._saved = self._shared(constant(True))
            self._feeds = []
            if self._is_chief:
                self._feeds = [array_ops.placeholder(each.dtype.base_dtype, each.shape) for each in variables]
                pairs = zip(variables, self._feeds, strict=True)
                self._put_back = ordering.group(*(state_ops.assign(each, feed).op for each, feed in pairs))
        if not self._is_chief and not graph.get_collection(GraphKeys.LOCAL_INIT_OP):
            own = ordering.group(Scaffold.default_local_init_op(), global_variables_initializer())
            graph.add_to_collection(GraphKeys.LOCAL_INIT_OP, own)
            graph.add_to_collection(GraphKeys.READY_FOR_LOCAL_INIT_OP, constant([], dtypes.string, shape=[0]))

    def after_create_session(self, session: Any, coord: Any) -> None:
        self._put_back_what_was_kept(session)
        self._is_over = self._is_chief and self._has_come_to_the_end(session)
        if self._is_over:
            coord.request_stop()
            return
        theirs = int(session.run(self._chiefs_fingerprint))
        if theirs != self._fingerprint:
            names = ", ".join(f"{each.op.name} {each.shape}" for each in self._variables)
            raise errors.InvalidArgumentError.of(
                f"The chief's graph has other variables than this worker's graph: {names}."
            )
        session.run(self._sync)

    def end(self, session: Any) -> None:
        if self._is_over or preemption.has_arrived():
            return
        if self._is_chief:
            try:
                session.run(self._saved, options=config_pb2.RunOptions(timeout_in_ms=round(_FAREWELL_S * 1000)))
            except errors.OpError as error:
                logging.info("The model is saved, but not every worker was informed: %s", error.message)
            return
        heard: Future[None] = Future()
        threading.Thread(target=_listen, args=(session, self._saved, heard), daemon=True).start()
        while not preemption.has_arrived():
            with contextlib.suppress(FutureTimeoutError):
                heard.result(0.2)
                return

    def session_lost(self, session: Any, error: errors.OpError) -> bool:
        """Called when the lost session is about to be recreated: saves the chief's own values.
        Returns whether they are all there.
        """
        self._kept = []
        if self._is_chief and self._step_place is not None:
            try:
                self._kept = session.run(self._variables)
            except errors.OpError as failure:
                logging.info("The chief's values are lost; it restores its checkpoint: %s", failure.message)
        return bool(self._kept)

    def _put_back_what_was_kept(self, session: Any) -> None:
        kept, self._kept = self._kept, []
        if not kept:
            return
        assert self._step_place is not None
        kept_step, restored_step = int(kept[self._step_place]), int(session.run(self._variables[self._step_place]))
        if kept_step > restored_step:
            logging.info("The chief continues from its own step %d, not the checkpoint's %d.", kept_step, restored_step)
            session.run(self._put_back, dict(zip(self._feeds, kept, strict=True)))

    def _has_come_to_the_end(self, session: Any) -> bool:
        if self._last_step is None or self._step_place is None:
            return False
        return int(session.run(self._variables[self._step_place])) >= self._last_step

    def _shared(self, value: Any) -> Tensor:
        """The chief's value of a variable or tensor."""
        keys = {**self._keys, "instance_key": _next_instance_key()}
        if self._is_chief:
            return apply_op("CollectiveBcastSend", input=value, shape=value.shape, **keys)
        return apply_op("CollectiveBcastRecv", T=value.dtype.base_dtype, shape=value.shape, **keys)


def _listen(session: Any, saved: Tensor, heard: Future[None]) -> None:
    try:
        session.run(saved)
    except Exception as error:
        heard.set_exception(error)
    else:
        heard.set_result(None)


def _packs(gradients: Sequence[Tensor], bytes_max: int) -> list[list[int]]:
    """Groups gradients to reduce together: one dtype, in order, up to a size; a gradient of that or unknown size is
    alone.
    """
    packs: list[list[int]] = []
    open_packs: dict[Any, tuple[list[int], int]] = {}
    for place, gradient in enumerate(gradients):
        if not gradient.shape.is_fully_defined():
            packs.append([place])
            continue
        dtype = gradient.dtype.base_dtype
        size = _size(gradient) * dtype.size
        if size >= bytes_max:
            packs.append([place])
            continue
        pack, filled = open_packs.get(dtype, ([], bytes_max))
        if filled + size > bytes_max:
            pack, filled = [], 0
            packs.append(pack)
        pack.append(place)
        open_packs[dtype] = (pack, filled + size)
    return packs


def _size(tensor: Tensor) -> int:
    return math.prod(tensor.shape.as_list())  # type: ignore[arg-type]  # of known shapes only


def _dense(gradient: Any) -> Tensor:
    if isinstance(gradient, IndexedSlices):
        logging.warning("The sparse gradient %s is converted to a dense one for averaging.", gradient.values.name)
    return convert_to_tensor(gradient)


def _place_of(wanted: Any, variables: Sequence[Any]) -> int | None:
    return next((place for place, each in enumerate(variables) if each is wanted), None)


def _next_instance_key() -> int:
    """A number for one more collective of the default graph: the same at every worker that builds the same graph."""
    graph = get_default_graph()
    key = _instance_keys.get(graph, 0) + 1
    _instance_keys[graph] = key
    return key


_instance_keys: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
