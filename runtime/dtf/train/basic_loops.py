"""basic_train_loop: the loop around a Supervisor's session, restarted when a task was lost.

Source: https://www.tensorflow.org/api_docs/python/tf/compat/v1/train/basic_train_loop
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dtf.train.recovery import LOST, Recovery, RecoveryPolicy
from dtf.train.supervisor import Supervisor


def basic_train_loop(
    supervisor: Supervisor,
    train_step_fn: Callable[..., Any],
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    master: str = "",
    recovery: RecoveryPolicy | None = None,
) -> None:
    """Calls train_step_fn(session, *args, **kwargs) until the supervisor is to stop.

    When a task is lost or restarts (AbortedError or UnavailableError), a new session is prepared; it restores the
    last checkpoint.

    Args:
      recovery: how often that is done (dtf's own argument).

    Raises:
      Any other error that the function raises; or the last such loss after too many in a row.
    """
    tries = Recovery(recovery)
    while True:
        try:
            with supervisor.managed_session(master) as session:
                while not supervisor.should_stop():
                    train_step_fn(session, *(args or ()), **(kwargs or {}))
                    tries.went_well()
        except LOST as error:
            tries.lost(error)
            continue
        return
