"""python -m dtf.check: lists the unsupported parts of a program without running it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from dtf.as_tensorflow import importer
from dtf.check import check_source, scan
from dtf.check.__main__ import main


@pytest.fixture(autouse=True)
def _tensorflow_is_gone_afterwards():
    before = set(sys.modules)
    yield
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, importer._Finder)]
    for name in set(sys.modules) - before:
        if name.partition(".")[0] == "tensorflow":
            del sys.modules[name]


def found(source: str) -> list[str]:
    return [
        f"{finding.line} {finding.kind}: {finding.text}" for finding in check_source(source) if not finding.is_guarded
    ]


HEAD = "import tensorflow as tf\nimport numpy as np\n"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "tf.train.AdamOptimiser(1e-3)",
            "name: tf.train.AdamOptimiser is not supported: did you mean tf.train.AdamOptimizer?",
        ),
        ("tf.enable_eager_execution()", "name: tf.enable_eager_execution is not supported: there are only graphs here"),
        ("tf.contrib.eager.list", "name: tf.contrib.eager is not supported: there are only graphs"),
        ("from tensorflow.contrib import distribute", "name: tf.contrib.distribute is not supported: strategies"),
        ("import tensorflow.contrib.eager as tfe", "name: no module named 'tensorflow.contrib.eager' (there are only"),
        ("tf.reduce_sum(1, axes=0)", "argument: tf.reduce_sum has no argument axes: did you mean axis?"),
        ("tf.zeros(1, 2, 3, 4, 5, 6)", "argument: tf.zeros takes "),
        ("slim = tf.contrib.slim\nslim.nothing(1)", "name: tf.contrib.slim.nothing is not supported"),
        ("from tensorflow.python.ops import nothing_ops", "name: tf.python.ops.nothing_ops is not supported"),
        ("x = np.float", "numpy 2: there is no np.float: use np.float64, or the built-in float"),
        ("np.product([1])", "numpy 2: there is no np.product: use np.prod"),
        ("np.reshape(1, newshape=[1])", "numpy 2: np.reshape has no argument newshape: use shape"),
        ("for k, v in d.iteritems(): pass", "python 3: there is no method iteritems: use items()"),
        ("for i in xrange(3): pass", "python 3: there is no xrange: use range"),
        ("import cPickle", "python 3: there is no module cPickle: use pickle"),
        ("from itertools import izip", "python 3: there is no itertools.izip: use zip"),
        ("import time\ntime.clock()", "python 3: there is no time.clock: use time.perf_counter"),
        ("x = d.keys()[0]", "python 3: d.keys() cannot be indexed: use list(...)[...]"),
        ("x = zip([1])[0]", "python 3: zip() cannot be indexed"),
        ("x = it.next()", "python 3: iterators have no method next: use next(iterator)"),
        ("import no_such_module_at_all", "module: the module no_such_module_at_all is not installed"),
    ],
)
def test_what_is_not_here_is_found_with_what_to_use(line, expected):
    findings = found(HEAD + line)
    if not expected:
        assert findings == []
        return
    assert len(findings) == 1, findings
    number = 2 + len(line.splitlines()) if "\n" in line else 3
    assert findings[0].startswith(f"{number} {expected}"), findings


def test_a_whole_program_has_no_findings():
    assert found(
        HEAD + "from tensorflow.examples.tutorials.mnist import input_data\n"
        "from tensorflow.python.framework import ops\nfrom tensorflow.core.framework import graph_pb2\n"
        "slim = tf.contrib.slim\nFLAGS = tf.app.flags.FLAGS\ntf.app.flags.DEFINE_string('x', '', 'help')\n"
        "def main(_):\n    tf.logging.info(FLAGS.x)\n    ops.reset_default_graph()\n    graph_pb2.GraphDef()\n"
        "    with slim.arg_scope([slim.conv2d], padding='SAME'):\n"
        "        slim.conv2d(np.zeros([1, 4, 4, 1]), 3, [3, 3])\n"
        "    tf.mul(1, 2)\n    tf.train.Saver(max_to_keep=3).save\nif __name__ == '__main__':\n    tf.app.run()\n"
    ) == []  # fmt: skip


def test_what_a_program_binds_itself_is_its_own():
    assert found(HEAD + "def f(tf):\n    return tf.nothing\ndef g():\n    np = 3\n    return np.nothing\n") == []
    assert found("try:\n    xrange\nexcept NameError:\n    xrange = range\nfor i in xrange(3): pass\n") == []


def test_what_a_program_bears_is_no_reason_to_fail():
    source = HEAD + (
        "try:\n    import cPickle as pickle\nexcept ImportError:\n    import pickle\n"
        "if hasattr(tf, 'nothing'):\n    tf.nothing()\nif tf.__version__ < '1.0':\n    tf.no_more\n"
    )
    assert found(source) == []
    assert [finding.line for finding in check_source(source)] == [4, 8, 10]
    assert str(check_source(source)[0]).endswith("(guarded)")


def test_statements_of_python_2_are_all_said_at_once():
    source = "import os\nprint 'x'\ntry:\n    pass\nexcept ValueError, e:\n    raise KeyError, e\nx = 0777\nprint(1)\n"
    assert [finding.line for finding in check_source(source)] == [2, 5, 6, 7]
    assert "print is a function" in check_source(source)[0].text
    assert found("x = (\n") == ["1 syntax: '(' was never closed"]


def test_the_exit_status_is_for_ci(tmp_path, capsys):
    good, bad = tmp_path / "good.py", tmp_path / "bad.py"
    good.write_text("import bad\nimport tensorflow as tf\ntf.zeros([1])\n")
    bad.write_text("import tensorflow as tf\ntf.nothing\n")
    assert main([str(good)]) == 0
    assert main([str(good), str(bad)]) == 1
    assert main([str(good), str(tmp_path / "none.py")]) == 2
    captured = capsys.readouterr()
    assert f"{bad}:2: name: tf.nothing is not supported\n{bad}: 1 finding; the rest would run\n" in captured.out
    assert f"{good}: all that it uses is here" in captured.out
    assert "none.py: cannot be read: No such file" in captured.err


def test_it_runs_as_a_module(tmp_path):
    path = tmp_path / "t.py"
    path.write_text("print 1\n")
    done = subprocess.run([sys.executable, "-m", "dtf.check", str(path)], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stdout.endswith("t.py: 1 finding; nothing of it runs before that is mended\n")


HOSTILE = {
    "deep attributes": b"import tensorflow as tf\nx = tf" + b".a" * 20_000,
    "deep sum": b"x = 1" + b" + 1" * 20_000,
    "deep signs": b"x = " + b"-" * 100_000 + b"1",
    "as deep as the parser goes": b"x = 1" + b" + 1" * 900,
    "a codec that is none of text": b"# -*- coding: rot13 -*-\nvzcbeg bf\n",
    "no such codec": b"# -*- coding: nosuch -*-\n",
    "not UTF-8": b"# \xff\xfe\n",
    "NUL": b"x = 1\0\n",
    "a long number": b"x = " + b"9" * 10_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_strange_program_is_said_in_words(tmp_path, capsys, name):
    program = tmp_path / "strange.py"
    program.write_bytes(HOSTILE[name])
    assert main([str(program)]) in (0, 1, 2)
    said = "".join(capsys.readouterr())
    assert said.startswith(f"{program}:") and "Traceback" not in said


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)])
def test_what_is_no_file_keeps_nobody_waiting(tmp_path, capsys, make):
    program = tmp_path / "strange.py"
    make(program)
    assert main([str(program)]) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_a_program_that_is_all_hole_is_not_read(tmp_path, capsys):
    program = tmp_path / "strange.py"
    program.touch()
    os.truncate(program, 1 << 40)
    assert main([str(program)]) == 2 and "16 MB" in capsys.readouterr().err


def test_names_that_the_program_sets_itself_are_its_own(tmp_path, capsys):
    """As in tflearn, whose first module adds keys of collections that the others use."""
    (tmp_path / "keys.py").write_text('import tensorflow as tf\ntf.GraphKeys.OWN = "own"\n')
    (tmp_path / "use.py").write_text("import tensorflow as tf\nprint(tf.GraphKeys.OWN, tf.GraphKeys.OTHER)\n")
    assert main([str(tmp_path / "keys.py"), str(tmp_path / "use.py")]) == 1
    found = capsys.readouterr().out
    assert "GraphKeys.OTHER is not supported" in found and "GraphKeys.OWN" not in found


def test_a_module_that_is_not_installed_is_one_finding():
    found = check_source("import scipy_of_nobody.misc\nimport scipy.misc\nscipy.misc.imread('x')\n")
    assert any("scipy_of_nobody is not installed" in str(each) for each in found)


def test_a_name_that_is_missing_in_many_places_is_looked_for_once(monkeypatch):
    looked = []
    near = scan.difflib.get_close_matches
    monkeypatch.setattr(scan.difflib, "get_close_matches", lambda *words: looked.append(words) or near(*words))
    findings = found("import tensorflow as tf\n" + "tf.nothing_of_this\n" * 1000)
    assert len(findings) == 1000 and len(looked) == 1


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("x = {}.items() + {}.items()", "{}.items() cannot be added: use list({}.items())"),
        ("x = [1] + range(3)", "range(...) cannot be added: use list(range(...))"),
        ("x = sorted([1], cmp=lambda a, b: 0)", "sorted has no argument cmp"),
        ("x = {}.keys().sort()", "{}.keys() has no method sort: use sorted(...)"),
        ("x = 'abc'.decode('utf-8')", "texts have no method decode"),
        ("import tensorflow as tf\ntf.train.SummaryWriter('x')", "tf.summary.FileWriter"),
    ],
)
def test_lists_and_texts_of_python_2_are_found(line, words):
    (finding,) = check_source(line, "old.py")
    assert words in finding.text


def test_a_test_of_the_names_of_a_module_is_a_guard():
    text = "import tensorflow as tf\nif 'concat_v2' in dir(tf):\n    tf.concat_v2([], 0)\n"
    assert all(each.is_guarded for each in check_source(text, "old.py"))
    assert not check_source("x = list({}.items()) + [1]\ny = sorted({}.keys())\nz = b'a'.decode()\n", "new.py")


@pytest.mark.parametrize(
    "text",
    [
        "import six\nfor k, v in six.iteritems({}):\n    pass\n",
        "from future import standard_library\nimport future.utils\nfuture.utils.viewitems({})\n",
        "class Batches(object):\n    def next(self):\n        return 1\nBatches().next()\n",
        "class Bag(object):\n    def has_key(self, key):\n        return True\nBag().has_key('a')\n",
        "import tensorflow as tf\nrate = tf.contrib.training.HParams(rate=1).values()['rate']\n",
    ],
)
def test_functions_of_modules_and_methods_of_the_program_are_no_methods_of_python_2(text):
    assert not [each for each in check_source(text, "old.py") if each.kind == "python 3"]


@pytest.mark.parametrize(
    "line",
    [
        "x = tf.nothing(1) if hasattr(tf, 'nothing') else tf.no_op()",
        "x = hasattr(tf, 'nothing') and tf.nothing(1)",
        "x = tf.no_op() if not hasattr(tf, 'nothing') else tf.nothing(1)",
        "x = tf.nothing(1) if tf.__version__ < '0.12' else tf.no_op()",
    ],
)
def test_a_condition_inside_an_expression_is_a_guard(line):
    (finding,) = check_source(f"import tensorflow as tf\n{line}\n", "old.py")
    assert finding.is_guarded


def test_of_very_many_findings_the_first_are_shown_and_the_others_counted(tmp_path, capsys):
    (tmp_path / "many.py").write_text("".join(f"import no_such_{number}\n" for number in range(1500)))
    assert main([str(tmp_path / "many.py")]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1002 and lines[0].endswith("many.py:1: module: the module no_such_0 is not installed")
    assert lines[1000].endswith("many.py: 500 more findings are not shown")
    assert "1500 findings" in lines[1001]
