"""A durable ps whose two places are cut from each other while both live: no update is lost or counted twice."""

from __future__ import annotations

import pytest

from tests.durability.partitions import is_possible, train_in_parts


@pytest.mark.slow
def test_places_that_are_cut_from_each_other_never_both_confirm():
    if not is_possible():
        pytest.skip("this process cannot make network namespaces")
    assert "exact" in train_in_parts(3)
