"""tensorflow.python.framework.registry: objects by name, each registered once."""

from __future__ import annotations

from typing import Any

__all__ = ["Registry"]


class Registry:
    """A table of objects.

    Args:
      name: what the table holds, for messages.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._registry: dict[str, Any] = {}

    def register(self, candidate: Any, name: str | None = None) -> None:
        """Adds an object, by its own `__name__` if no name is given.

        Raises:
          KeyError: the name is taken.
        """
        key = name or candidate.__name__
        if key in self._registry:
            raise KeyError(f"Registering two {self._name} with name {key!r}!")
        self._registry[key] = candidate

    def list(self) -> list[str]:
        """The names."""
        return list(self._registry)

    def lookup(self, name: str) -> Any:
        """The object of this name.

        Raises:
          LookupError: nothing is registered under it.
        """
        name = name.decode() if isinstance(name, bytes) else name
        if name not in self._registry:
            raise LookupError(f"{self._name} registry has no entry for: {name}")
        return self._registry[name]
