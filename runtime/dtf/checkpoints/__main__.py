"""The command line of dtf.checkpoints."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict

from dtf.checkpoints import folder as folders
from dtf.wire import errors
from dtf.wire.increments import compact

_DAMAGED, _WRONG = 1, 2
_UNITS = ("B", "kB", "MB", "GB", "TB")
_HEADINGS = ("CHECKPOINT", "STEP", "WRITTEN", "SIZE", "TENSORS", "STATE", "PROBLEM")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command. Returns the exit status: 1 where something is damaged, 2 where the arguments are wrong.

    Args:
      arguments: the command line, without the program's name.
    """
    options = _parser().parse_args(arguments)
    try:
        status: int = options.run(options)
    except (errors.OpError, ValueError, OSError) as error:
        print(f"error: {error.message if isinstance(error, errors.OpError) else error}", file=sys.stderr)
        return _WRONG
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m dtf.checkpoints", description="The checkpoints of a folder.")
    parser.add_argument("folder")
    verbs = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, run, text in (
        ("list", _list, "lists them, oldest first"),
        ("verify", _verify, "reads all of them and names what is damaged"),
        ("prune", _prune, "removes old and damaged ones, and what killed saves have left"),
        ("compact", _compact, "makes increments whole, so that they need no other checkpoint"),
    ):
        verb = verbs.add_parser(name, help=text, description=text)
        verb.set_defaults(run=run)
        verb.add_argument("--json", action="store_true", help="as JSON")
        if run in (_verify, _compact):
            verb.add_argument("names", nargs="*", metavar="NAME", help="these alone, such as model.ckpt-100")
        if run is _prune:
            verb.add_argument("--keep", type=int, default=5, metavar="N", help="the newest N stay (5)")
            verb.add_argument("--every-hours", type=float, metavar="H", help="and one for each H hours")
            verb.add_argument("--dry-run", action="store_true", help="remove nothing, only say")
    return parser


def _list(options: argparse.Namespace) -> int:
    found = folders.found_in(options.folder)
    if options.json:
        print(json.dumps([asdict(each) for each in found]))
    else:
        _print_table(found)
    return _DAMAGED if any(each.problem for each in found) else 0


def _verify(options: argparse.Namespace) -> int:
    chosen = _chosen(options)
    problems = {}
    for each in chosen:
        problems[each.name] = list(folders.problems_of(each.prefix))
        if not options.json:
            for line in problems[each.name] or ["whole"]:
                print(f"{each.name}: {line}", flush=True)
    if options.json:
        print(json.dumps([{"prefix": each.prefix, "problems": problems[each.name]} for each in chosen]))
    elif not chosen:
        print("no checkpoints")
    return _DAMAGED if any(problems.values()) else 0


def _prune(options: argparse.Namespace) -> int:
    pruned = folders.prune(options.folder, options.keep, options.every_hours, options.dry_run)
    if options.json:
        kept = [{"prefix": each.prefix, "reason": reason} for each, reason in pruned.kept]
        print(json.dumps({"removed": [each.prefix for each in pruned.removed], "kept": kept}))
        return 0
    verb = "would remove" if options.dry_run else "removed"
    for each in pruned.removed:
        print(f"{verb} {each.name} ({_size(each.size)}){f': {each.problem}' if each.problem else ''}")
    for each, reason in pruned.kept:
        print(f"kept {each.name}: {reason}")
    return 0


def _compact(options: argparse.Namespace) -> int:
    done = {each.name: compact(each.prefix) for each in _chosen(options) if not each.problem}
    if options.json:
        print(json.dumps(done))
    else:
        for name, was_increment in done.items():
            print(f"{name}: {'compacted' if was_increment else 'whole already'}")
    return 0


def _chosen(options: argparse.Namespace) -> list[folders.Found]:
    """The checkpoints that are named; all without names. Raises NotFoundError."""
    found = folders.found_in(options.folder)
    if not options.names:
        return found
    by_name = {each.name: each for each in found}
    for name in options.names:
        if name not in by_name:
            known = ", ".join(by_name) or "none"
            raise errors.NotFoundError.of(f"{options.folder} has no checkpoint {name} (checkpoints: {known})")
    return [by_name[name] for name in options.names]


def _print_table(found: Sequence[folders.Found]) -> None:
    if not found:
        print("no checkpoints")
        return
    rows = [_HEADINGS] + [
        (
            each.name,
            "-" if each.step is None else str(each.step),
            time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(each.written_at)) if each.written_at else "-",
            _size(each.size),
            "-" if each.tensors is None else str(each.tensors),
            each.standing if not each.based_on else f"{each.standing}, increment of {each.based_on}",
            each.problem or "-",
        )
        for each in found
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADINGS))]
    for row in rows:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())


def _size(size: float) -> str:
    for unit in _UNITS:
        if size < 1000 or unit == _UNITS[-1]:
            break
        size /= 1000
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"


if __name__ == "__main__":
    sys.exit(main())
