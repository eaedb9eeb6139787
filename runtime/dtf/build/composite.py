"""The base of values made of several tensors, such as RaggedTensor, that describe their parts themselves.

SparseTensor and IndexedSlices are older and have cases of their own in `composites` and in `dtf.fetches`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class Composite:
    """Base of values made of tensors that answer themselves how they are taken apart and fetched."""

    def _parts(self) -> list[Any]:
        """The tensors of this value."""
        raise NotImplementedError

    def _with_parts(self, parts: Sequence[Any]) -> Any:
        """A value of this kind, of other tensors."""
        raise NotImplementedError

    def _fetched(self, values: Sequence[Any]) -> Any:
        """What a session returns for this value, from the arrays of its parts."""
        raise NotImplementedError

    def _fed(self, value: Any) -> list[Any]:
        """The arrays of the parts for a value that is fed."""
        raise NotImplementedError
