"""The documentation of the most used public names: what each docstring must have, and the page made of them.

Owns the check of sections and the page `runtime/api.md`. `documented.txt` lists the names, one a line.

    python -m tests.public        writes the page; a test says when it is stale
"""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "runtime" / "api.md"
NAMES = Path(__file__).with_name("documented.txt").read_text(encoding="utf-8").split()
_HEAD = """# The most used names of dtf

Made by `python -m tests.public` from the docstrings. `import dtf as tf` gives these names; the names that are not
here follow TensorFlow 1.15's documentation too.
"""


def find(name: str) -> object:
    """The public object of a dotted name without "tf."."""
    value: object = importlib.import_module("dtf")
    for part in name.split("."):
        value = getattr(value, part)
    return value


def text_of(name: str) -> str:
    """The docstring of a name; of a class, with that of its constructor."""
    value = find(name)
    text = inspect.getdoc(value) or ""
    if inspect.isclass(value) and value.__init__ is not object.__init__:
        text += "\n\n" + (inspect.getdoc(value.__init__) or "")
    return text.strip()


def missing(name: str) -> list[str]:
    """The sections that the docstring of a name lacks."""
    value, text = find(name), text_of(name)
    try:
        takes = [each for each in inspect.signature(value).parameters if each not in ("self", "name", "args", "kwargs")]  # type: ignore[arg-type]
    except (TypeError, ValueError):
        takes = []
    lacks = []
    if takes and "Args:" not in text:
        lacks.append("Args")
    if not inspect.isclass(value) and "Returns:" not in text and "Yields:" not in text:
        lacks.append("Returns")
    if "https://www.tensorflow.org/" not in text and "https://" not in text:
        lacks.append("Source")
    return lacks


def render() -> str:
    """The page."""
    parts = [_HEAD]
    for name in NAMES:
        value = find(name)
        try:
            shown = str(inspect.signature(value)).replace(" -> 'None'", "")  # type: ignore[arg-type]
        except (TypeError, ValueError):
            shown = ""
        shown = shown.replace("'", "") if len(shown) < 400 else "(...)"
        parts.append(f"## tf.{name}\n\n```\ntf.{name}{shown}\n```\n\n```\n{text_of(name)}\n```\n")
    return "\n".join(parts)


def write() -> None:
    """Write the page."""
    PAGE.write_text(render(), encoding="utf-8")
