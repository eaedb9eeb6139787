"""Gradients of the image ops."""

from __future__ import annotations

from typing import Any

from dtf.build.apply import apply_op
from dtf.build.gradients import gradient, not_differentiable
from dtf.build.ops import array as array_ops
from dtf.build.ops import filling as filling_ops
from dtf.build.ops import joining, reductions
from dtf.build.ops.math import cast, div_no_nan, logical_and
from dtf.build.tensor import Operation

Gradients = list[Any]

not_differentiable(
    "AdjustContrastv2", "AdjustHue", "AdjustSaturation", "CombinedNonMaxSuppression", "CropAndResizeGradBoxes",
    "CropAndResizeGradImage", "DecodeAndCropJpeg", "DecodeBmp", "DecodeGif", "DecodeImage", "DecodeJpeg", "DecodePng",
    "DrawBoundingBoxes", "DrawBoundingBoxesV2", "EncodeJpeg", "EncodePng", "ExtractGlimpse", "ExtractGlimpseV2",
    "ExtractJpegShape", "HSVToRGB", "NonMaxSuppression", "NonMaxSuppressionV2",
    "NonMaxSuppressionV3", "NonMaxSuppressionV4", "NonMaxSuppressionV5", "NonMaxSuppressionWithOverlaps",
    "ResizeArea", "ResizeBicubicGrad", "ResizeBilinearGrad", "ResizeNearestNeighborGrad",
    "SampleDistortedBoundingBox", "SampleDistortedBoundingBoxV2", "ScaleAndTranslateGrad",
)  # fmt: skip


@gradient("ResizeBilinear", "ResizeBicubic")
def _(op: Operation, grad: Any) -> Gradients:
    dtype = op.inputs[0].dtype.base_dtype
    if not dtype.is_floating or (op.type == "ResizeBicubic" and dtype.size < 4):  # types without an op of their own
        return [None, None]
    made = apply_op(f"{op.type}Grad", grads=grad, original_image=op.inputs[0], **_way(op))
    return [made, None]


@gradient("RGBToHSV")
def _(op: Operation, grad: Any) -> Gradients:
    """Among channels of equal size the first counts as the largest, the last as the smallest. As in TensorFlow, the
    saturation does not move with a smallest channel that is not positive.
    """
    image = op.inputs[0]
    red, green, blue = (image[..., channel] for channel in range(3))

    def mask(*conditions: Any) -> Any:
        return cast(joining.stack(conditions, axis=-1), image.dtype)

    red_leads, green_leads = logical_and(red >= green, red >= blue), logical_and(green > red, green >= blue)
    blue_leads = logical_and(blue > red, blue > green)
    largest = mask(red_leads, green_leads, blue_leads)
    smallest = mask(
        logical_and(red < green, red < blue),
        logical_and(green <= red, green < blue),
        logical_and(blue <= red, blue <= green),
    )
    # The hue is the difference of two channels divided by the difference of the largest and the smallest channel.
    direction = mask(blue_leads, red_leads, green_leads) - mask(green_leads, blue_leads, red_leads)

    def dot(weights: Any) -> Any:
        return reductions.reduce_sum(weights * image, axis=-1, keepdims=True)

    value, least, spread = dot(largest), dot(smallest), dot(largest - smallest)
    by_hue = div_no_nan(direction - div_no_nan(dot(direction), spread) * (largest - smallest), spread * 6)
    lowered = smallest * cast(least > 0, image.dtype)
    by_saturation = div_no_nan(div_no_nan(least, value) * largest - lowered, value)
    return [grad[..., :1] * by_hue + grad[..., 1:2] * by_saturation + grad[..., 2:] * largest]


@gradient("ResizeNearestNeighbor")
def _(op: Operation, grad: Any) -> Gradients:
    size = array_ops.shape(op.inputs[0])[1:3]
    return [apply_op("ResizeNearestNeighborGrad", grads=grad, size=size, **_way(op)), None]


def _way(op: Operation) -> dict[str, Any]:
    return {name: op.get_attr(name) for name in ("align_corners", "half_pixel_centers")}


@gradient("ScaleAndTranslate")
def _(op: Operation, grad: Any) -> Gradients:
    made = apply_op(
        "ScaleAndTranslateGrad",
        grads=grad,
        original_image=op.inputs[0],
        scale=op.inputs[2],
        translation=op.inputs[3],
        kernel_type=op.get_attr("kernel_type"),
        antialias=op.get_attr("antialias"),
    )
    return [made, None, None, None]


@gradient("CropAndResize")
def _(op: Operation, grad: Any) -> Gradients:
    image, boxes, box_ind, _ = op.inputs
    by_image = None
    if image.dtype.is_floating:
        by_image = apply_op(
            "CropAndResizeGradImage",
            grads=grad,
            boxes=boxes,
            box_ind=box_ind,
            image_size=array_ops.shape(image),
            T=image.dtype,
            method=op.get_attr("method"),
        )
    by_boxes = apply_op("CropAndResizeGradBoxes", grads=grad, image=image, boxes=boxes, box_ind=box_ind)
    return [by_image, by_boxes, None, None]


@gradient("ImageProjectiveTransformV2", "ImageProjectiveTransformV3")
def _(op: Operation, grad: Any) -> Gradients:
    """The gradient is warped back by the inverse of the transform."""
    image, transforms = op.inputs[:2]
    ones = filling_ops.ones_like(transforms[:, :1])
    matrices = array_ops.reshape(joining.concat([transforms, ones], 1), [-1, 3, 3])
    inverse = array_ops.reshape(apply_op("MatrixInverse", input=matrices), [-1, 9])
    back = {
        "images": grad,
        "transforms": (inverse / inverse[:, 8:])[:, :8],
        "output_shape": array_ops.shape(image)[1:3],
        "interpolation": op.get_attr("interpolation"),
        "fill_mode": op.get_attr("fill_mode"),
    }
    if op.type.endswith("V3"):
        back["fill_value"] = 0.0  # places outside of the output get no gradient
    return [apply_op(op.type, **back), *[None] * (len(op.inputs) - 1)]
