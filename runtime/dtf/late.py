"""Names of a package that are imported when they are first used.

Owns the `__getattr__` and `__dir__` of such a package. So an import costs what is used of it, and no more.

    __getattr__, __dir__ = names(globals(), {"Session": "dtf.session"}, {"train": "dtf.train"}, rest="dtf.graph_names")
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["names"]


def names(
    package: dict[str, Any], single: Mapping[str, str], modules: Mapping[str, str] | None = None, rest: str = ""
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The two functions that find the names of a package late.

    Args:
      package: its globals, where names go when they have been found.
      single: name -> the module that has it.
      modules: name -> the module that it is.
      rest: a module whose public names are the package's too; all of them come with the first.
    """
    modules = modules or {}

    def load_rest() -> None:
        if rest:
            for name, value in vars(importlib.import_module(rest)).items():
                if not name.startswith("_"):
                    package.setdefault(name, value)

    def find(name: str) -> Any:
        if name in single:
            package[name] = getattr(importlib.import_module(single[name]), name)
        elif name in modules:
            package[name] = importlib.import_module(modules[name])
        elif not name.startswith("__"):
            full = f"{package['__name__']}.{name}"
            if importlib.util.find_spec(full) is not None:  # `from package import module`, perhaps while `rest` loads
                return importlib.import_module(full)
            load_rest()
        if name not in package:
            raise AttributeError(f"module {package['__name__']!r} has no attribute {name!r}")
        return package[name]

    def everything() -> list[str]:
        load_rest()
        return sorted({*package, *single, *modules})

    return find, everything
