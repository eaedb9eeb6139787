"""Layers of tf.contrib.layers between images and sequences, and from dense to sparse tensors. Computes nothing else.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/layers
"""

from __future__ import annotations

from typing import Any

import dtf as tf
from dtf.contrib.arg_scopes import add_arg_scope
from dtf.contrib.collecting import collect_named_outputs

__all__ = ["dense_to_sparse", "images_to_sequence", "sequence_to_images"]


@add_arg_scope
def images_to_sequence(
    inputs: Any, data_format: str = "NHWC", outputs_collections: Any = None, scope: str | None = None
) -> Any:
    """Images [batch, height, width, depth] as a sequence of their columns: [width, batch * height, depth].

    Raises:
      ValueError: another format than NHWC and NCHW.
    """
    if data_format not in ("NCHW", "NHWC"):
        raise ValueError("data_format has to be either NCHW or NHWC.")
    with tf.name_scope(scope, "ImagesToSequence", [inputs]) as name:
        inputs = tf.convert_to_tensor(inputs)
        order = [2, 0, 1, 3] if data_format == "NHWC" else [3, 0, 2, 1]
        columns = tf.transpose(inputs, order)
        width, batch, height, depth = columns.get_shape().as_list()
        rows = batch * height if batch and height else -1
        sizes = [tf.shape(columns)[0] if width is None and rows == -1 else width or -1, rows, depth]
        return collect_named_outputs(outputs_collections, name, tf.reshape(columns, sizes))


@add_arg_scope
def sequence_to_images(
    inputs: Any, height: int, output_data_format: str = "channels_last", outputs_collections: Any = None,
    scope: str | None = None,
) -> Any:  # fmt: skip
    """The inverse of `images_to_sequence`: images [batch, height, width, depth], or with their channels first."""
    with tf.name_scope(scope, "SequenceToImages", [inputs]) as name:
        inputs = tf.convert_to_tensor(inputs)
        width, rows, depth = inputs.get_shape().as_list()
        batch = -1 if rows is None else rows // height
        first = tf.shape(inputs)[0] if width is None else width
        columns = tf.reshape(inputs, [first, batch, height, depth])
        order = [1, 3, 2, 0] if output_data_format == "channels_first" else [1, 2, 0, 3]
        return collect_named_outputs(outputs_collections, name, tf.transpose(columns, order))


@add_arg_scope
def dense_to_sparse(tensor: Any, eos_token: Any = 0, outputs_collections: Any = None, scope: str | None = None) -> Any:
    """The SparseTensor of the elements that differ from `eos_token`."""
    with tf.variable_scope(scope, "dense_to_sparse", [tensor]) as names:
        tensor = tf.convert_to_tensor(tensor)
        indices = tf.where(tf.not_equal(tensor, tf.constant(eos_token, tensor.dtype)))
        sparse = tf.SparseTensor(indices, tf.gather_nd(tensor, indices), tf.shape(tensor, out_type=tf.int64))
        return collect_named_outputs(outputs_collections, names.name, sparse)
