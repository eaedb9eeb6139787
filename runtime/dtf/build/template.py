"""`tf.make_template`: a function whose variables are made at its first call and shared by all later ones.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/make_template
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from dtf.build.variable_scope import VariableScope, variable_scope

__all__ = ["make_template"]


def make_template(
    name_: str,
    func_: Callable[..., Any],
    create_scope_now_: bool = False,
    unique_name_: str | None = None,
    custom_getter_: Any = None,
    **kwargs: Any,
) -> Callable[..., Any]:
    """A function like `func_`, called with `kwargs` too, that makes its variables once.

    Args:
      name_: of the variable scope, made unique.
      create_scope_now_: opens the scope here rather than at the first call.
      unique_name_: of the scope, in place of `name_`; the name must not have been used.

    Raises:
      ValueError: a later call makes a variable that the first did not.
    """
    function = functools.partial(func_, **kwargs) if kwargs else func_
    scope: VariableScope | None = None
    called = False

    def opened() -> Any:
        return variable_scope(unique_name_, name_, custom_getter=custom_getter_)

    if create_scope_now_:
        with opened() as scope:
            pass

    @functools.wraps(func_)
    def call(*args: Any, **keywords: Any) -> Any:
        nonlocal scope, called
        if scope is None:
            with opened() as scope:
                result = function(*args, **keywords)
        else:
            with variable_scope(scope, reuse=called or None):
                result = function(*args, **keywords)
        called = True
        return result

    return call
