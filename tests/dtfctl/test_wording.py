"""Reasons are never empty, and text from outside only shows."""

from __future__ import annotations

import asyncio
import errno
import random
import sqlite3

import pytest

from dtfctl.wording import coloured, printable, reason_and_file, reason_of


@pytest.mark.parametrize(
    "error, words",
    [
        (TimeoutError(), "timed out"),
        (asyncio.TimeoutError(), "timed out"),
        (ConnectionResetError(), "the other end has reset the connection"),
        (asyncio.IncompleteReadError(b"", 4), "0 bytes read on a total of 4 expected bytes"),
        (OSError(errno.ENOSPC, None), "No space left on device"),
        (OSError(errno.ENOSPC, "No space left on device", "/x"), "No space left on device"),
        (OSError(0, "is not private", "/x"), "is not private"),
        (OSError("plain words"), "plain words"),
        (OSError(), "OSError"),
        (MemoryError(), "out of memory"),
        (sqlite3.OperationalError("database or disk is full"), "database or disk is full"),
        (ValueError("two\nlines"), "two lines"),
        (AssertionError(), "AssertionError"),
    ],
)
def test_a_reason_is_never_empty(error, words):
    assert reason_of(error) == words


def test_a_reason_with_its_file_says_what_to_do_about_a_full_disk():
    full = OSError(errno.ENOSPC, "No space left on device", "/state/x")
    assert reason_and_file(full) == "/state/x: No space left on device; make room there (df -h shows how much is free)"
    assert reason_and_file(OSError(errno.ENOENT, "No such file or directory", b"/x")) == "/x: No such file or directory"
    assert reason_and_file(TimeoutError()) == "timed out"


ATTACKS = [
    "\x1b]52;c;cm0gLXJm\x07", "\x1b[2J\x1b[H", "\x1b[6n", "\x9b31m", "\x1bP$q\"p\x1b\\", "\x08\x08\x08", "\u202egnp.exe"
]  # fmt: skip


@pytest.mark.parametrize("attack", ATTACKS)
def test_nothing_from_outside_acts_on_a_terminal(attack):
    for shown in (printable(f"a{attack}b"), coloured(f"a{attack}b")):
        assert not set(shown) & {chr(code) for code in (*range(32), *range(127, 160), 0x202E)}
        assert shown.startswith("a") and shown.endswith("b")


def test_text_is_on_one_line_unless_it_may_have_more():
    assert printable("a\nb\tc") == "a\\nb\tc"
    assert printable("a\nb", lines=True) == "a\nb"
    assert printable("grün, 学习, 🚀") == "grün, 学习, 🚀"


def test_colours_of_a_log_stay_and_end_with_their_line():
    assert coloured("\x1b[31mred\x1b[0m") == "\x1b[31mred\x1b[0m"
    assert coloured("\x1b[1;31mred") == "\x1b[1;31mred\x1b[0m"
    assert coloured("\x1b[31mred\x1b[0m", is_kept=False) == "red"
    assert coloured("10%\r20%\r 30%") == " 30%"
    assert coloured("done\r") == "done"


def test_any_text_can_be_shown():
    chance = random.Random(3)
    for _ in range(2000):
        text = "".join(chr(chance.choice((27, 91, 109, 13, 10, 0x9B, 49, 59, 0xD800, 0x202E, 65))) for _ in range(12))
        for shown in (printable(text), coloured(text, is_kept=False)):
            assert "\x1b" not in shown and "\r" not in shown and "\n" not in shown
            shown.encode()
