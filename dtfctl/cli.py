"""The command line: what stands before every command, and the last net for what goes wrong in one.

The commands themselves are in the rooms of dtfctl/commands.
"""

from __future__ import annotations

import os
import sys

import click

from dtfctl import hints
from dtfctl.commands import (
    checkpoints,
    curves,
    figures,
    files,
    hosts,
    inspect,
    keys,
    lifecycle,
    logs,
    manual,
    moving,
    page,
    places,
    synonyms,
    tasks,
    tracing,
)
from dtfctl.commands.frame import SIGNALLED, Options

EPILOG = """\b
Exit status: 0 done, or the training succeeded; 1 something failed, or processes were left behind;
2 wrong usage or an invalid cluster file; 3 not running; 4 unknown cluster or task; 5 not ready in time;
7 the supervisor cannot be reached; 8 hosts cannot be reached or used; 10 the training failed;
20 there is something to change (--plan); 130 and 143 interrupted. More: dtfctl help exit-codes
"""


def main() -> None:
    try:
        commands(standalone_mode=False, prog_name="dtfctl", complete_var=manual.COMPLETE_VARIABLE)
    except click.exceptions.Exit as error:
        sys.exit(error.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        print("interrupted; dtfctl status shows what still runs, dtfctl down ends it", file=sys.stderr)
        sys.exit(SIGNALLED + 2)
    except BrokenPipeError:
        # The reader of stdout has closed it; Python would complain once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(SIGNALLED + 13)


class _InOrder(click.Group):
    """Commands as a user comes to need them, not by the alphabet."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(
    cls=_InOrder,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.option(
    "--state-dir",
    metavar="FOLDER",
    help="The folder of the clusters' state (DTFCTL_STATE_DIR; by default ~/.local/state/dtfctl).",
)
@click.option("--debug", is_flag=True, help="Show the Python traceback of an error.")
@click.version_option(package_name=None, version="0.1.0", prog_name="dtfctl")
@click.pass_context
def commands(context: click.Context, state_dir: str | None, debug: bool) -> None:
    """Runs distributed training from one YAML file, and keeps it running.

    CLUSTER is a cluster's name or its file. Without one, this folder's cluster.yaml is meant, or the only cluster.
    """
    hints.remember_state_dir(state_dir)
    context.obj = Options(state_dir, debug)


for room in (
    *(lifecycle, inspect, curves, checkpoints, figures, tracing, logs, page, tasks, places, moving, files, keys, hosts),
    *(manual, synonyms),
):
    room.add_to(commands)
