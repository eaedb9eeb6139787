"""Shows and commands the places of durable tasks: `python -m dtf.places state HOST:PEER_PORT ...`.

`python -m dtf.places folder FOLDER` shows what the folder of a dead process has.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from dtf.places import lines
from dtf.wire import credentials, errors

_TIMEOUT_S = 10.0
_REFUSED, _SILENT = 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status: 0, or 1: refused, or 2: a place does not answer."""
    parser = argparse.ArgumentParser(prog="python -m dtf.places", description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    state = commands.add_parser("state", help="print one line of JSON for each place")
    state.add_argument("addresses", nargs="+", metavar="HOST:PEER_PORT")
    folder = commands.add_parser("folder", help="print what the folder of a dead process has")
    folder.add_argument("folder", type=Path)
    for name, what in (("promote", "let a backup be the primary"), ("alone", "let a primary go on without its backup")):
        command = commands.add_parser(name, help=what)
        command.add_argument("addresses", nargs=1, metavar="HOST:PEER_PORT")
        command.add_argument("--term", type=int, help="refuse unless the place is in this term")
        command.add_argument(
            "--fenced", action="store_true", help="the other place's process is dead, or cut off from all clients"
        )
        command.add_argument("--other-term", help="of the dead place's folder, its last term: refuse if it is later")
    chosen = parser.parse_args(arguments)
    if chosen.command == "folder":
        return _show_folder(chosen.folder)
    question: dict[str, object] = {"ask": chosen.command}
    if chosen.command != "state":
        question["fenced"] = chosen.fenced
        if chosen.term is not None:
            question["term"] = chosen.term
        if chosen.other_term is not None:
            question["other_term"] = chosen.other_term
    status = 0
    for address in chosen.addresses:
        try:
            answer = lines.ask(address, question, _TIMEOUT_S, credentials.from_environment())
        except errors.OpError as error:
            print(error.message, file=sys.stderr)
            status = max(status, _SILENT)
            continue
        if "state" in answer:
            print(json.dumps(answer["state"]))
        if not answer.get("ok"):
            print(answer.get("error"), file=sys.stderr)
            status = max(status, _REFUSED)
    return status


def _show_folder(folder: Path) -> int:
    from dtf.run.durability.replicated_resources import look_at

    if not folder.is_dir():
        print(f"{folder} is not a folder", file=sys.stderr)
        return _REFUSED
    try:
        print(json.dumps(look_at(folder)))
    except errors.OpError as error:
        print(error.message, file=sys.stderr)
        return _REFUSED
    return 0


if __name__ == "__main__":
    sys.exit(main())
