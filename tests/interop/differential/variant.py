"""A row of the table with other inputs or attributes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.runtime.op_cases import Case


@dataclass(frozen=True)
class Variant:
    """A row with other inputs or attributes.

    Attributes:
      label: what is different about it; with the case's name it names the variant.
      case: what to run.
      static: the graph's placeholders know the shapes of the inputs.
      gradient: gradients are compared too.
      raw_attrs: (name, type, value) of attributes that the contract does not allow.
    """

    label: str
    case: Case
    static: bool = True
    gradient: bool = False
    raw_attrs: tuple[tuple[str, str, Any], ...] = ()

    def __str__(self) -> str:
        return f"{self.case} {self.label}"
