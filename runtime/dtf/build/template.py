"""`tf.make_template`: a function whose variables are made at its first call and shared by all later ones.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/make_template
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from dtf.build.default_graph import get_collection
from dtf.build.graph_keys import GraphKeys
from dtf.build.variable_scope import VariableScope, variable_scope

__all__ = ["Template", "make_template"]


def make_template(
    name_: str,
    func_: Callable[..., Any],
    create_scope_now_: bool = False,
    unique_name_: str | None = None,
    custom_getter_: Any = None,
    **kwargs: Any,
) -> Template:
    """A function like `func_`, called with `kwargs` too, that makes its variables once.

    Args:
      name_: of the variable scope, made unique.
      create_scope_now_: opens the scope here rather than at the first call.
      unique_name_: of the scope, in place of `name_`; the name must not have been used.

    Raises:
      ValueError: `name_` is None, or a later call makes a variable that the first did not.
    """
    return Template(name_, func_, create_scope_now_, unique_name_, custom_getter_, kwargs)


class Template:
    """What `make_template` returns. Its scope is opened at the first call."""

    def __init__(
        self, name: str, func: Callable[..., Any], create_scope_now: bool, unique_name: str | None,
        custom_getter: Any, keywords: dict[str, Any],
    ) -> None:  # fmt: skip
        if name is None:
            raise ValueError("name cannot be None.")
        self._func = functools.partial(func, **keywords) if keywords else func
        functools.update_wrapper(self, func)
        self._open = functools.partial(variable_scope, unique_name, name, custom_getter=custom_getter)
        self._name = unique_name or name
        self._variable_scope: VariableScope | None = None
        self._called = False
        if create_scope_now:
            with self._open() as self._variable_scope:
                pass

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._variable_scope is None:
            with self._open() as self._variable_scope:
                result = self._func(*args, **kwargs)
        else:
            with variable_scope(self._variable_scope, reuse=self._called or None):
                result = self._func(*args, **kwargs)
        self._called = True
        return result

    @property
    def name(self) -> str:
        """The name that the template was made with."""
        return self._name

    @property
    def func(self) -> Callable[..., Any]:
        """The function, with the keyword arguments of the template."""
        return self._func

    @property
    def variable_scope(self) -> VariableScope | None:
        """The scope of the variables; None before the first call."""
        return self._variable_scope

    @property
    def variable_scope_name(self) -> str | None:
        """The name of that scope, with a slash at its end."""
        return None if self._variable_scope is None else f"{self._variable_scope.name}/"

    @property
    def variables(self) -> list[Any]:
        """The global and local variables of the template."""
        return [*self.global_variables, *self.local_variables]

    @property
    def trainable_variables(self) -> list[Any]:
        """The trainable variables of the template."""
        return self._collected(GraphKeys.TRAINABLE_VARIABLES)

    @property
    def non_trainable_variables(self) -> list[Any]:
        """The other variables of the template."""
        trainable = {id(each) for each in self.trainable_variables}
        return [each for each in self.variables if id(each) not in trainable]

    @property
    def global_variables(self) -> list[Any]:
        """The global variables of the template."""
        return self._collected(GraphKeys.GLOBAL_VARIABLES)

    @property
    def local_variables(self) -> list[Any]:
        """The local variables of the template."""
        return self._collected(GraphKeys.LOCAL_VARIABLES)

    weights = variables
    trainable_weights = trainable_variables

    def _collected(self, key: str) -> list[Any]:
        return [] if self._variable_scope is None else get_collection(key, self.variable_scope_name)
