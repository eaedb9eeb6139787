"""The import hook for `import tensorflow...`. Owns the finder on `sys.meta_path`; the modules are made in
`modules`."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Sequence

from dtf.as_tensorflow import modules

__all__ = ["install", "is_installed"]


def install() -> None:
    """Puts the finder first, and `tensorflow` among the imported modules.

    Raises:
      ImportError: another TensorFlow is among them.
    """
    if is_installed():
        return
    other = sys.modules.get("tensorflow")
    if other is not None:
        raise ImportError(
            f"tensorflow is already imported, from {getattr(other, '__file__', 'somewhere else')}: its tensors "
            "and dtf's do not mix. Start the program with `python -m dtf`, before anything imports tensorflow"
        )
    sys.meta_path.insert(0, _Finder())
    importlib.import_module("tensorflow")


def is_installed() -> bool:
    return any(isinstance(finder, _Finder) for finder in sys.meta_path)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds `tensorflow` and the modules below it, and no others."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != "tensorflow" and not fullname.startswith("tensorflow."):
            return None
        return importlib.machinery.ModuleSpec(fullname, _Loader(), is_package=True)


class _Loader(importlib.abc.Loader):
    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType | None:
        return None

    def exec_module(self, module: types.ModuleType) -> None:
        # The import system takes what stands here afterwards: a module of dtf keeps its own name and spec.
        sys.modules[module.__name__] = modules.find(module.__name__)
