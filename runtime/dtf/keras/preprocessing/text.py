"""tf.keras.preprocessing.text: texts as lists of the numbers of their words.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/keras/preprocessing/text
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

import numpy as np

__all__ = ["Tokenizer", "text_to_word_sequence"]

_FILTERS = '!"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\t\n'


def text_to_word_sequence(text: str, filters: str = _FILTERS, lower: bool = True, split: str = " ") -> list[str]:
    """The words of a text, without the characters of `filters`."""
    text = text.lower() if lower else text
    removed: dict[int, str] = {ord(each): split for each in filters}
    return [word for word in text.translate(removed).split(split) if word]


class Tokenizer:
    """Numbers of words, 1 for the most frequent.

    Args:
      num_words: only words below this number are used; all by default.
      filters, lower, split: as in `text_to_word_sequence`.
      char_level: whether each character is a word.
      oov_token: the word, number 1, that stands for unknown ones.
    """

    def __init__(
        self, num_words: int | None = None, filters: str = _FILTERS, lower: bool = True, split: str = " ",
        char_level: bool = False, oov_token: str | None = None,
    ) -> None:  # fmt: skip
        self.num_words, self.filters, self.lower, self.split = num_words, filters, lower, split
        self.char_level, self.oov_token = char_level, oov_token
        self.word_counts: OrderedDict[str, int] = OrderedDict()
        self.word_index: dict[str, int] = {}
        self.index_word: dict[int, str] = {}
        self.document_count = 0

    def fit_on_texts(self, texts: Iterable[Any]) -> None:
        """Counts the words of texts, and numbers all words again."""
        for text in texts:
            self.document_count += 1
            for word in self._words(text):
                self.word_counts[word] = self.word_counts.get(word, 0) + 1
        ranked = sorted(self.word_counts, key=lambda word: self.word_counts[word], reverse=True)
        words = ([] if self.oov_token is None else [self.oov_token]) + ranked
        self.word_index = {word: number for number, word in enumerate(words, 1)}
        self.index_word = {number: word for word, number in self.word_index.items()}

    def texts_to_sequences(self, texts: Iterable[Any]) -> list[list[int]]:
        """The numbers of the known words of each text."""
        unknown = None if self.oov_token is None else self.word_index.get(self.oov_token)
        result = []
        for text in texts:
            numbers = [self.word_index.get(word) for word in self._words(text)]
            used = [unknown if number is None or self._is_rare(number) else number for number in numbers]
            result.append([number for number in used if number is not None])
        return result

    def sequences_to_texts(self, sequences: Iterable[Iterable[int]]) -> list[str]:
        """The words of numbers."""
        return [" ".join(self.index_word[each] for each in row if each in self.index_word) for row in sequences]

    def texts_to_matrix(self, texts: Iterable[Any], mode: str = "binary") -> np.ndarray:
        """A row for each text: whether ("binary") or how often ("count", "freq") it has each word.

        Raises:
          ValueError: the mode is another.
        """
        if mode not in ("binary", "count", "freq"):
            raise ValueError(f"mode must be binary, count or freq, not {mode!r}")
        rows = self.texts_to_sequences(texts)
        result = np.zeros((len(rows), self.num_words or len(self.word_index) + 1))
        for row, numbers in zip(result, rows, strict=True):
            np.add.at(row, numbers, 1)
            if mode == "freq" and numbers:
                row /= len(numbers)
        return np.minimum(result, 1) if mode == "binary" else result

    def _is_rare(self, number: int) -> bool:
        return self.num_words is not None and number >= self.num_words

    def _words(self, text: Any) -> Iterable[str]:
        if isinstance(text, list):
            return [word.lower() for word in text] if self.lower else text
        if self.char_level:
            return text.lower() if self.lower else text
        return text_to_word_sequence(text, self.filters, self.lower, self.split)
