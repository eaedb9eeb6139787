"""Collective operations pass no gradients on."""

from __future__ import annotations

from dtf.build.gradients import not_differentiable

not_differentiable(
    *(f"Collective{name}{version}" for name in ("Reduce", "Gather", "BcastSend", "BcastRecv") for version in ("", "V2"))
)
