"""WarmStartSettings: a model that begins with the values of another one's variables.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/estimator/WarmStartSettings
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dtf import logging
from dtf.train.warm_starting import VocabInfo, warm_start


@dataclass(frozen=True)
class WarmStartSettings:
    """Where variables get their first values.

    Args:
      ckpt_to_initialize_from: a checkpoint, or a folder whose newest is taken.
      vars_to_warm_start: which variables, as `tf.train.warm_start` takes them; all that are trained by default.
      var_name_to_vocab_info: the vocabularies of variables, as `tf.train.warm_start` takes them.
      var_name_to_prev_var_name: names there that are others than here.
    """

    ckpt_to_initialize_from: str
    vars_to_warm_start: Any = ".*"
    var_name_to_vocab_info: Mapping[str, VocabInfo] | None = None
    var_name_to_prev_var_name: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        if not self.ckpt_to_initialize_from:
            raise ValueError("`ckpt_to_initialize_from` MUST be set in WarmStartSettings")

    def apply(self) -> None:
        """Changes the initializers of the default graph's variables. Raises as `tf.train.warm_start`."""
        logging.info("Warm-starting from %s", self.ckpt_to_initialize_from)
        warm_start(
            self.ckpt_to_initialize_from,
            self.vars_to_warm_start,
            self.var_name_to_vocab_info,
            self.var_name_to_prev_var_name,
        )


def warm_start_settings(warm_start_from: Any) -> WarmStartSettings | None:
    """The settings of an Estimator's `warm_start_from`: settings, or the checkpoint or folder of all trained
    variables.

    Raises:
      ValueError: it has another type.
    """
    if warm_start_from is None or isinstance(warm_start_from, WarmStartSettings):
        return warm_start_from
    if isinstance(warm_start_from, str | os.PathLike):
        return WarmStartSettings(os.fsdecode(warm_start_from))
    raise ValueError(f"warm_start_from must be a path or WarmStartSettings, not {warm_start_from!r}")
