"""The command lines in the documents: after `$` in console blocks, and in indented blocks of the pages.

    for command in commands(): print(command.page, command.line, command.text)

Does not run them; test_documented_commands does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    "dtfctl/*.md",
    "dtfctl/guide/*.md",
    "runtime/*.md",
    "clusters/*/README.md",
    "tests/bench/README.md",
    "tests/e2e/README.md",
)
_GENERATED = ("runtime/api.md", "runtime/ops.md", "runtime/surface.md")
_PROGRAMS = r"dtfctl|python3?|pip|kill|kubectl|ray|prometheus|env|tests/|\.ci/|\.venv/|~/|[A-Z_]+="
_INDENTED = re.compile(rf"^    ((?:{_PROGRAMS})\S*(?: .*|)$)")
_CONSOLE = re.compile(r"^\$ (.+)$")
_COMMENT = re.compile(r"\s{2,}# .*$")


@dataclass(frozen=True)
class Command:
    """`page` is the file below the root, `line` its number there."""

    page: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {self.text}"


def pages() -> list[Path]:
    """Pages that people write; those that are made from the code have no commands."""
    found = {path for pattern in PAGES for path in ROOT.glob(pattern)}
    return sorted(path for path in found if str(path.relative_to(ROOT)) not in _GENERATED)


def commands() -> list[Command]:
    return [command for path in pages() for command in _commands(path)]


def spoken() -> list[Command]:
    """Commands in running text: `dtfctl ...`, also where the line breaks in it."""
    found = []
    for path in pages():
        text = re.sub(r"```.*?```", lambda block: "\n" * block[0].count("\n"), path.read_text(), flags=re.DOTALL)
        for match in re.finditer(r"`(dtfctl\s[^`]+)`", text):
            line = text.count("\n", 0, match.start()) + 1
            found.append(Command(str(path.relative_to(ROOT)), line, " ".join(match[1].split())))
    return found


def _commands(path: Path) -> Iterator[Command]:
    fence = ""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.startswith("```"):
            fence = "" if fence else line[3:] or "text"
            continue
        match = _CONSOLE.match(line) if fence == "console" else None if fence else _INDENTED.match(line)
        if match:
            yield Command(str(path.relative_to(ROOT)), number, _COMMENT.sub("", match[1]).strip())
