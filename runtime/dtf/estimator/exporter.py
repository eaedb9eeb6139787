"""Exporters: which of the evaluated models become SavedModels.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/estimator/Exporter
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from dtf import logging
from dtf.estimator.exporting import exports_in
from dtf.estimator.spec import LOSS_KEY
from dtf.train.summary_writer import summary_iterator
from dtf.wire import errors, filesystems


class Exporter:
    """Base of exporters, called after each evaluation."""

    @property
    def name(self) -> str:
        """The folder in `model_dir/export`."""
        raise NotImplementedError("an Exporter must have the property name")

    def export(
        self,
        estimator: Any,
        export_path: str,
        checkpoint_path: str,
        eval_result: Mapping[str, Any],
        is_the_final_export: bool,
    ) -> bytes | None:
        """Exports the checkpoint, or not. Returns the new folder, or None."""
        raise NotImplementedError("an Exporter must have the method export")


class LatestExporter(Exporter):
    """Exports every evaluated model, and keeps the last ones.

    Args:
      name: the folder in `model_dir/export`.
      serving_input_receiver_fn, assets_extra, as_text: as of `Estimator.export_saved_model`.
      exports_to_keep: how many; None keeps all.
    """

    def __init__(
        self,
        name: str,
        serving_input_receiver_fn: Callable[[], Any],
        assets_extra: Mapping[str, str] | None = None,
        as_text: bool = False,
        exports_to_keep: int | None = 5,
    ) -> None:
        _check_number(exports_to_keep)
        self._name = name
        self._arguments = (serving_input_receiver_fn, assets_extra, as_text)
        self._exports_to_keep = exports_to_keep

    @property
    def name(self) -> str:
        return self._name

    def export(
        self,
        estimator: Any,
        export_path: str,
        checkpoint_path: str,
        eval_result: Mapping[str, Any],
        is_the_final_export: bool,
    ) -> bytes | None:
        folder = estimator.export_saved_model(export_path, *self._arguments, checkpoint_path=checkpoint_path)
        _remove_old(export_path, self._exports_to_keep)
        return folder


class FinalExporter(Exporter):
    """Exports the model when training is over.

    Args:
      name: the folder in `model_dir/export`.
      serving_input_receiver_fn, assets_extra, as_text: as of `Estimator.export_saved_model`.
    """

    def __init__(
        self,
        name: str,
        serving_input_receiver_fn: Callable[[], Any],
        assets_extra: Mapping[str, str] | None = None,
        as_text: bool = False,
    ) -> None:
        self._name = name
        self._arguments = (serving_input_receiver_fn, assets_extra, as_text)

    @property
    def name(self) -> str:
        return self._name

    def export(
        self,
        estimator: Any,
        export_path: str,
        checkpoint_path: str,
        eval_result: Mapping[str, Any],
        is_the_final_export: bool,
    ) -> bytes | None:
        if not is_the_final_export:
            return None
        logging.info("The final model is exported.")
        return estimator.export_saved_model(export_path, *self._arguments, checkpoint_path=checkpoint_path)


class BestExporter(Exporter):
    """Exports a model that is better than all before it.

    Args:
      name: the folder in `model_dir/export`.
      serving_input_receiver_fn, assets_extra, as_text: as of `Estimator.export_saved_model`.
      event_file_pattern: names in `model_dir` of event files of earlier evaluations, such as "eval/*.tfevents.*". A
        restarted process finds the best result in them.
      compare_fn: whether, of (best_eval_result, current_eval_result), the current one is better; by default whose
        loss is smaller.
      exports_to_keep: how many; None keeps all.
    """

    def __init__(
        self,
        name: str = "best_exporter",
        serving_input_receiver_fn: Callable[[], Any] | None = None,
        event_file_pattern: str | None = None,
        compare_fn: Callable[..., bool] | None = None,
        assets_extra: Mapping[str, str] | None = None,
        as_text: bool = False,
        exports_to_keep: int | None = 5,
    ) -> None:
        _check_number(exports_to_keep)
        if serving_input_receiver_fn is None:
            raise ValueError("BestExporter needs a serving_input_receiver_fn")
        self._name = name
        self._arguments = (serving_input_receiver_fn, assets_extra, as_text)
        self._event_file_pattern = event_file_pattern
        self._is_better = compare_fn or _loss_is_smaller
        self._exports_to_keep = exports_to_keep
        self._best: Mapping[str, Any] | None = None
        self._has_looked = False

    @property
    def name(self) -> str:
        return self._name

    def export(
        self,
        estimator: Any,
        export_path: str,
        checkpoint_path: str,
        eval_result: Mapping[str, Any],
        is_the_final_export: bool,
    ) -> bytes | None:
        if not self._has_looked and self._event_file_pattern and exports_in(export_path):
            pattern = os.path.join(estimator.model_dir, self._event_file_pattern)
            self._best = self._best_in(pattern, int(eval_result["global_step"]))
        self._has_looked = True
        if self._best is not None and not self._is_better(
            best_eval_result=self._best, current_eval_result=eval_result
        ):
            return None
        logging.info("The model is better than all earlier ones; exporting it.")
        self._best = eval_result
        folder = estimator.export_saved_model(export_path, *self._arguments, checkpoint_path=checkpoint_path)
        _remove_old(export_path, self._exports_to_keep)
        return folder

    def _best_in(self, pattern: str, before_step: int) -> Mapping[str, Any] | None:
        """The best figures in event files, of steps before this evaluation's."""
        best: Mapping[str, Any] | None = None
        for figures in read_figures(pattern).values():
            if figures["global_step"] >= before_step:
                continue
            if best is None or self._is_better(best_eval_result=best, current_eval_result=figures):
                best = figures
        return best


def read_figures(pattern: str) -> dict[int, dict[str, Any]]:
    """{global step: figures} of the event files that a pattern of paths finds, in the order of the steps.

    A file that is still being written ends where it does.
    """
    found: dict[int, dict[str, Any]] = {}
    for path in sorted(filesystems.glob(pattern)):
        try:
            for event in summary_iterator(path):
                scalars = {v.tag: v.simple_value for v in event.summary.value if v.HasField("simple_value")}
                if scalars:
                    found.setdefault(event.step, {"global_step": event.step}).update(scalars)
        except errors.DataLossError as error:
            logging.info("The end of %s cannot be read: %s", path, error.message)
    return dict(sorted(found.items()))


def _loss_is_smaller(best_eval_result: Mapping[str, Any], current_eval_result: Mapping[str, Any]) -> bool:
    for result in (best_eval_result, current_eval_result):
        if LOSS_KEY not in result:
            raise ValueError(f"The metrics of an evaluation must contain {LOSS_KEY!r}; they are {sorted(result)}")
    return bool(current_eval_result[LOSS_KEY] < best_eval_result[LOSS_KEY])


def _remove_old(export_path: str, exports_to_keep: int | None) -> None:
    if exports_to_keep is not None:
        for folder in exports_in(export_path)[:-exports_to_keep]:
            filesystems.rmtree(folder, ignore_errors=True)


def _check_number(exports_to_keep: int | None) -> None:
    if exports_to_keep is not None and exports_to_keep <= 0:
        raise ValueError("`exports_to_keep`, if provided, must be positive number.")
