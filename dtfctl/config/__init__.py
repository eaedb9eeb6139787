"""The cluster file: YAML text in, a ClusterPlan or a ConfigError out. Touches no disk but for `load` and env files.

    source ...... YAML -> nodes with positions; anchors, merge keys      variables . ${NAME}, .env
    kinds ....... mappings and values, read and merged by one table      values .... durations, sizes, ports ...
    schema ...... that table: all keys -> JSON schema                    hostlist .. node[0-3]
    build ....... levels (top, job, task) -> ClusterPlan                 hosts ..... the machines
    place ....... which task runs where                                  resolved .. the file with all filled in
    doubts ...... what is allowed and hardly meant                       positions . where a task's values stand

A key that belongs to a task may stand under its job as the default of all tasks, and at the top as that of all jobs.
Every error names file, line, column and key, and the nearest key that exists. concepts.md lists the keys.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from dtfctl.config import build, kinds, schema, source
from dtfctl.config import doubts as doubting
from dtfctl.config.positions import Positions
from dtfctl.config.source import Entry, Node, Position
from dtfctl.config.variables import read_env_file
from dtfctl.errors import ConfigError
from dtfctl.values.plan import ClusterPlan

ENV_FILE = ".env"
_PATH_PART = re.compile(r'"([^"]+)"|([^."]+)')


@dataclass(frozen=True)
class ClusterFile:
    """One or several files, merged, with what was set on the command line; not yet looked into."""

    root: Node
    path: str
    reader: kinds.Reader

    def plan(self) -> ClusterPlan:
        """Raises ConfigError."""
        return build.build(self.root, self.reader, self.path, _read_text)

    def reads(self) -> list[str]:
        """The files besides the cluster files that `plan` has read, and the .env of variables. Raises ConfigError."""
        found: list[str] = []

        def read(path: str) -> str:
            found.append(path)
            return _read_text(path)

        build.build(self.root, self.reader, self.path, read)
        env = str(self.reader.folder / ENV_FILE)
        return [*dict.fromkeys(found), *([env] if os.path.isfile(env) and env not in found else [])]

    def on(self, engine: str) -> ClusterFile:
        """The file as if it named this engine; one that it names already, or another's options, stay."""
        at = Position("--as")
        own = self.root.get("engine") if isinstance(self.root, source.Mapping) else None
        if own is not None:
            return self
        entry = Entry(at, source.Scalar(engine, at))
        return replace(self, root=kinds.merge(schema.CLUSTER, self.root, source.Mapping({"engine": entry}, at)))

    def positions(self) -> Positions:
        return Positions(self.root, self.reader)

    def doubts(self) -> list[str]:
        """What is allowed and hardly meant."""
        return list(doubting.doubts(self.root, self.reader.jobs))


def load(
    path: Path | Iterable[Path], settings: Iterable[str] = (), environment: Mapping[str, str] | None = None
) -> ClusterPlan:
    """Reads a cluster file, or several files: each overrides the files before it. Raises ConfigError.

    `settings` are the command line's `key.path=value`, `environment` the variables (default: this process's), which
    come before those of the file .env beside the first cluster file.
    """
    paths = [path] if isinstance(path, Path) else list(path)
    return read(paths, settings, environment).plan()


def read(
    paths: list[Path], settings: Iterable[str] = (), environment: Mapping[str, str] | None = None
) -> ClusterFile:
    """As `load`, without making the plan."""
    texts = [_read_bytes(path) for path in paths]
    nodes = [source.read_yaml(text, str(path)) for text, path in zip(texts, paths, strict=True)]
    folder = Path(os.path.abspath(paths[0])).parent
    settings = list(settings)
    # A folder may have a .env that is none of dtfctl's business.
    is_used = any(b"${" in text for text in (*texts, *(setting.encode() for setting in settings)))
    variables = _variables_beside(folder) if is_used else {}
    variables |= os.environ if environment is None else environment
    return _file(nodes, settings, folder, str(folder / paths[0].name), variables)


def parse(
    text: str,
    file: str,
    folder: Path,
    settings: Iterable[str] = (),
    variables: Mapping[str, str] | None = None,
) -> ClusterPlan:
    """`file` is how errors name it; relative paths in it are relative to `folder`."""
    nodes = [source.read_yaml(text.encode(), file)]
    return _file(nodes, settings, folder, str(folder / Path(file).name), variables or {}).plan()


def template() -> str:
    """A commented cluster file to start from."""
    return Path(__file__).with_name("template.yaml").read_text(encoding="utf-8")


def trainer_template() -> str:
    """The program that the file of `template` runs."""
    return Path(__file__).with_name("trainer_template.txt").read_text(encoding="utf-8")


def _file(
    nodes: list[Node], settings: Iterable[str], folder: Path, path: str, variables: Mapping[str, str]
) -> ClusterFile:
    root = nodes[0]
    for node in nodes[1:]:
        root = kinds.merge(schema.CLUSTER, root, node)
    for node in map(_setting, settings):
        _refuse_unknown(root, node)
        root = kinds.merge(schema.CLUSTER, root, node)
    return ClusterFile(root, path, kinds.Reader(folder, dict(variables), build.job_names(root)))


def _refuse_unknown(root: Node, setting: Node) -> None:
    """What is set on the command line for a job or host that the files do not have, but almost, is a slip."""
    for key, word in (("jobs", "job"), ("hosts", "host")):
        known = root.get(key) if isinstance(root, source.Mapping) else None
        named = setting.get(key) if isinstance(setting, source.Mapping) else None
        if not isinstance(named, source.Mapping) or not isinstance(known, source.Mapping | source.Sequence):
            continue
        names = list(known.entries) if isinstance(known, source.Mapping) else list(map(_name, known.items))
        usual = (*names, *(doubting.USUAL_JOBS if key == "jobs" else ()))
        for name, entry in named.entries.items():
            near = "" if name in usual else doubting.meant(name, usual)
            if near:
                raise entry.at.error(f'the cluster file has no {word} "{name}" (did you mean "{near}"?)')


def _name(node: Node) -> str:
    return node.text if isinstance(node, source.Scalar) else ""


def _setting(text: str) -> Node:
    """The node of `jobs.worker.replicas=4`; a key with dots in it stands in quotes."""
    path, equals, value = text.partition("=")
    keys = [quoted or plain for quoted, plain in _PATH_PART.findall(path)]
    if not equals or not keys or ".".join(f'"{key}"' if "." in key else key for key in keys) != path.strip():
        raise ConfigError(f"--set {text}: must be key.path=value, such as jobs.worker.replicas=4")
    at = Position(f"--set {path}")
    node = source.read_value(value, f"--set {path}")
    for key in reversed(keys):
        node = source.Mapping({key: Entry(at, node)}, at)
    return node


def _variables_beside(folder: Path) -> dict[str, str]:
    path = str(folder / ENV_FILE)
    try:
        return read_env_file(_read_text(path), path)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: not a text file") from None
    except ValueError as error:
        raise ConfigError(str(error)) from None


def _read_bytes(path: Path) -> bytes:
    try:
        # A pipe that nobody writes to would keep its reader for ever; a shell has a writer for its <(...), in /dev.
        if stat.S_ISFIFO(os.stat(path).st_mode) and not str(path).startswith("/dev/"):
            raise ConfigError(f"{path}: a named pipe, not a file; write the cluster file to a plain file")
        with open(path, "rb") as file:
            return file.read(source.BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None


def _read_text(path: str) -> str:
    with open(path, encoding="utf-8-sig") as file:
        return file.read()
