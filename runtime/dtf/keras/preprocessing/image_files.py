"""Images as arrays, as pillow's images, and as files. Pillow is imported when it is needed."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from dtf.wire import filesystems

__all__ = ["array_to_img", "img_to_array", "load_img", "save_img"]

_MODES = {"grayscale": "L", "rgb": "RGB", "rgba": "RGBA"}
_METHODS = {"nearest": "NEAREST", "bilinear": "BILINEAR", "bicubic": "BICUBIC", "box": "BOX", "lanczos": "LANCZOS"}


def img_to_array(img: Any, data_format: str | None = None, dtype: Any = None) -> np.ndarray:
    """A pillow image as an array [rows, columns, channels]."""
    array = np.asarray(img, dtype=dtype or "float32")
    if array.ndim not in (2, 3):
        raise ValueError(f"Unsupported image shape: {array.shape}")
    array = array[..., None] if array.ndim == 2 else array
    return array.transpose(2, 0, 1) if data_format == "channels_first" else array


def array_to_img(x: Any, data_format: str | None = None, scale: bool = True, dtype: Any = None) -> Any:
    """An array [rows, columns, channels] as a pillow image; with `scale` from its least to its greatest value.

    Raises:
      ValueError: an array of another shape.
      ImportError: pillow is not installed.
    """
    x = np.asarray(x, dtype=dtype or "float32")
    if x.ndim != 3:
        raise ValueError(f"Expected image array to have rank 3 (single image). Got array with shape: {x.shape}")
    x = x.transpose(1, 2, 0) if data_format == "channels_first" else x
    if scale:
        x = x - np.min(x)
        most = np.max(x)
        x = x / most * 255 if most else x
    if x.shape[2] not in (1, 3, 4):
        raise ValueError(f"Unsupported channel number: {x.shape[2]}")
    pixels = x.astype("uint8")
    return _pillow().fromarray(pixels[..., 0] if x.shape[2] == 1 else pixels)


def load_img(
    path: str, grayscale: bool = False, color_mode: str = "rgb", target_size: tuple[int, ...] | None = None,
    interpolation: str = "nearest",
) -> Any:  # fmt: skip
    """A file as a pillow image of (rows, columns) `target_size`.

    Raises:
      ValueError: an unknown color mode or interpolation.
      ImportError: pillow is not installed.
    """
    color_mode = "grayscale" if grayscale else color_mode
    if color_mode not in _MODES:
        raise ValueError(f'color_mode must be "grayscale", "rgb", or "rgba", got {color_mode!r}')
    if interpolation not in _METHODS:
        raise ValueError(f"Invalid interpolation method {interpolation}; known are {', '.join(sorted(_METHODS))}")
    pillow = _pillow()
    with filesystems.open(path, "rb") as file:
        image = pillow.open(file).convert(_MODES[color_mode])
    if target_size is not None and image.size != (target_size[1], target_size[0]):
        image = image.resize((target_size[1], target_size[0]), getattr(pillow.Resampling, _METHODS[interpolation]))
    return image


def save_img(
    path: str, x: Any, data_format: str | None = None, file_format: str | None = None, scale: bool = True, **kwargs: Any
) -> None:
    """Writes an array as a file; the format is that of its ending."""
    image = array_to_img(x, data_format, scale)
    ending = (file_format or path.rpartition(".")[2]).lower()
    with filesystems.open(path, "wb") as file:
        image.save(file, format="jpeg" if ending == "jpg" else ending, **kwargs)


def _pillow() -> Any:
    try:
        return importlib.import_module("PIL.Image")
    except ImportError as error:
        raise ImportError("images need pillow: pip install 'dtf[images]'") from error
