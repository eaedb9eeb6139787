"""Curves as text, fields of documents, keys explained: what the terminal shows, from values."""

from __future__ import annotations

import sys

import pytest

from dtfctl.errors import PlotMissing
from dtfctl.logs.events import Series
from dtfctl.logs.progress import Progress
from dtfctl.show import curves
from dtfctl.show.curves import BARS, GAP, Trail, sparkline
from dtfctl.show.fields import BadPath, picked

DOCUMENT = {
    "name": "trial",
    "tasks": [
        {"name": "ps:0", "ready": True, "pid": 7, "address": None},
        {"name": "worker:0", "ready": False, "pid": 8, "address": "h:1"},
    ],
}


def test_a_sparkline_goes_from_the_lowest_to_the_highest_bar():
    assert sparkline([float(value) for value in range(8)]) == BARS
    assert sparkline([3.0, 3.0, 3.0]) == BARS[0] * 3
    assert len(sparkline([float(value) for value in range(1000)], 24)) == 24
    assert sparkline([1.0]) == sparkline([]) == ""


def test_what_is_no_number_is_a_gap_in_a_sparkline():
    assert sparkline([0.0, float("nan"), 1.0, None]) == f"{BARS[0]}{GAP}{BARS[-1]}{GAP}"
    assert sparkline([float("inf"), float("nan")]) == GAP * 2


def test_a_trail_keeps_the_last_losses_and_rates():
    trail = Trail()
    assert trail.line() == ""
    for step in range(1, 500):
        trail.add(Progress(step, 10.0 + step % 2, 1.0 / step))
    trail.add(Progress(499, 99.0, 99.0))
    assert trail.line().startswith("loss 0.002004 ") and "steps/s 11" in trail.line()
    assert "99" not in trail.line(), "of one step the first word counts"
    trail.add(None)


def test_a_plot_shows_its_curves_and_their_names():
    pytest.importorskip("plotext", reason="plotext is not installed: pip install 'dtf[plot]'")
    text = curves.drawn("trial", {"loss": ([0, 10, 20], [3.0, float("nan"), 1.0])}, 60, 15, is_coloured=False)
    assert "loss" in text and "trial" in text and "\x1b" not in text
    assert max(len(line) for line in text.splitlines()) <= 60
    assert "\x1b[" in curves.drawn("trial", {"loss": ([0, 1], [3.0, 1.0])}, 60, 15, is_coloured=True)


def test_points_are_labelled_by_tag_and_by_run_where_there_are_several():
    series = Series()
    for step in range(5):
        series.add(step, float(step), float(step))
    assert list(curves.points({(".", "loss"): series}, None)) == ["loss"]
    two = curves.points({(".", "loss"): series, ("worker-1", "a\x1b[31m"): series}, 3)
    assert list(two) == ["loss", "worker-1: a\\x1b[31m"]
    assert list(two["loss"][0]) == [2, 3, 4]


@pytest.mark.parametrize("module, draw", [("plotext", curves.drawn), ("matplotlib.figure", curves.write_png)])
def test_a_missing_library_is_one_line(monkeypatch, module, draw, tmp_path):
    monkeypatch.setitem(sys.modules, module, None)
    arguments = ("t", {}, 60, 15, False) if module == "plotext" else (str(tmp_path / "x.png"), "t", {})
    with pytest.raises(PlotMissing, match="pip install"):
        draw(*arguments)


@pytest.mark.parametrize(
    "path, values",
    [
        ("name", ["trial"]),
        (".name", ["trial"]),
        ("{.tasks[0].name}", ["ps:0"]),
        ("$.tasks[-1].pid", [8]),
        ("tasks[*].name", ["ps:0", "worker:0"]),
        ("tasks[ready=false].name", ["worker:0"]),
        ("tasks[name!='ps:0'].address", ["h:1"]),
        ("tasks[name=none].pid", []),
        ("tasks.*.ready", [True, False]),
        (".", [DOCUMENT]),
    ],
)
def test_a_field_is_picked_by_its_path(path, values):
    assert picked(DOCUMENT, path) == values


@pytest.mark.parametrize(
    "path, words",
    [
        ("nam", "nam is not there; there are: name, tasks"),
        ("tasks[7]", "[7] is not there; it is a list of 2"),
        ("name.first", ".first is not there; it is a value"),
        ("tasks[", "cannot be read from '[' on"),
        ("tasks..name", "cannot be read"),
    ],
)
def test_a_path_that_finds_nothing_says_what_there_is(path, words):
    with pytest.raises(BadPath) as caught:
        picked(DOCUMENT, path)
    assert words in str(caught.value)
