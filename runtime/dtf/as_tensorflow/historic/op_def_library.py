"""tensorflow.python.framework.op_def_library: nodes by the names of ops."""

from __future__ import annotations

from typing import Any

from dtf.build.apply import apply_op as make_node
from dtf.wire import opdef

__all__ = ["OpDefLibrary", "apply_op"]

_PLAIN = {"int": "int", "float": "float", "bool": "bool", "string": "string", "type": "DataType"}


class OpDefLibrary:
    """Makes nodes of the ops that this build has."""

    def apply_op(self, op_type_name: str, name: str | None = None, **keywords: Any) -> Any:
        """Makes a node of this op: returns its outputs, or the operation if it has none.

        Raises:
          RuntimeError: the op is unknown.
          TypeError: an argument is missing, unknown, or of a type that the op does not take.
          ValueError: a value is not allowed.
        """
        if not opdef.exists(op_type_name):
            raise RuntimeError(f"Unrecognized Op name {op_type_name}")
        contract = opdef.get(op_type_name)
        implied = {each for arg in contract.inputs for each in (arg.type_attr, arg.number_attr, arg.type_list_attr)}
        given = [attr for attr in keywords if attr in implied and attr is not None]
        if given:
            raise TypeError(f"Should not specify value for inferred attr '{given[0]}' for {op_type_name}.")
        inputs = {arg.name for arg in contract.inputs}
        extra = sorted(each for each in keywords if each not in inputs and each not in contract.attr_by_name)
        if extra:
            raise TypeError(f"{op_type_name} got unexpected keyword arguments: {', '.join(extra)}")
        for attr, value in keywords.items():
            if value is None and attr in contract.attr_by_name and contract.attr_by_name[attr].type in _PLAIN:
                raise TypeError(f"Expected {_PLAIN[contract.attr_by_name[attr].type]} for argument '{attr}' not None.")
        return make_node(op_type_name, name, **keywords)


_library = OpDefLibrary()
apply_op = _library.apply_op
