"""tf.contrib.framework.arg_scope: default arguments of functions within a block.

    with arg_scope([slim.conv2d, slim.fully_connected], weights_regularizer=slim.l2_regularizer(5e-4)):
        net = slim.conv2d(images, 64, [3, 3])

Owns the stack of blocks, one a thread. Only functions marked with `add_arg_scope` are affected.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

__all__ = ["add_arg_scope", "arg_scope", "arg_scope_func_key", "arg_scoped_arguments", "current_arg_scope",
           "has_arg_scope"]  # fmt: skip

Scope = dict[str, dict[str, Any]]


class _Stack(threading.local):
    def __init__(self) -> None:
        self.scopes: list[Scope] = [{}]


_stack = _Stack()


@contextlib.contextmanager
def arg_scope(list_ops_or_scope: Any, **kwargs: Any) -> Iterator[Scope]:
    """A block that changes the default arguments of functions.

    Args:
      list_ops_or_scope: functions marked with `add_arg_scope`, or the scope that another block gave, which takes the
        place of all open ones.
      **kwargs: the defaults.

    Raises:
      ValueError: a function is not marked, or arguments come with a scope.
      TypeError: it is neither a list nor a scope.
    """
    if isinstance(list_ops_or_scope, Mapping):
        if kwargs:
            raise ValueError("When attempting to re-use a scope by suppling a dictionary, kwargs must be empty.")
        scope = {key: dict(value) for key, value in list_ops_or_scope.items()}
    elif isinstance(list_ops_or_scope, list | tuple | set):
        scope = {key: dict(value) for key, value in current_arg_scope().items()}
        for function in list_ops_or_scope:
            key = arg_scope_func_key(function)
            if not has_arg_scope(function):
                raise ValueError(f"{getattr(function, '__name__', function)} is not decorated with @add_arg_scope")
            scope[key] = {**scope.get(key, {}), **kwargs}
    else:
        raise TypeError("list_ops_or_scope must either be a list/tuple or reused scope (i.e. dict)")
    _stack.scopes.append(scope)
    try:
        yield scope
    finally:
        _stack.scopes.pop()


def add_arg_scope(func: Callable[..., Any]) -> Callable[..., Any]:
    """The function, whose default arguments `arg_scope` may set."""

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        defaults = current_arg_scope().get(key)
        return func(*args, **({**defaults, **kwargs} if defaults else kwargs))

    key = f"{func.__module__}.{func.__qualname__}.{id(func)}"
    wrapper.__dict__["_key_op"] = key
    return wrapper


def current_arg_scope() -> Scope:
    """The defaults of the innermost block, by the keys of their functions."""
    return _stack.scopes[-1]


def has_arg_scope(func: Callable[..., Any]) -> bool:
    """Whether a function is marked with `add_arg_scope`."""
    return hasattr(func, "_key_op")


def arg_scope_func_key(op: Callable[..., Any]) -> str:
    """The key of a function in scopes."""
    return str(getattr(op, "_key_op", op))


def arg_scoped_arguments(func: Callable[..., Any]) -> Sequence[str]:
    """The names of the arguments that have defaults."""
    parameters = inspect.signature(func).parameters.values()
    return tuple(each.name for each in parameters if each.default is not each.empty)
