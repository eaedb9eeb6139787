"""tf.image: sizes and fractions as numbers and as tensors, images of unknown rank and size."""

from __future__ import annotations

from tests.interop.argument_forms.forms import each, forms

_IMAGE = "np.arange(60).reshape(4, 5, 3)"
_IMAGES = [
    f"T({_IMAGE}, tf.float32)", f"T({_IMAGE}, tf.uint8)", f"P({_IMAGE}, tf.float32)",
        f"S({_IMAGE}, [None, None, 3], tf.float32)",
    f"T([{_IMAGE}], tf.float32)", f"S([{_IMAGE}], [None, None, None, 3], tf.float32)", f"np.float32({_IMAGE})",
]

CASES = [
    *each("flip_left_right flip_up_down transpose_image rot90 per_image_standardization", "tf.image.{f}({x})",
        x=_IMAGES),
    *forms("tf.image.rot90({x}, {k})", x=_IMAGES[:6], k=["2", "k=3", "T(1)", "P(2)", "0"]),
    *forms("tf.image.central_crop({x}, {a})", x=_IMAGES[:6], a=["0.5", "1.0", "central_fraction=0.3", "T(0.5)",
        "P(0.5)", "0.0", "1.5"]),
    *forms("tf.image.resize_images({x}, {a})", x=_IMAGES[:6], a=["[2, 3]", "(8, 10)", "T([2, 3])", "P([2, 3])",
        "[T(2), T(3)]", "[4, 5]", "[2, 3], 1", "size=[2, 3], method=tf.image.ResizeMethod.AREA",
        "[2, 3], align_corners=True", "[8, 10], 2", "[2, 3], preserve_aspect_ratio=True", "[2]", "[2.5, 3]",
        "np.array([2, 3])"]),
    *each("resize_bilinear resize_nearest_neighbor resize_bicubic resize_area", "tf.image.{f}({x}, {a})",
        x=[_IMAGES[4], _IMAGES[5], _IMAGES[2]], a=["[2, 3]", "T([8, 10])", "P([2, 3])",
        "[2, 3], align_corners=True"]),
    *forms("tf.image.resize_image_with_crop_or_pad({x}, {a})", x=_IMAGES[:6], a=["6, 3", "T(6), 3", "P(2), P(9)",
        "target_height=4, target_width=5", "0, 1"]),
    *forms("tf.image.resize_image_with_pad({x}, {a})", x=_IMAGES[:6], a=["6, 3", "T(6), T(3)", "P(2), P(9)",
        "8, 8, method=1"]),
    *forms("tf.image.crop_to_bounding_box({x}, {a})", x=_IMAGES[:6], a=["1, 1, 2, 3", "T(1), 0, 2, P(3)",
        "2, 3, 4, 4", "offset_height=0, offset_width=0, target_height=4, target_width=5", "-1, 0, 2, 2"]),
    *forms("tf.image.pad_to_bounding_box({x}, {a})", x=_IMAGES[:6], a=["1, 1, 8, 9", "T(1), 0, 8, P(9)", "2, 3, 4, 4",
        "0, 0, 4, 5", "-1, 0, 8, 8"]),
    *forms("tf.image.convert_image_dtype({x}, {a})", x=_IMAGES[:4], a=["tf.float32", "'uint8'",
        "tf.int16, saturate=True", "tf.float64", "np.uint8", "tf.int32"]),
    *each("rgb_to_grayscale rgb_to_hsv rgb_to_yiq rgb_to_yuv yuv_to_rgb hsv_to_rgb", "tf.image.{f}({x})",
        x=_IMAGES[:6]),
    *forms("tf.image.grayscale_to_rgb({x})", x=["T(np.ones([2, 2, 1]))", "P(np.ones([2, 2, 1]))",
        "T(np.ones([2, 2, 3]))", "T(np.ones([1, 2, 2, 1]))"]),
    *forms("tf.image.adjust_{f}", f=[f"{name}({x}, {a})" for name in ("brightness", "contrast", "hue", "saturation",
        "gamma") for x in (_IMAGES[0], _IMAGES[1], _IMAGES[2]) for a in ("0.3", "T(0.5)", "P(0.25)")]),
    *forms("tf.image.total_variation({x})", x=_IMAGES[:6]),
    *forms("tf.image.psnr({x}, {x}, 255.)", x=_IMAGES[:6]),
    *forms("tf.image.ssim(tf.ones([1, 12, 12, 3]), {x}, 1.)", x=["tf.ones([1, 12, 12, 3])",
        "P(np.ones([1, 12, 12, 3]), tf.float32)"]),
    *each("sobel_edges image_gradients", "tf.image.{f}({x})", x=[_IMAGES[4], _IMAGES[5], _IMAGES[2]]),
    *forms("tf.image.non_max_suppression({b}, {s}, {n}{a})",
        b=["[[0., 0., 1., 1.], [0., .1, 1., 1.1], [0., 5., 1., 6.]]", "P([[0., 0., 1., 1.], [0., 5., 1., 6.]])"],
        s=["[.9, .8, .7]", "P([.9, .8])"], n=["2", "T(1)"], a=["", ", 0.3",
        ", iou_threshold=0.9, score_threshold=0.75"]),
    *forms("tf.image.crop_and_resize({x}, [[0., 0., 1., 1.]], [0], {s}{a})", x=[_IMAGES[4], _IMAGES[5]], s=["[2, 2]",
        "T([3, 3])", "P([2, 2])"], a=["", ", method='nearest'", ", extrapolation_value=5."]),
    *forms("tf.image.extract_image_patches({x}, [1, 2, 2, 1], [1, 1, 1, 1], [1, 1, 1, 1], {p})", x=[_IMAGES[4],
        _IMAGES[5]], p=["'SAME'", "'VALID'", "padding='x'"]),
    *forms("tf.image.extract_glimpse({x}, [2, 2], [[0., 0.]]{a})", x=[_IMAGES[4], _IMAGES[5]], a=["",
        ", centered=False", ", normalized=False", ", noise='zero'"]),
    *forms("tf.image.draw_bounding_boxes({x}, [[[0., 0., .5, .5]]]{a})", x=[_IMAGES[4]], a=["", ", name='d'"]),
    *forms("tf.image.encode_png({x})", x=[_IMAGES[1], _IMAGES[0], "P(np.ones([2, 2, 1]), tf.uint8)"]),
    *forms("tf.image.decode_png(tf.image.encode_png(T(np.ones([2, 2, 3]), tf.uint8)){a})", a=["", ", 1",
        ", channels=4", ", dtype=tf.uint16", ", 5"]),
    *forms("tf.image.decode_image(tf.image.encode_png(T(np.ones([2, 2, 3]), tf.uint8)){a})", a=["", ", 3",
        ", channels=1", ", dtype=tf.float32", ", expand_animations=False"]),
]
