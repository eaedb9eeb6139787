"""The shapes of what an agent is asked, and of what it answers and tells (wire/messages.py)."""

from __future__ import annotations

from dtfctl.launchers.keeper.protocol import ID as ANY_ID
from dtfctl.launchers.keeper.protocol import LEFT, MESSAGES, PID, WORDS
from dtfctl.wire.messages import each, fields, flag, maybe, name, number, one_of, row, system_text, table, text, whole

RUN = text(400)
PATH = system_text()
PORT = whole(0, 65535)
MICROSECONDS = whole(0, 250_000_000_000_000_000)
"""Since 1970, until some year that a calendar has."""

KEEPER = table(text(16 << 20))
TALK = {"run": RUN, "token": text(100), "keeper": KEEPER}
FILE = row(whole(0), whole(), whole(0, 0o7777), PATH)

QUESTION = fields({"ask": text(100)}, is_open=True)
"""One of look.py's functions, and its arguments."""

ANSWER = row(whole(0), one_of("wrong", "doubt"), WORDS, WORDS)

FIRST = {
    "check": fields(
        {
            "folder": PATH,
            "addresses": each(text()),
            "names": each(text()),
            "ports": each(row(text(), PORT)),
            "pythons": each(PATH),
            "needs_folder": flag,
        },
        {"questions": each(QUESTION)},
    ),
    "sync": fields({"folder": PATH, "files": table(FILE)}, {"inode": whole(0)}),
    "environment": fields(
        {"venv": PATH, "files": each(PATH), "python": PATH, "folder": PATH, "timeout_s": number(0)}
    ),
    "talk": fields({**TALK, "have": table(whole(0))}, {"starts": flag}),
    "keep": fields(TALK),
    "clean": fields(TALK),
}
"""What an agent is for: its first line, by what it wants done."""

WAY = fields({"way": one_of("none", "tar", "rsync")})
REQUESTS = {
    "ack": fields({"bytes": whole(0)}, {"file": PATH, "until": whole(0)}),
    "drain": fields({"id": ANY_ID}),
    "command": fields(
        {
            "id": ANY_ID,
            "command": PATH,
            "environment": table(PATH),
            "working_dir": PATH,
            "timeout_s": number(0),
        }
    ),
    "file": fields({"id": ANY_ID, "path": PATH, "age_s": number(0)}),
    "clock": fields({}),
    "lease": fields({"id": ANY_ID, "until": maybe(number()), "host": text()}),
    "usage": fields({"id": ANY_ID, "pids": each(PID)}),
}
"""While it talks: what is asked of the agent itself. Every other line is the keeper's."""

FOUND = fields(
    {
        "python": PATH,
        "version": text(100),
        "user": text(300),
        "host": text(300),
        "kernel": text(300),
        "boot": text(100),
        "time": number(0),
        "cores": whole(1, 1 << 20),
        "environment": table(PATH),
        "folder": PATH,
        "folder_error": WORDS,
        "free_bytes": whole(0),
        "has_rsync": flag,
        "addresses": table(WORDS),
        "names": table(WORDS),
        "ports": each(row(text(), PORT, WORDS)),
        "pythons": table(WORDS),
    },
    {"answers": each(ANSWER), "interfaces": table(text(100))},
)
ANSWERS = {
    "check": FOUND,
    "sync": fields({"folder": PATH, "wanted": each(PATH)}),
    "synced": fields({"missing": each(PATH), "removed": each(PATH)}),
    "environment": fields({"made": flag, "error": WORDS, "command": text()}),
    "keep": fields({"kept": flag}),
    "clean": fields({"left": LEFT}),
}
"""The one answer of an agent that does not talk, or {error: words}; a sync has two."""

ERROR = fields({"error": WORDS})
USAGE = fields(
    {},
    {"cpu_s": number(0), "memory_bytes": whole(0), "processes": whole(0), "threads": whole(0)},
)
TOLD = {
    **MESSAGES,
    "host": fields({"boot": text(100), "keeper": whole(0)}),
    "clock": fields({"monotonic": number(), "wall": number(0, 1e11)}),
    "used": fields({"id": ANY_ID, "usages": table(USAGE), "monotonic": number()}),
    "log": fields(
        {
            "file": name(),
            "offset": whole(0),
            "data": text(1 << 20),
            "times": each(row(MICROSECONDS, whole(0))),
        }
    ),
    "drained": fields({"id": ANY_ID}),
    "leased": fields({"id": ANY_ID}),
    "checked": fields({"id": ANY_ID, "missing": WORDS}),
}
"""To the launcher, by what it is: the keeper's messages, and the agent's own."""


