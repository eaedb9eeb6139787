"""What type checkers and editors see of dtf's public face."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.public import stubs

ROOT = stubs.ROOT.parent
ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{stubs.ROOT}:{ROOT}"}
PROGRAM = Path(__file__).with_name("user_program.py")


@pytest.fixture(scope="module")
def rendered() -> dict[str, str]:
    """The stubs as a fresh process makes them: modules that a test has imported are attributes of their package too."""
    code = "import json; from tests.public import stubs as s; print(json.dumps({p: s.render(p) for p in s.PACKAGES}))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=ENVIRONMENT, capture_output=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize("package", stubs.PACKAGES)
def test_the_stub_of_a_package_names_what_the_package_has(package: str, rendered: dict[str, str]):
    stale = f"the stub of {package} is stale: python -m tests.public writes it"
    assert stubs.path_of(package).read_text(encoding="utf-8") == rendered[package], stale


def wanted() -> tuple[dict[int, str], set[int]]:
    """The types to be shown and the lines with a mistake, by line number."""
    types, mistakes = {}, set()
    for number, line in enumerate(PROGRAM.read_text(encoding="utf-8").splitlines(), 1):
        shown = re.match(r"\s*reveal_type\(.*# (\w+)$", line)
        if shown:
            types[number] = shown[1]
        elif line.endswith("# error"):
            mistakes.add(number)
    assert len(types) >= 30 and len(mistakes) >= 7
    return types, mistakes


def check(found: dict[int, str], errors: set[int]) -> None:
    types, mistakes = wanted()
    assert {line: found.get(line) for line in types} == types
    assert errors == mistakes


def needs(module: str) -> None:
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is not installed; the extra dtf[dev] has it")


@pytest.mark.slow
def test_mypy_must_see_the_types_and_find_the_typos(tmp_path: Path):
    needs("mypy")
    program = tmp_path / PROGRAM.name
    program.write_text(PROGRAM.read_text(encoding="utf-8"), encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--follow-imports=silent", "--config-file=", program.name]
    environment = {"MYPYPATH": str(stubs.ROOT), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=500)
    found: dict[int, str] = {}
    errors: set[int] = set()
    for line in done.stdout.splitlines():
        parts = re.match(rf"{PROGRAM.name}:(\d+): (error|note): (.*)", line)
        if parts and parts[2] == "error":
            errors.add(int(parts[1]))
        elif parts and (shown := re.match(r'Revealed type is "(?:[\w.]+\.)?(\w+)', parts[3])):
            found[int(parts[1])] = shown[1]
    check(found, errors)


@pytest.mark.slow
def test_pyright_must_see_the_types_and_find_the_typos(tmp_path: Path):
    needs("pyright")
    (tmp_path / PROGRAM.name).write_text(PROGRAM.read_text(encoding="utf-8"), encoding="utf-8")
    settings = {"extraPaths": [str(stubs.ROOT)], "include": [PROGRAM.name], "typeCheckingMode": "basic"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=500)
    found: dict[int, str] = {}
    errors: set[int] = set()
    for each in json.loads(done.stdout)["generalDiagnostics"]:
        line = each["range"]["start"]["line"] + 1
        if each["severity"] == "error":
            errors.add(line)
        elif shown := re.match(r'Type of ".*" is "(\w+)', each["message"]):
            found[line] = "str" if shown[1] in ("Literal", "LiteralString") else shown[1]
    check(found, errors)
