"""Convolutions whose filters see a part of the channels each: AlexNet's two towers, ResNeXt's groups.

Owns how such a convolution becomes one convolution for each group of channels. The first filters belong to the first
channels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np


class _Convolution(Protocol):
    def check_gradient(self, gradient: np.ndarray, depth: int | None = None) -> None: ...
    def forward(self, images: np.ndarray, filters: np.ndarray) -> np.ndarray: ...
    def backprop_input(self, filters: np.ndarray, gradient: np.ndarray) -> np.ndarray: ...
    def backprop_filter(self, images: np.ndarray, gradient: np.ndarray) -> np.ndarray: ...


@dataclass(frozen=True)
class GroupedConvolution:
    """`groups` convolutions beside each other, all like `one`; together they have `depth` outputs."""

    one: _Convolution
    groups: int
    depth: int

    def check_gradient(self, gradient: np.ndarray) -> None:
        """Refuses a gradient that is not of the shape of the outputs."""
        self.one.check_gradient(gradient, self.depth)

    def forward(self, images: np.ndarray, filters: np.ndarray) -> np.ndarray:
        """The outputs."""
        pairs = zip(self._parts(images), self._parts(filters), strict=True)
        return np.concatenate([self.one.forward(part, weights) for part, weights in pairs], -1)

    def backprop_input(self, filters: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """The gradient for the images."""
        pairs = zip(self._parts(filters), self._parts(gradient), strict=True)
        return np.concatenate([self.one.backprop_input(weights, part) for weights, part in pairs], -1)

    def backprop_filter(self, images: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """The gradient for the filters."""
        pairs = zip(self._parts(images), self._parts(gradient), strict=True)
        return np.concatenate([self.one.backprop_filter(part, outputs) for part, outputs in pairs], -1)

    def _parts(self, array: np.ndarray) -> list[np.ndarray]:
        return [np.ascontiguousarray(part) for part in np.split(array, self.groups, -1)]
