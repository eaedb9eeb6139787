"""The shapes of all that is said to a keeper, by it, within it, and that it finds in its records (wire/messages.py)."""

from __future__ import annotations

from dtfctl.wire.messages import each, either, fields, flag, maybe, name, number, row, system_text, table, text, whole

TASK = name()
GENERATION = whole(0)
PID = whole(1, 1 << 31)
PORT = whole(0, 65535)
WORDS = text()
ID = whole(0)
AT = number()

PROCESS = {"task": TASK, "generation": GENERATION}
LIMITS = fields(
    {},
    {
        **dict.fromkeys(("memory_bytes", "open_files", "processes", "core_bytes", "cpu_s"), maybe(whole(0))),
        "nice": maybe(whole(-20, 19)),
        "cpus": each(whole(0, 1 << 20)),
    },
)
LAUNCH = {
    **PROCESS,
    "argv": each(system_text()),
    "environment": table(system_text()),
    "working_dir": system_text(),
    "log": system_text(),
    "address": maybe(row(text(), PORT)),
}
RESPAWN = fields({}, {"argv": each(system_text()), "environment": table(system_text()), "log": system_text()})
REQUESTS = {
    "hello": fields({"respawn": RESPAWN}),
    "hold": fields(
        {"id": ID, "task": TASK, "address": text(), "port": PORT, "fixed": flag}, {"within": maybe(row(PORT, PORT))}
    ),
    "release": fields({"task": TASK}),
    "start": fields(
        LAUNCH, {"limits": LIMITS, "files": table(text(), name()), "logs": maybe(row(whole(0), whole(0)))}
    ),
    "signal": fields({**PROCESS, "number": whole(1, 64)}),
    "sweep": fields({"id": ID}),
    "lease": fields({"until": maybe(AT), "host": text()}),
    "bye": fields({}),
}
"""Of the daemon, by what they want done."""

EXIT = {
    "code": whole(0, 255),
    "signal": whole(1, 127),
    "error": text(is_any=True),
    "preempted": text(is_any=True),
    "is_out_of_memory": flag,
    "traceback": text(1 << 16, is_any=True),
}
LEFT = each(fields({"pid": PID, "command": system_text()}))
MESSAGES = {
    "listed": fields({"known": each(row(TASK, GENERATION))}),
    "held": fields({"id": ID, "port": PORT}),
    "refused": fields({"id": ID, "error": WORDS}),
    "started": fields({**PROCESS, "pid": PID, "at": AT}),
    "exited": fields({**PROCESS, "at": AT}, EXIT),
    "swept": fields({"id": ID, "left": LEFT}),
    "misunderstood": fields({"error": WORDS}),
}
"""To the daemon, by what they are."""

START_RECORD = fields(
    {
        **PROCESS,
        "pid": PID,
        "start_time": whole(0),
        "shim": PID,
        "shim_start_time": whole(0),
        "boot": text(100),
        "at": AT,
    },
    {"address": maybe(row(text(), PORT))},
)
EXIT_RECORD = fields({"at": AT}, EXIT)
LEASE_RECORD = fields({"boot": text(100), "until": AT, "host": text()})
SHIM_REQUEST = fields({**LAUNCH, "limits": LIMITS})
SHIM_NEWS = either(
    START_RECORD, fields({**PROCESS, "error": WORDS}, {"preempted": WORDS}), fields({**PROCESS, "exit": EXIT_RECORD})
)
"""The messages of a shim to its keeper: a start, the reason why a start failed, or an end."""
