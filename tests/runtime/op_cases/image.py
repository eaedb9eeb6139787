"""Cases of the image ops."""

from __future__ import annotations

import io
import struct

import numpy as np
import pytest

import dtf as tf
from dtf.run.lib import png
from tests.runtime.op_cases import RECORDED, Case, Vary
from tests.runtime.op_cases.array import evaluate, floats32, ints, strings

IMAGES = floats32(2, 3, 4, 2)
BYTES = np.random.RandomState(1).randint(0, 256, (1, 5, 7, 3)).astype(np.uint8)
COLORS = np.float32([[[0.2, 0.5, 0.9], [1, 0, 0], [0.3, 0.3, 0.3], [0, 0, 0], [2, -1, 0.5], [0.1, 0.9, 0.2]]])
PLAIN_COLORS = np.float64(
    [[0.2, 0.5, 0.9], [0.7, 0.1, 0.3], [0.8, 0.3, 0.1], [0.2, 0.6, 0.5], [0.4, 0.6, 0.1], [0.4, 0.1, 0.6]]
)
BOXES = np.float32([[0, 0, 1, 1], [0.2, 0.6, 1.3, 0.2], [-0.5, 0.5, 0.5, 0.5]])
CANVAS = np.zeros((1, 6, 7, 3), np.float32)
FRAMES = np.float32([[[0.1, 0.2, 0.7, 0.8], [-0.5, 0.5, 0.5, 1.5]]])
RIVALS = np.float32(
    [[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, -0.1, 1, 0.9], [0, 10, 1, 11], [0, 10.1, 1, 11.1], [0, 100, 1, 101]]
)
SCORES = np.float32([0.9, 0.75, 0.6, 0.95, 0.5, 0.3])
WARP = np.float32([[1, 0.1, 0.5, 0.2, 1.1, -0.4, 0.01, 0.02]])
HALF, LEAST = np.float32(0.5), np.float32(0.4)
KERNELS = "lanczos1 lanczos3 lanczos5 gaussian box triangle keyscubic mitchellcubic".split()


def resizing():
    ways = ({}, {"align_corners": True}, {"half_pixel_centers": True})
    for way in ways:
        name = next(iter(way), "")
        for op in ("ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic"):
            for size in ([5, 3], [2, 9], [1, 1]):
                yield Case(op, [IMAGES, ints(size)], way, RECORDED, name=f"{name}{size}")
            yield Case(op, [BYTES, ints([8, 3])], way, RECORDED, name=f"{name}-bytes", atol=1e-3)
        for op in ("ResizeBilinearGrad", "ResizeBicubicGrad"):
            yield Case(op, [floats32(2, 5, 3, 2), IMAGES], way, RECORDED, name=name, atol=1e-5)
        yield Case("ResizeNearestNeighborGrad", [floats32(2, 5, 3, 2), ints([3, 4])], way, RECORDED, name=name)
        if "half_pixel_centers" not in way:
            for size in ([5, 3], [2, 9]):
                yield Case("ResizeArea", [IMAGES, ints(size)], way, RECORDED, name=f"{name}{size}", atol=1e-5)
    placed = [ints([2, 6]), np.float32([0.7, 1.5]), np.float32([0.1, -0.2])]
    for kind in KERNELS:
        attrs = {"kernel_type": kind}
        yield Case("ScaleAndTranslate", [IMAGES, *placed], attrs, RECORDED, name=kind, atol=1e-5)
    yield Case("ScaleAndTranslate", [IMAGES, *placed], {"antialias": False}, RECORDED, name="sharp", atol=1e-5)
    yield Case("ScaleAndTranslateGrad", [floats32(2, 2, 6, 2), IMAGES, *placed[1:]], {}, RECORDED, atol=1e-5)


def crops():
    numbers = ints([0, 1, 0])
    for method in ("bilinear", "nearest"):
        attrs = {"method": method, "extrapolation_value": -1.0}
        for size in ([3, 2], [1, 1]):
            yield Case("CropAndResize", [IMAGES, BOXES, numbers, ints(size)], attrs, RECORDED, name=f"{method}{size}")
        attrs = {"method": method, "T": tf.float32}
        inputs = [floats32(3, 3, 2, 2), BOXES, numbers, ints([2, 3, 4, 2])]
        yield Case("CropAndResizeGradImage", inputs, attrs, RECORDED, name=method)
    yield Case("CropAndResizeGradBoxes", [floats32(3, 3, 2, 2), IMAGES, BOXES, numbers], {}, RECORDED, atol=1e-5)
    yield Case(
        "CropAndResizeGradBoxes", [floats32(3, 1, 1, 2), IMAGES, BOXES, numbers], {}, RECORDED, name="single", atol=1e-5
    )


def warps():
    for interpolation in ("NEAREST", "BILINEAR"):
        for fill in ("CONSTANT", "REFLECT", "WRAP", "NEAREST"):
            attrs = {"interpolation": interpolation, "fill_mode": fill}
            name = f"{interpolation}-{fill}"
            inputs = [IMAGES, WARP, ints([4, 5])]
            yield Case("ImageProjectiveTransformV2", inputs, attrs, RECORDED, name=name, atol=1e-5)
            yield Case("ImageProjectiveTransformV3", [*inputs, np.float32(-1)], attrs, RECORDED, name=name, atol=1e-5)


def glimpses():
    grid = np.arange(72, dtype=np.float32).reshape(2, 6, 6, 1)
    for centered in (True, False):
        for normalized in (True, False):
            offsets = np.float32([[0.8, -0.9], [0.1, 0.2]]) if normalized else np.float32([[1, 3], [0.3, 0.5]])
            attrs = {"centered": centered, "normalized": normalized, "uniform_noise": False, "noise": "zero"}
            for op in ("ExtractGlimpse", "ExtractGlimpseV2"):
                inputs = [grid, ints([3, 3]), offsets]
                yield Case(op, inputs, attrs, RECORDED, name=f"{centered}-{normalized}")


def bmp(image: np.ndarray) -> bytes:
    height, width, channels = image.shape
    order = image[::-1, :, [2, 1, 0, 3][:channels]] if channels > 1 else image[::-1]
    rows = b"".join(row.tobytes().ljust((width * channels + 3) // 4 * 4, b"\0") for row in order)
    sizes = struct.pack("<IHHIIiiHH", 54 + len(rows), 0, 0, 54, 40, width, height, 1, 8 * channels)
    return b"BM" + sizes + bytes(24) + rows


def interlaced_png() -> bytes:
    """4 x 3 pixels of gray with 4 bits each, written pass by pass, with every filter in turn."""
    rows = (np.arange(12).reshape(3, 4) * 20 // 17).astype(int)
    passes = [rows[0:1, 0:1], rows[0:1, 2:3], rows[2:3, 0:4:2], rows[0::2, 1::2], rows[1::2]]
    raw = b""
    for part in passes:
        for row in part.tolist():
            row += [0] * (len(row) % 2)
            raw += bytes([0]) + bytes(high << 4 | low for high, low in zip(row[::2], row[1::2], strict=True))
    header = struct.pack(">IIBBBBB", 4, 3, 4, 0, 0, 0, 1)
    chunks = ((b"IHDR", header), (b"IDAT", zlib_compressed(raw)), (b"IEND", b""))
    return png.SIGNATURE + b"".join(png_chunk(kind, body) for kind, body in chunks)


def zlib_compressed(data: bytes) -> bytes:
    import zlib

    return zlib.compress(data)


def png_chunk(kind: bytes, body: bytes) -> bytes:
    import zlib

    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def filtered_png() -> bytes:
    """Rows of each of the five filters, of three channels."""
    image = BYTES[0].astype(int)
    raw = b""
    for row in range(5):
        line, above = image[row].ravel(), image[row - 1].ravel() if row else np.zeros(21, int)
        left = np.concatenate([[0, 0, 0], line[:-3]])
        corner = np.concatenate([[0, 0, 0], above[:-3]])
        first, second, third = abs(above - corner), abs(left - corner), abs(left + above - 2 * corner)
        paeth = np.where((first <= second) & (first <= third), left, np.where(second <= third, above, corner))
        guess = [0 * line, left, above, (left + above) // 2, paeth][row]
        raw += bytes([row]) + bytes(((line - guess) % 256).tolist())
    header = struct.pack(">IIBBBBB", 7, 5, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib_compressed(raw)), (b"IEND", b""))
    return png.SIGNATURE + b"".join(png_chunk(kind, body) for kind, body in chunks)


def a_png_file_comes_back():
    with tf.Graph().as_default():
        for image in (BYTES[0], BYTES[0, ..., :1], BYTES[0, ..., :2], BYTES[0].astype(np.uint16) * 250):
            written = tf.image.encode_png(tf.constant(image))
            (read,) = evaluate(tf.image.decode_png(written, dtype=image.dtype))
            np.testing.assert_array_equal(read, image)


def jpeg_files_need_pillow():
    pytest.importorskip("PIL", reason="the extra `images` is not installed")
    smooth = (np.add.outer(np.arange(16), np.arange(24))[..., None] * [6, 3, 1]).astype(np.uint8)
    with tf.Graph().as_default():
        written = tf.image.encode_jpeg(smooth, quality=100)
        outputs = [
            tf.image.decode_jpeg(written),
            tf.image.decode_and_crop_jpeg(written, [2, 3, 4, 5]),
            tf.image.extract_jpeg_shape(written),
            tf.image.is_jpeg(written),
        ]
        whole, part, shape, is_jpeg = evaluate(*outputs)
    assert np.abs(whole.astype(int) - smooth).max() < 12
    np.testing.assert_array_equal(part, whole[2:6, 3:8])
    assert shape.tolist() == [16, 24, 3] and is_jpeg


def gif_files_need_pillow():
    pillow = pytest.importorskip("PIL.Image", reason="the extra `images` is not installed")
    out = io.BytesIO()
    frames = [pillow.new("RGB", (4, 3), color) for color in ((255, 0, 0), (0, 255, 0))]
    frames[0].save(out, "GIF", save_all=True, append_images=frames[1:])
    with tf.Graph().as_default():
        (read,) = evaluate(tf.image.decode_gif(out.getvalue()))
    assert read.shape == (2, 3, 4, 3) and read[1, 0, 0].tolist() == [0, 255, 0]


def without_pillow_the_error_names_it():
    import builtins
    import unittest.mock

    importer = builtins.__import__

    def refuse(name, *arguments, **options):
        if name.startswith("PIL"):
            raise ImportError(name)
        return importer(name, *arguments, **options)

    with tf.Graph().as_default(), unittest.mock.patch("builtins.__import__", refuse):
        try:
            evaluate(tf.image.decode_jpeg(b"\xff\xd8\xff\xe0"))
        except tf.errors.FailedPreconditionError as error:
            assert "pip install 'dtf[images]'" in error.message
        else:
            raise AssertionError("a JPEG file was read without Pillow")


CASES = [
    *resizing(),
    *crops(),
    *warps(),
    *glimpses(),
    Case("RGBToHSV", [COLORS], {}, RECORDED),
    Case("RGBToHSV", [COLORS.astype(np.float64)], {}, RECORDED, name="double"),
    Case("RGBToHSV", [PLAIN_COLORS], {}, RECORDED, grad=True, name="gradient", vary=Vary(odd_values=False)),
    Case("HSVToRGB", [np.float32([[0.1, 0.5, 0.9], [1, 1, 1], [0.999, 0.3, 0.3], [1.5, 0.5, 0.5], [-0.2, 0.5, 0.5]])],
         {}, RECORDED),
    Case("AdjustHue", [COLORS[None], np.float32(0.3)], {}, RECORDED, atol=3e-6),
    Case("AdjustSaturation", [COLORS[None], np.float32(1.7)], {}, RECORDED),
    Case("AdjustContrastv2", [IMAGES, np.float32(1.7)], {}, RECORDED, atol=1e-5),
    Case("DrawBoundingBoxes", [CANVAS, FRAMES], {}, RECORDED),
    Case("DrawBoundingBoxes", [CANVAS[..., :1], FRAMES], {}, RECORDED, name="gray"),
    Case("DrawBoundingBoxesV2", [CANVAS, FRAMES, np.float32([[1, 2, 3], [4, 5, 6]])], {}, RECORDED),
    Case("NonMaxSuppression", [RIVALS, SCORES, ints(3)], {}, RECORDED),
    Case("NonMaxSuppressionV2", [RIVALS, SCORES, ints(6), HALF], {}, RECORDED),
    Case("NonMaxSuppressionV3", [RIVALS, SCORES, ints(6), np.float32(0.85), LEAST], {}, RECORDED),
    Case("NonMaxSuppressionV4", [RIVALS, SCORES, ints(5), HALF, LEAST], {"pad_to_max_output_size": True}, RECORDED),
    Case("NonMaxSuppressionV5", [RIVALS, SCORES, ints(5), HALF, np.float32(0), HALF], {}, RECORDED),
    Case("NonMaxSuppressionV5", [RIVALS, SCORES, ints(5), HALF, np.float32(0), np.float32(0)],
         {"pad_to_max_output_size": True}, RECORDED, name="hard"),
    Case("NonMaxSuppressionWithOverlaps",
         [np.abs(floats32(6, 6)), SCORES, ints(4), np.float32(1.0), LEAST], {}, RECORDED),
    Case("CombinedNonMaxSuppression",
         [RIVALS[None, :, None], np.stack([SCORES, SCORES[::-1]], -1)[None], ints(3), ints(4), HALF, np.float32(0.2)],
         {}, RECORDED),
    *(
        Case(
            "SampleDistortedBoundingBoxV2", [ints([50, 80, 3]), np.float32([[[0.1, 0.2, 0.6, 0.7]]]), np.float32(0.1)],
            {"seed": seed, "seed2": 9}, RECORDED, name=f"seed{seed}",
        )
        for seed in range(5, 9)
    ),
    Case("SampleDistortedBoundingBox", [ints([50, 80, 3]), np.float32([[[0.1, 0.2, 0.6, 0.7]]])],
         {"seed": 1, "seed2": 2, "min_object_covered": 0.7}, RECORDED),
    Case("EncodePng", run=a_png_file_comes_back),
    Case("DecodePng", [strings(filtered_png())], {}, BYTES[0], name="filters"),
    Case("DecodePng", [strings(filtered_png())], {"channels": 4, "dtype": tf.uint16}, RECORDED, name="wide"),
    Case("DecodePng", [strings(filtered_png())], {"channels": 1}, RECORDED, name="gray"),
    Case("DecodePng", [strings(interlaced_png())], {}, RECORDED, name="interlaced"),
    Case("DecodeImage", [strings(filtered_png())], {"dtype": tf.float32}, RECORDED),
    Case("DecodeBmp", [strings(bmp(BYTES[0]))], {}, BYTES[0]),
    Case("DecodeBmp", [strings(bmp(BYTES[0, ..., :1]))], {}, BYTES[0, ..., :1], name="gray"),
    Case("DecodeJpeg", run=jpeg_files_need_pillow),
    Case("DecodeJpeg", run=without_pillow_the_error_names_it, name="without_pillow"),
    Case("DecodeAndCropJpeg", run=jpeg_files_need_pillow),
    Case("ExtractJpegShape", run=jpeg_files_need_pillow),
    Case("EncodeJpeg", run=jpeg_files_need_pillow),
    Case("DecodeGif", run=gif_files_need_pillow),
]  # fmt: skip
