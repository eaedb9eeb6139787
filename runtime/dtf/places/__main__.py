"""Shows and commands the places of durable tasks: `python -m dtf.places state HOST:PEER_PORT ...`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

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
    for name, what in (("promote", "let a backup be the primary"), ("alone", "let a primary go on without its backup")):
        command = commands.add_parser(name, help=what)
        command.add_argument("addresses", nargs=1, metavar="HOST:PEER_PORT")
        command.add_argument("--term", type=int, help="refuse unless the place is in this term")
        command.add_argument(
            "--fenced", action="store_true", help="the other place's process is dead, or cut off from all clients"
        )
    chosen = parser.parse_args(arguments)
    question: dict[str, object] = {"ask": chosen.command}
    if chosen.command != "state":
        question["fenced"] = chosen.fenced
        if chosen.term is not None:
            question["term"] = chosen.term
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


if __name__ == "__main__":
    sys.exit(main())
