"""Rotated, moved, sheared and zoomed images, in numpy. Owns the interpolation between pixels."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["transformed"]


def transformed(
    x: Any, theta: float = 0, tx: float = 0, ty: float = 0, shear: float = 0, zx: float = 1, zy: float = 1,
    fill_mode: str = "nearest", cval: float = 0.0, order: int = 1,
) -> Any:  # fmt: skip
    """An image [rows, columns, channels] after a map of its plane around the middle.

    Args:
      theta, shear: degrees.
      tx, ty: pixels right and down. zx, zy: factors, more than 1 for a smaller picture.
      fill_mode: of points outside: "nearest", "reflect", "wrap" or "constant", which is `cval`.
      order: 0 for the nearest pixel, 1 for a mean of four.

    Raises:
      ValueError: another fill mode.
    """
    if (theta, tx, ty, shear, zx, zy) == (0, 0, 0, 0, 1, 1):
        return x
    matrix = np.eye(3)
    angle, slope = np.deg2rad(theta), np.deg2rad(shear)
    if theta:
        matrix = matrix @ [[np.cos(angle), -np.sin(angle), 0], [np.sin(angle), np.cos(angle), 0], [0, 0, 1]]
    if tx or ty:
        matrix = matrix @ [[1, 0, tx], [0, 1, ty], [0, 0, 1]]
    if shear:
        matrix = matrix @ [[1, -np.sin(slope), 0], [0, np.cos(slope), 0], [0, 0, 1]]
    if zx != 1 or zy != 1:
        matrix = matrix @ [[zx, 0, 0], [0, zy, 0], [0, 0, 1]]
    height, width = x.shape[:2]
    middle = np.array([[1, 0, height / 2 - 0.5], [0, 1, width / 2 - 0.5], [0, 0, 1]])
    back = np.array([[1, 0, 0.5 - height / 2], [0, 1, 0.5 - width / 2], [0, 0, 1]])
    # As in Keras, the map is of (x, y), and pixels are numbered (row, column).
    matrix = (middle @ matrix @ back)[[1, 0, 2]][:, [1, 0, 2]]
    rows, columns = np.meshgrid(np.arange(height), np.arange(width), indexing="ij")
    sources = matrix[:2, :2] @ np.stack([rows.ravel(), columns.ravel()]) + matrix[:2, 2:]
    y, x_ = sources.reshape(2, height, width)
    return _sampled(x, y, x_, fill_mode, cval, order).astype(x.dtype)


def _sampled(image: Any, y: Any, x: Any, fill_mode: str, cval: float, order: int) -> Any:
    height, width = image.shape[:2]
    # Coordinates of whole pixels stay whole, in spite of rounding.
    y, x = np.round(y, 9), np.round(x, 9)
    inside = (y >= 0) & (y <= height - 1) & (x >= 0) & (x <= width - 1)
    y, x = _folded(y, height, fill_mode), _folded(x, width, fill_mode)
    if order == 0:
        result = image[np.floor(y + 0.5).astype(int) % height, np.floor(x + 0.5).astype(int) % width]
    else:
        top, left = np.floor(y).astype(int), np.floor(x).astype(int)
        down, right = (y - top)[..., None], (x - left)[..., None]
        bottom, farther = np.minimum(top + 1, height - 1), np.minimum(left + 1, width - 1)
        upper = image[top, left] * (1 - right) + image[top, farther] * right
        lower = image[bottom, left] * (1 - right) + image[bottom, farther] * right
        result = upper * (1 - down) + lower * down
    return np.where(inside[..., None], result, cval) if fill_mode == "constant" else result


def _folded(at: Any, size: int, fill_mode: str) -> Any:
    """Coordinates within [0, size - 1]."""
    if fill_mode in ("nearest", "constant"):
        return np.clip(at, 0, size - 1)
    if fill_mode == "reflect":
        turned = np.mod(at + 0.5, 2 * size)
        return np.clip(np.where(turned >= size, 2 * size - turned, turned) - 0.5, 0, size - 1)
    if fill_mode == "wrap":
        return np.mod(at, size - 1) if size > 1 else np.zeros_like(at)
    raise ValueError(f"fill_mode must be nearest, constant, reflect or wrap, got {fill_mode!r}")
