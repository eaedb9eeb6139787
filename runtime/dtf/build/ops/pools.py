"""Pools of windows over one, two or three spatial dimensions under one name.

`conv` and `volume` have the functions for images and volumes that stand under these.
Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn/pool
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import name_scope
from dtf.build.ops import conv, volume
from dtf.build.ops.array import expand_dims, squeeze
from dtf.build.ops.convolution import with_space_to_batch
from dtf.build.ops.window_arguments import FORMATS, for_all, for_spatial
from dtf.build.tensor import Tensor
from dtf.wire.window_shapes import channel_axis

if TYPE_CHECKING:
    from dtf.build.tensor_like import TensorLike

__all__ = ["avg_pool1d", "avg_pool_v2", "max_pool1d", "max_pool_v2", "pool"]

def _pool1d(
    function: Callable[..., Tensor], input: Any, ksize: Any, strides: Any, padding: Any, data_format: str, name: Any
) -> Tensor:
    with name_scope(name, "MaxPool1d" if function is conv.max_pool else "AvgPool1D", [input]) as scope:
        first = channel_axis(data_format, 3) == 1
        window, steps = for_all(ksize, 1, data_format, "ksize"), for_all(strides, 1, data_format, "strides")
        axis = 2 if first else 1
        window, steps = (each[:axis] + [1] + each[axis:] for each in (window, steps))
        images = expand_dims(input, axis)
        made = function(images, window, steps, padding, data_format="NCHW" if first else "NHWC")
        return squeeze(made, [axis], name=scope)


def max_pool1d(
    input: TensorLike, ksize: Any, strides: Any, padding: str, data_format: str = "NWC", name: str | None = None
) -> Tensor:
    """The maximum of each window of sequences [batch, width, channels]."""
    return _pool1d(conv.max_pool, input, ksize, strides, padding, data_format, name)


def avg_pool1d(
    input: TensorLike, ksize: Any, strides: Any, padding: str, data_format: str = "NWC", name: str | None = None
) -> Tensor:
    """The mean of each window of sequences [batch, width, channels]."""
    return _pool1d(conv.avg_pool, input, ksize, strides, padding, data_format, name)


def max_pool_v2(
    input: TensorLike, ksize: Any, strides: Any, padding: Any, data_format: str | None = None, name: str | None = None
) -> Tensor:
    """The maximum of each window of sequences, images or volumes, as the rank of `input` says."""
    functions = max_pool1d, conv.max_pool, volume.max_pool3d
    return _by_rank(functions, input, ksize, strides, padding, data_format, name)


def avg_pool_v2(
    input: TensorLike, ksize: Any, strides: Any, padding: Any, data_format: str | None = None, name: str | None = None
) -> Tensor:
    """The mean of each window of sequences, images or volumes, as the rank of `input` says."""
    functions = avg_pool1d, conv.avg_pool, volume.avg_pool3d
    return _by_rank(functions, input, ksize, strides, padding, data_format, name)


def _by_rank(
    functions: Sequence[Callable[..., Tensor]],
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None,
    name: str | None,
) -> Tensor:
    input = convert_to_tensor(input)
    rank = input.shape.ndims
    count = rank - 2 if rank is not None else len(data_format or "") - 2
    if count not in (1, 2, 3):
        raise ValueError(f"Input must be of rank 3, 4 or 5 but was {rank}")
    data_format = data_format or FORMATS[0][count - 1]
    window, steps = for_all(ksize, count, data_format, "ksize"), for_all(strides, count, data_format, "strides")
    return functions[count - 1](input, window, steps, padding, data_format=data_format, name=name)


def pool(
    input: TensorLike,
    window_shape: Any,
    pooling_type: str,
    padding: Any,
    dilation_rate: Any = None,
    strides: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Any = None,
) -> Tensor:
    """Pooling over any number of spatial dimensions, with dilated windows.

    Args:
      input: [batch, ..., channels], or as `data_format` says.
      window_shape: one number for each of the 1 to 3 spatial dimensions.
      pooling_type: "MAX" or "AVG".
      padding: "SAME" or "VALID".
      dilation_rate: the distance between the elements of a window; with more than 1, strides must be 1.
      strides: one number for each spatial dimension; 1 by default.
      name: the name scope.
      data_format: begins with "NC" where channels come second.
      dilations: the newer name of `dilation_rate`.

    Returns:
      A Tensor of the rank of `input`.

    Raises:
      ValueError: another pooling type, or strides and dilations both above 1.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn/pool
    """
    with name_scope(name, f"{pooling_type.lower()}_pool", [input]) as scope:
        input = convert_to_tensor(input, name="input")
        count = len(window_shape)
        if count not in (1, 2, 3):
            raise ValueError(f"pool takes 1 to 3 spatial dimensions, got window_shape={window_shape}")
        input.shape.with_rank(count + 2)
        if pooling_type not in ("MAX", "AVG"):
            raise ValueError(f"pooling_type must be MAX or AVG, got {pooling_type}")
        dilations = dilations if dilation_rate is None else dilation_rate
        rates = [1] * count if dilations is None else for_spatial(dilations, count, "dilation_rate")
        steps = [1] * count if strides is None else for_spatial(strides, count, "strides")
        if max(rates) > 1 and max(steps) > 1:
            raise ValueError("strides > 1 not supported in conjunction with dilation_rate > 1")
        channels_first = (data_format or "").startswith("NC")
        chosen = FORMATS[channels_first][count - 1]
        if pooling_type == "MAX":
            function = (max_pool1d, conv.max_pool, volume.max_pool3d)[count - 1]
        else:
            function = (avg_pool1d, conv.avg_pool, volume.avg_pool3d)[count - 1]

        def windows(images: Tensor, padding: Any) -> Tensor:
            window = for_all(window_shape, count, chosen, "window_shape")
            return function(images, window, for_all(steps, count, chosen, "strides"), padding, data_format=chosen)

        if max(rates) == 1:
            window = for_all(window_shape, count, chosen, "window_shape")
            return function(
                input, window, for_all(steps, count, chosen, "strides"), padding, data_format=chosen, name=scope
            )
        first = 2 if channels_first else 1
        return with_space_to_batch(
            input, rates, padding, lambda images, _, padding: windows(images, padding), window_shape,
            list(range(first, first + count)),
        )  # fmt: skip


