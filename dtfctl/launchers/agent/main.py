"""What an agent does first: it reads what it is for."""

from __future__ import annotations

import json
import os

from dtfctl.launchers import environment
from dtfctl.launchers.agent.check import check
from dtfctl.launchers.agent.keepers import clean
from dtfctl.launchers.agent.lines import Lines, write_line
from dtfctl.launchers.agent.sync import sync
from dtfctl.launchers.agent.talk import Talk


def main() -> None:
    os.umask(0o077)
    lines = Lines(0)
    request = json.loads(lines.wait())
    do = request.pop("do")
    if do == "talk":
        Talk(lines, **request).serve()
        return
    try:
        if do == "check":
            reply = check(**request)
        elif do == "sync":
            reply = sync(lines, **request)
        elif do == "environment":
            reply = environment.make(**request)
        else:
            reply = clean(**request)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        reply = {"error": f"{where}{error.strerror or error}"}
    write_line(reply)
