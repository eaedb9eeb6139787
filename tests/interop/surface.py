"""The public surface of tf.compat.v1, name by name and argument by argument, and how much of it dtf has.

`surface(tf)` describes either runtime as plain values: each public module's names, with the parameters of functions
and the public members of classes. `differences` compares two of them, `page` writes the table of
`runtime/surface.md`. `python -m tests.interop.surface` writes that page anew (with TensorFlow's Python named by
DTF_TENSORFLOW_PYTHON); `--list MODULE` prints what differs.

Of tf.keras, which follows TensorFlow 1.15 here, only the names are compared. TensorFlow 2.21 has no tf.estimator.
"""

from __future__ import annotations

import enum
import inspect
import sys
import types
from pathlib import Path
from typing import Any

#: The modules walked, below tf. Those with a dot are looked up from tf too.
MODULES = (
    "",
    *(
        "app audio autograph bitwise compat config data data.experimental debugging distribute distributions dtypes "
        "errors experimental feature_column flags gfile graph_util image initializers io io.gfile layers "
        "layers.experimental linalg logging lookup lookup.experimental losses manip math math.special metrics nest nn "
        "nn.rnn_cell profiler python_io quantization queue ragged random random.experimental raw_ops "
        "resource_loader saved_model saved_model.builder saved_model.constants saved_model.loader "
        "saved_model.main_op saved_model.signature_constants saved_model.signature_def_utils "
        "saved_model.tag_constants saved_model.utils sets signal sparse spectral strings summary sysconfig "
        "test train train.experimental types user_ops version xla"
    ).split(),
)

#: The modules of tf.keras, whose names are counted; what they take follows TensorFlow 1.15, so it is not compared.
KERAS_MODULES = (
    "keras",
    *(
        f"keras.{name}"
        for name in (
            "activations applications backend callbacks constraints datasets estimator initializers layers losses "
            "metrics models optimizers preprocessing preprocessing.image preprocessing.sequence preprocessing.text "
            "regularizers utils wrappers"
        ).split()
    ),
)

#: What a module of TensorFlow shows without meaning to.
_NOT_PUBLIC = {"annotations", "absolute_import", "division", "print_function", "contextlib", "np", "sys", "os"}

#: What TensorFlow 2 adds to dtypes, shapes and specs for its tracing of functions; graphs of TensorFlow 1 have no use
#: for it.
_TRACING = {
    "cast", "experimental_as_proto", "experimental_from_proto", "experimental_type_proto", "flatten", "from_tensors",
    "to_tensors", "placeholder_value", "is_subtype_of", "most_specific_common_supertype",
}  # fmt: skip

#: Defaults that are written in two ways.
_SAME_DEFAULTS = {"zeros_initializer": "Zeros", "ones_initializer": "Ones"}

PAGE = Path(__file__).resolve().parent.parent.parent / "runtime" / "surface.md"


def _default(value: Any) -> str:
    """A default as text that is the same for both runtimes."""
    if value is inspect.Parameter.empty:
        return ""
    if isinstance(value, enum.Enum):
        return value.name
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_default(each) for each in value) + "]"
    name = getattr(value, "name", None) or getattr(value, "__name__", None)
    return str(name) if name is not None else type(value).__name__


def _parameters(callable_: Any) -> list[list[str]] | None:
    """[name, kind, default] of each parameter, without self; None where Python cannot say."""
    try:
        parameters = inspect.signature(callable_).parameters.values()
    except (TypeError, ValueError):
        return None
    kinds = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**", "KEYWORD_ONLY": "keyword"}
    return [[each.name, kinds.get(each.kind.name, ""), _default(each.default)] for each in parameters]


def _members(cls: type) -> dict[str, Any]:
    """Public methods and properties of a class: name -> parameters, or None for what is no function."""
    found: dict[str, Any] = {}
    for name in dir(cls):
        if not name.startswith("_"):
            try:
                member = inspect.getattr_static(cls, name)
            except AttributeError:
                continue
            bound = getattr(member, "__func__", member)
            parameters = _parameters(bound) if callable(bound) and not inspect.isclass(bound) else None
            found[name] = parameters[1:] if parameters and parameters[0][0] in {"self", "cls"} else parameters
    return found


def _entry(value: Any) -> dict[str, Any]:
    if isinstance(value, types.ModuleType):
        return {"kind": "module"}
    if inspect.isclass(value):
        message = hasattr(value, "DESCRIPTOR")
        plain = message or issubclass(value, (enum.Enum, tuple))
        return {
            "kind": "class",
            "parameters": None if plain else _parameters(value),
            "members": {} if message or issubclass(value, enum.Enum) else _members(value),
        }
    if callable(value) and not hasattr(value, "as_numpy_dtype"):
        return {"kind": "function", "parameters": _parameters(value)}
    return {"kind": "value"}


def surface(tf: Any) -> dict[str, dict[str, Any]]:
    """Every public module of `tf` that is there: its names and what is known of each."""
    found: dict[str, dict[str, Any]] = {}
    for path in (*MODULES, *KERAS_MODULES):
        module = tf
        for part in filter(None, path.split(".")):
            try:
                module = None if module is None else getattr(module, part, None)
            except ImportError:
                module = None
        if module is None:
            continue
        names = found[path] = {}
        for name in sorted(dir(module)):
            if name.startswith("_") or name in _NOT_PUBLIC:
                continue
            try:
                value = getattr(module, name, None)
            except ImportError:  # TensorFlow's keras without its package
                continue
            if not (name.endswith("_pb2") or isinstance(value, types.ModuleType)):
                names[name] = {"kind": "name"} if path in KERAS_MODULES else _entry(value)
    return found


def differing_parameters(wanted: list[list[str]] | None, found: list[list[str]] | None) -> str:
    """How the parameters of a function differ in what a caller can notice; empty where they do not."""
    if wanted is None or found is None:
        return ""
    kinds = {kind for _, kind, _ in found}
    takes_all, takes_names = kinds >= {"*", "**"}, "**" in kinds
    ours = {name: (index, default) for index, (name, _, default) in enumerate(found)}
    lacking, moved, defaults = [], [], []
    for index, (name, kind, default) in enumerate(wanted):
        if kind in {"*", "**"} or takes_all or name.startswith("_"):
            continue
        if name not in ours:
            if not takes_names:
                lacking.append(name)
        elif ours[name][0] != index and kind != "keyword":
            moved.append(name)
        elif default and ours[name][1] != default and not _same_meaning(default, ours[name][1]):
            defaults.append(f"{name}={ours[name][1]} for {default}")
    parts = [
        f"no {', '.join(lacking)}" if lacking else "",
        f"other order: {', '.join(moved)}" if moved and not lacking else "",
        f"defaults: {'; '.join(defaults)}" if defaults else "",
    ]
    return ". ".join(filter(None, parts))


def _same_meaning(one: str, other: str) -> bool:
    """Whether two defaults differ only in how they are written: (1, 1) is 1 for each dimension."""
    one, other = (_SAME_DEFAULTS.get(each, each) for each in (one, other))
    parts = [set(each.strip("[]").split(", ")) if each.startswith("[") else {each} for each in (one, other)]
    if parts[0] == parts[1] and len(parts[0]) == 1:
        return True
    try:
        return float(one) == float(other)
    except ValueError:
        return False


def left_out(path: str, name: str) -> bool:
    """Whether a missing name is left out on purpose, and its error names what to use instead."""
    from dtf import absent

    return bool(absent.reason(f"{path}.{name}" if path else name) or absent.reason(path))


def differences(wanted: dict[str, dict[str, Any]], found: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """By module: the names there, missing and differing, `{"there": [...], "missing": [...], "differing": {...}}`."""
    result = {}
    for path, names in wanted.items():
        ours = found.get(path, {})
        differing = {}
        for name, entry in names.items():
            if name in ours:
                parts = []
                text = differing_parameters(entry.get("parameters"), ours[name].get("parameters"))
                if text:
                    parts.append(text)
                members = ours[name].get("members")
                if members is not None:
                    for member, parameters in entry.get("members", {}).items():
                        if member in _TRACING and "most_specific_common_supertype" in entry["members"]:
                            continue
                        if member not in members:
                            parts.append(f"no .{member}")
                        elif text := differing_parameters(parameters, members[member]):
                            parts.append(f".{member}: {text}")
                if parts:
                    differing[name] = "; ".join(parts)
        result[path] = {
            "there": [name for name in names if name in ours],
            "missing": [name for name in names if name not in ours and not left_out(path, name)],
            "left out": [name for name in names if name not in ours and left_out(path, name)],
            "differing": differing,
        }
    return result


if __name__ == "__main__":
    import dtf
    from tests.interop.surface_page import main

    main(dtf, sys.argv[1:])
