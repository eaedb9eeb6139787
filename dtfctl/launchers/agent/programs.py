"""Whether a program would start on this host: its interpreter, its script, the modules that it imports.

Nothing of it is run. A Python is asked, with a program of its own (PROBE), what it would find.
"""

from __future__ import annotations

import difflib
import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from dtfctl.launchers.agent.places import absolute, expanded

WRONG, DOUBT = "wrong", "doubt"
Finding: TypeAlias = tuple[str, str, str]
"""(wrong or doubt, what is the matter, what to do)."""

PROBE_S = 20.0
UNSAID = ("", "python", "python3")
"""Where no interpreter is named, the one that was found is used: this one."""

LINE_MAX = 200

PROBE = r"""
import json, sys
asked, found = json.loads(sys.argv[1]), {}
try:
    import ast
    from importlib.machinery import PathFinder
    from importlib.util import find_spec
    sys.path[0] = asked["first"]

    def lacks(name):
        spec, known = None, ""
        for part in name.split("."):
            known = known + "." + part if known else part
            if known == part:
                spec = find_spec(part)
            else:
                spec = PathFinder.find_spec(known, spec.submodule_search_locations)
            if spec is None:
                return known
            if known != name and spec.submodule_search_locations is None:
                return name
        if spec.submodule_search_locations is not None and asked["is_main"]:
            return lacks(name + ".__main__")
        return ""

    if asked["module"]:
        found["lacks"] = lacks(asked["module"])
    if asked["script"]:
        asked["is_main"] = False
        with open(asked["script"], "rb") as file:
            text = file.read(4 << 20)
        try:
            tree = compile(text, asked["script"], "exec", ast.PyCF_ONLY_AST, True)
            compile(tree, asked["script"], "exec", 0, True)
        except SyntaxError as error:
            found["syntax"] = [error.lineno or 1, str(error.msg)]
        else:
            names = []
            for node in [] if b"sys.path" in text or b"__import__" in text else tree.body:
                if isinstance(node, ast.Import):
                    names += [(alias.name, node.lineno) for alias in node.names]
                elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                    names.append((node.module, node.lineno))
            tops = [(asked["instead"].get(name.split(".")[0], name.split(".")[0]), line) for name, line in names]
            missing = [(name, line) for name, line in tops if lacks(name)]
            found["imports"] = sorted(set(missing), key=lambda pair: pair[1])
except Exception:
    pass
print(json.dumps(found))
"""


def interpreter(python: str, venv: str) -> Iterator[Finding]:
    """A task's own, which `python` in its program means."""
    file = absolute(python) if "/" in python else python
    if python in UNSAID:
        return
    _, trouble = _command(file, "/", os.environ.get("PATH", os.defpath), False)
    if not trouble:
        return
    if venv and not os.path.isdir(absolute(venv)):
        place = absolute(venv)
        to_do = f"python3 -m venv {place}, or `requirements`, from which up makes it"
        yield WRONG, f"its venv {place} does not exist", to_do
    elif venv:
        yield WRONG, f"its venv {absolute(venv)} has no bin/python", f"python3 -m venv {absolute(venv)}"
    else:
        yield WRONG, f"its interpreter {trouble[1]}", trouble[2]


def program(
    steps: Sequence[Mapping[str, Any]],
    line: str,
    folder: str,
    python: str,
    environment: Mapping[str, str],
    instead: Mapping[str, str],
) -> Iterator[Finding]:
    """`steps` are the commands of a program, as far as they are known before a shell sees them: the fields of
    program_line.Step. `line` is a shell line whose syntax a shell is to look at, "" for none. `python`
    is the task's interpreter, `environment` what the cluster file says of PATH and PYTHONPATH, `instead` the package
    that an imported name gets in its place."""
    path = environment.get("PATH") or os.pathsep.join(
        filter(None, (os.path.dirname(expanded(python)), os.environ.get("PATH", os.defpath)))
    )
    if line:
        words = _shell_says(line)
        if words:
            yield WRONG, f"the shell cannot parse its program: {words}", "close every quote and bracket"
            return
    for step in steps:
        place = os.path.join(absolute(folder), step["folder"])
        if not os.path.isdir(place):
            # That the working_dir is missing is told elsewhere.
            if step["folder"]:
                yield (WRONG if step["is_sure"] else DOUBT), f"the folder {place} does not exist", f"mkdir -p {place}"
            return
        for grade, what, to_do in _step(step, place, path, environment, python, instead):
            yield grade if step["is_sure"] else DOUBT, what, to_do


def _step(
    step: Mapping[str, Any],
    place: str,
    path: str,
    environment: Mapping[str, str],
    python: str,
    instead: Mapping[str, str],
) -> Iterator[Finding]:
    where = ""
    if step["command"]:
        where, trouble = _command(step["command"], place, path, step["is_exec"])
        if trouble and step["command"] == python in UNSAID:
            where, trouble = sys.executable, None
        if trouble:
            # What is wrong with the task's interpreter is told elsewhere.
            if step["command"] != python:
                yield trouble
            return
    script = step["script"]
    if script:
        file = os.path.join(place, expanded(script))
        trouble = _script(script, file, place)
        if trouble:
            yield trouble
            return
        script = file if os.path.isfile(file) else ""
    if step["is_python"] and (script or step["module"]):
        yield from _python(where, script, step["module"], place, environment, instead)


def _command(name: str, place: str, path: str, is_exec: bool) -> tuple[str, Finding | None]:
    """(its path, what is wrong with it or None)."""
    if "/" in name:
        file = os.path.normpath(os.path.join(place, expanded(name)))
        if not os.path.lexists(file):
            return file, (WRONG, f"{name}: no such file{_in(place, name)}", _near_file(file, place))
    else:
        found = [os.path.join(folder or ".", name) for folder in path.split(os.pathsep)]
        files = [each for each in found if os.path.isfile(os.path.join(place, each))]
        file = next((each for each in files if os.access(each, os.X_OK)), files[0] if files else "")
        if not file:
            return "", (WRONG, f"{name}: not found in PATH", _near_command(name, place, path))
    if not os.path.exists(file):
        return file, (WRONG, f"{file}: a link to {os.path.realpath(file)}, which does not exist", f"ls -l {file}")
    if not os.path.isfile(file):
        return file, (WRONG, f"{file}: not a file", "name the program in it")
    if not os.access(file, os.X_OK):
        return file, (WRONG, f"{file}: not executable", f"chmod +x {file}, or its interpreter before it")
    return file, _heading(file, path, is_exec)


def _heading(file: str, path: str, is_exec: bool) -> Finding | None:
    """What the first line of a script has to say of its interpreter."""
    try:
        with open(file, "rb") as script:
            first = script.read(256).split(b"\n")[0]
    except OSError:
        return None
    if first.startswith(b"\x7fELF") or (first and b"\0" in first):
        return None
    if not first.startswith(b"#!"):
        if is_exec:
            return WRONG, f"{file}: its first line names no interpreter (#!)", "#!/usr/bin/env python3, or the like"
        if file.endswith(".py"):
            return WRONG, f"{file}: its first line names no interpreter (#!), so the shell runs it", "python before it"
        return DOUBT, f"{file}: its first line names no interpreter (#!), so the shell runs it", "#!/bin/sh"
    words = first[2:].decode(errors="replace").strip(" \t").split(None, 1)
    interpreter = words[0] if words else ""
    if first.endswith(b"\r"):
        return WRONG, f"{file}: its first line ends as on Windows (CR), so no interpreter is found", f"dos2unix {file}"
    if not os.path.exists(interpreter):
        return WRONG, f"{file}: its interpreter {interpreter or '(none)'} does not exist", "change its first line (#!)"
    rest = words[1].split() if len(words) > 1 else []
    if os.path.basename(interpreter) == "env":
        name = next((word for word in rest if not word.startswith("-") and "=" not in word), "")
        if name and "/" not in name and not any(os.path.isfile(os.path.join(each, name)) for each in path.split(":")):
            return WRONG, f"{file}: its interpreter {name} is not found in PATH", "change its first line (#!)"
    return None


def _script(name: str, file: str, place: str) -> Finding | None:
    if not os.path.lexists(file):
        return WRONG, f"{name}: no such file{_in(place, name)}", _near_file(file, place)
    if not os.path.exists(file):
        return WRONG, f"{name}: a link to {os.path.realpath(file)}, which does not exist", f"ls -l {file}"
    if os.path.isdir(file) and not os.path.isfile(os.path.join(file, "__main__.py")):
        return WRONG, f"{name}: a folder without __main__.py", "name the file in it"
    if not os.access(file, os.R_OK):
        return WRONG, f"{name}: cannot be read (no permission)", f"ls -l {file}"
    mode = os.stat(file).st_mode
    if stat.S_ISFIFO(mode) and not file.startswith("/dev/"):
        return WRONG, f"{name}: a named pipe, not a file; the program would wait for it for ever", f"ls -l {file}"
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        return DOUBT, f"{name}: not a plain file", f"ls -l {file}"
    return None


def _python(
    python: str, script: str, module: str, place: str, environment: Mapping[str, str], instead: Mapping[str, str]
) -> Iterator[Finding]:
    first = os.path.dirname(script) if script else place
    asked = {"first": first, "script": script, "module": module, "is_main": True, "instead": dict(instead)}
    try:
        done = subprocess.run(
            [python, "-W", "ignore", "-c", PROBE, json.dumps(asked)],
            cwd=place,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PROBE_S,
        )
    except subprocess.TimeoutExpired:
        yield DOUBT, f"{python} does not answer within {PROBE_S:g}s", f"{python} --version"
        return
    except OSError as error:
        yield WRONG, f"{python}: {error.strerror}", f"{python} --version"
        return
    try:
        found = json.loads(done.stdout.decode().strip().splitlines()[-1])
    except (ValueError, IndexError):
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        why = lines[-1][:LINE_MAX] if lines else f"it exits with status {done.returncode}"
        # A Python that runs, but is too old for the question, has said nothing.
        if done.returncode:
            yield WRONG, f"{python} does not work: {why}", f"{python} --version"
        return
    if found.get("lacks"):
        name = found["lacks"]
        top = module.split(".")[0]
        words = f"no module named {name}" if name == top else f"{top} has no module {name}"
        yield WRONG, f"-m {module}: {words} for {python}", f"{python} -m pip install {top}"
    if "syntax" in found:
        number, words = found["syntax"]
        yield WRONG, f"{script}:{number}: SyntaxError: {words}", "mend it"
    for name, number in found.get("imports", []):
        to_do = f"{python} -m pip install {name}, or another python or venv"
        yield DOUBT, f"{script}:{number}: imports {name}, which {python} does not have", to_do


def _shell_says(line: str) -> str:
    try:
        done = subprocess.run(
            ["/bin/sh", "-n", "-c", line], stdin=subprocess.DEVNULL, capture_output=True, timeout=PROBE_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    words = done.stderr.decode(errors="replace").strip().splitlines()
    return (words or [f"status {done.returncode}"])[0][:LINE_MAX] if done.returncode else ""


def _near_command(name: str, place: str, path: str) -> str:
    if os.path.isfile(os.path.join(place, name)):
        return f"./{name}, to run the file in that folder"
    names = set()
    for folder in path.split(os.pathsep):
        try:
            names.update(os.listdir(folder or "."))
        except OSError:
            continue
    # The names that people mean most come first where several are as near.
    known = [each for each in ("python", "python3", "bash", "sh") if each in names] + sorted(names)
    near = difflib.get_close_matches(name, known, 1, 0.7)
    return f'did you mean "{near[0]}"?' if near else "install it, or give its whole path"


def _near_file(file: str, place: str) -> str:
    try:
        names = sorted(os.listdir(os.path.dirname(file)))
    except OSError:
        return f"its folder {os.path.dirname(file)} does not exist either"
    near = difflib.get_close_matches(os.path.basename(file), names, 1, 0.6)
    if not near:
        return "paths are relative to the working_dir"
    return f'did you mean "{os.path.relpath(os.path.join(os.path.dirname(file), near[0]), place)}"?'


def _in(place: str, name: str) -> str:
    return "" if os.path.isabs(expanded(name)) else f" in {place.rstrip('/') or '/'}"
