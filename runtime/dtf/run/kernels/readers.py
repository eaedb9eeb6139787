"""Kernels of readers: they bind `readers.py` to nodes and take file names from queues without holding a thread."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dtf.run.executor.step import StepContext
from dtf.run.interfaces import Done, Outputs
from dtf.run.kernels import Function, KernelNode, kernel
from dtf.run.kernels.arguments import as_text, invalid
from dtf.run.kernels.data_flow import node_resource, resource_of
from dtf.run.state import readers
from dtf.run.state.queues import Queue
from dtf.run.state.readers import Reader, Records
from dtf.run.state.resources import ResourceHandle
from dtf.run.value_types import Element
from dtf.wire import errors
from dtf.wire.strings import string_scalar


def _reader(*ops: str) -> Callable[[Callable[[KernelNode], Records]], Callable[[KernelNode], Records]]:
    """Registers the maker of a reader, from a function of the node to its kind of records."""

    def register(records_of: Callable[[KernelNode], Records]) -> Callable[[KernelNode], Records]:
        @kernel(*ops, stateful=True)
        def make(node: KernelNode) -> Function:
            records, is_reference = records_of(node), node.op_def.outputs[0].is_ref

            def reader(step: StepContext) -> Reader | ResourceHandle:
                found, handle = node_resource(node, step, Reader, lambda name: Reader(node.name, records))
                return found if is_reference else handle

            return reader

        return records_of

    return register


@_reader("IdentityReader", "IdentityReaderV2")
def _(node: KernelNode) -> Records:
    return readers.names


@_reader("WholeFileReader", "WholeFileReaderV2")
def _(node: KernelNode) -> Records:
    return readers.whole_files


@_reader("TextLineReader", "TextLineReaderV2")
def _(node: KernelNode) -> Records:
    return readers.lines(node.attr("skip_header_lines"))


@_reader("TFRecordReader", "TFRecordReaderV2")
def _(node: KernelNode) -> Records:
    return readers.tf_records(as_text(node.attr("compression_type")))


@_reader("FixedLengthRecordReader", "FixedLengthRecordReaderV2")
def _(node: KernelNode) -> Records:
    header, record, footer, hop = (node.attr(f"{name}_bytes") for name in ("header", "record", "footer", "hop"))
    if min(header, footer, hop) < 0 or record <= 0:
        others = f"{header}, {footer}, {hop}"
        raise invalid(f"record_bytes must be positive, got {record}; the others not negative: {others}")
    is_compressed = as_text(node.attrs.get("encoding", "")) == "ZLIB"
    return readers.fixed_length_records(header, record, footer, hop, is_compressed)


@kernel("ReaderRead", "ReaderReadV2", asynchronous=True)
def _(node: KernelNode) -> Function:
    def read(step: StepContext, done: Done[Outputs], reader: ResourceHandle, queue: ResourceHandle) -> None:
        def report(records: list[tuple[bytes, bytes]]) -> None:
            done(tuple(map(string_scalar, records[0])))

        _read(step, done, reader, queue, 1, report)

    return read


@kernel("ReaderReadUpTo", "ReaderReadUpToV2", asynchronous=True)
def _(node: KernelNode) -> Function:
    def read(
        step: StepContext, done: Done[Outputs], reader: ResourceHandle, queue: ResourceHandle, count: np.ndarray
    ) -> None:
        most = int(count)
        if most < 1:
            raise invalid(f"num_records must be positive, got {most}")

        def report(records: list[tuple[bytes, bytes]]) -> None:
            columns = np.empty((2, len(records)), object)
            for at, record in enumerate(records):
                columns[:, at] = record
            done((columns[0], columns[1]))

        _read(step, done, reader, queue, most, report)

    return read


def _read(
    step: StepContext,
    done: Done[Outputs],
    reader_handle: ResourceHandle,
    queue_handle: ResourceHandle,
    most: int,
    report: Callable[[list[tuple[bytes, bytes]]], None],
) -> None:
    """Reads up to `most` records, at least one; the next file is asked of the queue when one is at its end."""
    reader, queue = resource_of(step, reader_handle, Reader), resource_of(step, queue_handle, Queue)

    def turn(end: Callable[[], None]) -> None:
        taken: list[tuple[bytes, bytes]] = []

        def advance() -> None:
            try:
                while len(taken) < most:
                    record = reader.next_record()
                    if record is not None:
                        taken.append(record)
                    elif taken:
                        break
                    else:
                        queue.dequeue(step.cancellation, opened)
                        return
            except errors.OpError as error:
                end()
                done(error=error)
                return
            end()
            report(taken)

        def opened(components: Element = (), error: errors.OpError | None = None) -> None:
            if error is not None:
                end()
                done(error=error)
                return
            name = components[0]
            reader.start(as_text(name.item() if isinstance(name, np.ndarray) else name))
            advance()

        advance()

    reader.take_turn(turn)


@kernel("ReaderNumRecordsProduced", "ReaderNumRecordsProducedV2", stateful=True)
def _(node: KernelNode) -> Function:
    return lambda step, handle: np.int64(resource_of(step, handle, Reader).records_produced)


@kernel("ReaderNumWorkUnitsCompleted", "ReaderNumWorkUnitsCompletedV2", stateful=True)
def _(node: KernelNode) -> Function:
    return lambda step, handle: np.int64(resource_of(step, handle, Reader).work_units_completed)


@kernel("ReaderSerializeState", "ReaderSerializeStateV2", stateful=True)
def _(node: KernelNode) -> Function:
    return lambda step, handle: string_scalar(resource_of(step, handle, Reader).state())


@kernel("ReaderRestoreState", "ReaderRestoreStateV2", stateful=True)
def _(node: KernelNode) -> Function:
    return lambda step, handle, state: resource_of(step, handle, Reader).restore(state.item())


@kernel("ReaderReset", "ReaderResetV2", stateful=True)
def _(node: KernelNode) -> Function:
    return lambda step, handle: resource_of(step, handle, Reader).reset()
