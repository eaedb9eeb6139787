"""tensorflow.python.framework.op_def_library: nodes by the names of ops."""

from __future__ import annotations

from typing import Any

from dtf.build.apply import apply_op as make_node

__all__ = ["OpDefLibrary", "apply_op"]


class OpDefLibrary:
    """Makes nodes of the ops that this build has."""

    def apply_op(self, op_type_name: str, name: str | None = None, **keywords: Any) -> Any:
        """Makes a node of this op: returns its outputs, or the operation if it has none.

        Raises:
          RuntimeError: the op is unknown.
          TypeError: an argument is missing, unknown, or of a type that the op does not take.
          ValueError: a value is not allowed.
        """
        try:
            return make_node(op_type_name, name, **keywords)
        except KeyError:
            raise RuntimeError(f"Unrecognized Op name {op_type_name}") from None


_library = OpDefLibrary()
apply_op = _library.apply_op
