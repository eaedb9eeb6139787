"""Cases of queues, accumulators, tensor arrays, stacks and session tensors."""

from __future__ import annotations

import threading

import numpy as np

import dtf as tf
from dtf.build.apply import apply_op
from dtf.run.state.accumulators import Accumulator, DenseSum
from dtf.run.state.queues import FifoStorage, PriorityStorage, Queue, ShuffleStorage
from dtf.run.threads.cancellation import CancellationManager
from dtf.wire import errors
from dtf.wire.tensor_shape import TensorShape
from tests.runtime.op_cases import Case
from tests.runtime.op_cases.array import evaluate
from tests.runtime.op_cases.io import raises


def in_order(*operations):
    """Makes each operation (a function without arguments) wait for those before it; returns what the last gives."""
    made = []
    for operation in operations:
        with tf.control_dependencies(made):
            result = operation()
        made = [result] if isinstance(result, (tf.Tensor, tf.Operation)) else list(result)
    return result


class Outcome:
    """Takes what an operation reports."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.value = None
        self.error = None

    def __call__(self, value=None, error=None) -> None:
        assert not self.done.is_set(), "reported twice"
        self.value, self.error = value, error
        self.done.set()


SCALAR = TensorShape([])


def fifo(capacity=2, shapes=(SCALAR,), kind="FIFOQueue", storage=None) -> Queue:
    return Queue(kind, "q", FifoStorage() if storage is None else storage, capacity, [tf.int32], shapes)


def filled(queue: Queue, *values) -> Queue:
    for value in values:
        queue.enqueue((np.int32(value),), None, Outcome())
    return queue


# -- the queue itself


def a_full_queue_makes_an_enqueue_wait_for_room():
    queue, third, taken = filled(fifo(2), 1, 2), Outcome(), Outcome()
    queue.enqueue((np.int32(3),), None, third)
    assert not third.done.is_set()
    queue.dequeue(None, taken)
    assert taken.value == (1,) and third.done.is_set() and len(queue) == 2


def a_dequeue_waits_for_an_element():
    queue, taken = fifo(), Outcome()
    queue.dequeue(None, taken)
    assert not taken.done.is_set()
    filled(queue, 7)
    assert taken.value == (7,) and len(queue) == 0


def more_can_be_dequeued_than_the_capacity():
    queue, taken, put = fifo(2), Outcome(), Outcome()
    queue.dequeue_many(5, None, taken)
    queue.enqueue_many((np.arange(6, dtype=np.int32),), None, put)
    assert taken.value[0].tolist() == [0, 1, 2, 3, 4] and put.done.is_set() and len(queue) == 1


def cancelling_a_waiting_dequeue_gives_back_what_it_had():
    queue, taken, cancellation = filled(fifo(3), 1, 2), Outcome(), CancellationManager()
    queue.dequeue_many(3, cancellation, taken)
    cancellation.start_cancel()
    assert isinstance(taken.error, errors.CancelledError)
    assert taken.error.message == "Dequeue operation was cancelled"
    again = Outcome()
    queue.dequeue_many(2, None, again)
    assert again.value[0].tolist() == [1, 2]


def a_cancelled_step_cannot_wait():
    cancellation, put = CancellationManager(), Outcome()
    cancellation.start_cancel()
    fifo().dequeue(cancellation, put)
    assert isinstance(put.error, errors.CancelledError)


def closing_ends_dequeues_that_cannot_be_served():
    queue, taken = filled(fifo(), 1), Outcome()
    queue.dequeue_many(2, None, taken)
    queue.shut(False, None, Outcome())
    assert isinstance(taken.error, errors.OutOfRangeError)
    assert taken.error.message == "FIFOQueue 'q' is closed and has insufficient elements (requested 2, current size 1)"
    rest, refused, again = Outcome(), Outcome(), Outcome()
    queue.dequeue_many(2, None, rest, allow_fewer=True)
    assert rest.value[0].tolist() == [1]
    queue.enqueue((np.int32(1),), None, refused)
    assert refused.error.message == "FIFOQueue 'q' is closed."
    queue.shut(False, None, again)
    assert again.error.message == "Queue 'q' is already closed."


def closing_waits_for_pending_enqueues_or_cancels_them():
    for cancel in (False, True):
        queue, waiting, closed = filled(fifo(1), 1), Outcome(), Outcome()
        queue.enqueue((np.int32(2),), None, waiting)
        queue.shut(cancel, None, closed)
        assert closed.done.is_set() == cancel
        queue.dequeue(None, Outcome())
        assert closed.done.is_set() and queue.is_closed
        assert (waiting.error is not None) == cancel and len(queue) == (0 if cancel else 1)


def a_shuffle_queue_keeps_some_back_until_it_closes():
    storage = ShuffleStorage(min_after_dequeue=2, seed=1)
    queue, taken, waiting = (
        filled(fifo(5, kind="RandomShuffleQueue", storage=storage), 0, 1, 2, 3),
        Outcome(),
        Outcome(),
    )
    queue.dequeue_many(2, None, taken)
    queue.dequeue(None, waiting)
    assert not waiting.done.is_set() and len(queue) == 2
    queue.shut(False, None, Outcome())
    last = Outcome()
    queue.dequeue(None, last)
    assert sorted([*taken.value[0].tolist(), int(waiting.value[0]), int(last.value[0])]) == [0, 1, 2, 3]


def a_priority_queue_gives_the_smallest_first():
    queue = Queue("PriorityQueue", "q", PriorityStorage(), None, [tf.int64, tf.int32], [TensorShape([])] * 2)
    for priority, value in ((3, 30), (1, 10), (3, 31), (2, 20)):
        queue.enqueue((np.int64(priority), np.int32(value)), None, Outcome())
    taken = Outcome()
    queue.dequeue_many(4, None, taken)
    assert taken.value[1].tolist() == [10, 20, 30, 31]


def a_wrong_shape_is_refused_with_both_shapes():
    with raises(errors.InvalidArgumentError, "Shape mismatch in tuple component 0. Expected [2], got [3]"):
        fifo(shapes=[TensorShape([2])]).enqueue((np.zeros(3, np.int32),), None, Outcome())


def a_shared_name_with_another_description_is_refused():
    with raises(errors.InvalidArgumentError, "Shared queue 'q' has capacity 2 but requested capacity was 3"):
        fifo().check_same("FIFOQueue", 3, [tf.int32], [TensorShape([])])
    with raises(errors.InvalidArgumentError, "has component types int32 but requested component types were float"):
        fifo().check_same("FIFOQueue", 2, [tf.float32], [TensorShape([])])


# -- queues in graphs


def a_fifo_queue_keeps_the_order_and_its_size():
    with tf.Graph().as_default():
        queue = tf.FIFOQueue(5, [tf.float32, tf.string], [[], []], names=["x", "s"], name="q")
        _ = in_order(
            lambda: queue.enqueue({"x": 1.0, "s": "a"}),
            lambda: queue.enqueue_many({"x": [2.0, 3.0], "s": ["b", "c"]}),
        )
        with tf.control_dependencies([_]):
            first = queue.dequeue()
        with tf.control_dependencies([first["x"]]):
            rest = queue.dequeue_many(2)
        with tf.control_dependencies([rest["x"]]):
            size = queue.size()
        assert rest["s"].shape.as_list() == [2]
        values = evaluate(first["x"], first["s"], rest["x"], rest["s"], size)
        assert values[0] == 1.0 and values[1].item() == b"a"
        assert values[2].tolist() == [2, 3] and values[3].tolist() == [b"b", b"c"] and values[4] == 0


def one_of_several_queues_is_chosen_by_a_tensor():
    with tf.Graph().as_default():
        queues = [tf.FIFOQueue(5, [tf.int32], [[]]) for _ in range(3)]
        at = tf.placeholder(tf.int32, [])
        taken = in_order(
            lambda: [queue.enqueue(i) for i, queue in enumerate(queues)],
            lambda: tf.QueueBase.from_list(at, queues).dequeue(),
        )
        assert evaluate(taken, feeds={at: np.int32(2)}) == [2]


def a_padding_queue_pads_to_the_largest():
    with tf.Graph().as_default():
        queue = tf.PaddingFIFOQueue(5, [tf.int32], [[None]])
        batch = in_order(lambda: queue.enqueue([[1]]), lambda: queue.enqueue([[2, 3]]), lambda: queue.dequeue_many(2))
        assert evaluate(batch)[0].tolist() == [[1, 0], [2, 3]]


def a_priority_queue_in_a_graph():
    with tf.Graph().as_default():
        queue = tf.PriorityQueue(5, [tf.string], [[]])
        priorities, values = in_order(
            lambda: queue.enqueue_many([np.array([3, 1]), ["late", "early"]]), lambda: queue.dequeue_many(2)
        )
        assert evaluate(priorities, values)[1].tolist() == [b"early", b"late"]


def a_shuffle_queue_in_a_graph_gives_all():
    with tf.Graph().as_default():
        queue = tf.RandomShuffleQueue(8, 0, [tf.int32], [[]], seed=3)
        taken = in_order(lambda: queue.enqueue_many([list(range(8))]), lambda: queue.dequeue_many(8))
        assert sorted(evaluate(taken)[0].tolist()) == list(range(8))


def a_closed_queue_says_so():
    with tf.Graph().as_default():
        queue = tf.FIFOQueue(5, [tf.int32], [[]])
        is_closed = in_order(
            lambda: queue.enqueue(1), lambda: queue.close(), lambda: queue.dequeue_up_to(3), lambda: queue.is_closed()
        )
        assert evaluate(is_closed) == [True]
        with raises(errors.OutOfRangeError, "is closed and has insufficient elements (requested 1, current size 0)"):
            evaluate(in_order(lambda: queue.close(), lambda: queue.dequeue()))


def the_older_ops_pass_the_queue_by_reference():
    with tf.Graph().as_default():
        queue = apply_op("FIFOQueue", component_types=[tf.int32], shapes=[TensorShape([])], capacity=9)
        padded = apply_op("PaddingFIFOQueue", component_types=[tf.int32], shapes=[TensorShape([None])])
        shuffled = apply_op("RandomShuffleQueue", component_types=[tf.int32], shapes=[TensorShape([])])
        ordered = apply_op("PriorityQueue", component_types=[], shapes=[])
        one = in_order(
            lambda: apply_op("QueueEnqueue", handle=queue, components=[1]),
            lambda: apply_op("QueueEnqueueMany", handle=queue, components=[[2, 3, 4, 5]]),
            lambda: apply_op("QueueDequeue", handle=queue, component_types=[tf.int32])[0],
        )
        with tf.control_dependencies([one]):
            two = apply_op("QueueDequeueMany", handle=queue, n=2, component_types=[tf.int32])[0]
        size = in_order(lambda: tf.identity(two), lambda: apply_op("QueueSize", handle=queue))
        closed = in_order(lambda: tf.identity(size), lambda: apply_op("QueueClose", handle=queue))
        with tf.control_dependencies([closed]):
            rest = apply_op("QueueDequeueUpTo", handle=queue, n=9, component_types=[tf.int32])[0]
        ended = in_order(lambda: tf.identity(rest), lambda: apply_op("QueueIsClosed", handle=queue))
        sizes = [apply_op("QueueSize", handle=each) for each in (padded, shuffled, ordered)]
        values = evaluate(one, two, size, rest, ended, *sizes)
        assert [value.tolist() for value in values] == [1, [2, 3], 2, [4, 5], True, 0, 0, 0]


# -- accumulators


def a_dense_accumulator_gives_the_mean_and_drops_what_is_stale():
    with tf.Graph().as_default():
        handle = apply_op("ConditionalAccumulator", dtype=tf.float32, shape=TensorShape([2]))

        def apply(gradient, step=0):
            return apply_op(
                "AccumulatorApplyGradient", handle=handle, local_step=np.int64(step), gradient=np.float32(gradient)
            )

        mean = in_order(
            lambda: apply([1.0, 3.0]),
            lambda: apply([2.0, 3.0]),
            lambda: apply_op("AccumulatorTakeGradient", handle=handle, num_required=2, dtype=tf.float32),
        )
        left = in_order(
            lambda: tf.identity(mean),
            lambda: apply([9.0, 9.0], 0),
            lambda: apply_op("AccumulatorSetGlobalStep", handle=handle, new_global_step=np.int64(5)),
            lambda: apply([1.0, 1.0], 4),
            lambda: apply([1.0, 1.0], 5),
            lambda: apply_op("AccumulatorNumAccumulated", handle=handle),
        )
        assert [value.tolist() for value in evaluate(mean, left)] == [[1.5, 3.0], 1]


def a_resource_accumulator_sums():
    with tf.Graph().as_default():
        accumulator = tf.ConditionalAccumulator(tf.float32, [], reduction_type="SUM")
        total = in_order(
            lambda: accumulator.set_global_step(1),
            lambda: accumulator.apply_grad(2.0, local_step=0),
            lambda: accumulator.apply_grad(2.0, local_step=1),
            lambda: accumulator.apply_grad(2.0, local_step=1),
            lambda: accumulator.take_grad(2),
        )
        count = in_order(lambda: tf.identity(total), lambda: accumulator.num_accumulated())
        assert [float(value) for value in evaluate(total, count)] == [4.0, 0.0]


def a_sparse_accumulator_means_each_row_over_those_that_had_it():
    with tf.Graph().as_default():
        accumulator = tf.SparseConditionalAccumulator(tf.float32, [4, 1])
        taken = in_order(
            lambda: accumulator.apply_grad([0, 2], [[1.0], [2.0]], [4, 1]),
            lambda: accumulator.apply_grad([2, 3], [[4.0], [5.0]]),
            lambda: accumulator.take_grad(2),
        )
        indices, values, shape = evaluate(*taken)
        assert (indices.tolist(), values.ravel().tolist(), shape.tolist()) == ([0, 2, 3], [1.0, 3.0, 5.0], [4, 1])


def a_sparse_accumulator_of_scalar_shape_takes_gradients_of_any_shape():
    with tf.Graph().as_default():
        accumulator = tf.SparseConditionalAccumulator(tf.float32, [])
        taken = in_order(
            lambda: accumulator.apply_grad([0, 2], [[1.0], [2.0]], [4, 1]), lambda: accumulator.take_grad(1)
        )
        indices, values, shape = evaluate(*taken)
        assert (indices.tolist(), values.ravel().tolist(), shape.tolist()) == ([0, 2], [1.0, 2.0], [-1, 1])


def taking_a_gradient_waits_until_enough_are_in():
    accumulator = Accumulator(
        "ConditionalAccumulator", "a", tf.float32, TensorShape([]), "MEAN", DenseSum(TensorShape([]))
    )
    taken, cancelled, cancellation = Outcome(), Outcome(), CancellationManager()
    accumulator.take(2, None, taken)
    accumulator.take(1, cancellation, cancelled)
    accumulator.apply(0, np.float32(1))
    assert not taken.done.is_set()
    cancellation.start_cancel()
    assert cancelled.error.message == "TakeGrad operation was cancelled"
    accumulator.apply(0, np.float32(2))
    assert taken.value == 1.5 and accumulator.global_step == 1
    with raises(errors.InvalidArgumentError, "Shape mismatch: expected [], got [3]"):
        accumulator.apply(1, np.zeros(3, np.float32))


# -- tensor arrays and stacks


def an_array_is_written_stacked_and_differentiated():
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float64, [2, 2])
        array = tf.TensorArray(tf.float64, 2, clear_after_read=False).write(0, x[0] * 2.0).write(1, x[1])
        stacked, joined = array.stack(), array.concat()
        (gradient,) = tf.gradients([stacked, joined, array.read(1)], x)
        values = evaluate(stacked, joined, array.size(), gradient, feeds={x: np.array([[1.0, 2.0], [3.0, 4.0]])})
        assert stacked.shape.as_list() == [2, 2]
        assert [value.tolist() for value in values] == [
            [[2, 4], [3, 4]], [2, 4, 3, 4], 2, [[4, 4], [3, 3]],
        ]  # fmt: skip


def an_array_is_unstacked_split_and_differentiated():
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float64, [3])
        rows = tf.TensorArray(tf.float64, 3).unstack(x)
        pieces = tf.TensorArray(tf.float64, 2, infer_shape=False).split(x, [1, 2])
        y = rows.read(0) * rows.read(2)
        z = pieces.read(1)
        gradient, other = tf.gradients(y, x)[0], tf.gradients(z, x)[0]
        values = evaluate(y, z, gradient, feeds={x: np.array([2.0, 3.0, 5.0])})
        assert [value.tolist() for value in values] == [10.0, [3.0, 5.0], [5.0, 0.0, 2.0]]
        del other


def an_array_refuses_a_second_write_and_a_read_outside():
    with tf.Graph().as_default():
        array = tf.TensorArray(tf.float32, 1, tensor_array_name="a").write(0, 1.0)
        with raises(
            errors.InvalidArgumentError,
            "Could not write to TensorArray index 0 because it has already been written to.",
        ):
            evaluate(array.write(0, 2.0).flow)
        with raises(errors.InvalidArgumentError, "Tried to read from index 1 but array size is: 1"):
            evaluate(array.read(1))
        closed = in_order(lambda: array.close(), lambda: array.read(0))
        with raises(errors.InvalidArgumentError, "TensorArray has already been closed."):
            evaluate(closed)


def a_gradient_array_may_have_leading_dimensions():
    with tf.Graph().as_default():
        array = tf.TensorArray(tf.float32, 1).write(0, [1.0, 2.0])
        handle, flow = apply_op(
            "TensorArrayGradWithShape", handle=array.handle, flow_in=array.flow, source="g", shape_to_prepend=[3]
        )
        value = apply_op("TensorArrayReadV3", handle=handle, index=0, flow_in=flow, dtype=tf.float32)
        assert evaluate(value)[0].tolist() == [[0.0, 0.0]] * 3


def a_stack_gives_the_last_first_and_has_a_bound():
    with tf.Graph().as_default():
        stack = apply_op("StackV2", max_size=2, elem_type=tf.int32)

        def push(value):
            return apply_op("StackPushV2", handle=stack, elem=value)

        popped = in_order(
            lambda: push(1), lambda: push(2), lambda: apply_op("StackPopV2", handle=stack, elem_type=tf.int32)
        )
        assert evaluate(popped) == [2]
        with raises(errors.InvalidArgumentError, "overflowed its max_size (2)"):
            evaluate(in_order(lambda: push(1), lambda: push(2), lambda: push(3)))
        with raises(errors.InvalidArgumentError, "is empty when calling Pop()."):
            evaluate(apply_op("StackPopV2", handle=stack, elem_type=tf.int32))
        with raises(errors.InvalidArgumentError, "has already been closed."):
            evaluate(in_order(lambda: apply_op("StackCloseV2", handle=stack), lambda: push(1)))


def a_tensor_is_kept_in_the_session_until_it_is_deleted():
    with tf.Graph().as_default():
        handle = tf.get_session_handle(tf.constant([1.0, 2.0]))
        kept = apply_op("GetSessionTensor", handle=handle, dtype=tf.float32)
        with tf.control_dependencies([kept]):
            deleted = apply_op("DeleteSessionTensor", handle=handle)
        with tf.control_dependencies([deleted]):
            again = apply_op("GetSessionTensor", handle=handle, dtype=tf.float32)
        assert evaluate(kept)[0].tolist() == [1, 2]
        with raises(errors.InvalidArgumentError, "is not in the session store."):
            evaluate(again)


def run_all(*functions):
    def run():
        for function in functions:
            function()

    return run


_FIFO = run_all(
    a_full_queue_makes_an_enqueue_wait_for_room,
    a_fifo_queue_keeps_the_order_and_its_size,
    a_shared_name_with_another_description_is_refused,
    one_of_several_queues_is_chosen_by_a_tensor,
)
_DEQUEUE = run_all(
    a_dequeue_waits_for_an_element,
    more_can_be_dequeued_than_the_capacity,
    cancelling_a_waiting_dequeue_gives_back_what_it_had,
    a_cancelled_step_cannot_wait,
)
_CLOSE = run_all(
    closing_ends_dequeues_that_cannot_be_served,
    closing_waits_for_pending_enqueues_or_cancels_them,
    a_closed_queue_says_so,
)

_RUNS = {
    "FIFOQueueV2": _FIFO,
    "QueueEnqueueV2": a_wrong_shape_is_refused_with_both_shapes,
    "QueueDequeueV2": _DEQUEUE,
    "QueueCloseV2": _CLOSE,
    "PaddingFIFOQueueV2": a_padding_queue_pads_to_the_largest,
    "PriorityQueueV2": run_all(a_priority_queue_gives_the_smallest_first, a_priority_queue_in_a_graph),
    "RandomShuffleQueueV2": run_all(
        a_shuffle_queue_keeps_some_back_until_it_closes, a_shuffle_queue_in_a_graph_gives_all
    ),
    **dict.fromkeys(
        ("QueueEnqueueManyV2", "QueueDequeueManyV2", "QueueSizeV2"), a_fifo_queue_keeps_the_order_and_its_size
    ),
    **dict.fromkeys(("QueueDequeueUpToV2", "QueueIsClosedV2"), a_closed_queue_says_so),
    **dict.fromkeys(
        (
            "FIFOQueue",
            "PaddingFIFOQueue",
            "RandomShuffleQueue",
            "PriorityQueue",
            "QueueEnqueue",
            "QueueEnqueueMany",
            "QueueDequeue",
            "QueueDequeueMany",
            "QueueDequeueUpTo",
            "QueueClose",
            "QueueSize",
            "QueueIsClosed",
        ),
        the_older_ops_pass_the_queue_by_reference,
    ),
    "AccumulatorTakeGradient": taking_a_gradient_waits_until_enough_are_in,
    **dict.fromkeys(
        (
            "ConditionalAccumulator",
            "AccumulatorApplyGradient",
            "AccumulatorNumAccumulated",
            "AccumulatorSetGlobalStep",
        ),
        a_dense_accumulator_gives_the_mean_and_drops_what_is_stale,
    ),
    **dict.fromkeys(
        (
            "ResourceConditionalAccumulator",
            "ResourceAccumulatorApplyGradient",
            "ResourceAccumulatorTakeGradient",
            "ResourceAccumulatorNumAccumulated",
            "ResourceAccumulatorSetGlobalStep",
        ),
        a_resource_accumulator_sums,
    ),
    **dict.fromkeys(
        ("SparseConditionalAccumulator", "SparseAccumulatorApplyGradient", "SparseAccumulatorTakeGradient"),
        run_all(
            a_sparse_accumulator_means_each_row_over_those_that_had_it,
            a_sparse_accumulator_of_scalar_shape_takes_gradients_of_any_shape,
        ),
    ),
    **dict.fromkeys(
        (
            "TensorArrayV3",
            "TensorArrayGradV3",
            "TensorArrayGatherV3",
            "TensorArrayConcatV3",
            "TensorArraySizeV3",
        ),
        an_array_is_written_stacked_and_differentiated,
    ),
    **dict.fromkeys(
        ("TensorArrayScatterV3", "TensorArraySplitV3", "TensorArrayReadV3"),
        an_array_is_unstacked_split_and_differentiated,
    ),
    **dict.fromkeys(("TensorArrayWriteV3", "TensorArrayCloseV3"), an_array_refuses_a_second_write_and_a_read_outside),
    "TensorArrayGradWithShape": a_gradient_array_may_have_leading_dimensions,
    **dict.fromkeys(
        ("StackV2", "StackPushV2", "StackPopV2", "StackCloseV2"), a_stack_gives_the_last_first_and_has_a_bound
    ),
    **dict.fromkeys(
        ("GetSessionHandle", "GetSessionTensor", "DeleteSessionTensor"),
        a_tensor_is_kept_in_the_session_until_it_is_deleted,
    ),
}

CASES = [Case(op, run=run) for op, run in _RUNS.items()]
