"""Which files stay here: gitignore's rules, and git itself as the judge."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from dtfctl.launchers.ignore import is_ignored, rules

CASES = [
    ("*.pyc", "a/b.pyc", False, True),
    ("*.pyc", "a/b.py", False, False),
    ("build/", "build", True, True),
    ("build/", "build", False, False),
    ("build/", "src/build", True, True),
    ("/build", "src/build", True, False),
    ("/build", "build", False, True),
    ("docs/*.html", "docs/a.html", False, True),
    ("docs/*.html", "docs/x/a.html", False, False),
    ("docs/**/a.html", "docs/x/y/a.html", False, True),
    ("docs/**", "docs/x", True, True),
    ("**/logs", "a/b/logs", True, True),
    ("a?c", "abc", False, True),
    ("a[bx]c", "axc", False, True),
    ("a[!b]c", "abc", False, False),
    ("a[0-9]", "a7", False, True),
    ("# a remark\n\n", "# a remark", False, False),
    ("\\#name", "#name", False, True),
    ("*.log\n!keep.log", "keep.log", False, False),
    ("*.log\n!keep.log\n*.log", "keep.log", False, True),
    ("name   ", "name", False, True),
    ("foo.bar", "fooxbar", False, False),
]


@pytest.mark.parametrize("text, path, is_folder, expected", CASES)
def test_a_rule_fits_what_it_says(text, path, is_folder, expected):
    assert is_ignored(path, is_folder, rules(text)) is expected


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")
@pytest.mark.parametrize("text, path, is_folder, expected", CASES)
def test_git_agrees(tmp_path, text, path, is_folder, expected):
    subprocess.run(["git", "init", "-q", "."], cwd=tmp_path, check=True)
    (tmp_path / ".gitignore").write_text(text)
    target = tmp_path / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.mkdir() if is_folder else target.touch()
    asked = subprocess.run(["git", "check-ignore", "-q", path + ("/" if is_folder else "")], cwd=tmp_path)
    assert (asked.returncode == 0) is expected


def test_the_rules_of_a_folder_hold_below_it_alone():
    known = rules("/a\n*.tmp", "sub")
    assert is_ignored("sub/a", False, known) and is_ignored("sub/x/b.tmp", False, known)
    assert not is_ignored("a", False, known) and not is_ignored("b.tmp", False, known)
