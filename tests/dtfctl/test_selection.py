"""Tasks as they are typed."""

from __future__ import annotations

import pytest

from dtfctl.commands.selection import choose_tasks, in_short
from dtfctl.errors import UnknownTask

NAMES = ["ps:0", "ps:1", *(f"worker:{index}" for index in range(12)), "tensor-board:0"]


@pytest.mark.parametrize(
    ("patterns", "chosen"),
    [
        ([], "ps:0-1, worker:0-11, tensor-board:0"),
        (["ps"], "ps:0-1"),
        (["worker:0", "ps:1"], "ps:1, worker:0"),
        (["w*"], "worker:0-11"),
        (["*:0"], "ps:0, worker:0, tensor-board:0"),
        (["worker:0-3"], "worker:0-3"),
        (["worker:1,3-5,7"], "worker:1,3-5,7"),
        (["worker:9-99"], "worker:9-11"),
        (["[pt]*:0"], "ps:0, tensor-board:0"),
        (["tensor-board"], "tensor-board:0"),
    ],
)
def test_tasks_are_chosen_by_name_range_job_or_pattern(patterns, chosen):
    assert in_short(choose_tasks(NAMES, patterns)) == chosen


@pytest.mark.parametrize("pattern", ["worker:12", "worker:3-1", "worker:", "work", "chief", "", "worker:-1", "*:x"])
def test_a_pattern_that_fits_nothing_is_refused_with_what_there_is(pattern):
    with pytest.raises(UnknownTask, match=r'"\S*" \(tasks: ps:0-1, worker:0-11, tensor-board:0\)'):
        choose_tasks(NAMES, [pattern])
