"""Tables keyed by name: duplicates and unknown names are errors that help."""

from __future__ import annotations

import pytest

from dtf.wire.registry import Table, UnknownNameError


def make():
    table = Table("shape rule")

    @table("Add", "Sub")
    def broadcast(op):
        return op

    return table, broadcast


def test_one_entry_serves_every_name_of_its_decorator():
    table, broadcast = make()
    assert table["Add"] is table["Sub"] is table.get("Add") is broadcast
    assert "Add" in table and "Mul" not in table and table.get("Mul") is None
    assert table.names() == ["Add", "Sub"] == list(table) and len(table) == 2


def test_an_unknown_name_raises_with_near_names():
    table, _ = make()
    with pytest.raises(UnknownNameError, match="no shape rule for 'Ad'; did you mean 'Add'?"):
        table["Ad"]
    assert issubclass(UnknownNameError, LookupError)


def test_a_duplicate_names_both_places():
    table, _ = make()
    place = r".*test_registry\.py:\d+"
    with pytest.raises(ValueError, match=rf"second shape rule for 'Add' at {place}; {place}"):
        table.add("Add", 3)
    assert "test_registry.py:" in table.place("Add")
