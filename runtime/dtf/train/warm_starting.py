"""Warm starts: variables that begin with the values of another model's checkpoint, reordered by vocabularies.

Owns `warm_start`, which changes initializers of existing variables, and `VocabInfo`; `vocabulary_loading` makes the
values of variables with vocabularies.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/train/warm_start
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from dtf import logging
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import get_collection
from dtf.build.graph_keys import GraphKeys
from dtf.build.initializers import PartitionInfo
from dtf.build.partitioned import PartitionedVariable
from dtf.build.variables import Variable
from dtf.train.checkpoint_utils import checkpoint_prefix, init_from_checkpoint
from dtf.train.saveable import _names_of
from dtf.train.vocabulary_loading import load_and_remap_matrix_initializer

__all__ = ["VocabInfo", "warm_start"]


class _VocabInfo(NamedTuple):
    new_vocab: str
    new_vocab_size: int
    num_oov_buckets: int
    old_vocab: str
    old_vocab_size: int
    backup_initializer: Callable[..., Any] | None
    axis: int


class VocabInfo(_VocabInfo):
    """The vocabularies of a variable, for warm starts.

    Args:
      new_vocab: the file of the new model's words, one a line.
      new_vocab_size: how many of its lines the new model uses.
      num_oov_buckets: how many rows or columns behind them stand for unknown words.
      old_vocab: the file of the checkpoint's words.
      old_vocab_size: how many of its lines count; -1: all.
      backup_initializer: makes values of words that are new, and of buckets; zeros by default.
      axis: 0 if the variable's rows belong to words, 1 if its columns do.

    Raises:
      ValueError: `axis` is neither 0 nor 1.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/train/VocabInfo
    """

    __slots__ = ()

    def __new__(
        cls, new_vocab: str, new_vocab_size: int, num_oov_buckets: int, old_vocab: str, old_vocab_size: int = -1,
        backup_initializer: Callable[..., Any] | None = None, axis: int = 0,
    ) -> VocabInfo:  # fmt: skip
        _check_axis(axis)
        return super().__new__(
            cls, new_vocab, new_vocab_size, num_oov_buckets, old_vocab, old_vocab_size, backup_initializer, axis
        )


def _check_axis(axis: int) -> None:
    if axis not in (0, 1):
        raise ValueError(f"The only supported values for the axis argument are 0 and 1.  Provided axis: {axis}")


def warm_start(
    ckpt_to_initialize_from: str,
    vars_to_warm_start: Any = ".*",
    var_name_to_vocab_info: Mapping[str, VocabInfo] | None = None,
    var_name_to_prev_var_name: Mapping[str, str] | None = None,
) -> None:
    """Makes the initializers of existing variables read the checkpoint's variables of the same names.

    Args:
      ckpt_to_initialize_from: the checkpoint, or a folder whose latest is taken.
      vars_to_warm_start: a pattern for the start of trainable variables' names, a list of patterns for all
        variables, or a list of variables. None: only trainable variables with vocabularies.
      var_name_to_vocab_info: the vocabularies of variables, whose values follow their words.
      var_name_to_prev_var_name: names in the checkpoint that differ from those here.

    Raises:
      ValueError: a variable is missing in the checkpoint or has another shape, `vars_to_warm_start` has another
        type, or a mapping names a variable that is not warm-started.
    """
    logging.info("Warm-starting from: %s", ckpt_to_initialize_from)
    grouped = grouped_variables(vars_to_warm_start)
    vocabularies = dict(var_name_to_vocab_info or {})
    previous = dict(var_name_to_prev_var_name or {})
    count = 0
    without_vocabulary: dict[str, Any] = {}
    for name, variables in grouped.items():
        info = vocabularies.get(name)
        if info is not None:
            count += 1
            warm_start_with_vocabulary(
                variables,
                info.new_vocab,
                info.new_vocab_size,
                ckpt_to_initialize_from,
                info.old_vocab,
                previous_vocab_size=info.old_vocab_size,
                current_oov_buckets=info.num_oov_buckets,
                prev_tensor_name=previous.get(name),
                initializer=info.backup_initializer,
                axis=info.axis,
            )
        elif vars_to_warm_start:
            count += 1
            stored, target = name_and_variable(variables[0] if len(variables) == 1 else variables, previous.get(name))
            if stored in without_vocabulary:  # two variables begin with the same tensor
                init_from_checkpoint(ckpt_to_initialize_from, without_vocabulary)
                without_vocabulary.clear()
            without_vocabulary[stored] = target
    if without_vocabulary:
        init_from_checkpoint(ckpt_to_initialize_from, without_vocabulary)
    logging.info("Warm-started %d variables.", count)
    _check_used("var_name_to_prev_var_name", set(previous) - set(grouped), grouped)
    _check_used("var_name_to_vocab_info", set(vocabularies) - set(grouped), grouped)


def _check_used(argument: str, unused: set[str], grouped: Mapping[str, Any]) -> None:
    if unused:
        raise ValueError(
            f"You provided the following variables in {argument} that were not used: {sorted(unused)}.  Perhaps you "
            f"misspelled them?  Here is the list of viable variable names: {sorted(grouped)}"
        )


def grouped_variables(vars_to_warm_start: Any) -> dict[str, list[Any]]:
    """The chosen variables by their names in checkpoints; the parts of a partitioned variable have one name.

    Raises:
      ValueError: `vars_to_warm_start` is not None, a string, a list of strings, or a list of variables.
    """
    if vars_to_warm_start is None or isinstance(vars_to_warm_start, str):
        logging.info("Warm-starting variables only in TRAINABLE_VARIABLES.")
        chosen = list(get_collection(GraphKeys.TRAINABLE_VARIABLES, vars_to_warm_start))
    elif not isinstance(vars_to_warm_start, list | tuple):
        raise ValueError(f"`vars_to_warm_start must be a `list` or `str`.  Given type is {type(vars_to_warm_start)}")
    elif all(isinstance(each, str) for each in vars_to_warm_start):
        chosen = [each for scope in vars_to_warm_start for each in get_collection(GraphKeys.GLOBAL_VARIABLES, scope)]
    elif all(isinstance(each, Variable | PartitionedVariable) for each in vars_to_warm_start):
        chosen = list(vars_to_warm_start)
    else:
        raise ValueError(
            "If `vars_to_warm_start` is a list, it must be all `Variable` or all `str`.  Given types are "
            f"{[type(each) for each in vars_to_warm_start]}"
        )
    grouped: dict[str, list[Any]] = {}
    for each in chosen:
        parts = grouped.setdefault(variable_name([each]), [])
        parts.extend(part for part in variables_of(each) if not any(part is other for other in parts))
    return grouped


def variables_of(variable: Any) -> list[Any]:
    """The variables behind a variable, a partitioned one, or a list of parts.

    Raises:
      TypeError: it is something else.
    """
    if isinstance(variable, Variable):
        return [variable]
    if isinstance(variable, PartitionedVariable):
        return list(variable)
    if isinstance(variable, list) and all(isinstance(each, Variable) for each in variable):
        return variable
    raise TypeError(
        "var MUST be one of the following: a Variable, list of Variable or PartitionedVariable, but is "
        f"{type(variable)}"
    )


def variable_name(variables: list[Any]) -> str:
    """The name in checkpoints that the variables share.

    Raises:
      TypeError: they have several names.
    """
    named = _names_of(variables)
    if len(named) > 1:
        raise TypeError(f"`var` = {variables} passed as arg violates the constraints.  name_to_var_dict = {named}")
    return next(iter(named))


def name_and_variable(variable: Any, prev_tensor_name: str | None = None) -> tuple[str, Any]:
    """The name in the checkpoint to warm-start from, and the variable or the list of its parts.

    Raises:
      TypeError: `variable` is not a variable, a partitioned one, or a list of parts.
    """
    found = variables_of(variable)
    return prev_tensor_name or variable_name(found), variable if isinstance(variable, Variable) else found


def warm_start_with_vocabulary(
    var: Any, current_vocab_path: str, current_vocab_size: int, prev_ckpt: str, prev_vocab_path: str,
    previous_vocab_size: int = -1, current_oov_buckets: int = 0, prev_tensor_name: str | None = None,
    initializer: Callable[..., Any] | None = None, axis: int = 0,
) -> None:  # fmt: skip
    """Makes one variable's initializer read a checkpoint's tensor, reordered by vocabularies.

    Args:
      var: a variable, a partitioned one, or a list of parts.
      prev_tensor_name: the tensor in the checkpoint; the variable's own name by default.
      The other arguments are the fields of `VocabInfo`; `prev_ckpt` is a checkpoint or a folder.

    Raises:
      ValueError: a path or size is missing, or `axis` is neither 0 nor 1.
      TypeError: `var` is something else.
    """
    if not (current_vocab_path and current_vocab_size and prev_ckpt and prev_vocab_path):
        raise ValueError(
            "Invalid args: Must provide all of [current_vocab_path, current_vocab_size, prev_ckpt, prev_vocab_path}."
        )
    _check_axis(axis)
    parts = variables_of(var)
    rows = sum(part.shape.as_list()[0] for part in parts)
    for part in parts:
        shape = part.shape.as_list()
        info = part._get_save_slice_info()
        is_rows = axis == 0
        load = load_and_remap_matrix_initializer(
            checkpoint_prefix(prev_ckpt),
            prev_tensor_name or variable_name(parts),
            current_vocab_size if is_rows else rows,
            shape[1] if is_rows else current_vocab_size,
            old_row_vocab_size=previous_vocab_size if is_rows else -1,
            old_row_vocab_file=prev_vocab_path if is_rows else None,
            new_row_vocab_file=current_vocab_path if is_rows else None,
            old_col_vocab_file=None if is_rows else prev_vocab_path,
            new_col_vocab_file=None if is_rows else current_vocab_path,
            num_row_oov_buckets=current_oov_buckets if is_rows else 0,
            num_col_oov_buckets=0 if is_rows else current_oov_buckets,
            initializer=initializer,
        )
        where = None if info is None else PartitionInfo(list(info.full_shape), list(info.var_offset))
        value = convert_to_tensor(load(shape, partition_info=where))
        part._initializer = part._storage.initialize(value, True)
        part._initial_value = value
