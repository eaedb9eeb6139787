"""Image ops that users call one by one: files, resizing, crops, colors, boxes; and the shape rules of all image ops.

Functions composed of several ops (flips, random changes, padding) are in `image_functions`. Images are [height, width,
channels] or [batch, height, width, channels].

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/image
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dtf.build.apply import apply_op
from dtf.build.constant_value import constant_value, constant_value_as_shape
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import name_scope
from dtf.build.ops.random import op_seeds
from dtf.build.shape_rules import scalar, shape_rule, unchanged
from dtf.build.tensor import Operation, Tensor
from dtf.wire import dtypes
from dtf.wire.tensor_shape import TensorShape
from dtf.wire.window_shapes import window_extent

if TYPE_CHECKING:
    from dtf.build.tensor_like import DTypeLike, TensorLike

__all__ = [
    "combined_non_max_suppression", "crop_and_resize", "decode_and_crop_jpeg", "decode_bmp",
    "decode_gif", "decode_image", "decode_jpeg", "decode_png", "draw_bounding_boxes", "encode_jpeg", "encode_png",
    "extract_glimpse", "extract_jpeg_shape", "extract_volume_patches", "hsv_to_rgb", "non_max_suppression",
    "non_max_suppression_overlaps", "non_max_suppression_padded", "non_max_suppression_with_scores", "resize_area",
    "resize_bicubic", "resize_bilinear", "resize_nearest_neighbor", "rgb_to_hsv", "sample_distorted_bounding_box",
]  # fmt: skip

# -- files


def decode_png(
    contents: TensorLike, channels: int = 0, dtype: DTypeLike = dtypes.uint8, name: str | None = None
) -> Tensor:
    """The image of a PNG file, uint8 or uint16. channels: 1, 3, 4, or 0 for as many as the file has.

    Args:
      contents: a string scalar, the file.
      channels: 1, 3, 4, or 0 for those of the file.
      dtype: uint8 or uint16.
      name: the name of the operation.

    Returns:
      A Tensor [height, width, channels].

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/image/decode_png
    """
    return apply_op("DecodePng", name, contents=contents, channels=channels, dtype=dtypes.as_dtype(dtype))


def decode_jpeg(
    contents: TensorLike,
    channels: int = 0,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    acceptable_fraction: float = 1,
    dct_method: str = "",
    name: str | None = None,
) -> Tensor:
    """The image of a JPEG file, uint8. channels: 1, 3, or 0 for as many as the file has. The task needs Pillow.

    Args:
      contents: a string scalar, the file.
      channels: 1, 3, or 0 for those of the file.
      ratio: 1, 2, 4 or 8: by how much the image is made smaller.
      fancy_upscaling: accepted; the decoder decides.
      try_recover_truncated: accept a file that is cut short.
      acceptable_fraction: which part of the lines must be there.
      dct_method: accepted; the decoder decides.
      name: the name of the operation.

    Returns:
      A uint8 Tensor [height, width, channels].

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/image/decode_jpeg
    """
    return apply_op(
        "DecodeJpeg",
        name,
        contents=contents,
        channels=channels,
        ratio=ratio,
        fancy_upscaling=fancy_upscaling,
        try_recover_truncated=try_recover_truncated,
        acceptable_fraction=acceptable_fraction,
        dct_method=dct_method,
    )


def decode_and_crop_jpeg(
    contents: TensorLike,
    crop_window: Any,
    channels: int = 0,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    acceptable_fraction: float = 1,
    dct_method: str = "",
    name: str | None = None,
) -> Tensor:
    """As `decode_jpeg`, of a part only: [top, left, height, width]."""
    return apply_op(
        "DecodeAndCropJpeg",
        name,
        contents=contents,
        crop_window=crop_window,
        channels=channels,
        ratio=ratio,
        fancy_upscaling=fancy_upscaling,
        try_recover_truncated=try_recover_truncated,
        acceptable_fraction=acceptable_fraction,
        dct_method=dct_method,
    )


def decode_gif(contents: TensorLike, name: str | None = None) -> Tensor:
    """All frames of a GIF file, uint8 [frames, height, width, 3]. The task needs Pillow."""
    return apply_op("DecodeGif", name, contents=contents)


def decode_bmp(contents: TensorLike, channels: int = 0, name: str | None = None) -> Tensor:
    """The image of a BMP file, uint8."""
    return apply_op("DecodeBmp", name, contents=contents, channels=channels)


def decode_image(
    contents: TensorLike,
    channels: int | None = None,
    dtype: DTypeLike = dtypes.uint8,
    name: str | None = None,
    expand_animations: bool = True,
) -> Tensor:
    """The image of a file of any of these kinds; of unknown static shape unless `expand_animations` is False."""
    return apply_op(
        "DecodeImage",
        name,
        contents=contents,
        channels=channels or 0,
        dtype=dtypes.as_dtype(dtype),
        expand_animations=expand_animations,
    )


def encode_png(image: TensorLike, compression: int = -1, name: str | None = None) -> Tensor:
    """A PNG file of an image of uint8 or uint16 with 1 to 4 channels."""
    return apply_op("EncodePng", name, image=image, compression=compression)


def encode_jpeg(
    image: TensorLike,
    format: str = "",
    quality: int = 95,
    progressive: bool = False,
    optimize_size: bool = False,
    chroma_downsampling: bool = True,
    density_unit: str = "in",
    x_density: int = 300,
    y_density: int = 300,
    xmp_metadata: str = "",
    name: str | None = None,
) -> Tensor:
    """A JPEG file of an image of uint8 with 1 or 3 channels. The task needs Pillow."""
    return apply_op(
        "EncodeJpeg",
        name,
        image=image,
        format=format,
        quality=quality,
        progressive=progressive,
        optimize_size=optimize_size,
        chroma_downsampling=chroma_downsampling,
        density_unit=density_unit,
        x_density=x_density,
        y_density=y_density,
        xmp_metadata=xmp_metadata,
    )


def extract_jpeg_shape(contents: TensorLike, output_type: DTypeLike = dtypes.int32, name: str | None = None) -> Tensor:
    """[height, width, channels] of a JPEG file, without decoding it."""
    return apply_op("ExtractJpegShape", name, contents=contents, output_type=dtypes.as_dtype(output_type))


# -- resizing and cropping


def resize_bilinear(
    images: TensorLike,
    size: Any,
    align_corners: bool = False,
    name: str | None = None,
    half_pixel_centers: bool = False,
) -> Tensor:
    """Images of another size [height, width], float32."""
    return _resized("ResizeBilinear", images, size, align_corners, half_pixel_centers, name)


def resize_nearest_neighbor(
    images: TensorLike,
    size: Any,
    align_corners: bool = False,
    name: str | None = None,
    half_pixel_centers: bool = False,
) -> Tensor:
    """Images of another size [height, width], of their own dtype."""
    return _resized("ResizeNearestNeighbor", images, size, align_corners, half_pixel_centers, name)


def resize_bicubic(
    images: TensorLike,
    size: Any,
    align_corners: bool = False,
    name: str | None = None,
    half_pixel_centers: bool = False,
) -> Tensor:
    """Images of another size [height, width], float32."""
    return _resized("ResizeBicubic", images, size, align_corners, half_pixel_centers, name)


def _resized(op: str, images: Any, size: Any, align_corners: bool, half_pixel_centers: bool, name: Any) -> Tensor:
    return apply_op(
        op, name, images=images, size=size, align_corners=align_corners, half_pixel_centers=half_pixel_centers
    )


def resize_area(images: TensorLike, size: Any, align_corners: bool = False, name: str | None = None) -> Tensor:
    """Images of another size [height, width], float32: each pixel averages what it covers."""
    return apply_op("ResizeArea", name, images=images, size=size, align_corners=align_corners)


def crop_and_resize(
    image: TensorLike,
    boxes: TensorLike,
    box_ind: Any = None,
    crop_size: Any = None,
    method: str = "bilinear",
    extrapolation_value: float = 0,
    name: str | None = None,
    box_indices: Any = None,
) -> Tensor:
    """Crops [boxes, *crop_size, channels] of images, float32.

    boxes: [boxes, 4], y1, x1, y2, x2 between 0 and 1; box_ind: the image of each box.
    """
    return apply_op(
        "CropAndResize",
        name,
        image=image,
        boxes=boxes,
        box_ind=box_ind if box_indices is None else box_indices,
        crop_size=crop_size,
        method=method,
        extrapolation_value=extrapolation_value,
    )


def extract_glimpse(
    input: TensorLike,
    size: Any,
    offsets: Any,
    centered: bool = True,
    normalized: bool = True,
    uniform_noise: bool = True,
    name: str | None = None,
) -> Tensor:
    """Windows of `size` around offsets [batch, 2]; noise where they leave the image."""
    return apply_op(
        "ExtractGlimpse",
        name,
        input=input,
        size=size,
        offsets=offsets,
        centered=centered,
        normalized=normalized,
        uniform_noise=uniform_noise,
        noise="uniform" if uniform_noise else "gaussian",
    )


def extract_volume_patches(
    input: TensorLike, ksizes: Sequence[int], strides: Sequence[int], padding: str, name: str | None = None
) -> Tensor:
    """The windows of volumes [batch, planes, rows, columns, depth], each flattened into the last dimension."""
    return apply_op(
        "ExtractVolumePatches", name, input=input, ksizes=list(ksizes), strides=list(strides), padding=padding
    )


# -- colors


def rgb_to_hsv(images: TensorLike, name: str | None = None) -> Tensor:
    """Hue, saturation and value, all in [0, 1], of colors."""
    return apply_op("RGBToHSV", name, images=images)


def hsv_to_rgb(images: TensorLike, name: str | None = None) -> Tensor:
    """The inverse of `rgb_to_hsv`."""
    return apply_op("HSVToRGB", name, images=images)


# -- boxes


def draw_bounding_boxes(images: TensorLike, boxes: TensorLike, name: str | None = None, colors: Any = None) -> Tensor:
    """Images with boxes [batch, boxes, 4] drawn into them."""
    if colors is None:
        return apply_op("DrawBoundingBoxes", name, images=images, boxes=boxes)
    return apply_op("DrawBoundingBoxesV2", name, images=images, boxes=boxes, colors=colors)


def non_max_suppression(
    boxes: TensorLike,
    scores: TensorLike,
    max_output_size: TensorLike,
    iou_threshold: TensorLike = 0.5,
    score_threshold: TensorLike = float("-inf"),
    name: str | None = None,
) -> Tensor:
    """The numbers (int32) of the boxes of the highest scores that do not overlap a better one too much."""
    with name_scope(name, "non_max_suppression"):
        return apply_op(
            "NonMaxSuppressionV3",
            boxes=boxes,
            scores=scores,
            max_output_size=max_output_size,
            iou_threshold=convert_to_tensor(iou_threshold, dtypes.float32, name="iou_threshold"),
            score_threshold=convert_to_tensor(score_threshold, dtypes.float32, name="score_threshold"),
        )


def non_max_suppression_padded(
    boxes: TensorLike,
    scores: TensorLike,
    max_output_size: TensorLike,
    iou_threshold: TensorLike = 0.5,
    score_threshold: TensorLike = float("-inf"),
    pad_to_max_output_size: bool = False,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """(as `non_max_suppression`, padded with zeros; how many are not padding)."""
    with name_scope(name, "non_max_suppression_padded"):
        made = apply_op(
            "NonMaxSuppressionV4",
            boxes=boxes,
            scores=scores,
            max_output_size=max_output_size,
            iou_threshold=convert_to_tensor(iou_threshold, dtypes.float32, name="iou_threshold"),
            score_threshold=convert_to_tensor(score_threshold, dtypes.float32, name="score_threshold"),
            pad_to_max_output_size=pad_to_max_output_size,
        )
        return made.selected_indices, made.valid_outputs


def non_max_suppression_with_scores(
    boxes: TensorLike,
    scores: TensorLike,
    max_output_size: TensorLike,
    iou_threshold: TensorLike = 0.5,
    score_threshold: TensorLike = float("-inf"),
    soft_nms_sigma: Any = 0.0,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """(as `non_max_suppression`, the scores that are left of them)."""
    with name_scope(name, "non_max_suppression_with_scores"):
        made = apply_op(
            "NonMaxSuppressionV5",
            boxes=boxes,
            scores=scores,
            max_output_size=max_output_size,
            iou_threshold=iou_threshold,
            score_threshold=score_threshold,
            soft_nms_sigma=soft_nms_sigma,
            pad_to_max_output_size=False,
        )
        return made.selected_indices, made.selected_scores


def non_max_suppression_overlaps(
    overlaps: Any,
    scores: TensorLike,
    max_output_size: TensorLike,
    overlap_threshold: Any = 0.5,
    score_threshold: TensorLike = float("-inf"),
    name: str | None = None,
) -> Tensor:
    """As `non_max_suppression` with given overlaps [boxes, boxes]."""
    return apply_op(
        "NonMaxSuppressionWithOverlaps",
        name,
        overlaps=overlaps,
        scores=scores,
        max_output_size=max_output_size,
        overlap_threshold=overlap_threshold,
        score_threshold=score_threshold,
    )


def combined_non_max_suppression(
    boxes: TensorLike,
    scores: TensorLike,
    max_output_size_per_class: Any,
    max_total_size: Any,
    iou_threshold: TensorLike = 0.5,
    score_threshold: TensorLike = float("-inf"),
    pad_per_class: bool = False,
    clip_boxes: bool = True,
    name: str | None = None,
) -> Any:
    """Suppression class by class: (boxes, scores, classes, how many) of each image."""
    return apply_op(
        "CombinedNonMaxSuppression",
        name or "combined_non_max_suppression",
        boxes=boxes,
        scores=scores,
        max_output_size_per_class=max_output_size_per_class,
        max_total_size=max_total_size,
        iou_threshold=iou_threshold,
        score_threshold=score_threshold,
        pad_per_class=pad_per_class,
        clip_boxes=clip_boxes,
    )


def sample_distorted_bounding_box(
    image_size: Any,
    bounding_boxes: Any,
    seed: int | None = None,
    seed2: int | None = None,
    min_object_covered: Any = 0.1,
    aspect_ratio_range: Sequence[float] | None = None,
    area_range: Sequence[float] | None = None,
    max_attempts: int | None = None,
    use_image_if_no_bounding_boxes: bool | None = None,
    name: str | None = None,
) -> Any:
    """(begin [3], size [3], box [1, 1, 4]) of a random crop that keeps enough of one of the boxes; for tf.slice."""
    seeds = {"seed": seed or 0, "seed2": seed2} if seed2 is not None else op_seeds(seed)
    return apply_op(
        "SampleDistortedBoundingBoxV2",
        name or "sample_distorted_bounding_box",
        image_size=image_size,
        bounding_boxes=bounding_boxes,
        min_object_covered=min_object_covered,
        aspect_ratio_range=None if aspect_ratio_range is None else list(aspect_ratio_range),
        area_range=None if area_range is None else list(area_range),
        max_attempts=max_attempts,
        use_image_if_no_bounding_boxes=use_image_if_no_bounding_boxes,
        **seeds,
    )


# -- shape rules



@shape_rule("AdjustContrastv2", "AdjustHue", "AdjustSaturation")
def _(op: Operation) -> list[TensorShape]:
    return [op.inputs[0].shape.with_rank_at_least(3)]


shape_rule(
    "DrawBoundingBoxes", "DrawBoundingBoxesV2", "HSVToRGB",
    "RGBToHSV",
)(unchanged)  # fmt: skip
shape_rule("ExtractJpegShape")(lambda op: [TensorShape([3])])


@shape_rule("EncodePng", "EncodeJpeg")
def _(op: Operation) -> list[TensorShape]:
    shape = op.inputs[0].shape
    if op.type == "EncodeJpeg":
        shape.assert_has_rank(3)
        return scalar(op)
    return [TensorShape(None) if shape.ndims is None else TensorShape(shape.as_list()[:-3])]


@shape_rule("DecodePng", "DecodeJpeg", "DecodeBmp", "DecodeAndCropJpeg")
def _(op: Operation) -> list[TensorShape]:
    size: list[int | None] = [None, None]
    if op.type == "DecodeAndCropJpeg":
        window = constant_value(op.inputs[1])
        size = size if window is None else [int(window[2]), int(window[3])]
    return [TensorShape([*size, op.get_attr("channels") or None])]


@shape_rule("DecodeGif")
def _(op: Operation) -> list[TensorShape]:
    return [TensorShape([None, None, None, 3])]


@shape_rule("DecodeImage")
def _(op: Operation) -> list[TensorShape]:
    if op.get_attr("expand_animations"):
        return [TensorShape(None)]
    return [TensorShape([None, None, op.get_attr("channels") or None])]


@shape_rule(
    "ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic", "ResizeArea", "ResizeNearestNeighborGrad",
    "ScaleAndTranslate", "ExtractGlimpse", "ExtractGlimpseV2",
)  # fmt: skip
def _(op: Operation) -> list[TensorShape]:
    batch, _, _, channels = op.inputs[0].shape.with_rank(4).as_list()
    if op.type.startswith("ExtractGlimpse"):
        (batch,) = op.inputs[0].shape[:1].merge_with(op.inputs[2].shape.with_rank(2)[:1]).as_list()
    return [TensorShape([batch, *_size(op.inputs[1], 2), channels])]


@shape_rule("ResizeBilinearGrad", "ResizeBicubicGrad", "ScaleAndTranslateGrad")
def _(op: Operation) -> list[TensorShape]:
    return [op.inputs[1].shape]


@shape_rule("CropAndResize")
def _(op: Operation) -> list[TensorShape]:
    channels = op.inputs[0].shape.with_rank(4)[3]
    boxes = _boxes(op.inputs[1])[0]
    boxes = boxes.merge_with(op.inputs[2].shape.with_rank(1)[0])
    op.inputs[3].shape.with_rank(1)
    return [TensorShape([boxes, *_size(op.inputs[3], 2), channels])]


def _boxes(tensor: Tensor) -> TensorShape:
    """The shape [boxes, 4] of boxes.

    Raises:
      ValueError: it is another one.
    """
    shape = tensor.shape.with_rank(2)
    size = shape.as_list()[1]
    if size not in (None, 4):
        raise ValueError(f"Dimension must be 4 but is {size}")
    return shape


@shape_rule("CropAndResizeGradImage")
def _(op: Operation) -> list[TensorShape]:
    return [constant_value_as_shape(op.inputs[3]).with_rank(4)]


@shape_rule("CropAndResizeGradBoxes")
def _(op: Operation) -> list[TensorShape]:
    return [op.inputs[2].shape]


@shape_rule("ImageProjectiveTransformV2", "ImageProjectiveTransformV3")
def _(op: Operation) -> list[TensorShape]:
    batch, _, _, channels = op.inputs[0].shape.with_rank(4).as_list()
    return [TensorShape([batch, *_size(op.inputs[2], 2), channels])]


@shape_rule("NonMaxSuppression", "NonMaxSuppressionV2", "NonMaxSuppressionV3", "NonMaxSuppressionWithOverlaps")
def _(op: Operation) -> list[TensorShape]:
    _check_suppression(op)
    return [TensorShape([None])]


def _check_suppression(op: Operation) -> None:
    """The boxes and scores belong together, and the rest are scalars."""
    if op.type == "NonMaxSuppressionWithOverlaps":
        count = op.inputs[0].shape.with_rank(2)[0]
    else:
        count = _boxes(op.inputs[0])[0]
    scores = op.inputs[1].shape.with_rank(1)[0]
    if not count.is_compatible_with(scores):
        raise ValueError(f"Dimensions must be equal, but are {count} and {scores}")
    for scalar_input in op.inputs[2:]:
        scalar_input.shape.with_rank(0)


@shape_rule("NonMaxSuppressionV4", "NonMaxSuppressionV5")
def _(op: Operation) -> list[TensorShape]:
    _check_suppression(op)
    (count,) = _size(op.inputs[2], 1) if op.get_attr("pad_to_max_output_size") else (None,)
    return [TensorShape([count])] * (len(op.outputs) - 1) + [TensorShape([])]


@shape_rule("CombinedNonMaxSuppression")
def _(op: Operation) -> list[TensorShape]:
    batch = op.inputs[0].shape.with_rank(4)[0]
    classes = op.inputs[1].shape.with_rank(3).as_list()[2]
    (each,), (total,) = _size(op.inputs[2], 1), _size(op.inputs[3], 1)
    if op.get_attr("pad_per_class"):
        total = None if None in (each, total, classes) else min(total, each * classes)  # type: ignore[operator,type-var]
    return [TensorShape([batch, total, 4]), *[TensorShape([batch, total])] * 2, TensorShape([batch])]


@shape_rule("SampleDistortedBoundingBox", "SampleDistortedBoundingBoxV2")
def _(op: Operation) -> list[TensorShape]:
    return [TensorShape([3]), TensorShape([3]), TensorShape([1, 1, 4])]


@shape_rule("ExtractVolumePatches")
def _(op: Operation) -> list[TensorShape]:
    batch, *sizes, depth = op.inputs[0].shape.with_rank(5).as_list()
    ksizes, strides = op.get_attr("ksizes"), op.get_attr("strides")
    padding = op.get_attr("padding").decode()
    outputs = [
        None if size is None else window_extent(size, ksize, stride, padding).output
        for size, ksize, stride in zip(sizes, ksizes[1:4], strides[1:4], strict=True)
    ]
    patch = None if depth is None else depth * ksizes[1] * ksizes[2] * ksizes[3]
    return [TensorShape([batch, *outputs, patch])]


def _size(tensor: Tensor, count: int) -> list[int | None]:
    """The elements of a vector (or scalar) as far as they are known."""
    value = constant_value(tensor)
    return [None] * count if value is None else [int(each) for each in value.ravel()]
