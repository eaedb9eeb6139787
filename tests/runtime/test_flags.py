"""Command-line flags and the entry point of a program."""

from __future__ import annotations

import subprocess
import sys

import pytest

from dtf import app, flags

FLAGS = flags.FLAGS


@pytest.fixture(autouse=True)
def _defined(monkeypatch):
    """Flags of this module's tests, gone afterwards, and a command line without any."""
    before = set(FLAGS)
    flags.DEFINE_string("job_name", "", "One of ps, worker")
    flags.DEFINE_integer("task_index", 0, "Index of the task", lower_bound=0)
    flags.DEFINE_float("learning_rate", 0.1, "Step length")
    flags.DEFINE_bool("sync", False, "Whether to wait")
    flags.DEFINE_list("ps_hosts", "", "host:port pairs")
    monkeypatch.setattr(sys, "argv", ["prog"])
    FLAGS.unparse_flags()
    yield
    for name in set(FLAGS) - before:
        delattr(FLAGS, name)
    FLAGS.unparse_flags()


def ended(*arguments, main=lambda argv: None):
    """The status with which app.run exits."""
    with pytest.raises(SystemExit) as exit:
        app.run(main, ["prog", *arguments])
    return exit.value.code


def test_all_forms_of_flags_are_read():
    rest = FLAGS(
        ["prog", "--job_name=ps", "-task_index", "3", "x", "--sync", "--learning_rate", "-1e-3", "--ps_hosts=a:1,b:2",
         "--", "--nothing"]
    )  # fmt: skip
    assert rest == ["prog", "x", "--nothing"]
    assert (FLAGS.job_name, FLAGS.task_index, FLAGS.learning_rate, FLAGS.sync) == ("ps", 3, -1e-3, True)
    assert FLAGS.ps_hosts == ["a:1", "b:2"]
    FLAGS(["prog", "--nosync"])
    assert FLAGS.sync is False


def test_a_program_gets_the_flags_that_nobody_has_defined():
    seen = []
    assert ended("--task_index=1", "x", "--wrong=2", main=lambda argv: seen.append(argv) or 3) == 3
    assert seen == [["prog", "x", "--wrong=2"]] and FLAGS.task_index == 1


@pytest.mark.parametrize("argument", ["--task_index=x", "--task_index=-1", "--sync=maybe", "--job_name"])
def test_flags_that_cannot_be_parsed_end_the_program(argument, capsys):
    assert ended(argument) == 1
    assert argument.strip("-").partition("=")[0] in capsys.readouterr().err


def test_help_is_printed(capsys):
    assert ended("--helpfull") == 1
    assert "--[no]sync: Whether to wait" in capsys.readouterr().out


def test_a_value_is_read_without_an_entry_point(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["prog", "--task_index=2", "--flag_of_somebody_else=1"])
    assert FLAGS.task_index == 2 and FLAGS.is_parsed()
    with pytest.raises(AttributeError):
        _ = FLAGS.nothing
    FLAGS.task_index = 5
    assert FLAGS.task_index == 5 and FLAGS["task_index"].value == 5


def test_a_required_flag_must_have_a_value():
    flags.DEFINE_string("data", None, "Folder")
    flags.mark_flag_as_required("data")
    with pytest.raises(flags.IllegalFlagValueError, match="--data must have a value"):
        FLAGS(["prog"])
    with pytest.raises(flags.DuplicateFlagError):
        flags.DEFINE_string("data", None, "Another folder")


def test_names_of_tensorflow_1_0_work(monkeypatch):
    flags.DEFINE_integer(flag_name="steps", default_value=4, docstring="How many")
    monkeypatch.setattr(sys, "argv", ["prog", "--steps=6"])
    FLAGS._parse_flags()
    shown = {name: flag.value for name, flag in getattr(FLAGS, "__flags").items()}  # noqa: B009  (no mangling)
    assert shown["steps"] == 6 and FLAGS.flag_values_dict()["steps"] == 6


def test_flags_belong_to_the_module_that_defines_them_and_are_absls(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(
        "import sys\nimport dtf as tf\nfrom absl import flags\n"
        "tf.app.flags.DEFINE_integer('verbosity', 1, 'How much')\n"
        "tf.flags.DEFINE_string('log_dir', 'logs', 'Where')\n"
        "def main(argv):\n"
        "    assert flags.FLAGS.verbosity == tf.flags.FLAGS.verbosity == 3\n"
        "    print(sorted(flag.name for flag in flags.FLAGS.get_key_flags_for_module(sys.argv[0])), argv[1:])\n"
        "tf.app.run()\n"
    )
    finished = subprocess.run(
        [sys.executable, str(script), "--verbosity=3", "rest"], capture_output=True, text=True, timeout=60
    )
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.strip() == "['log_dir', 'verbosity'] ['rest']"
