"""Convolutions of any rank, with gaps between the elements of a filter, and their transposes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dtf.build.apply import apply_op
from dtf.build.argument_names import one_of
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import name_scope
from dtf.build.ops import conv, volume
from dtf.build.ops.array import expand_dims, shape_of, squeeze
from dtf.build.ops.window_arguments import FORMATS, for_all
from dtf.build.tensor import Tensor
from dtf.wire.window_shapes import channel_axis

if TYPE_CHECKING:
    from dtf.build.tensor_like import TensorLike

__all__ = [
    "atrous_conv2d_transpose", "conv1d_transpose", "conv_transpose", "convolution", "with_space_to_batch",
]  # fmt: skip


def convolution(
    input: TensorLike,
    filter: TensorLike | None = None,
    padding: str | None = None,
    strides: Sequence[int] | None = None,
    dilation_rate: Sequence[int] | None = None,
    name: str | None = None,
    data_format: str | None = None,
    filters: TensorLike | None = None,
    dilations: Sequence[int] | None = None,
) -> Tensor:
    """conv1d, conv2d or conv3d, as the rank of the filter says; strides and dilations are of spatial dimensions alone.

    Raises:
      ValueError: a filter of another rank.
    """
    filter = convert_to_tensor(one_of("filter", filter, "filters", filters), name="filter")
    dilations = one_of("dilation_rate", dilation_rate, "dilations", dilations)
    rank = filter.shape.ndims
    if rank == 3:
        return conv.conv1d(input, filter, strides, padding, data_format=data_format, name=name, dilations=dilations)
    if rank == 5:
        return _convolution3d(input, filter, padding, strides, dilations, name, data_format or "NDHWC")
    if rank != 4:
        raise ValueError(f"convolution takes filters of rank 3, 4 and 5, got {filter.shape}")
    with name_scope(name, "convolution", [input, filter]) as scope:
        return conv.conv2d(
            input,
            filter,
            1 if strides is None else list(strides),
            padding,
            data_format=data_format or "NHWC",
            dilations=1 if dilations is None else list(dilations),
            name=scope,
        )


def _convolution3d(
    input: TensorLike,
    filter: TensorLike,
    padding: Any,
    strides: Any,
    dilations: Any,
    name: str | None,
    data_format: str,
) -> Tensor:
    """`conv3d` with one number for each spatial dimension; kernels of dilated volumes take phases as batches."""
    rates = [1] * 3 if dilations is None else list(np.ravel(dilations)) * (3 if np.size(dilations) == 1 else 1)
    steps = volume.five(1 if strides is None else list(strides), data_format)

    def convolve(volumes: TensorLike, _: int, padding: Any) -> Tensor:
        return volume.conv3d(volumes, filter, steps, padding, data_format, name=name)

    if max(rates) == 1:
        return convolve(input, 3, padding)
    sizes = convert_to_tensor(filter).shape.as_list()[:3]
    return with_space_to_batch(input, rates, padding, convolve, sizes, data_format=data_format)


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
        steps = for_all(strides, 1, data_format, "strides")
        rates = [1, 1, 1] if dilations is None else for_all(dilations, 1, data_format, "dilations")
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
            data_format=data_format or FORMATS[0][rank - 3], dilations=dilations, name=scope,
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
