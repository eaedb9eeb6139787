"""What an agent does first: it reads what it is for."""

from __future__ import annotations

import os

from dtfctl.launchers import environment
from dtfctl.launchers.agent.check import check
from dtfctl.launchers.agent.keepers import clean, keep
from dtfctl.launchers.agent.lines import Lines, write_line
from dtfctl.launchers.agent.protocol import FIRST
from dtfctl.launchers.agent.sync import sync
from dtfctl.launchers.agent.talk import Talk
from dtfctl.wire.messages import BadMessage, message
from dtfctl.wording import reason_and_file


def main() -> None:
    os.umask(0o077)
    lines = Lines(0)
    try:
        request = message(lines.wait(), "do", FIRST)
    except BadMessage as error:
        write_line({"error": f"not a request: {error}"})
        return
    do = request.pop("do")
    if do == "talk":
        Talk(lines, **request).serve()
        return
    try:
        if do == "check":
            reply = check(**request)
        elif do == "sync":
            reply = sync(lines, **request)
        elif do == "keep":
            keep(**request, tell=write_line)
            return
        elif do == "environment":
            reply = environment.make(**request)
        else:
            reply = clean(**request)
    except BadMessage as error:
        reply = {"error": f"not a request: {error}"}
    except OSError as error:
        reply = {"error": reason_and_file(error)}
    write_line(reply)
