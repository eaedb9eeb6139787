"""tensorflow.python.util.lazy_loader: a module that is imported when a name of it is used."""

from __future__ import annotations

import importlib
import types
from typing import Any

__all__ = ["LazyLoader"]


class LazyLoader(types.ModuleType):
    """Stands for the module `name`, as `local_name` among `parent_module_globals`."""

    def __init__(self, local_name: str, parent_module_globals: dict[str, Any], name: str, warning: Any = None) -> None:
        self._local_name = local_name
        self._parent_module_globals = parent_module_globals
        super().__init__(name)

    def __getattr__(self, item: str) -> Any:
        module = importlib.import_module(self.__name__)
        self._parent_module_globals[self._local_name] = module
        return getattr(module, item)
