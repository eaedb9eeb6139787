"""The generated messages are those of protos/, and are kept apart from TensorFlow's."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
MODULES = sorted(path.stem for path in (ROOT / "runtime" / "dtf" / "wire" / "pb").glob("*_pb2.py"))


def test_the_generated_modules_are_up_to_date():
    pytest.importorskip("grpc_tools")
    spec = importlib.util.spec_from_file_location("generate", ROOT / "protos" / "generate.py")
    assert spec is not None and spec.loader is not None
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    modules = {name: text for name, text in generate.generate().items() if name.endswith(".py")}
    written = {f"{name}.py": (ROOT / "runtime" / "dtf" / "wire" / "pb" / f"{name}.py").read_text() for name in MODULES}
    assert modules == written, "run protos/generate.py"


@pytest.mark.parametrize("name", MODULES)
def test_every_module_loads_and_registers_under_our_own_names(name):
    descriptor = importlib.import_module(f"dtf.wire.pb.{name}").DESCRIPTOR
    assert descriptor.name.startswith("dtf/")
    assert descriptor.package.split(".")[0] == "dtf"
