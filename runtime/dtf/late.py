"""Names of a package that are imported when they are first used.

Owns the `__getattr__` and `__dir__` of lazy packages. An import thus costs only the names that are used.

    __getattr__, __dir__ = names(globals(), {"Session": "dtf.session"}, {"train": "dtf.train"}, rest="dtf.graph_names")
"""

from __future__ import annotations

import importlib
import importlib.util
import types
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["is_public", "missing", "names", "public_names", "refusals"]


def missing(module: str, name: str) -> AttributeError:
    """The error for a missing name of a module; names a substitute if `dtf.absent` knows one."""
    from dtf.absent import reason

    full = f"{module}.{name}".partition(".")[2]
    why = "" if name.startswith("__") else reason(full)
    return AttributeError(f"tf.{full}: {why}" if why else f"module {module!r} has no attribute {name!r}")


def is_public(name: str, value: Any) -> bool:
    """Whether `from module import *` gives a name: not what the module itself imported from elsewhere to work with."""
    if name.startswith("_") or name == "annotations":
        return False
    home = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None)
    return not isinstance(home, str) or (home.startswith(("dtf.", "tensorflow.")) and home != __name__)


def public_names(module: types.ModuleType) -> list[str]:
    """The names of a module that are public, with or without `__all__`."""
    return [name for name in dir(module) if is_public(name, getattr(module, name))]


def refusals(module: str) -> Callable[[str], Any]:
    """The `__getattr__` of a module that has all its names: every other one is refused."""

    def find(name: str) -> Any:
        raise missing(module, name)

    return find


def names(
    package: dict[str, Any], single: Mapping[str, str], modules: Mapping[str, str] | None = None, rest: str = ""
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The two functions that find the names of a package late.

    Args:
      package: its globals, where names go when they have been found.
      single: name -> the module that defines it.
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
        elif name == "__all__":  # `from package import *`
            return [each for each in everything() if is_public(each, package.get(each))]
        elif not name.startswith("__"):
            full = f"{package['__name__']}.{name}"
            if "__path__" in package and importlib.util.find_spec(full) is not None:  # perhaps while `rest` loads
                return importlib.import_module(full)
            load_rest()
        if name not in package:
            raise missing(package["__name__"], name)
        return package[name]

    def everything() -> list[str]:
        load_rest()
        return sorted({*package, *single, *modules})

    return find, everything
