"""tf.summary: summary ops, and the writer of event files."""

from __future__ import annotations

from dtf.ops.summary_ops import *  # noqa: F403
from dtf.pb.event_pb2 import Event, SessionLog, TaggedRunMetadata
from dtf.pb.summary_pb2 import Summary
from dtf.train.summary_writer import FileWriter, FileWriterCache

__all__ = ["Event", "FileWriter", "FileWriterCache", "SessionLog", "Summary", "TaggedRunMetadata"]
