"""What a program's line is known to start."""

from __future__ import annotations

import pytest

from dtfctl.checks.program_line import Step, is_plain, steps_of

PYTHON = Step("python", "t.py", is_python=True)


def unsure(command, **others):
    return Step(command, is_sure=False, **others)


@pytest.mark.parametrize(
    ("program", "steps"),
    [
        ("python t.py --a=1", [PYTHON]),
        ("python -u -W ignore t.py", [PYTHON]),
        ("python -m a.b --x", [Step("python", module="a.b", is_python=True)]),
        ("python -um a.b", [Step("python", module="a.b", is_python=True)]),
        ("python -I t.py", [Step("python", "t.py")]),
        ("python -c 'import t'", [Step("python", is_python=True)]),
        ("python - < t.py", [Step("python", is_python=True)]),
        ("python $SCRIPT", [Step("python", is_python=True)]),
        ("$PYTHON t.py", []),
        ("/opt/v/bin/python3.11 t.py > log 2>&1", [Step("/opt/v/bin/python3.11", "t.py", is_python=True)]),
        ("X=1 Y=2 python t.py", [PYTHON]),
        ("PYTHONPATH=src python t.py", []),
        ("cd src && python t.py", [Step("python", "t.py", folder="src", is_python=True)]),
        ("cd src; python t.py", []),
        ("exec nice -n 5 python t.py", [Step("nice"), PYTHON]),
        ("timeout -k 5 60 ./run a b", [Step("timeout"), Step("./run")]),
        ("env A=1 python t.py", [Step("env"), PYTHON]),
        ("bash run.sh x", [Step("bash", "run.sh")]),
        ("bash -c 'x'", [Step("bash")]),
        ("make && ./t", [Step("make"), unsure("./t")]),
        ("a; b", [unsure("a"), unsure("b")]),
        ("a || b", [unsure("a")]),
        ("a | b", [unsure("a"), unsure("b")]),
        ("echo x; exec python t.py", [unsure("python", script="t.py", is_python=True)]),
        ("if true; then x; fi", []),
        ("while [ ! -e done ]; do sleep 1; done", []),
        (". ./env.sh; python t.py", []),
        ("f() { a; }; f", []),
        ("# note\npython t.py\n", [Step("python", "t.py", is_python=True)]),
        ("cat <<EOF\na b\nEOF\n", []),
        ("echo 'not closed", []),
        (("python", "t.py"), [Step("python", "t.py", is_python=True, is_exec=True)]),
        (("./$x", "*"), [Step("./$x", is_exec=True)]),
        (("env", "python", "t.py"), [Step("env", is_exec=True), PYTHON]),
    ],
)
def test_the_steps_of_a_program(program, steps):
    assert steps_of(program) == steps


def test_a_line_of_mere_words_needs_no_shell_to_look_at_it():
    assert is_plain("python t.py --a='x y'")
    assert not is_plain("a; b") and not is_plain("echo 'not closed")
