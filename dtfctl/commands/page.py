"""The page in the browser: ui."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from dtfctl.commands.frame import ERROR, USAGE, Options, choose, command, fail, takes_cluster

if TYPE_CHECKING:
    from pathlib import Path

    from dtfctl.control.cluster import Cluster

TRACE_TIMEOUT_S = 30.0


def add_to(group: click.Group) -> None:
    @command(group)
    @takes_cluster
    @click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port; default: a free one.")
    @click.option("--socket", "unix", type=click.Path(), metavar="PATH", help="Serve at a Unix socket instead.")
    @click.option("--read-only", is_flag=True, help="Show only: restart, stop, start, scale and down are refused.")
    @click.option("--no-browser", is_flag=True, help="Print the address, and open no browser.")
    def ui(
        options: Options, cluster: str | None, port: int, unix: str | None, read_only: bool, no_browser: bool
    ) -> None:
        """Shows clusters in the browser, until Ctrl-C: tasks, curves, logs, lives, parameters, and what is wrong.

        The page shows all clusters of the state folder, CLUSTER first. It is served at 127.0.0.1 (or a Unix socket)
        to those who have the token in its address. The training runs on without it. Needs pip install 'dtf[ui]'.
        """
        import secrets
        from pathlib import Path

        from dtfctl.errors import UnknownCluster
        from dtfctl.storage.paths import state_root

        if port and unix:
            fail(USAGE, "--port and --socket exclude each other")
        try:
            from dtfctl.ui.server import Page, listener, serve
        except ImportError as error:
            if error.name is None or error.name.partition(".")[0] not in ("starlette", "uvicorn"):
                raise
            fail(ERROR, f"the page needs {error.name}; install it: pip install 'dtf[ui]'")
        try:
            chosen = choose(options, cluster).name
        except UnknownCluster:
            if cluster is not None:
                raise
            chosen = ""  # the page waits for the first one
        path = Path(unix).absolute() if unix else None
        bound = listener(port, path)
        token = secrets.token_urlsafe(24)
        terminal = options.terminal()

        def begun() -> None:
            if path is not None:
                print(f"http://127.0.0.1:PORT/?token={token}", flush=True)
                terminal.say(f"served at {path}; on your machine: {_forwarding('PORT', str(path))}")
                return
            number = bound.getsockname()[1]
            address = f"http://127.0.0.1:{number}/?token={token}"
            print(address, flush=True)
            if "SSH_CONNECTION" in os.environ:
                terminal.say(f"on your machine: {_forwarding(str(number), f'127.0.0.1:{number}')}")
            elif not no_browser:
                opened.append(_open(address, state_root(options.state_dir)))

        opened: list[Path | None] = []
        try:
            serve(Page(state_root(options.state_dir), chosen, read_only, _traced), token, bound, begun)
        finally:
            bound.close()
            if path is not None:
                path.unlink(missing_ok=True)
            for file in filter(None, opened):
                file.unlink(missing_ok=True)


def _traced(cluster: Cluster, steps: int) -> dict[str, Any]:
    """What `dtfctl trace` writes, and what `dtfctl explain` says. Raises TraceImpossible."""
    from dtfctl.commands.tracing import traced
    from dtfctl.trace.explain import explain, lines
    from dtfctl.trace.perfetto import document

    found = traced(cluster, steps, TRACE_TIMEOUT_S, lambda words: None)
    explanation = explain(found)
    return {"trace": document(found, explanation), "lines": lines(explanation)}


def _forwarding(port: str, there: str) -> str:
    """The ssh command with which the user's machine reaches this one; the address is that by which it came here."""
    import getpass

    words = os.environ.get("SSH_CONNECTION", "").split()
    host = words[2] if len(words) == 4 else "HOST"
    host = f"[{host}]" if ":" in host else host
    return f"ssh -N -L {port}:{there} {getpass.getuser()}@{host}"


def _open(address: str, root: Path) -> Path | None:
    """Opens the browser by a file that only this user can read: arguments of commands can be seen by everybody."""
    import html
    import tempfile
    import webbrowser
    from pathlib import Path

    try:
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.NamedTemporaryFile("w", dir=root, prefix=".ui-", suffix=".html", delete=False) as file:
            file.write('<!doctype html><title>dtfctl ui</title><meta http-equiv="refresh" content="0; url=')
            file.write(f'{html.escape(address, quote=True)}">\n')
    except OSError:
        return None
    with _quiet():
        try:
            is_open = webbrowser.open(f"file://{file.name}")
        except webbrowser.Error:
            is_open = False
    if not is_open:
        print("no browser was found; open the address yourself", file=sys.stderr)
    return Path(file.name)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what browsers say on stderr; our own words come after it."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
