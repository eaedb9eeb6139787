"""Which files are not brought to other hosts: the rules of .dtfctlignore, else of .gitignore, in gitignore's language.

Pure. A rule without a slash holds in its folder and below, one with a slash is relative to its folder; a slash at the
end means folders, `**` any depth, `!` takes back an earlier rule; the last rule that fits decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

ALWAYS = (".git/", ".hg/", ".svn/", "__pycache__/", "*.pyc", ".dtfctl-sync.json*", "*.dtfctl", ".env")
"""`.env` holds what this machine's user gives to the cluster file, often secrets."""


@dataclass(frozen=True)
class Rule:
    """`folder` is where the rule stands, "" for the top; its pattern fits paths that begin there."""

    folder: str
    pattern: re.Pattern[str]
    only_folders: bool
    takes_back: bool

    def fits(self, path: str, is_folder: bool) -> bool:
        if self.only_folders and not is_folder:
            return False
        if self.folder and not path.startswith(f"{self.folder}/"):
            return False
        return self.pattern.fullmatch(path[len(self.folder) + 1 if self.folder else 0 :]) is not None


def rules(text: str, folder: str = "") -> list[Rule]:
    """The rules of one file, which lies in `folder` (relative to the top)."""
    return [rule for line in text.splitlines() if (rule := _rule(line, folder)) is not None]


def is_ignored(path: str, is_folder: bool, known: Iterable[Rule]) -> bool:
    """`path` is relative to the top; whether a folder above it is ignored is the caller's to see."""
    ignored = False
    for rule in known:
        if rule.takes_back == ignored and rule.fits(path, is_folder):
            ignored = not rule.takes_back
    return ignored


def _rule(line: str, folder: str) -> Rule | None:
    text = re.sub(r"(?<!\\)\s+$", "", line)
    if not text or text.startswith("#"):
        return None
    takes_back = text.startswith("!")
    text = text[1:] if takes_back else text.removeprefix("\\")
    only_folders = text.endswith("/")
    text = text.rstrip("/")
    if not text:
        return None
    is_anchored = "/" in text
    pattern = _regular(text.lstrip("/"))
    return Rule(folder, re.compile(pattern if is_anchored else f"(?:.*/)?{pattern}"), only_folders, takes_back)


def _regular(text: str) -> str:
    result = ""
    position = 0
    while position < len(text):
        rest = text[position:]
        bracket = re.match(r"\[([!^]?)((?:\\.|[^\]\\])[^\]]*)\]", rest)
        if rest.startswith("**/"):
            result, position = result + "(?:.*/)?", position + 3
        elif rest == "**":
            result, position = result + ".*", position + 2
        elif rest[0] == "*":
            result, position = result + "[^/]*", position + 1
        elif rest[0] == "?":
            result, position = result + "[^/]", position + 1
        elif bracket:
            inner = bracket[2].replace("\\", "\\\\").replace("[", "\\[")
            result, position = result + f"[{'^' if bracket[1] else ''}{inner}]", position + bracket.end()
        elif rest[0] == "\\" and len(rest) > 1:
            result, position = result + re.escape(rest[1]), position + 2
        else:
            result, position = result + re.escape(rest[0]), position + 1
    return result
