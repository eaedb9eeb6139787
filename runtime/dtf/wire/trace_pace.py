"""How often a run may be traced: what tracing costs, and the time that pays for it. Pure: times are given.

A traced run takes longer than others, and so do the runs that follow it. What they take beyond the usual time is the
cost; a small part of all time that passes pays for it. The next run may be traced once the cost is paid.
"""

from __future__ import annotations

from collections import deque

COST_MAX = 0.025
"""The part of the time that tracing may take."""
FOLLOWING = 2
"""So many runs after a traced one are slower too: connections and caches are as the trace left them."""
USUAL_RUNS = 32
"""So many other runs show what is usual. The quicker third counts, for a busy machine makes some of them slow."""
WAIT_MAX_NS = 1_000_000_000
"""A single run that took very long, for whatever reason, does not put off the next trace for longer."""


class TracePace:
    """The pace of one wish for traces. `owed_ns` is the cost that an earlier wish has left. Not thread-safe."""

    def __init__(self, owed_ns: float = 0.0) -> None:
        self._owed_ns = owed_ns
        self._began_ns: int | None = None
        self._now_ns = 0
        self._traced_ns = 0
        self._following = 0
        self._costly_runs = 0
        self._costly_ns = 0
        self._latest_ns: deque[int] = deque(maxlen=USUAL_RUNS)
        self._allowed_ns = 0.0

    def ran(self, start_ns: int, end_ns: int, is_traced: bool) -> bool:
        """A run is over. Returns whether it was as usual: neither traced nor one of those after a traced run."""
        if self._began_ns is None:
            self._began_ns = start_ns
            self._allowed_ns = start_ns + min(self._owed_ns / COST_MAX, WAIT_MAX_NS)
        self._now_ns = max(self._now_ns, end_ns)
        is_usual = not is_traced and self._following == 0
        if is_traced:
            self._traced_ns, self._following = end_ns, FOLLOWING
        elif self._following:
            self._following -= 1
        if is_usual:
            self._latest_ns.append(end_ns - start_ns)
            return True
        self._costly_ns += end_ns - start_ns
        self._costly_runs += 1
        paid_ns = self._now_ns + self.owed_ns() / COST_MAX
        self._allowed_ns = min(paid_ns, self._traced_ns + WAIT_MAX_NS)
        return False

    def owed_ns(self) -> float:
        """The cost that is not paid yet."""
        if self._began_ns is None:
            return self._owed_ns
        usual_ns = sorted(self._latest_ns)[len(self._latest_ns) // 3] if self._latest_ns else 0
        cost_ns = self._costly_ns - self._costly_runs * usual_ns
        return max(0.0, self._owed_ns + cost_ns - COST_MAX * (self._now_ns - self._began_ns))

    @property
    def allows(self) -> bool:
        """Whether the next run may be traced."""
        return self._began_ns is not None and self._now_ns >= self._allowed_ns
