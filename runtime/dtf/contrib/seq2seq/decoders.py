"""Decoders, and the loop that runs them until all sequences are finished.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/seq2seq/dynamic_decode
"""

from __future__ import annotations

import collections
import contextlib
from typing import Any

import dtf as tf
from dtf.build import nest

__all__ = ["BasicDecoder", "BasicDecoderOutput", "Decoder", "dynamic_decode"]

BasicDecoderOutput = collections.namedtuple("BasicDecoderOutput", ("rnn_output", "sample_id"))


class Decoder:
    """A step of decoding, and how it begins.

    Subclasses have `batch_size`, `output_size`, `output_dtype`, `initialize` and `step`, and `finalize` if needed.
    """

    @property
    def batch_size(self) -> Any:
        """How many sequences there are."""
        raise NotImplementedError(f"{type(self).__name__} has no batch_size.")

    @property
    def output_size(self) -> Any:
        """The structure of the sizes of outputs."""
        raise NotImplementedError(f"{type(self).__name__} has no output_size.")

    @property
    def output_dtype(self) -> Any:
        """The structure of the dtypes of outputs."""
        raise NotImplementedError(f"{type(self).__name__} has no output_dtype.")

    def initialize(self, name: str | None = None) -> Any:
        """(finished, first inputs, first state)."""
        raise NotImplementedError(f"{type(self).__name__} has no initialize.")

    def step(self, time: Any, inputs: Any, state: Any, name: str | None = None) -> Any:
        """(outputs, next state, next inputs, finished)."""
        raise NotImplementedError(f"{type(self).__name__} has no step.")

    def finalize(self, outputs: Any, final_state: Any, sequence_lengths: Any) -> tuple[Any, Any]:
        """(outputs [time, batch, ...], last state) as the caller of dynamic_decode gets them."""
        raise NotImplementedError(f"{type(self).__name__} has no finalize.")

    @property
    def tracks_own_finished(self) -> bool:
        """Whether only `finished` of a step counts: sequences may be finished and continue, as beams do."""
        return False


class BasicDecoder(Decoder):
    """A cell, fed by a helper.

    Args:
      output_layer: a layer over the cell's outputs.
    """

    def __init__(self, cell: Any, helper: Any, initial_state: Any, output_layer: Any = None) -> None:
        self._layer: Any = output_layer
        if output_layer is not None and not isinstance(output_layer, tf.layers.Layer):
            raise TypeError(f"output_layer must be a Layer, received: {type(output_layer)}")
        self._cell, self._helper, self._initial_state = cell, helper, initial_state

    @property
    def batch_size(self) -> Any:
        """How many sequences there are."""
        return self._helper.batch_size

    @property
    def output_size(self) -> Any:
        """The sizes of an output and a sample."""
        size = self._cell.output_size
        if self._layer is not None:
            shapes = nest.map_structure(lambda each: tf.TensorShape([None]).concatenate(each), size)
            size = nest.map_structure(lambda each: self._layer.compute_output_shape(each)[1:], shapes)
        return BasicDecoderOutput(size, tf.TensorShape(self._helper.sample_ids_shape or []))

    @property
    def output_dtype(self) -> Any:
        """The dtypes of an output and a sample."""
        kind = nest.flatten(self._initial_state)[0].dtype
        return BasicDecoderOutput(
            nest.map_structure(lambda _: kind, self._cell.output_size), self._helper.sample_ids_dtype or tf.int32
        )

    def initialize(self, name: str | None = None) -> tuple[Any, Any, Any]:
        """(finished, first inputs, first state)."""
        return (*self._helper.initialize(), self._initial_state)

    def step(self, time: Any, inputs: Any, state: Any, name: str | None = None) -> tuple[Any, Any, Any, Any]:
        """(outputs, next state, next inputs, finished)."""
        with tf.name_scope(name, "BasicDecoderStep", [time]):
            output, after = self._cell(inputs, state)
            output = self._layer(output) if self._layer is not None else output
            ids = self._helper.sample(time=time, outputs=output, state=after)
            finished, next_inputs, after = self._helper.next_inputs(
                time=time, outputs=output, state=after, sample_ids=ids
            )
        return BasicDecoderOutput(output, ids), after, next_inputs, finished


def dynamic_decode(
    decoder: Any, output_time_major: bool = False, impute_finished: bool = False,
    maximum_iterations: Any = None, parallel_iterations: int = 32, swap_memory: bool = False, scope: Any = None,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Decodes until all sequences are finished: (outputs [batch, time, ...], last state, lengths [batch]).

    Args:
      output_time_major: whether outputs are [time, batch, ...].
      impute_finished: whether what is finished keeps its state and gives zeros.
      maximum_iterations: the most steps; None for no limit.

    Raises:
      TypeError: `decoder` is no Decoder.
    """
    if not isinstance(decoder, Decoder):
        raise TypeError(f"Expected decoder to be type Decoder, but saw: {type(decoder)}")
    with tf.variable_scope(scope, "decoder"):
        finished, inputs, state = decoder.initialize()
        most = None if maximum_iterations is None else tf.cast(maximum_iterations, tf.int32)
        if most is not None:
            finished = tf.logical_or(finished, most <= 0)
        arrays = nest.map_structure(_array, decoder.output_size, decoder.output_dtype)
        lengths = tf.zeros_like(finished, dtype=tf.int32)
        start = tf.constant(0), arrays, nest.map_structure(_tensor, state), inputs, finished, lengths
        found = tf.while_loop(
            lambda *values: tf.logical_not(tf.reduce_all(values[4])),
            lambda *values: _next(decoder, values, most, impute_finished),
            start, shape_invariants=nest.map_structure(_loose, start),
            parallel_iterations=parallel_iterations, swap_memory=swap_memory,
        )  # fmt: skip
        outputs, state, lengths = nest.map_structure(lambda array: array.stack(), found[1]), found[2], found[5]
        with contextlib.suppress(NotImplementedError):
            outputs, state = decoder.finalize(outputs, state, lengths)
        if not output_time_major:
            outputs = nest.map_structure(_swapped, outputs)
        return outputs, state, lengths


def _next(decoder: Any, values: Any, most: Any, impute_finished: bool) -> Any:
    time, arrays, state, inputs, finished, lengths = values
    output, after, next_inputs, ended = decoder.step(time, inputs, state)
    if not decoder.tracks_own_finished:
        ended = tf.logical_or(ended, finished)
    if most is not None:
        ended = tf.logical_or(ended, time + 1 >= most)
    lengths = tf.where(finished, lengths, tf.fill(tf.shape(lengths), time + 1))
    if impute_finished:
        output = nest.map_structure(lambda each: tf.where(finished, tf.zeros_like(each), each), output)

        def kept(old: Any, new: Any) -> Any:
            is_passed = isinstance(new, tf.TensorArray) or new.get_shape().ndims in (None, 0)
            return new if is_passed else tf.where(finished, old, new)

        after = nest.map_structure(kept, state, after)
    nest.assert_same_structure(state, after)
    written = nest.map_structure(lambda array, each: array.write(time, each), arrays, output)
    return time + 1, written, after, next_inputs, ended, lengths


def _array(size: Any, dtype: Any) -> Any:
    shape = tf.TensorShape([None]).concatenate(tf.TensorShape([size] if isinstance(size, int) else size))
    return tf.TensorArray(dtype, 0, dynamic_size=True, element_shape=shape)


def _tensor(value: Any) -> Any:
    return value if isinstance(value, tf.TensorArray) else tf.convert_to_tensor(value)


def _loose(value: Any) -> Any:
    """The shape of a tensor, with any batch."""
    if isinstance(value, tf.TensorArray):
        return tf.TensorShape(None)
    shape = tf.convert_to_tensor(value).get_shape()
    return shape if shape.ndims in (None, 0) else tf.TensorShape([None, *shape.as_list()[1:]])


def _swapped(tensor: Any) -> Any:
    if isinstance(tensor, tf.TensorArray):
        return tensor
    rank = tensor.get_shape().ndims
    return tf.transpose(tensor, [1, 0, *range(2, rank)] if rank else [1, 0])
