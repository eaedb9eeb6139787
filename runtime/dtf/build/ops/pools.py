"""Windows over one, two or three spatial dimensions under one name, and dilated windows by means of batches.

`conv` and `volume` have the functions for images and volumes that stand under these.
Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn/pool
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dtf.build.apply import apply_op
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import name_scope
from dtf.build.ops import conv, volume
from dtf.build.ops.array import expand_dims, shape_of, squeeze
from dtf.build.tensor import Tensor
from dtf.wire.window_shapes import channel_axis

if TYPE_CHECKING:
    from dtf.build.tensor_like import TensorLike

__all__ = [
    "atrous_conv2d_transpose", "avg_pool1d", "avg_pool_v2", "conv1d_transpose", "conv_transpose", "max_pool1d",
    "max_pool_v2", "pool", "with_space_to_batch",
]  # fmt: skip

_FORMATS = ("NWC", "NHWC", "NDHWC"), ("NCW", "NCHW", "NCDHW")


def _sizes(value: Any, count: int, name: str) -> list[int]:
    """One number, or one for each of `count` spatial dimensions, as a list."""
    sizes = [int(each) for each in np.ravel(value)]
    sizes = sizes * count if len(sizes) == 1 else sizes
    if len(sizes) == count + 2:
        return sizes
    if len(sizes) != count:
        raise ValueError(f"{name} should be of length 1, {count} or {count + 2} but was {len(sizes)}")
    return sizes


def _full(value: Any, count: int, data_format: str, name: str) -> list[int]:
    """The same for all dimensions."""
    sizes = _sizes(value, count, name)
    if len(sizes) == count + 2:
        return sizes
    return [1, *sizes, 1] if channel_axis(data_format, count + 2) == count + 1 else [1, 1, *sizes]


def _pool1d(
    function: Callable[..., Tensor], input: Any, ksize: Any, strides: Any, padding: Any, data_format: str, name: Any
) -> Tensor:
    with name_scope(name, "MaxPool1d" if function is conv.max_pool else "AvgPool1D", [input]) as scope:
        first = channel_axis(data_format, 3) == 1
        window, steps = _full(ksize, 1, data_format, "ksize"), _full(strides, 1, data_format, "strides")
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
    data_format = data_format or _FORMATS[0][count - 1]
    window, steps = _full(ksize, count, data_format, "ksize"), _full(strides, count, data_format, "strides")
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
        rates = [1] * count if dilations is None else _sizes(dilations, count, "dilation_rate")
        steps = [1] * count if strides is None else _sizes(strides, count, "strides")
        if max(rates) > 1 and max(steps) > 1:
            raise ValueError("strides > 1 not supported in conjunction with dilation_rate > 1")
        channels_first = (data_format or "").startswith("NC")
        chosen = _FORMATS[channels_first][count - 1]
        if pooling_type == "MAX":
            function = (max_pool1d, conv.max_pool, volume.max_pool3d)[count - 1]
        else:
            function = (avg_pool1d, conv.avg_pool, volume.avg_pool3d)[count - 1]

        def windows(images: Tensor, padding: Any) -> Tensor:
            window = _full(window_shape, count, chosen, "window_shape")
            return function(images, window, _full(steps, count, chosen, "strides"), padding, data_format=chosen)

        if max(rates) == 1:
            window = _full(window_shape, count, chosen, "window_shape")
            return function(
                input, window, _full(steps, count, chosen, "strides"), padding, data_format=chosen, name=scope
            )
        first = 2 if channels_first else 1
        return with_space_to_batch(
            input, rates, padding, lambda images, _, padding: windows(images, padding), window_shape,
            list(range(first, first + count)),
        )  # fmt: skip


def with_space_to_batch(
    input: TensorLike,
    dilation_rate: Any,
    padding: str,
    op: Callable[..., Tensor],
    filter_shape: Any = None,
    spatial_dims: Sequence[int] | None = None,
    data_format: str | None = None,
) -> Tensor:
    """`op` on every `dilation_rate`-th element: the phases go into the batch, and come out of it again.

    Args:
      input: a tensor with the batch first.
      dilation_rate: a number for each spatial dimension.
      padding: "SAME" or "VALID".
      op: a function of (images, number of spatial dimensions, "VALID"), or of padding itself where no rate is above 1.
      filter_shape: the sizes of the window, needed for "SAME".
      spatial_dims: the axes, 1 and following by default.
      data_format: begins with "NC" where channels come second.

    Returns:
      The result of `op`, with its phases in their places.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn/with_space_to_batch
    """
    input = convert_to_tensor(input, name="input")
    rates = [int(each) for each in np.ravel(dilation_rate)]
    first = 2 if (data_format or "").startswith("NC") else 1
    axes = list(range(first, first + len(rates))) if spatial_dims is None else list(spatial_dims)
    if len(axes) != len(rates):
        raise ValueError(f"dilation_rate has {len(rates)} elements for {len(axes)} spatial dimensions")
    if min(rates) < 1:
        raise ValueError("dilation_rate must be positive")
    if max(rates) == 1:
        return op(input, len(rates), padding)
    if padding not in ("SAME", "VALID"):
        raise ValueError(f"Invalid padding method {padding!r}")
    pairs = np.zeros([len(rates), 2], np.int64)
    if padding == "SAME":
        if filter_shape is None:
            raise ValueError("filter_shape must be specified for SAME padding")
        extra = (np.array(filter_shape[: len(rates)]) - 1) * rates
        pairs = np.stack([extra // 2, extra - extra // 2], 1)
    low, high = min(axes), max(axes)
    blocks = [1] * (high - low + 1)
    base: list[Any] = [[0, 0] for _ in blocks]
    for axis, rate, pair in zip(axes, rates, pairs, strict=True):
        blocks[axis - low], base[axis - low] = rate, [int(each) for each in pair]
    if low != 1:  # Dimensions between the batch and the first axis are blocks of 1.
        blocks, base = [1] * (low - 1) + blocks, [[0, 0]] * (low - 1) + base
    sizes = input.shape.as_list()[1 : len(blocks) + 1]
    whole = shape_of(input)
    paddings: list[Any] = []
    crops: list[Any] = []
    for index, (size, block, pair) in enumerate(zip(sizes, blocks, base, strict=True)):
        length: Any = whole[index + 1] if size is None else size
        rest = (block - (length + pair[0] + pair[1]) % block) % block
        paddings.append([pair[0], pair[1] + rest])
        crops.append([0, rest])
    phases = apply_op("SpaceToBatchND", input=input, block_shape=blocks, paddings=paddings)
    made = op(phases, len(rates), "VALID")
    return apply_op("BatchToSpaceND", input=made, block_shape=blocks, crops=crops)


def conv1d_transpose(
    input: TensorLike,
    filters: TensorLike,
    output_shape: Any,
    strides: Any,
    padding: str = "SAME",
    data_format: str = "NWC",
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """The transpose of conv1d; filters are [width, channels out, channels in].

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn/conv1d_transpose
    """
    with name_scope(name, "conv1d_transpose", [input, filters, output_shape]) as scope:
        first = channel_axis(data_format, 3) == 1
        axis = 2 if first else 1
        steps = _full(strides, 1, data_format, "strides")
        rates = [1, 1, 1] if dilations is None else _full(dilations, 1, data_format, "dilations")
        sizes = convert_to_tensor(output_shape)
        made = conv.conv2d_transpose(
            expand_dims(input, axis), expand_dims(filters, 0),
            apply_op("ConcatV2", values=[sizes[:axis], np.ones([1], sizes.dtype.as_numpy_dtype), sizes[axis:]], axis=0),
            steps[:axis] + [1] + steps[axis:], padding, data_format="NCHW" if first else "NHWC",
            dilations=rates[:axis] + [1] + rates[axis:],
        )  # fmt: skip
        return squeeze(made, [axis], name=scope)


def conv_transpose(
    input: TensorLike,
    filters: TensorLike,
    output_shape: Any,
    strides: Any,
    padding: str = "SAME",
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """The transpose of `convolution` over one, two or three spatial dimensions, as `output_shape` says.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn/conv_transpose
    """
    with name_scope(name, "conv_transpose", [input, filters, output_shape]) as scope:
        rank = convert_to_tensor(output_shape).shape.num_elements()
        if rank not in (3, 4, 5):
            raise ValueError(f"output_shape must be of length 3, 4 or 5, got {output_shape}")
        functions = conv1d_transpose, conv.conv2d_transpose, volume.conv3d_transpose
        return functions[rank - 3](
            input, filters, output_shape, strides, padding=padding,
            data_format=data_format or _FORMATS[0][rank - 3], dilations=dilations, name=scope,
        )  # fmt: skip


def atrous_conv2d_transpose(
    value: TensorLike, filters: TensorLike, output_shape: Any, rate: int, padding: str, name: str | None = None
) -> Tensor:
    """The transpose of `atrous_conv2d`; filters are [height, width, channels out, channels in].

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn/atrous_conv2d_transpose
    """
    if rate < 1:
        raise ValueError(f"rate {rate} cannot be less than one")
    return conv.conv2d_transpose(
        value, filters, output_shape, 1, padding, dilations=rate, name=name or "atrous_conv2d_transpose"
    )
