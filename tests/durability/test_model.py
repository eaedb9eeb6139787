"""The model of durable parameter servers: every interleaving of a small world, and what each rule is for."""

from __future__ import annotations

import pytest

from tests.durability.model import RULES, Limits, search


@pytest.mark.parametrize(
    "limits",
    [Limits(clients=1, steps=2, kills=2, cuts=0), Limits(clients=2, steps=1, kills=1, cuts=0)],
    ids=["two-kills", "two-clients"],
)
def test_no_interleaving_may_lose_a_confirmed_update_or_apply_one_twice(limits):
    states, found = search(limits)
    assert found is None, str(found)
    assert states > 1000


@pytest.mark.parametrize("rule", RULES)
def test_a_protocol_without_one_of_its_rules_must_be_found_broken(rule):
    _, found = search(Limits(clients=1, steps=2), without=rule)
    assert found is not None
    assert found.events
