"""Gradients of the image ops."""

from __future__ import annotations

from typing import Any

from dtf.build.apply import apply_op
from dtf.build.gradients import gradient, not_differentiable
from dtf.build.ops import array as array_ops
from dtf.build.ops import joining
from dtf.build.tensor import Operation

Gradients = list[Any]

not_differentiable(
    "AdjustContrastv2", "AdjustHue", "AdjustSaturation", "CombinedNonMaxSuppression", "CropAndResizeGradBoxes",
    "CropAndResizeGradImage", "DecodeAndCropJpeg", "DecodeBmp", "DecodeGif", "DecodeImage", "DecodeJpeg", "DecodePng",
    "DrawBoundingBoxes", "DrawBoundingBoxesV2", "EncodeJpeg", "EncodePng", "ExtractGlimpse", "ExtractGlimpseV2",
    "ExtractJpegShape", "ExtractVolumePatches", "HSVToRGB", "NonMaxSuppression", "NonMaxSuppressionV2",
    "NonMaxSuppressionV3", "NonMaxSuppressionV4", "NonMaxSuppressionV5", "NonMaxSuppressionWithOverlaps", "RGBToHSV",
    "ResizeArea", "ResizeBicubicGrad", "ResizeBilinearGrad", "ResizeNearestNeighborGrad",
    "SampleDistortedBoundingBox", "SampleDistortedBoundingBoxV2", "ScaleAndTranslateGrad",
)  # fmt: skip


@gradient("ResizeBilinear", "ResizeBicubic")
def _(op: Operation, grad: Any) -> Gradients:
    if not op.inputs[0].dtype.is_floating:
        return [None, None]
    made = apply_op(f"{op.type}Grad", grads=grad, original_image=op.inputs[0], **_way(op))
    return [made, None]


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
    ones = array_ops.ones_like(transforms[:, :1])
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
        back["fill_value"] = op.inputs[3]
    return [apply_op(op.type, **back), *[None] * (len(op.inputs) - 1)]
