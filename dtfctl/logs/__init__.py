"""Reading what tasks write. They write their files themselves (launchers/keeper), and a recorder beside them notes
when these grow (launchers/log_recorder.py); nothing here is in anybody's way.

    files .... one process's log: its whole lines, each with its time
    reader ... those of many tasks as one stream, in the order of time: what is there, and what comes
    tracebacks  those that many tasks have in common, shown once

The smallest use: `for line in LogReader(folder, ["worker:0"]).past(): print(line.text)`.
"""

from __future__ import annotations

from dtfctl.logs.files import Line, last_lines, tasks_with_logs
from dtfctl.logs.reader import EVERYTHING, Choice, LogReader
from dtfctl.logs.tracebacks import OneOfEach

__all__ = ["EVERYTHING", "Choice", "Line", "LogReader", "OneOfEach", "last_lines", "tasks_with_logs"]
