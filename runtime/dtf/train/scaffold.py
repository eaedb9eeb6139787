"""Scaffold: the ops and the saver that every training session needs, gathered or made.

Owns the defaults; does not create sessions (session_manager does) nor run them (monitored_session does).

Source: https://www.tensorflow.org/api_docs/python/tf/compat/v1/train/Scaffold
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtf.build.constant import constant
from dtf.build.default_graph import get_default_graph
from dtf.build.graph import GraphKeys
from dtf.build.ops.joining import concat
from dtf.build.ops.ordering import group
from dtf.build.variable_collections import (
    global_variables,
    global_variables_initializer,
    local_variables_initializer,
    report_uninitialized_variables,
)
from dtf.wire import dtypes


class Scaffold:
    """The ops and objects needed to start a training session; `finalize` makes those that are not
    given.

    Args:
      init_op: initialises the model; all global variables by default.
      init_feed_dict: fed to it.
      init_fn: called as init_fn(scaffold, session) after it.
      ready_op: a tensor of the names of uninitialised variables; empty when the model is ready.
      ready_for_local_init_op: the same for the variables that `local_init_op` needs.
      local_init_op: run in every new session; local variables and tables by default.
      summary_op: all summaries merged by default.
      saver: a sharded Saver of all saveable objects by default.
      copy_from_scaffold: another Scaffold whose fields serve where none is given.
      local_init_feed_dict: fed to `local_init_op`.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/train/Scaffold
    """

    def __init__(
        self,
        init_op: Any = None,
        init_feed_dict: dict[Any, Any] | None = None,
        init_fn: Callable[[Scaffold, Any], Any] | None = None,
        ready_op: Any = None,
        ready_for_local_init_op: Any = None,
        local_init_op: Any = None,
        summary_op: Any = None,
        saver: Any = None,
        copy_from_scaffold: Scaffold | None = None,
        local_init_feed_dict: dict[Any, Any] | None = None,
    ) -> None:
        base = copy_from_scaffold
        if base is not None and not isinstance(base, Scaffold):
            raise TypeError("copy_from_scaffold is not a Scaffold instance.")

        def given(value: Any, name: str) -> Any:
            return value if value is not None or base is None else getattr(base, name)

        self._init_op = given(init_op, "_init_op")
        self._init_feed_dict = given(init_feed_dict, "_init_feed_dict")
        self._ready_op = given(ready_op, "_ready_op")
        self._ready_for_local_init_op = given(ready_for_local_init_op, "_ready_for_local_init_op")
        self._local_init_op = given(local_init_op, "_local_init_op")
        self._local_init_feed_dict = given(local_init_feed_dict, "_local_init_feed_dict")
        self._summary_op = given(summary_op, "_summary_op")
        self._saver = given(saver, "_saver")
        self._init_fn: Callable[[Any], Any] | None = base._init_fn if base is not None else None
        if init_fn is not None:
            own_init_fn = init_fn
            self._init_fn = lambda session: own_init_fn(self, session)

    def finalize(self) -> Scaffold:
        """Makes what is missing, builds the saver, and finalizes the graph. May be called again."""
        graph = get_default_graph()
        if self._init_op is None:

            def default_init_op() -> Any:
                return group(
                    global_variables_initializer(),
                    *graph.get_collection("resources"),
                    *graph.get_collection(GraphKeys.TABLE_INITIALIZERS),
                )

            self._init_op = self.get_or_default("init_op", GraphKeys.INIT_OP, default_init_op)
        if self._ready_op is None:
            self._ready_op = self.get_or_default("ready_op", GraphKeys.READY_OP, _default_ready_op)
        if self._ready_for_local_init_op is None:
            self._ready_for_local_init_op = self.get_or_default(
                "ready_for_local_init_op",
                GraphKeys.READY_FOR_LOCAL_INIT_OP,
                lambda: report_uninitialized_variables(global_variables()),
            )
        if self._local_init_op is None:
            self._local_init_op = self.get_or_default(
                "local_init_op", GraphKeys.LOCAL_INIT_OP, self.default_local_init_op
            )
        if self._summary_op is None:
            from dtf.build.ops.summary_ops import merge_all

            self._summary_op = self.get_or_default("summary_op", GraphKeys.SUMMARY_OP, merge_all)
        if self._saver is None:
            from dtf.train.saver import get_saver_or_default

            self._saver = get_saver_or_default()
        self._saver.build()
        graph.finalize()
        return self

    @property
    def init_fn(self) -> Callable[[Any], Any] | None:
        return self._init_fn

    @property
    def init_op(self) -> Any:
        return self._init_op

    @property
    def init_feed_dict(self) -> dict[Any, Any] | None:
        return self._init_feed_dict

    @property
    def ready_op(self) -> Any:
        return self._ready_op

    @property
    def ready_for_local_init_op(self) -> Any:
        return self._ready_for_local_init_op

    @property
    def local_init_op(self) -> Any:
        return self._local_init_op

    @property
    def local_init_feed_dict(self) -> dict[Any, Any] | None:
        return self._local_init_feed_dict

    @property
    def summary_op(self) -> Any:
        return self._summary_op

    @property
    def saver(self) -> Any:
        return self._saver

    @staticmethod
    def get_or_default(arg_name: str, collection_key: str, default_constructor: Callable[[], Any]) -> Any:
        """The one item of a collection; if the collection is empty, the constructor makes and adds
        it.

        Raises:
          RuntimeError: the collection has several items.
        """
        elements = get_default_graph().get_collection(collection_key)
        if len(elements) > 1:
            raise RuntimeError(
                f'More than one item in the collection "{collection_key}". Please indicate which one to use by passing '
                f"it to the tf.Scaffold constructor as:  tf.Scaffold({arg_name}=item to use)"
            )
        if elements:
            return elements[0]
        made = default_constructor()
        if made is not None:
            get_default_graph().add_to_collection(collection_key, made)
        return made

    @staticmethod
    def default_local_init_op() -> Any:
        """An op that initialises local variables and lookup tables."""
        tables = get_default_graph().get_collection(GraphKeys.TABLE_INITIALIZERS)
        return group(local_variables_initializer(), *tables)


def _default_ready_op() -> Any:
    resources = constant([], dtype=dtypes.string, shape=[0])
    return concat([report_uninitialized_variables(), resources], 0)
