"""tf.compat.v2, as far as programs with graphs and sessions use it: the names of dtf, those of TensorFlow 2 preferred.

    tf.compat.v2.nn.max_pool2d(x, 2, 2, "SAME"); tf.compat.v2.where(x > 0, x, 0.0)

Where an argument has another meaning in TensorFlow 2, the function here has TensorFlow 2's. A name without a form of
its own is dtf's, and eager execution stays absent.

Source: https://www.tensorflow.org/api_docs/python/tf
"""

from __future__ import annotations

import types
from typing import Any

import dtf as v1
from dtf import late as _late

_FORMS = {
    "where": "where_v2",
}
_MODULES = "bitwise data debugging dtypes errors feature_column initializers io keras linalg lookup math nest nn "
_MODULES += "quantization queue ragged random saved_model sets signal sparse strings summary sysconfig test train "
_MODULES += "version"
_MEMBERS: dict[str, dict[str, str]] = {
    "nn": {
        "avg_pool": "avg_pool_v2", "ctc_loss": "ctc_loss_v2", "max_pool": "max_pool_v2",
        "softmax_cross_entropy_with_logits": "softmax_cross_entropy_with_logits_v2",
    },
}  # fmt: skip


class _Module(types.ModuleType):
    """A module of dtf with the forms of TensorFlow 2 over its own names."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{__name__}.{name}")
        self._short = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        own = _FUNCTIONS.get(f"{self._short}.{name}")
        if own is not None:
            return own
        module = getattr(v1, self._short)
        return getattr(module, _MEMBERS.get(self._short, {}).get(name, name))

    def __dir__(self) -> list[str]:
        return dir(getattr(v1, self._short))


def _sigmoid_cross_entropy(labels: Any = None, logits: Any = None, name: str | None = None) -> Any:
    """`tf.nn.sigmoid_cross_entropy_with_logits` with arguments by position."""
    return v1.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits, name=name)


def _sparse_softmax_cross_entropy(labels: Any, logits: Any, name: str | None = None) -> Any:
    """`tf.nn.sparse_softmax_cross_entropy_with_logits` with arguments by position."""
    return v1.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits, name=name)


def _dropout(x: Any, rate: Any, noise_shape: Any = None, seed: int | None = None, name: str | None = None) -> Any:
    """`tf.nn.dropout`, whose second argument is the part that becomes 0."""
    return v1.nn.dropout(x, rate=rate, noise_shape=noise_shape, seed=seed, name=name)


def _moments(x: Any, axes: Any, shift: Any = None, keepdims: bool = False, name: str | None = None) -> Any:
    """(mean, variance) along axes."""
    return v1.nn.moments(x, axes, shift, name=name, keepdims=keepdims)


def _embedding_lookup(params: Any, ids: Any, max_norm: Any = None, name: str | None = None) -> Any:
    """Rows of `params`, whose parts share them by division."""
    return v1.nn.embedding_lookup(params, ids, partition_strategy="div", max_norm=max_norm, name=name)


def _argument(op: Any) -> Any:
    def extreme(input: Any, axis: Any = None, output_type: Any = v1.int64, name: str | None = None) -> Any:
        return op(input, 0 if axis is None else axis, name=name, output_type=output_type)

    extreme.__doc__ = "The index of an extreme along `axis`, 0 by default."
    return extreme


def _resize(
    images: Any, size: Any, method: Any = "bilinear", preserve_aspect_ratio: bool = False, antialias: bool = False,
    name: str | None = None,
) -> Any:  # fmt: skip
    """Images resized with pixels whose centres are at halves; float32 unless the nearest pixels are taken.

    Raises:
      ValueError: `antialias` is True, or the method is unknown.
    """
    from dtf.build.apply import apply_op

    if antialias or preserve_aspect_ratio:
        raise ValueError("tf.compat.v2.image.resize: antialias and preserve_aspect_ratio are not supported")
    kinds = {"bilinear": "ResizeBilinear", "nearest": "ResizeNearestNeighbor", "bicubic": "ResizeBicubic"}
    if method not in kinds:
        raise ValueError(f"tf.compat.v2.image.resize: unknown method {method!r}; use one of {sorted(kinds)}")
    images = v1.convert_to_tensor(images)
    batch = images[None] if images.shape.ndims == 3 else images
    made = apply_op(kinds[method], name, images=batch, size=size, half_pixel_centers=True)
    return v1.squeeze(made, [0]) if images.shape.ndims == 3 else made


_FUNCTIONS: dict[str, Any] = {
    "nn.sigmoid_cross_entropy_with_logits": _sigmoid_cross_entropy,
    "nn.sparse_softmax_cross_entropy_with_logits": _sparse_softmax_cross_entropy,
    "nn.dropout": _dropout,
    "nn.moments": _moments,
    "nn.embedding_lookup": _embedding_lookup,
    "math.argmax": _argument(v1.argmax),
    "math.argmin": _argument(v1.argmin),
    "image.resize": _resize,
    "argmax": _argument(v1.argmax),
    "argmin": _argument(v1.argmin),
}


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise _late.missing(__name__, name)
    if name in _FUNCTIONS:
        return _FUNCTIONS[name]
    if name in _MODULES.split() or name == "image":
        made = globals()[name] = _Module(name)
        return made
    return getattr(v1, _FORMS.get(name, name))


def __dir__() -> list[str]:
    return dir(v1)
