"""The most used public names must say what they take, give and raise, and where TensorFlow describes them."""

from __future__ import annotations

import pytest

from tests.public import documented


@pytest.mark.parametrize("name", documented.NAMES)
def test_a_docstring_has_its_sections(name: str):
    assert not documented.missing(name), f"tf.{name} lacks {documented.missing(name)}"


def test_the_page_of_names_is_made_of_the_docstrings():
    stale = "runtime/api.md is stale: python -m tests.public writes it"
    assert documented.PAGE.read_text(encoding="utf-8") == documented.render(), stale
