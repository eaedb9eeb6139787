"""The cluster file's folder on other machines: which files, which of them differ there, and bringing those.

The host decides by size and time of change (agent.sync); then rsync brings them where both ends have it, since it
sends only the parts of a file that differ, and otherwise a tar does. Nothing is removed there but what an earlier
sync brought and the user has since removed here.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import shutil
import stat
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dtfctl.launchers import ignore
from dtfctl.launchers.agent.protocol import ANSWERS
from dtfctl.launchers.agent_client import AgentClient
from dtfctl.launchers.pipe import Call, PipeError, RsyncTarget
from dtfctl.values.plan import ClusterPlan
from dtfctl.wire.messages import shown
from dtfctl.wording import reason_and_file

IGNORE_FILE = ".dtfctlignore"
GIT_IGNORE_FILE = ".gitignore"

FILES_MAX = 50_000
BYTES_MAX = 4 << 30
"""A folder with more than that was hardly meant to be copied to every host."""

ANSWER_S = 60.0
TRANSFER_S = 3600.0

Manifest = dict[str, tuple[int, int, int, str]]
"""Path -> size, time of change in ns, mode, and the target of a link or ""."""


@dataclass(frozen=True)
class Synced:
    files: int
    bytes: int
    removed: int


def manifest(plan: ClusterPlan) -> Manifest:
    """The files to bring. Raises ValueError, in words for the user, when they are too many."""
    top = Path(plan.folder)
    checkpoints = os.path.relpath(plan.checkpoint_folder, top) if plan.checkpoint_folder else ".."
    # Written by the tasks, each on its own host: never brought, never removed.
    own = [] if checkpoints.startswith("..") else ignore.rules(f"/{checkpoints}/")
    known = [*ignore.rules("\n".join(ignore.ALWAYS)), *own]
    is_own_ignore = (top / IGNORE_FILE).exists()
    found: Manifest = {}
    total = 0

    def walk(folder: str, rules: list[ignore.Rule]) -> None:
        nonlocal total
        path = top / folder
        name = IGNORE_FILE if is_own_ignore else GIT_IGNORE_FILE
        if (not is_own_ignore or not folder) and (path / name).is_file():
            rules = [*rules, *ignore.rules((path / name).read_text(errors="replace"), folder)]
        for entry in sorted(os.scandir(path), key=lambda entry: entry.name):
            relative = f"{folder}/{entry.name}" if folder else entry.name
            is_folder = entry.is_dir(follow_symlinks=False)
            if ignore.is_ignored(relative, is_folder, rules):
                continue
            if is_folder:
                if not (path / entry.name / "pyvenv.cfg").exists():
                    walk(relative, rules)
                continue
            target = _link_within(top, path / entry.name) if entry.is_symlink() else ""
            try:
                status = entry.stat(follow_symlinks=not target)
            except OSError:
                continue
            if not target and not stat.S_ISREG(status.st_mode):
                continue
            found[relative] = (status.st_size, status.st_mtime_ns, status.st_mode & 0o777, target)
            total += status.st_size
            if len(found) > FILES_MAX or total > BYTES_MAX:
                raise ValueError(
                    f"{top} has more than {FILES_MAX} files or {BYTES_MAX >> 30} GiB to copy to other hosts; "
                    f"list unneeded files in {IGNORE_FILE}, or say sync: false where the folder is shared"
                )

    walk("", known)
    return found


def _link_within(top: Path, path: Path) -> str:
    """The target of a link that holds on another machine too; "" for one that leads out of the folder, which is
    brought as the file that it stands for."""
    target = os.readlink(path)
    is_within = not os.path.isabs(target) and path.resolve().is_relative_to(top.resolve())
    return target if is_within else ""


async def sync(client: AgentClient, folder: str, source: Path, files: Manifest, has_rsync: bool) -> Synced:
    """Brings `files` of `source` to the host's `folder`. Raises PipeError."""
    call = await client.call({"do": "sync", "folder": folder, "files": files, "inode": os.stat(source).st_ino})
    wanted = (await client.line_of(call, ANSWER_S, ANSWERS["sync"]))["wanted"]
    strangers = [path for path in wanted if path not in files]
    if strangers or len(set(wanted)) < len(wanted):
        # Nothing but what lies in the folder is ever brought, whatever a host asks for.
        call.kill()
        await call.end()
        what = f"asks for {shown(strangers[0])}, which is not one" if strangers else "asks for files twice that are"
        raise PipeError(f"it {what} among the files of {source}", client.pipe.by_hand(), False)
    target = client.pipe.rsync_target(folder)
    way = way_to_bring(wanted, has_rsync and target is not None and shutil.which("rsync") is not None)
    if way == "rsync" and target is not None:
        await _rsync(client, call, target, source, wanted)
    call.writer.write(json.dumps({"way": way}).encode() + b"\n")
    if way == "tar":
        try:
            await _tar(call, source, wanted, files)
        except ConnectionError:
            raise client.failure(*await call.end()) from None
        except OSError as error:
            call.kill()
            await call.end()
            raise PipeError(reason_and_file(error), "", is_connection=False) from None
        except BaseException:
            call.kill()
            raise
    reply = await client.line_of(call, TRANSFER_S, ANSWERS["synced"])
    await call.end()
    # What was changed here while it was on its way is brought next time; what is not there at all is an error.
    missing = [path for path in reply["missing"] if path in files and _is_unchanged(source, path, files)]
    if missing:
        hand = client.pipe.by_hand("ls", "-l", f"{folder}/{missing[0]}")
        raise PipeError(f"{len(missing)} files were not copied, the first is {missing[0]}", hand, False)
    return Synced(len(wanted), sum(files[path][0] for path in wanted), len(reply["removed"]))


def way_to_bring(wanted: list[str], is_rsync_there: bool) -> str:
    """none, tar or rsync. A name with a line end in it is not for rsync's list."""
    if not wanted:
        return "none"
    return "rsync" if is_rsync_there and not any("\n" in path or "\r" in path for path in wanted) else "tar"


def rsync_argv(target: RsyncTarget, source: Path) -> tuple[str, ...]:
    """Reads the names from its input. The folder is not for the shell there to look at."""
    options = ("--files-from=-", "--times", "--links", "--copy-unsafe-links", "--perms", "--protect-args", "--quiet")
    return ("rsync", *options, "-e", target.shell, f"{source}/", target.place)


async def _rsync(
    client: AgentClient, call: Call, target: RsyncTarget, source: Path, wanted: list[str]
) -> None:
    process = await asyncio.create_subprocess_exec(
        *rsync_argv(target, source),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        cwd=target.cwd,
        start_new_session=True,
    )
    try:
        _, errors = await asyncio.wait_for(process.communicate("\n".join(wanted).encode()), TRANSFER_S)
    except BaseException:
        process.kill()
        call.kill()
        raise
    # 23 and 24: some files have changed or gone on the way; the host tells which are missing.
    if process.returncode not in (0, 23, 24):
        call.kill()
        await call.end()
        words = errors.decode(errors="replace").strip().splitlines()
        hand = client.pipe.by_hand("rsync", "--version")
        raise PipeError(f"rsync: {words[0] if words else f'exit status {process.returncode}'}", hand, False)


async def _tar(call: Call, source: Path, wanted: list[str], files: Manifest) -> None:
    """Streams an archive, one file at a time."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w|", format=tarfile.PAX_FORMAT) as archive:
        for path in wanted:
            archive.dereference = not files[path][3]
            try:
                archive.add(source / path, path, recursive=False)
            except FileNotFoundError:
                continue
            await _pass_on(buffer, call)
    await _pass_on(buffer, call)


async def _pass_on(buffer: io.BytesIO, call: Call) -> None:
    call.writer.write(buffer.getvalue())
    buffer.seek(0)
    buffer.truncate()
    await call.writer.drain()


def _is_unchanged(source: Path, path: str, files: Mapping[str, Any]) -> bool:
    try:
        found = os.lstat(source / path) if files[path][3] else os.stat(source / path)
    except OSError:
        return False
    return (found.st_size, found.st_mtime_ns) == tuple(files[path][:2])
