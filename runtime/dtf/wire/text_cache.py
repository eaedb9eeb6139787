"""Results kept by the texts that they were made of, where a peer or a file may choose the texts.

`functools.lru_cache` bounds how many texts it keeps, not how long they are: a thousand texts of a megabyte are a
gigabyte that nothing frees. Names that occur in programs are short, and only short ones are kept here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, Protocol, TypeVar, cast

__all__ = ["LONGEST", "cached_by_text"]

P = ParamSpec("P")
R = TypeVar("R", covariant=True)

LONGEST = 512
"""Characters, or bytes, of the longest argument for which a result is kept."""


class CachedByText(Protocol[P, R]):
    """A function whose results are kept."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...

    def cache_clear(self) -> None:
        """Forgets all results."""


def cached_by_text(maxsize: int) -> Callable[[Callable[P, R]], CachedByText[P, R]]:
    """As `functools.lru_cache(maxsize)`, for a function of texts and numbers; calls with a longer text than LONGEST
    compute anew. Callers name no arguments.
    """

    def decorate(function: Callable[P, R]) -> CachedByText[P, R]:
        cached = functools.lru_cache(maxsize)(function)

        @functools.wraps(function)
        def call(*texts: P.args, **none: P.kwargs) -> R:
            for text in texts:
                if isinstance(text, (str, bytes)) and len(text) > LONGEST:
                    return function(*texts, **none)
            return cached(*texts)

        call.cache_info = cached.cache_info  # type: ignore[attr-defined]
        call.cache_clear = cached.cache_clear  # type: ignore[attr-defined]
        return cast("CachedByText[P, R]", call)

    return decorate
