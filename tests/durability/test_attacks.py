"""A durable ps whose processes are frozen and whose memory is removed or full: no update is lost, none counts twice."""

from __future__ import annotations

import shutil
import signal
import subprocess
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.durability.kills import count_exactly, killer
from tests.durability.servers import ServedPlaces
from tests.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


@contextmanager
def small_memory(folder: Path, size: str):
    """A tmpfs of `size` at the folder."""
    folder.mkdir(mode=0o700)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "tmpfs", str(folder)], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("this process may not mount a file system")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_frozen_primary_that_was_replaced_confirms_nothing_when_it_goes_on(folder):
    with ServedPlaces(folder) as servers:

        def freeze(turn: int) -> None:
            primary = servers.wait_in_sync(0)
            servers.signal_place(primary, signal.SIGSTOP)
            servers.wait_for_primary(0, 1 - primary)
            servers.signal_place(primary, signal.SIGCONT)
            assert servers.wait_in_sync(0) == 1 - primary

        each = killer(servers, 2, 1, 0.3)
        each.kill = freeze
        outcome = count_exactly(servers, 3, each)
    assert outcome.wrong == []
    assert outcome.sessions == 1


def test_a_backup_that_answers_slowly_or_not_at_all_delays_updates_and_loses_none(folder):
    with ServedPlaces(folder) as servers:

        def freeze(turn: int) -> None:
            primary = servers.wait_in_sync(0)
            servers.signal_place(1 - primary, signal.SIGSTOP)
            if turn % 2:
                wait_until(lambda: servers.state(0, primary).get("is_paused"), "the primary to pause")
            servers.signal_place(1 - primary, signal.SIGCONT)
            servers.wait_in_sync(0)

        each = killer(servers, 6, 2, 0.3)
        each.kill = freeze
        outcome = count_exactly(servers, 3, each)
    assert outcome.wrong == []
    assert outcome.sessions == 1


def test_removed_memory_of_a_primary_loses_no_update_while_it_lives_nor_when_it_ends(folder):
    with ServedPlaces(folder) as servers:

        def remove(turn: int) -> None:
            primary = servers.wait_in_sync(0)
            shutil.rmtree(folder / f"ps-0-{primary}", ignore_errors=True)
            if turn:
                servers.kill_place(0, primary)
                servers.wait_for_primary(0, 1 - primary)
                servers.start_place(0, primary)

        each = killer(servers, 2, 3, 0.3)
        each.kill = remove
        outcome = count_exactly(servers, 3, each, steps_min=100)
    assert outcome.wrong == []
    assert outcome.sessions == 1


def test_full_memory_at_the_backup_leaves_the_primary_alone_and_the_training_goes_on(folder):
    with small_memory(folder / "ps-0-1", "32m"), ServedPlaces(folder) as servers:
        ballast = folder / "ps-0-1" / "ballast"

        def fill(turn: int) -> None:
            servers.wait_in_sync(0)
            with suppress(OSError), open(ballast, "wb") as file:
                while True:
                    file.write(bytes(4096))
                    file.flush()
            wait_until(lambda: servers.has_ended(1), "the backup to end")
            wait_until(lambda: servers.state(0, 0).get("mode") == "alone", "the primary to go on alone")
            ballast.unlink()
            servers.kill_place(0, 1)
            servers.start_place(0, 1)
            servers.wait_in_sync(0)

        each = killer(servers, 1, 4, 0.3)
        each.kill = fill
        outcome = count_exactly(servers, 3, each)
    assert outcome.wrong == []
    assert outcome.sessions == 1
