"""What programs ask of a layer besides its call: settings, the numbers of its variables, inputs and outputs of calls.

Owns the record of a layer's constructor and calls. `base.Layer` is a subclass.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from dtf.build import nest
from dtf.build.default_graph import get_default_session, name_scope
from dtf.build.tensor_spec import TensorSpec
from dtf.wire.dtypes import DType

__all__ = ["Inspected"]


class Inspected:
    """Base of layers: knows the arguments it was made of and the tensors it was called on."""

    trainable = True
    stateful = False
    supports_masking = False
    dynamic = False
    input_spec: Any = None
    activity_regularizer: Any = None
    _dtype: DType | None
    _name: str
    _made_of: tuple[tuple[Any, ...], dict[str, Any]]
    _calls: list[tuple[Any, Any]]

    def __new__(cls, *arguments: Any, **named: Any) -> Any:
        layer = super().__new__(cls)
        layer._made_of = (arguments, named)
        layer._calls = []
        return layer

    # -- settings

    def get_config(self) -> dict[str, Any]:
        """The arguments of the constructor, by name, with defaults; `from_config` makes another such layer of them."""
        arguments, named = self._made_of
        bound = inspect.signature(type(self).__init__).bind_partial(self, *arguments, **named)
        bound.apply_defaults()
        config: dict[str, Any] = {}
        for name, value in list(bound.arguments.items())[1:]:
            kind = bound.signature.parameters[name].kind
            if kind is inspect.Parameter.VAR_KEYWORD:
                config.update(value)
            elif kind is not inspect.Parameter.VAR_POSITIONAL:
                config[name] = value
        config["name"] = self._name
        if config.get("dtype") is not None:
            config["dtype"] = getattr(config["dtype"], "name", config["dtype"])
        return config

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """A new layer of the settings that `get_config` gave; it has no variables yet."""
        return cls(**config)

    # -- the numbers of the variables

    def get_weights(self) -> list[np.ndarray]:
        """The values of the variables, the trainable ones first, from the default session.

        Raises:
          ValueError: no session is the default.
        """
        weights: list[Any] = self.weights  # type: ignore[attr-defined]
        return list(_session().run(weights)) if weights else []

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Sets the variables to arrays, in the order of `get_weights`.

        Raises:
          ValueError: their number or their shapes differ, or no session is the default.
        """
        variables: list[Any] = self.weights  # type: ignore[attr-defined]
        if len(weights) != len(variables):
            raise ValueError(
                f"You called `set_weights(weights)` on layer {self._name!r} with a weight list of length "
                f"{len(weights)}, but the layer was expecting {len(variables)} weights."
            )
        for variable, value in zip(variables, weights, strict=True):
            if not variable.shape.is_compatible_with(np.shape(value)):
                raise ValueError(f"Layer weight shape {variable.shape} not compatible with provided weight shape "
                                 f"{np.shape(value)}")  # fmt: skip
            variable.load(value, _session())

    # -- inputs and outputs of calls

    @property
    def input(self) -> Any:
        """The input of the only call. Raises AttributeError unless the layer was called once."""
        return self._of_only_call(0, "input")

    @property
    def output(self) -> Any:
        """The output of the only call. Raises AttributeError unless the layer was called once."""
        return self._of_only_call(1, "output")

    @property
    def input_shape(self) -> Any:
        """The static shape of `input` as a tuple, or a list of them."""
        return _tuples(self._of_only_call(0, "input shape"))

    @property
    def output_shape(self) -> Any:
        """The static shape of `output` as a tuple, or a list of them."""
        return _tuples(self._of_only_call(1, "output shape"))

    def get_input_at(self, node_index: int) -> Any:
        """The input of a call by its number. Raises RuntimeError for a layer that was not called."""
        return self._of_call(node_index, 0, "input")

    def get_output_at(self, node_index: int) -> Any:
        """The output of a call by its number. Raises RuntimeError for a layer that was not called."""
        return self._of_call(node_index, 1, "output")

    def get_input_shape_at(self, node_index: int) -> Any:
        """The static shape of the input of a call."""
        return _tuples(self._of_call(node_index, 0, "input_shape"))

    def get_output_shape_at(self, node_index: int) -> Any:
        """The static shape of the output of a call."""
        return _tuples(self._of_call(node_index, 1, "output_shape"))

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The mask of the outputs: none for layers that do not support masking.

        Raises:
          TypeError: a mask is given to such a layer.
        """
        if self.supports_masking:
            return mask
        if any(each is not None for each in nest.flatten(mask)):
            raise TypeError(f"Layer {self._name} does not support masking, but was passed an input_mask: {mask}")
        return None

    def compute_output_signature(self, input_signature: Any) -> Any:
        """TensorSpecs of the outputs for TensorSpecs of the inputs."""
        shapes = self.compute_output_shape(  # type: ignore[attr-defined]
            nest.map_structure(lambda spec: spec.shape, input_signature)
        )
        dtype = self._dtype or nest.flatten(input_signature)[0].dtype
        return nest.map_structure(lambda shape: TensorSpec(shape, dtype), shapes)

    @property
    def compute_dtype(self) -> str | None:
        """The name of the dtype of the computation."""
        return None if self._dtype is None else self._dtype.name

    @property
    def variable_dtype(self) -> str | None:
        """The name of the dtype of the variables."""
        return None if self._dtype is None else self._dtype.name

    @property
    def metrics(self) -> list[Any]:
        """The metrics of the layer: none."""
        return []

    @property
    def submodules(self) -> tuple[Any, ...]:
        """The layers that are attributes of this one, or in lists of these."""
        found = [each for each in nest.flatten(list(vars(self).values())) if isinstance(each, Inspected)]
        return tuple(dict.fromkeys(below for each in found for below in (each, *each.submodules)))

    @contextlib.contextmanager
    def name_scope(self) -> Iterator[str]:
        """A name scope of the layer's name."""
        with name_scope(self._name) as scope:
            yield scope

    @classmethod
    def with_name_scope(cls, method: Callable[..., Any]) -> Callable[..., Any]:
        """A decorator for methods: their operations are made in the name scope of the layer's name."""

        def scoped(self: Any, *arguments: Any, **named: Any) -> Any:
            with name_scope(self._name):
                return method(self, *arguments, **named)

        return scoped

    def _record_call(self, inputs: Any, outputs: Any) -> None:
        self._calls.append((inputs, outputs))

    def _of_only_call(self, part: int, word: str) -> Any:
        if not self._calls:
            raise AttributeError(f"The layer {self._name!r} has never been called and thus has no defined {word}.")
        values = [call[part] for call in self._calls]
        if len(values) > 1 and any(each is not values[0] for each in values):
            if "shape" in word and all(_tuples(each) == _tuples(values[0]) for each in values):
                return values[0]
            raise AttributeError(
                f"Layer {self._name} has multiple inbound nodes, hence the notion of 'layer {word}' is ill-defined. "
                f"Use `get_{word.replace(' ', '_')}_at(node_index)` instead."
            )
        return values[0]

    def _of_call(self, index: int, part: int, word: str) -> Any:
        if not self._calls:
            raise RuntimeError(f"The layer {self._name} has never been called and thus has no defined {word}.")
        if not 0 <= index < len(self._calls):
            raise ValueError(f"Asked to get {word} at node {index}, but the layer has only {len(self._calls)} inbound "
                             "nodes.")  # fmt: skip
        return self._calls[index][part]


def _session() -> Any:
    session = get_default_session()
    if session is None:
        raise ValueError("get_weights() and set_weights() need a default session: use `with session.as_default():`")
    return session


def _tuples(structure: Any) -> Any:
    def sizes(tensor: Any) -> Any:
        return None if tensor.shape.ndims is None else tuple(tensor.shape.as_list())

    return [sizes(each) for each in structure] if isinstance(structure, (list, tuple)) else sizes(structure)
