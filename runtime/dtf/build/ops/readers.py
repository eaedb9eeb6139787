"""Readers as TensorFlow 1.x's classes: they take file names from a queue and give keys and records.

Owns the classes that make the nodes, and the nodes' static shapes. `run/state/readers` implements the readers.
Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/ReaderBase
"""

from __future__ import annotations

from typing import Any

from dtf.build.apply import apply_op
from dtf.build.shape_rules import no_outputs, scalar, shape_rule
from dtf.build.tensor import Operation, Tensor
from dtf.wire.tensor_shape import TensorShape

__all__ = [
    "FixedLengthRecordReader", "IdentityReader", "ReaderBase", "TFRecordReader", "TextLineReader", "WholeFileReader",
]  # fmt: skip


class ReaderBase:
    """Base of all readers. A step that reads waits for a file name when the queue is empty; OutOfRangeError when the
    queue is closed and empty.
    """

    def __init__(self, reader_ref: Tensor, supports_serialize: bool = False) -> None:
        self._handle = reader_ref
        self._supports_serialize = supports_serialize

    @property
    def reader_ref(self) -> Tensor:
        """The tensor that identifies the reader."""
        return self._handle

    @property
    def supports_serialize(self) -> bool:
        """Whether its state can be saved."""
        return self._supports_serialize

    def read(self, queue: Any, name: str | None = None) -> Any:
        """(key, record), two strings: the next of the file, or the first of the next file of `queue`."""
        return apply_op("ReaderReadV2", name, reader_handle=self._handle, queue_handle=_queue(queue))

    def read_up_to(self, queue: Any, num_records: Any, name: str | None = None) -> Any:
        """(keys, records), two vectors of at most `num_records`: fewer at the end of a file."""
        return apply_op(
            "ReaderReadUpToV2",
            name,
            reader_handle=self._handle,
            queue_handle=_queue(queue),
            num_records=num_records,
        )

    def num_records_produced(self, name: str | None = None) -> Tensor:
        """How many records were read, int64."""
        return apply_op("ReaderNumRecordsProducedV2", name, reader_handle=self._handle)

    def num_work_units_completed(self, name: str | None = None) -> Tensor:
        """How many files were read to their end, int64."""
        return apply_op("ReaderNumWorkUnitsCompletedV2", name, reader_handle=self._handle)

    def serialize_state(self, name: str | None = None) -> Tensor:
        """The state as a string, for `restore_state`."""
        return apply_op("ReaderSerializeStateV2", name, reader_handle=self._handle)

    def restore_state(self, state: Any, name: str | None = None) -> Operation:
        """Takes on a state that `serialize_state` gave."""
        return apply_op("ReaderRestoreStateV2", name, reader_handle=self._handle, state=state)

    def reset(self, name: str | None = None) -> Operation:
        """As if nothing had been read."""
        return apply_op("ReaderResetV2", name, reader_handle=self._handle)


def _queue(queue: Any) -> Any:
    return queue if isinstance(queue, Tensor) else queue.queue_ref


class WholeFileReader(ReaderBase):
    """Files as records; keys are their names."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(apply_op("WholeFileReaderV2", name), supports_serialize=True)


class IdentityReader(ReaderBase):
    """The names in the queue themselves, as keys and records."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(apply_op("IdentityReaderV2", name), supports_serialize=True)


class TextLineReader(ReaderBase):
    """Lines of text files without their ends."""

    def __init__(self, skip_header_lines: int | None = None, name: str | None = None) -> None:
        super().__init__(apply_op("TextLineReaderV2", name, skip_header_lines=skip_header_lines))


class TFRecordReader(ReaderBase):
    """Records of TFRecord files. options: a TFRecordOptions, for compressed ones."""

    def __init__(self, name: str | None = None, options: Any = None) -> None:
        from dtf.python_io import TFRecordOptions

        compression = TFRecordOptions.get_compression_type_string(options) if options is not None else ""
        super().__init__(apply_op("TFRecordReaderV2", name, compression_type=compression))


class FixedLengthRecordReader(ReaderBase):
    """Records of one length between a header and a footer, `hop_bytes` apart (0: directly after each other)."""

    def __init__(
        self,
        record_bytes: int,
        header_bytes: int | None = None,
        footer_bytes: int | None = None,
        hop_bytes: int | None = None,
        name: str | None = None,
        encoding: str | None = None,
    ) -> None:
        super().__init__(
            apply_op(
                "FixedLengthRecordReaderV2",
                name,
                record_bytes=record_bytes,
                header_bytes=header_bytes,
                footer_bytes=footer_bytes,
                hop_bytes=hop_bytes,
                encoding=encoding,
            )
        )


# -- shape rules

_KINDS = ("WholeFile", "Identity", "TextLine", "TFRecord", "FixedLengthRecord")
shape_rule(*(f"{kind}Reader" for kind in _KINDS))(lambda op: [TensorShape([2])])
shape_rule(*(f"{kind}ReaderV2" for kind in _KINDS))(scalar)
for _version in ("", "V2"):
    shape_rule(
        f"ReaderRead{_version}", f"ReaderNumRecordsProduced{_version}", f"ReaderNumWorkUnitsCompleted{_version}",
        f"ReaderSerializeState{_version}",
    )(scalar)  # fmt: skip
    shape_rule(f"ReaderReadUpTo{_version}")(lambda op: [TensorShape([None])] * 2)
    shape_rule(f"ReaderRestoreState{_version}", f"ReaderReset{_version}")(no_outputs)
