"""tf.summary: summary ops, and the writer of event files."""

from __future__ import annotations

from dtf import late as _late
from dtf.build.ops.summary_ops import *  # noqa: F403
from dtf.train.summary_writer import FileWriter, FileWriterCache
from dtf.wire.pb.event_pb2 import Event, SessionLog, TaggedRunMetadata
from dtf.wire.pb.summary_pb2 import Summary, SummaryDescription

__all__ = ["Event", "FileWriter", "FileWriterCache", "SessionLog", "Summary", "SummaryDescription", "TaggedRunMetadata"]

__getattr__ = _late.refusals(__name__)
