"""slim.dataset: a data set of record files, and the provider of its examples.

Source: https://github.com/tensorflow/tensorflow/tree/r1.15/tensorflow/contrib/slim (its README)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dtf as tf

__all__ = ["Dataset", "DatasetDataProvider"]


class Dataset:
    """Where examples are and how they are read.

    Args:
      data_sources: files, or patterns of their names.
      reader: the class of the reader, such as tf.TFRecordReader.
      decoder: has `decode` and `list_items`, as TFExampleDecoder.
      num_samples: how many examples there are.
      items_to_descriptions: {item: text}.
      **kwargs: more attributes.
    """

    def __init__(
        self, data_sources: Any, reader: Any, decoder: Any, num_samples: int | None, items_to_descriptions: Any,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        self.__dict__.update(
            kwargs, data_sources=data_sources, reader=reader, decoder=decoder, num_samples=num_samples,
            items_to_descriptions=items_to_descriptions,
        )  # fmt: skip


class DatasetDataProvider:
    """One example after another of a Dataset, read by queue runners.

    Args:
      num_readers: how many threads read.
      reader_kwargs: arguments of the reader.
      shuffle: whether files and examples come in any order.
      num_epochs: how often all come; None for no end.
      common_queue_capacity, common_queue_min: of the queue of examples.
      record_key: the name of the item that names the record.
      seed: of the order.
    """

    def __init__(
        self, dataset: Any, num_readers: int = 1, reader_kwargs: Any = None, shuffle: bool = True,
        num_epochs: int | None = None, common_queue_capacity: int = 256, common_queue_min: int = 128,
        record_key: str = "record_key", seed: int | None = None, scope: Any = None,
    ) -> None:  # fmt: skip
        with tf.name_scope(scope, "dataset_data_provider"):
            sources = dataset.data_sources
            patterns = [sources] if isinstance(sources, str) else list(sources)
            files = sorted(found for pattern in patterns for found in tf.gfile.Glob(pattern))
            if not files:
                raise ValueError(f"No data files found in {sources}")
            names = tf.train.string_input_producer(files, num_epochs, shuffle, seed, capacity=16)
            types = [tf.string, tf.string]
            if shuffle:
                queue: Any = tf.RandomShuffleQueue(common_queue_capacity, common_queue_min, types, [[], []], seed=seed)
            else:
                queue = tf.FIFOQueue(common_queue_capacity, types, [[], []])
            readers = [dataset.reader(**(reader_kwargs or {})) for _ in range(num_readers if shuffle else 1)]
            tf.train.add_queue_runner(
                tf.train.QueueRunner(queue, [queue.enqueue(reader.read(names)) for reader in readers])
            )
            key, data = queue.dequeue()
            items = dataset.decoder.list_items()
            tensors = dataset.decoder.decode(data, items)
        self._items = {**dict(zip(items, tensors, strict=True)), record_key: key}
        self._num_samples = dataset.num_samples

    def list_items(self) -> list[str]:
        """The names of the items."""
        return list(self._items)

    def get(self, items: Sequence[str]) -> list[Any]:
        """The tensors of items of the next example.

        Raises:
          ValueError: the item is unknown.
        """
        for item in items:
            if item not in self._items:
                raise ValueError(f"Items must be in {self.list_items()}, not {item}")
        return [self._items[item] for item in items]

    def num_samples(self) -> int | None:
        """How many examples there are."""
        return self._num_samples
