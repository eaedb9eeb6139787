"""The page of the cluster file's keys must say what the schema says."""

from __future__ import annotations

from tests.dtfctl.cluster_file_page import PAGE, page


def test_the_page_of_keys_is_not_stale():
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m tests.dtfctl.cluster_file_page"
