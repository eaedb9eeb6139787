"""The protocol of places holds in all interleavings of a small world, and each of its rules is needed."""

from __future__ import annotations

import pytest

from tests.durability.places_model import RULES, Limits, search

SMALL = Limits(kills=1, cuts=1, asks=1, orders=0, revokes=0)


def test_no_step_misses_an_update_that_was_confirmed_before_it_began():
    states, found = search(SMALL)
    assert found is None, str(found)
    assert states > 500


@pytest.mark.slow
def test_no_step_misses_a_confirmed_update_with_orders_of_a_supervisor_either():
    states, found = search(Limits(revokes=0))
    assert found is None, str(found)
    assert states > 10_000


@pytest.mark.parametrize("rule", ["acknowledged first", "reads are acknowledged", "no time limit", "one right"])
def test_without_a_rule_a_confirmed_update_is_lost_in_a_small_world(rule):
    states, found = search(SMALL._replace(orders=1), rule)
    assert found is not None
    assert "confirmed before" in found.what
    assert len(found.events) >= 3


@pytest.mark.slow
@pytest.mark.parametrize("rule", sorted(RULES))
def test_each_rule_is_needed(rule):
    states, found = search(Limits(), rule)
    assert found is not None


def test_a_rule_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="turns"):
        search(SMALL, "faith")
