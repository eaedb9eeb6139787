"""Command-line flags and the entry point of a program."""

from __future__ import annotations

import sys

import pytest

from dtf import app, flags


@pytest.fixture(autouse=True)
def values(monkeypatch):
    values = flags.FlagValues()
    monkeypatch.setattr(flags, "FLAGS", values)
    flags.DEFINE_string("job_name", "", "One of ps, worker")
    flags.DEFINE_integer("task_index", 0, "Index of the task", lower_bound=0)
    flags.DEFINE_float("learning_rate", 0.1, "Step length")
    flags.DEFINE_bool("sync", False, "Whether to wait")
    flags.DEFINE_enum("mode", "train", ["train", "eval"], "What to do")
    flags.DEFINE_list("ps_hosts", "", "host:port pairs")
    flags.DEFINE_multi_string("tag", [], "Tags")
    return values


def test_all_forms_of_flags_are_read(values):
    rest = values(
        ["prog", "--job_name=ps", "-task_index", "3", "x", "--sync", "--learning_rate", "-1e-3", "--mode=eval",
         "--ps_hosts=a:1,b:2", "--tag=a", "--tag", "b", "--", "--nothing"]
    )  # fmt: skip
    assert rest == ["prog", "x", "--nothing"]
    assert values.flag_values_dict() == {
        "job_name": "ps", "task_index": 3, "learning_rate": -1e-3, "sync": True, "mode": "eval",
        "ps_hosts": ["a:1", "b:2"], "tag": ["a", "b"],
    }  # fmt: skip
    values(["prog", "--nosync"])
    assert values.sync is False


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ("--job_nme=ps", "Unknown command line flag 'job_nme'. Did you mean: job_name"),
        ("--task_index=x", "--task_index=x: invalid literal"),
        ("--task_index=-1", "less than the lower bound 0"),
        ("--mode=other", r"one of <train\|eval>"),
        ("--sync=maybe", "Non-boolean"),
        ("--job_name", "Missing value"),
    ],
)
def test_what_is_wrong_with_the_command_line_is_said(values, argument, words):
    with pytest.raises(flags.Error, match=words):
        values(["prog", argument])


def test_a_value_is_read_without_an_entry_point(values, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["prog", "--task_index=2", "--flag_of_somebody_else=1"])
    assert values.task_index == 2
    with pytest.raises(AttributeError):
        _ = values.nothing
    values.task_index = 5
    assert values.task_index == 5 and values["task_index"].value == 5


def test_a_required_flag_must_have_a_value(values):
    flags.DEFINE_string("data", None, "Folder")
    flags.mark_flag_as_required("data")
    with pytest.raises(flags.IllegalFlagValueError, match="--data must have a value"):
        values(["prog"])
    with pytest.raises(flags.DuplicateFlagError):
        flags.DEFINE_string("data", None, "Folder")


def test_run_calls_main_and_exits_with_its_result(values, capsys):
    seen = []
    with pytest.raises(SystemExit) as exit:
        app.run(lambda argv: seen.append(argv) or 3, ["prog", "--task_index=1", "x"])
    assert exit.value.code == 3 and seen == [["prog", "x"]]
    with pytest.raises(SystemExit) as exit:
        app.run(lambda argv: None, ["prog", "--wrong"])
    assert exit.value.code == 1 and "Unknown command line flag 'wrong'" in capsys.readouterr().err
    with pytest.raises(SystemExit) as exit:
        app.run(lambda argv: None, ["prog", "--help"])
    assert exit.value.code == 0 and "--[no]sync: Whether to wait" in capsys.readouterr().out
