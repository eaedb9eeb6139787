"""tf.contrib.training.HParams: named hyperparameters with types, which texts and JSON may set.

    hparams = HParams(learning_rate=0.1, layers=[64, 32])
    hparams.parse("learning_rate=0.3,layers=[128,64]")

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/training/HParams
"""

from __future__ import annotations

import json
import numbers
import re
from collections.abc import Mapping
from typing import Any

__all__ = ["HParams", "parse_values"]

_PARAM = re.compile(
    r"(?P<name>[a-zA-Z][\w.]*)(?:\[\s*(?P<index>\d+)\s*\])?\s*=\s*(?:\[(?P<list>[^\[\]]*)\]|(?P<value>[^,\[]*))(?:$|,)"
)


class HParams:
    """Hyperparameters as attributes.

    Args:
      hparam_def, model_structure: not used.
      **kwargs: their names and first values, which fix their types.

    Raises:
      ValueError: a name is a method's.
    """

    def __init__(self, hparam_def: Any = None, model_structure: Any = None, **kwargs: Any) -> None:
        self._hparam_types: dict[str, tuple[type, bool]] = {}
        self._model_structure = model_structure
        for name, value in kwargs.items():
            self.add_hparam(name, value)

    def add_hparam(self, name: str, value: Any) -> None:
        """Adds one.

        Raises:
          ValueError: the name is taken, or a list is empty.
        """
        if getattr(self, name, None) is not None:
            raise ValueError(f"Hyperparameter name is reserved: {name}")
        if isinstance(value, list | tuple):
            if not value:
                raise ValueError(f"Multi-valued hyperparameters cannot be empty: {name}")
            self._hparam_types[name] = (type(value[0]), True)
        else:
            self._hparam_types[name] = (type(value), False)
        setattr(self, name, value)

    def set_hparam(self, name: str, value: Any) -> None:
        """Sets one, as a value of its type.

        Raises:
          KeyError: the name is unknown.
          ValueError: the value is of another type, or a list where one value belongs.
        """
        kind, is_list = self._hparam_types[name]
        if isinstance(value, list):
            if not is_list:
                raise ValueError(f"Must not pass a list for single-valued parameter: {name}")
            setattr(self, name, [_cast(name, kind, each) for each in value])
        else:
            if is_list:
                raise ValueError(f"Must pass a list for multi-valued parameter: {name}.")
            setattr(self, name, _cast(name, kind, value))

    def del_hparam(self, name: str) -> None:
        """Removes a hyperparameter if it exists."""
        if hasattr(self, name):
            delattr(self, name)
            del self._hparam_types[name]

    def parse(self, values: str) -> HParams:
        """Sets hyperparameters from a text such as "rate=0.1,sizes=[1,2],names[0]=x". Returns itself.

        Raises:
          ValueError: the text does not parse, or names an unknown hyperparameter.
        """
        types = {name: kind for name, (kind, _) in self._hparam_types.items()}
        return self.override_from_dict(parse_values(values, types))

    def override_from_dict(self, values_dict: Mapping[str, Any]) -> HParams:
        """Sets several; {index: value} sets entries of a list. Returns itself."""
        for name, value in values_dict.items():
            if isinstance(value, dict):
                entries = list(getattr(self, name))
                for index, each in value.items():
                    entries[index] = each
                value = entries
            self.set_hparam(name, value)
        return self

    def set_model_structure(self, model_structure: Any) -> None:
        """Keeps a value for programs."""
        self._model_structure = model_structure

    def get_model_structure(self) -> Any:
        """The kept value."""
        return self._model_structure

    def to_json(self, indent: Any = None, separators: Any = None, sort_keys: bool = False) -> str:
        """All of them as JSON; functions are left out."""
        found = {name: value for name, value in self.values().items() if not callable(value)}
        return json.dumps(found, indent=indent, separators=separators, sort_keys=sort_keys)

    def parse_json(self, values_json: str) -> HParams:
        """Sets hyperparameters from a JSON object. Returns itself."""
        return self.override_from_dict(json.loads(values_json))

    def values(self) -> dict[str, Any]:
        """{name: value}."""
        return {name: getattr(self, name) for name in self._hparam_types}

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a name, or `default`.

        Raises:
          ValueError: the default is of another type.
        """
        if key not in self._hparam_types:
            return default
        kind, is_list = self._hparam_types[key]
        if default is not None and isinstance(default, list) != is_list:
            raise ValueError(f"the default of {key} is not of its type")
        if default is not None:
            for each in default if is_list else [default]:
                _cast(key, kind, each)
        return getattr(self, key)

    def __contains__(self, key: str) -> bool:
        return key in self._hparam_types

    def __str__(self) -> str:
        return str(sorted(self.values().items()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self})"


def parse_values(values: str, type_map: Mapping[str, type], ignore_unknown: bool = False) -> dict[str, Any]:
    """{name: value} of a text such as "rate=0.1,sizes=[1,2],names[0]=x".

    Args:
      type_map: the types of names.
      ignore_unknown: whether names that it lacks are left out.

    Raises:
      ValueError: the text does not parse, a name comes twice, or is unknown.
    """
    found: dict[str, Any] = {}
    position = 0
    while position < len(values):
        match = _PARAM.match(values, position)
        if match is None:
            raise ValueError(f"Malformed hyperparameter value: {values[position:]}")
        position = match.end()
        name, index = match["name"], match["index"]
        if name not in type_map:
            if ignore_unknown:
                continue
            raise ValueError(f"Unknown hyperparameter type for {name}")
        if match["list"] is not None:
            if index is not None:
                raise ValueError(f"Assignment of a list to a list index: {match[0]}")
            value: Any = [
                _parsed(name, type_map[name], each) for each in re.split(r"[ ,]+", match["list"].strip()) if each
            ]
        else:
            value = _parsed(name, type_map[name], match["value"].strip())
        if index is not None:
            entries = found.setdefault(name, {})
            if not isinstance(entries, dict) or int(index) in entries:
                raise ValueError(f"Multiple assignments to {name}[{index}] in {values}")
            entries[int(index)] = value
        elif name in found:
            raise ValueError(f"Multiple assignments to variable '{name}' in {values}")
        else:
            found[name] = value
    return found


def _parsed(name: str, kind: type, text: str) -> Any:
    try:
        if kind is bool:
            if text not in ("true", "True", "1", "false", "False", "0"):
                raise ValueError
            return text in ("true", "True", "1")
        return kind(text)
    except (TypeError, ValueError):
        raise ValueError(f"Could not parse hparam '{name}' of type '{kind.__name__}' with value '{text}'") from None


def _cast(name: str, kind: type, value: Any) -> Any:
    message = f"Could not cast hparam '{name}' of type '{kind.__name__}' from value {value!r}"
    if value is None or kind is type(None):
        return value
    if kind in (str, bytes) and not isinstance(value, str | bytes):
        raise ValueError(message)
    if (kind is bool) != isinstance(value, bool):
        raise ValueError(message)
    is_number = issubclass(kind, numbers.Integral)
    if (
        is_number
        and not isinstance(value, numbers.Integral)
        or not is_number
        and isinstance(value, numbers.Integral)
        and not issubclass(kind, numbers.Number)
    ):
        raise ValueError(message)
    return kind(value)
