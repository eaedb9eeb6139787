"""tensorflow.python.util: decorators that programs import with TensorFlow's own code. They change nothing."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

from dtf.build.argument_names import one_of

__all__ = [
    "contextmanager", "deprecated", "deprecated_alias", "deprecated_args", "deprecated_arg_values",
    "deprecated_argument_lookup", "keyword_args_only", "make_all", "make_decorator", "remove_undocumented",
    "should_use_result", "silence", "tf_export", "unwrap",
]  # fmt: skip

contextmanager = contextlib.contextmanager


def _marked(*args: Any, **kwargs: Any) -> Callable[[Any], Any]:
    return lambda decorated: decorated


deprecated = deprecated_args = deprecated_arg_values = tf_export = _marked


def deprecated_alias(deprecated_name: str, name: str, func_or_class: Any, warn_once: bool = True) -> Any:
    """The function or class itself."""
    return func_or_class


def deprecated_argument_lookup(new_name: str, new_value: Any, old_name: str, old_value: Any) -> Any:
    """The value of an argument that has two names; ValueError if both are given."""
    return one_of(new_name, new_value, old_name, old_value)


def keyword_args_only(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which takes no positional arguments."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if args:
            raise ValueError(f"Must use keyword args to call {function.__name__}.")
        return function(**kwargs)

    return wrapper


def should_use_result(function: Any = None, **kwargs: Any) -> Any:
    """The function itself."""
    return function if function is not None else _marked()


@contextlib.contextmanager
def silence() -> Any:
    """A block without effect: dtf gives no deprecation warnings."""
    yield


def make_decorator(target: Any, decorator_func: Any, *args: Any, **kwargs: Any) -> Any:
    """The decorated function, with the name of its target."""
    return functools.update_wrapper(decorator_func, target)


def unwrap(maybe_tf_decorator: Any) -> tuple[list[Any], Any]:
    """(no decorators, the function)."""
    return [], maybe_tf_decorator


def make_all(module_name: str, doc_string_modules: Any = None) -> list[str]:
    """The public names of a module."""
    import sys

    return [name for name in vars(sys.modules[module_name]) if not name.startswith("_")]


def remove_undocumented(module_name: str, allowed_exception_list: Any = None, doc_string_modules: Any = None) -> None:
    """Does nothing: names do not change."""
