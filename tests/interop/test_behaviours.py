"""Behaviours of programs, compared with TensorFlow's: each module of behaviours in one process for each runtime."""

from __future__ import annotations

import pytest

from tests.interop import (
    behaviours,
    flag_behaviours,
    hook_behaviours,
    placement_behaviours,
    supervision_behaviours,
    training_behaviours,
)
from tests.interop.tensorflow_process import needs_tensorflow

pytestmark = needs_tensorflow


PROGRAMS = [flag_behaviours, hook_behaviours, placement_behaviours, supervision_behaviours, training_behaviours]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__.rpartition(".")[2])
def test_behaviours_are_as_tensorflows(program):
    wanted, given = behaviours.both(program)
    assert set(wanted) == {each.__name__ for each in program.BEHAVIOURS}
    assert behaviours.differences(wanted, given) == []
