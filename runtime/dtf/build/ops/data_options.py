"""`tf.data.Options` and the groups of options in it.

Owns the names and types of options, as TensorFlow 1.15 and 2.x have them. Only `deterministic` has an effect here; the
others choose how TensorFlow's runtime works, never which elements a pipeline gives.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/data/Options
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = [
    "AutoShardPolicy", "AutotuneAlgorithm", "AutotuneOptions", "DistributeOptions", "ExternalStatePolicy",
    "MapVectorizationOptions", "OptimizationOptions", "Options", "StatsOptions", "ThreadingOptions",
]  # fmt: skip

_Group = TypeVar("_Group", bound="_Options")


class AutoShardPolicy(enum.IntEnum):
    """How a dataset is divided between workers."""

    OFF = -1
    AUTO = 0
    FILE = 1
    DATA = 2
    HINT = 3


class ExternalStatePolicy(enum.Enum):
    """Whether a pipeline with state outside of it may be saved."""

    WARN = 0
    IGNORE = 1
    FAIL = 2


class AutotuneAlgorithm(enum.Enum):
    """How sizes of buffers and numbers of threads are chosen."""

    DEFAULT = 0
    HILL_CLIMB = 1
    GRADIENT_DESCENT = 2
    MAX_PARALLELISM = 3
    STAGE_BASED = 4


class _Option:
    """One attribute of a group of options: its type, and its value until it is set."""

    def __init__(self, kind: Any, make: Callable[[], Any] | None = None) -> None:
        self._kind, self._make = kind, make
        self._name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: _Options | None, owner: type) -> Any:
        if instance is None:
            return self
        if self._make is not None and self._name not in instance._values:
            instance._values[self._name] = self._make()
        return instance._values.get(self._name)

    def __set__(self, instance: _Options, value: Any) -> None:
        if not isinstance(value, self._kind):
            raise TypeError(
                f'Property "{self._name}" must be of type {self._kind}, got: {value!r} (type: {type(value)!r})'
            )
        instance._values[self._name] = value


class _Other:
    """A second name of an option."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: _Options | None, owner: type) -> Any:
        return self if instance is None else getattr(instance, self._name)

    def __set__(self, instance: _Options, value: Any) -> None:
        setattr(instance, self._name, value)


class _Options:
    """Base of groups of options: equal if all options are; other attributes than options cannot be set."""

    _values: dict[str, Any]

    def __init__(self) -> None:
        object.__setattr__(self, "_values", {})

    def __setattr__(self, name: str, value: Any) -> None:
        if not isinstance(getattr(type(self), name, None), _Option | _Other):
            raise AttributeError(f"Cannot set the property {name} on {type(self).__name__}.")
        object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in {*self._values, *other._values})

    __hash__ = None  # type: ignore[assignment]

    def _merged(self: _Group, other: _Group) -> _Group:
        """A copy; options that are set in `other` take precedence."""
        merged = type(self)()
        merged._values.update(self._values)
        for name, value in other._values.items():
            mine = merged._values.get(name)
            merged._values[name] = mine._merged(value) if isinstance(mine, _Options) else value
        return merged


class AutotuneOptions(_Options):
    """Limits of the automatic choice of buffers and threads. Without an effect here."""

    enabled = _Option(bool)
    cpu_budget = _Option(int)
    ram_budget = _Option(int)
    autotune_algorithm = _Option(AutotuneAlgorithm)
    initial_parallelism = _Option(int)
    min_parallelism = _Option(int)


class DistributeOptions(_Options):
    """How a dataset is divided between workers. Without an effect here: use `Dataset.shard`."""

    auto_shard = _Option(bool)
    auto_shard_policy = _Option(AutoShardPolicy)
    num_devices = _Option(int)


class MapVectorizationOptions(_Options):
    """Whether maps before batches are made maps of batches. Without an effect here."""

    enabled = _Option(bool)
    use_choose_fastest = _Option(bool)


class OptimizationOptions(_Options):
    """Which rewrites of a pipeline are allowed. Without an effect here."""

    apply_default_optimizations = _Option(bool)
    autotune = _Option(bool)
    autotune_algorithm = _Option(int)
    autotune_buffers = _Option(bool)
    autotune_cpu_budget = _Option(int)
    autotune_ram_budget = _Option(int)
    filter_fusion = _Option(bool)
    filter_parallelization = _Option(bool)
    filter_with_random_uniform_fusion = _Option(bool)
    hoist_random_uniform = _Option(bool)
    inject_prefetch = _Option(bool)
    map_and_batch_fusion = _Option(bool)
    map_and_filter_fusion = _Option(bool)
    map_fusion = _Option(bool)
    map_parallelization = _Option(bool)
    map_vectorization = _Option(MapVectorizationOptions, MapVectorizationOptions)
    noop_elimination = _Option(bool)
    parallel_batch = _Option(bool)
    reorder_data_discarding_ops = _Option(bool)
    seq_interleave_prefetch = _Option(bool)
    shuffle_and_repeat_fusion = _Option(bool)


class ThreadingOptions(_Options):
    """How many threads a pipeline has. Without an effect here."""

    max_intra_op_parallelism = _Option(int)
    private_threadpool_size = _Option(int)


class StatsOptions(_Options):
    """Where statistics of a pipeline go. Without an effect here."""

    aggregator = _Option(object)
    prefix = _Option(str)
    counter_prefix = _Option(str)
    latency_all_edges = _Option(bool)


class Options(_Options):
    """How a pipeline is to be run. Only `deterministic` has an effect here.

    `deterministic` (also `experimental_deterministic`): whether parallel transformations keep the order of their input.

    Raises (when an attribute is set):
      AttributeError: there is no such option.
      TypeError: the value has another type.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/data/Options
    """

    autotune = _Option(AutotuneOptions, AutotuneOptions)
    dataset_name = _Option(str)
    deterministic = _Option(bool)
    experimental_deterministic = _Other("deterministic")
    experimental_distribute = _Option(DistributeOptions, DistributeOptions)
    experimental_external_state_policy = _Option(ExternalStatePolicy)
    experimental_optimization = _Option(OptimizationOptions, OptimizationOptions)
    experimental_slack = _Option(bool)
    experimental_stateful_whitelist = _Option(list)
    experimental_stats = _Option(StatsOptions, StatsOptions)
    experimental_symbolic_checkpoint = _Option(bool)
    experimental_warm_start = _Option(bool)
    framework_type = _Option(list)
    threading = _Option(ThreadingOptions, ThreadingOptions)
    experimental_threading = _Other("threading")

    def merge(self, options: Options) -> Options:
        """A copy of these options; options that are set in `options` take precedence."""
        return self._merged(options)

    def _serialized(self) -> bytes:
        # Field 1 of TensorFlow's message, a bool.
        return b"" if self.deterministic is None else bytes([8, self.deterministic])
