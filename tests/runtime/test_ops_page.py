"""The page of all ops must say what the tables say."""

from __future__ import annotations

from tests.runtime.ops_page import PAGE, page


def test_the_page_of_ops_is_not_stale():
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m tests.runtime.ops_page"
