"""Runs modules of unit tests that import tensorflow; prints {test: its error, or ""} as JSON.

Under `python -m dtf` the modules get dtf, under Python with TensorFlow 2 its compat.v1 as `tensorflow`.
"""

from __future__ import annotations

import faulthandler
import importlib.abc
import importlib.util
import io
import json
import sys
import unittest
from pathlib import Path
from types import ModuleType


def main(folder: str, *names: str) -> None:
    import tensorflow

    if not tensorflow.__version__.startswith("1."):
        import tensorflow.compat.v1 as v1

        v1.disable_v2_behavior()
        v1.__path__ = tensorflow.__path__
        sys.modules["tensorflow"] = v1
        tensorflow = v1
        _give_names_of_version_1(v1)
    tensorflow.logging.set_verbosity(tensorflow.logging.FATAL)
    suite = unittest.TestSuite()
    for path in sorted(Path(folder).glob("[a-z]*.py")):
        if names and path.stem not in names:
            continue
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module
        spec.loader.exec_module(module)
        suite.addTests(unittest.defaultTestLoader.loadTestsFromModule(module))
    tests = [test for group in suite for test in (group if isinstance(group, unittest.TestSuite) else [group])]
    found = {test.id(): "" for test in tests}
    faulthandler.dump_traceback_later(400, exit=True)  # names a test that waits for ever
    result = unittest.TextTestRunner(stream=io.StringIO()).run(unittest.TestSuite(tests))
    for test, text in [*result.failures, *result.errors]:
        found[test.id()] = text
    for test, _ in result.skipped:
        found.pop(test.id(), None)
    print(json.dumps(found), flush=True)


def _give_names_of_version_1(v1: ModuleType) -> None:
    """TensorFlow 2 has moved names between its modules: those of 1.15 are found in the public ones."""
    places = [v1, v1.train, v1.nn, v1.math, v1.data, v1.summary, v1.io, v1.losses, v1.metrics]
    more = {"VariableV1": v1.Variable, "_VariableStore": object}

    def public(name: str) -> object:
        for place in () if name.startswith("__") else places:
            if hasattr(place, name):
                return getattr(place, name)
        if name in more:
            return more[name]
        raise AttributeError(name)

    class Finder(importlib.abc.MetaPathFinder):
        def find_spec(self, fullname: str, path: object, target: object = None) -> None:
            for name, module in list(sys.modules.items()):
                if name.startswith("tensorflow.python.") and "__getattr__" not in vars(module):
                    vars(module)["__getattr__"] = public

    Finder().find_spec("", None)
    sys.meta_path.insert(0, Finder())


main(*sys.argv[1:])
