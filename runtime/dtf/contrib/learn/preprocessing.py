"""tf.contrib.learn.preprocessing: documents as rows of the numbers of their words.

    processor = tf.contrib.learn.preprocessing.VocabularyProcessor(max_document_length=10)
    x = np.array(list(processor.fit_transform(documents)))

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/learn/preprocessing
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from dtf import gfile

__all__ = ["CategoricalVocabulary", "VocabularyProcessor", "tokenizer"]

_WORD = re.compile(r"[A-Z]{2,}(?![a-z])|[A-Z][a-z]+(?=[A-Z])|[\'\w\-]+", re.UNICODE)


def tokenizer(iterator: Iterable[str]) -> Iterator[list[str]]:
    """The words of each document."""
    for document in iterator:
        yield _WORD.findall(document)


class CategoricalVocabulary:
    """Numbers of categories, given at first sight until it is frozen.

    Args:
      unknown_token: the category 0, of all that a frozen vocabulary does not have.
      support_reverse: whether `reverse` is wanted.
    """

    def __init__(self, unknown_token: str = "<UNK>", support_reverse: bool = True) -> None:
        self._unknown_token = unknown_token
        self._mapping: dict[Any, int] = {unknown_token: 0}
        self._reverse_mapping: list[Any] = [unknown_token] if support_reverse else []
        self._support_reverse = support_reverse
        self._freq: dict[Any, int] = {}
        self._freeze = False

    def __len__(self) -> int:
        return len(self._mapping)

    def freeze(self, freeze: bool = True) -> None:
        """Whether new categories are 0 from now on."""
        self._freeze = freeze

    def get(self, category: Any) -> int:
        """The number of a category."""
        if category not in self._mapping:
            if self._freeze:
                return 0
            self._mapping[category] = len(self._mapping)
            if self._support_reverse:
                self._reverse_mapping.append(category)
        return self._mapping[category]

    def add(self, category: Any, count: int = 1) -> None:
        """Counts a category."""
        if self.get(category) > 0:
            self._freq[category] = self._freq.get(category, 0) + count

    def trim(self, min_frequency: int, max_frequency: int = -1) -> None:
        """Forgets categories that were counted too seldom or too often; the others are numbered by their counts."""
        by_count = sorted(sorted(self._freq.items()), key=lambda pair: pair[1], reverse=True)
        kept = [
            (category, count)
            for category, count in by_count
            if count > min_frequency and (max_frequency < 0 or count < max_frequency)
        ]
        self._mapping = {self._unknown_token: 0, **{each: index + 1 for index, (each, _) in enumerate(kept)}}
        self._reverse_mapping = list(self._mapping) if self._support_reverse else []
        self._freq = dict(kept)

    def reverse(self, class_id: int) -> Any:
        """The category of a number.

        Raises:
          ValueError: made with support_reverse=False.
        """
        if not self._support_reverse:
            raise ValueError("This vocabulary wasn't initialized with support_reverse to support reverse() function.")
        return self._reverse_mapping[class_id]


class VocabularyProcessor:
    """Documents -> rows of word numbers, cut or filled with 0 to one length.

    Args:
      max_document_length: the length of rows.
      min_frequency: how often a word must come to be kept.
      vocabulary: a CategoricalVocabulary.
      tokenizer_fn: documents -> lists of words.
    """

    def __init__(
        self, max_document_length: int, min_frequency: int = 0, vocabulary: CategoricalVocabulary | None = None,
        tokenizer_fn: Callable[[Iterable[Any]], Iterable[list[Any]]] | None = None,
    ) -> None:  # fmt: skip
        self.max_document_length, self.min_frequency = max_document_length, min_frequency
        self.vocabulary_ = vocabulary if vocabulary is not None else CategoricalVocabulary()
        self._tokenizer = tokenizer_fn or tokenizer

    def fit(self, raw_documents: Iterable[Any], unused_y: Any = None) -> VocabularyProcessor:
        """Learns the words of documents; the vocabulary takes no others afterwards."""
        del unused_y
        for words in self._tokenizer(raw_documents):
            for word in words:
                self.vocabulary_.add(word)
        if self.min_frequency > 0:
            self.vocabulary_.trim(self.min_frequency)
        self.vocabulary_.freeze()
        return self

    def fit_transform(self, raw_documents: Any, unused_y: Any = None) -> Iterator[np.ndarray]:
        """`fit`, then `transform`."""
        return self.fit(raw_documents).transform(raw_documents)

    def transform(self, raw_documents: Iterable[Any]) -> Iterator[np.ndarray]:
        """An int64 row for each document."""
        for words in self._tokenizer(raw_documents):
            numbers = [self.vocabulary_.get(word) for word in words[: self.max_document_length]]
            row = np.zeros(self.max_document_length, np.int64)
            row[: len(numbers)] = numbers
            yield row

    def reverse(self, documents: Iterable[Any]) -> Iterator[str]:
        """The words of rows, with spaces between."""
        for numbers in documents:
            yield " ".join(self.vocabulary_.reverse(int(number)) for number in numbers)

    def save(self, filename: str) -> None:
        """Writes the words and settings to a file."""
        words = self.vocabulary_
        content = {
            "max_document_length": self.max_document_length,
            "min_frequency": self.min_frequency,
            "words": list(words._mapping),
            "counts": words._freq,
            "frozen": words._freeze,
        }
        with gfile.GFile(filename, "w") as file:
            file.write(json.dumps(content))

    @classmethod
    def restore(cls, filename: str) -> VocabularyProcessor:
        """The processor that `save` wrote.

        Raises:
          ValueError: another program wrote the file; TensorFlow's are pickles, which are not read.
        """
        with gfile.GFile(filename, "rb") as file:
            content = file.read()
        try:
            found = json.loads(content)
            made = cls(found["max_document_length"], found["min_frequency"])
            words = made.vocabulary_
            words._mapping = {word: index for index, word in enumerate(found["words"])}
            words._reverse_mapping = list(found["words"])
            words._freq, words._freeze = dict(found["counts"]), bool(found["frozen"])
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{filename} was not written by VocabularyProcessor.save of dtf: {error!r}") from None
        return made
