"""What a program asks of the graphs of all its sessions: `session` reads it, `train.experimental` writes it."""

from __future__ import annotations

from dtf.wire.pb import config_pb2, rewriter_config_pb2

__all__ = ["sessions_were_made", "with_rewrites"]

wants_mixed_precision = False
"""Whether sessions that are made from now on rewrite their graphs to mixed precision."""
_has_sessions = False


def with_rewrites(config: config_pb2.ConfigProto) -> config_pb2.ConfigProto:
    """A session's configuration with what the program asks for: itself, or a copy."""
    global _has_sessions
    if not wants_mixed_precision:
        _has_sessions = True
        return config
    changed = config_pb2.ConfigProto()
    changed.CopyFrom(config)
    changed.graph_options.rewrite_options.auto_mixed_precision = rewriter_config_pb2.RewriterConfig.ON
    return changed


def sessions_were_made() -> bool:
    """Whether there have been sessions without the rewrite."""
    return _has_sessions
