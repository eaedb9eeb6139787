"""slim.tfexample_decoder: from the features of an Example to the tensors of a model.

Source: https://github.com/tensorflow/tensorflow/tree/r1.15/tensorflow/contrib/slim (its README)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import dtf as tf

__all__ = [
    "BackupHandler", "BoundingBox", "Image", "ItemHandler", "ItemHandlerCallback", "LookupTensor", "SparseTensor",
    "TFExampleDecoder", "Tensor",
]  # fmt: skip


class ItemHandler:
    """Makes one item of features.

    Args:
      keys: the features that it takes, one or several.
    """

    def __init__(self, keys: Any) -> None:
        self.keys = list(keys) if isinstance(keys, list | tuple) else [keys]

    def tensors_to_item(self, keys_to_tensors: Mapping[str, Any]) -> Any:
        """The item."""
        raise NotImplementedError


class Tensor(ItemHandler):
    """A feature unchanged, or reshaped."""

    def __init__(
        self, tensor_key: str, shape_keys: Any = None, shape: Any = None, default_value: Any = 0
    ) -> None:
        if shape_keys and shape is not None:
            raise ValueError("Cannot specify both shape_keys and shape parameters.")
        self._shape_keys = [shape_keys] if isinstance(shape_keys, str) else list(shape_keys or [])
        super().__init__([tensor_key, *self._shape_keys])
        self._tensor_key, self._shape, self._default_value = tensor_key, shape, default_value

    def tensors_to_item(self, keys_to_tensors: Mapping[str, Any]) -> Any:
        """The tensor."""
        tensor = keys_to_tensors[self._tensor_key]
        if isinstance(tensor, tf.SparseTensor):
            tensor = tf.sparse_tensor_to_dense(tensor, self._default_value)
        if self._shape_keys:
            sizes = [keys_to_tensors[key] for key in self._shape_keys]
            sizes = [tf.sparse_tensor_to_dense(each) if isinstance(each, tf.SparseTensor) else each for each in sizes]
            shape = sizes[0] if len(sizes) == 1 else tf.stack([tf.reshape(each, []) for each in sizes])
            return tf.reshape(tensor, tf.reshape(shape, [-1]))
        return tensor if self._shape is None else tf.reshape(tensor, self._shape)


class SparseTensor(ItemHandler):
    """Indices and values as a sparse tensor of one dimension."""

    def __init__(
        self, indices_key: str = "indices", values_key: str = "values", shape: Any = None, densify: bool = False,
        default_value: Any = 0,
    ) -> None:  # fmt: skip
        super().__init__([indices_key, values_key])
        self._names = indices_key, values_key
        self._shape, self._densify, self._default_value = shape, densify, default_value

    def tensors_to_item(self, keys_to_tensors: Mapping[str, Any]) -> Any:
        """The sparse tensor, or a dense one."""
        indices, values = (keys_to_tensors[name].values for name in self._names)
        shape = keys_to_tensors[self._names[0]].dense_shape if self._shape is None else self._shape
        sparse = tf.SparseTensor(tf.expand_dims(indices, 1), values, tf.to_int64(shape))
        return tf.sparse_tensor_to_dense(sparse, self._default_value) if self._densify else sparse


class ItemHandlerCallback(ItemHandler):
    """An item that a function of the features' tensors makes."""

    def __init__(self, keys: Any, func: Callable[[Mapping[str, Any]], Any]) -> None:
        super().__init__(keys)
        self._func = func

    def tensors_to_item(self, keys_to_tensors: Mapping[str, Any]) -> Any:
        """What the function returns."""
        return self._func(keys_to_tensors)


class BoundingBox(ItemHandler):
    """Boxes [n, 4] of the features prefix + key: ymin, xmin, ymax, xmax."""

    def __init__(self, keys: Any = None, prefix: str = "") -> None:
        keys = ["ymin", "xmin", "ymax", "xmax"] if keys is None else list(keys)
        if len(keys) != 4:
            raise ValueError(f"BoundingBox expects 4 keys but got {len(keys)}")
        super().__init__([prefix + key for key in keys])

    def tensors_to_item(self, keys_to_tensors: Mapping[str, Any]) -> Any:
        """The boxes."""
        sides = [keys_to_tensors[key] for key in self.keys]
        dense = [tf.sparse_tensor_to_dense(each) if isinstance(each, tf.SparseTensor) else each for each in sides]
        return tf.stack([tf.reshape(each, [-1]) for each in dense], 1)


class LookupTensor(Tensor):
    """The entries of a table for a feature."""

    def __init__(
        self, tensor_key: str, table: Any, shape_keys: Any = None, shape: Any = None, default_value: Any = ""
    ) -> None:
        super().__init__(tensor_key, shape_keys, shape, default_value)
        self._table = table

    def tensors_to_item(self, keys_to_tensors: Mapping[str, Any]) -> Any:
        """The entries."""
        return self._table.lookup(super().tensors_to_item(keys_to_tensors))


class BackupHandler(ItemHandler):
    """The item of one handler, or of another where the first one is empty."""

    def __init__(self, handler: ItemHandler, backup: ItemHandler) -> None:
        for each in (handler, backup):
            if not isinstance(each, ItemHandler):
                raise ValueError(f"BackupHandler takes two ItemHandlers, not {type(each).__name__}")
        super().__init__([*handler.keys, *backup.keys])
        self._handler, self._backup = handler, backup

    def tensors_to_item(self, keys_to_tensors: Mapping[str, Any]) -> Any:
        """The item."""
        item = self._handler.tensors_to_item(keys_to_tensors)
        is_empty = tf.equal(tf.reduce_prod(tf.shape(item)), 0)
        return tf.cond(is_empty, lambda: self._backup.tensors_to_item(keys_to_tensors), lambda: item)


class Image(ItemHandler):
    """An image that is encoded: as its format feature says."""

    def __init__(
        self, image_key: str = "image/encoded", format_key: str = "image/format", shape: Any = None,
        channels: int = 3, dtype: Any = tf.uint8, repeated: bool = False, dct_method: str = "",
    ) -> None:  # fmt: skip
        super().__init__([image_key, format_key])
        self._image_key, self._format_key = image_key, format_key
        self._shape, self._channels, self._dtype = shape, channels, dtype

    def tensors_to_item(self, keys_to_tensors: Mapping[str, Any]) -> Any:
        """The image [height, width, channels]."""
        encoded, form = keys_to_tensors[self._image_key], keys_to_tensors[self._format_key]
        is_raw = tf.logical_or(tf.equal(form, "raw"), tf.equal(form, "RAW"))

        def raw() -> Any:
            flat = tf.cast(tf.decode_raw(encoded, self._dtype), self._dtype)
            return tf.reshape(flat, self._shape if self._shape is not None else [1, -1, self._channels])

        def decoded() -> Any:
            return tf.cast(tf.image.decode_image(encoded, self._channels), self._dtype)

        image = tf.cond(is_raw, raw, decoded)
        image.set_shape([None, None, self._channels])
        return image if self._shape is None else tf.reshape(image, self._shape)


class TFExampleDecoder:
    """Decodes serialized Examples.

    Args:
      keys_to_features: {key: tf.FixedLenFeature and so on}.
      items_to_handlers: {item: handler}.
    """

    def __init__(self, keys_to_features: Mapping[str, Any], items_to_handlers: Mapping[str, ItemHandler]) -> None:
        self._keys_to_features = dict(keys_to_features)
        self._items_to_handlers = dict(items_to_handlers)

    def list_items(self) -> list[str]:
        """The names of the items."""
        return list(self._items_to_handlers)

    def decode(self, serialized_example: Any, items: Sequence[str] | None = None) -> list[Any]:
        """The items of one Example, a scalar string."""
        example = tf.parse_single_example(serialized_example, self._keys_to_features)
        for key, feature in self._keys_to_features.items():
            if isinstance(feature, tf.FixedLenFeature):
                example[key] = tf.reshape(example[key], feature.shape)
        names = self.list_items() if items is None else items
        found = []
        for name in names:
            handler = self._items_to_handlers[name]
            found.append(handler.tensors_to_item({key: example[key] for key in handler.keys}))
        return found
