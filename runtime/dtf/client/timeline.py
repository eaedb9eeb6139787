"""dtf.client.timeline: `Timeline`, which makes a Chrome trace of a step's RunMetadata."""

from __future__ import annotations

from dtf.train.timeline import Timeline

__all__ = ["Timeline"]
