"""Regular expressions from outside must cost time that grows with the text, and never stop other threads."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import dtf as tf
from dtf.run.lib.patterns import Pattern
from dtf.wire import errors

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.parametrize("pattern", [b"(a+)+$", b"(a|aa)+$", b"(.*)*x", b"(a*)*(a*)*(a*)*c", b"(?:(?:a?){30}){30}b"])
def test_patterns_that_backtrack_for_ever_elsewhere_end(pattern):
    text = b"a" * 20_000 + b"!"
    assert not Pattern(pattern).matches(text)
    assert Pattern(pattern).replace(b"a" * 300 + b"!", b"", True).endswith(b"!")


def test_classes_of_characters_are_there():
    with tf.Graph().as_default(), tf.Session() as session:
        small = tf.strings.regex_replace(["abCdé"], r"\p{Ll}+", "-")
        assert session.run(small).tolist() == [b"-C-"]


@pytest.mark.parametrize(
    ("pattern", "rewrite", "is_global", "wanted"),
    [
        (b"", b"-", True, b"-a-\xc3\xa9-\xff-"),
        (b"", b"-", False, b"-a\xc3\xa9\xff"),
        (b"a*", b"<\\0>", True, b"<a>\xc3\xa9<>\xff<>"),
        (b"(a)|x", b"\\2", True, b"a\xc3\xa9\xff"),
        (b"(a)", b"x\\y", True, b"x\xc3\xa9\xff"),
        (b"(a)", b"x\\y", False, b"a\xc3\xa9\xff"),
        (b"(a)", b"\\\\\\1\\0", True, b"\\aa\xc3\xa9\xff"),
    ],
)
def test_rewrites_are_those_of_re2(pattern, rewrite, is_global, wanted):
    assert Pattern(pattern).replace(b"a\xc3\xa9\xff", rewrite, is_global) == wanted


@pytest.mark.parametrize("pattern", ["(", "(?=a)", "(a)\\1", "x{1001}", b"\xff"])
def test_what_is_no_pattern_is_an_invalid_argument(pattern):
    with tf.Graph().as_default(), tf.Session() as session:
        fed = tf.placeholder(tf.string, [])
        with pytest.raises(errors.InvalidArgumentError, match="Invalid pattern: "):
            session.run(tf.strings.regex_full_match(["a"], fed), {fed: pattern})
        with pytest.raises(errors.InvalidArgumentError, match="Invalid pattern: "):
            session.run(tf.strings.regex_full_match(["a"], pattern))


def test_without_re2_the_package_is_named():
    program = (
        "import sys; sys.modules['re2'] = None\n"
        "from dtf.run.lib.patterns import Pattern\n"
        "from dtf.wire import errors\n"
        "try:\n    Pattern(b'a')\n"
        "except errors.UnimplementedError as error:\n    print(error.message)\n"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert "pip install google-re2" in found.stdout, found.stderr


def test_no_kernel_gives_a_pattern_of_others_to_re():
    """Python's `re` takes literals and escaped text only."""
    bad = []
    for path in sorted((ROOT / "runtime/dtf/run").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and isinstance(node.func.value, ast.Name)
                and node.func.value.id == "re"
                and node.func.attr != "escape"
                and not _is_own(node.args[0])
            ):
                bad.append(f"{path}:{node.lineno}")
    assert bad == []


def _is_own(pattern: ast.expr) -> bool:
    if isinstance(pattern, ast.BinOp):
        return _is_own(pattern.left) and _is_own(pattern.right)
    if isinstance(pattern, ast.Call):
        return isinstance(pattern.func, ast.Attribute) and pattern.func.attr == "escape"
    return isinstance(pattern, ast.Constant) or (isinstance(pattern, ast.Name) and pattern.id == "pattern")
