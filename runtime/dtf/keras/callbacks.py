"""tf.keras.callbacks: actions while `fit` trains.

Owns the callbacks, and the list of them that `fit` calls. Each callback gets the metrics of `History`.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/keras/callbacks
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from typing import IO, Any

import numpy as np

from dtf import logging
from dtf.keras.epochs import History
from dtf.wire import filesystems

__all__ = [
    "BaseLogger", "CSVLogger", "Callback", "CallbackList", "EarlyStopping", "History", "LambdaCallback",
    "LearningRateScheduler", "ModelCheckpoint", "ProgbarLogger", "ReduceLROnPlateau", "RemoteMonitor", "TensorBoard",
    "TerminateOnNaN",
]  # fmt: skip

Logs = dict[str, Any] | None


class Callback:
    """Base of all callbacks: each method does nothing.

    Attributes:
      model: the model that trains.
      params: the numbers of training: epochs, steps, samples, verbose, do_validation.
    """

    def __init__(self) -> None:
        self.model: Any = None
        self.params: dict[str, Any] = {}

    def set_model(self, model: Any) -> None:
        """Takes the model, before training begins."""
        self.model = model

    def set_params(self, params: dict[str, Any]) -> None:
        """Takes the numbers of training."""
        self.params = params

    def on_train_begin(self, logs: Logs = None) -> None:
        """Called before the first epoch."""

    def on_train_end(self, logs: Logs = None) -> None:
        """Called after the last epoch."""

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        """Called before epoch number `epoch`."""

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Called after it, with its mean figures."""

    def on_batch_begin(self, batch: int, logs: Logs = None) -> None:
        """Called before batch number `batch` of an epoch."""

    def on_batch_end(self, batch: int, logs: Logs = None) -> None:
        """Called after it, with its figures and "size"."""

    def on_train_batch_begin(self, batch: int, logs: Logs = None) -> None:
        """`on_batch_begin`."""
        self.on_batch_begin(batch, logs)

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        """`on_batch_end`."""
        self.on_batch_end(batch, logs)

    def on_test_begin(self, logs: Logs = None) -> None:
        """Called before an evaluation."""

    def on_test_end(self, logs: Logs = None) -> None:
        """Called after an evaluation."""

    def on_test_batch_begin(self, batch: int, logs: Logs = None) -> None:
        """Called before a batch of an evaluation."""

    def on_test_batch_end(self, batch: int, logs: Logs = None) -> None:
        """Called after a batch of an evaluation."""

    def on_predict_begin(self, logs: Logs = None) -> None:
        """Called before `predict`."""

    def on_predict_end(self, logs: Logs = None) -> None:
        """Called after `predict`."""

    def on_predict_batch_begin(self, batch: int, logs: Logs = None) -> None:
        """Called before a batch of `predict`."""

    def on_predict_batch_end(self, batch: int, logs: Logs = None) -> None:
        """Called after a batch of `predict`."""


class CallbackList:
    """The callbacks of one `fit`: each call goes to all of them."""

    def __init__(
        self, callbacks: Any, model: Any, epochs: int, steps: int | None = None, samples: int | None = None,
        verbose: int = 0, validates: bool = False,
    ) -> None:  # fmt: skip
        if callbacks is None:
            callbacks = []
        self.callbacks: list[Any] = list(callbacks) if isinstance(callbacks, Sequence) else [callbacks]
        self._model = model
        self.params: dict[str, Any] = {
            "epochs": epochs, "steps": steps, "samples": samples, "verbose": verbose, "do_validation": validates,
            "metrics": [],
        }  # fmt: skip
        model.stop_training = False
        for each in self.callbacks:
            if not isinstance(each, Callback | History) and not hasattr(each, "on_epoch_end"):
                raise TypeError(f"A callback must be a tf.keras.callbacks.Callback, not {each!r}")
            if hasattr(each, "set_params"):
                each.set_params(self.params)
                each.set_model(model)

    @property
    def stopped(self) -> bool:
        """Whether a callback ended training."""
        return bool(self._model.stop_training)

    def call(self, method: str, *arguments: Any) -> None:
        """Calls `method` of each."""
        for each in self.callbacks:
            function = getattr(each, method, None)
            if function is not None:
                function(*arguments)

    def take(self, history: History) -> None:
        """Gives the figures to the Histories among the callbacks."""
        for each in self.callbacks:
            if isinstance(each, History):
                each.epoch, each.history = history.epoch, history.history


class LambdaCallback(Callback):
    """A callback of functions."""

    def __init__(
        self,
        on_epoch_begin: Callable[..., Any] | None = None,
        on_epoch_end: Callable[..., Any] | None = None,
        on_batch_begin: Callable[..., Any] | None = None,
        on_batch_end: Callable[..., Any] | None = None,
        on_train_begin: Callable[..., Any] | None = None,
        on_train_end: Callable[..., Any] | None = None,
        **kwargs: Callable[..., Any],
    ) -> None:
        super().__init__()
        vars(self).update(kwargs)
        given = {name: function for name, function in locals().items() if name.startswith("on_") and function}
        vars(self).update(given)


class _Watcher(Callback):
    """A callback that compares one figure with the best so far."""

    def __init__(self, monitor: str, mode: str, min_delta: float = 0.0) -> None:
        super().__init__()
        if mode not in ("auto", "min", "max"):
            raise ValueError(f"mode must be auto, min or max, not {mode!r}")
        is_max = mode == "max" or (mode == "auto" and ("acc" in monitor or monitor.startswith("fmeasure")))
        self.monitor = monitor
        self._sign = 1.0 if is_max else -1.0
        self._min_delta = abs(min_delta)
        self.best = -np.inf * self._sign

    def _found(self, logs: Logs) -> float:
        """The figure; NaN, with a warning, if it is not there, as in TensorFlow."""
        if self.monitor not in (logs or {}):
            logging.warning(
                "%s needs the metric %s, which is not among %s; pass validation data?",
                type(self).__name__, self.monitor, sorted(logs or {}),
            )  # fmt: skip
            return float("nan")
        return float((logs or {})[self.monitor])

    def _is_better(self, value: float) -> bool:
        return self._sign * value - self._min_delta > self._sign * self.best


class EarlyStopping(_Watcher):
    """Ends training when a figure does not get better for `patience` epochs.

    Attributes:
      stopped_epoch: the epoch at which training was stopped; 0 if it was not.
    """

    def __init__(
        self,
        monitor: str = "val_loss",
        min_delta: float = 0,
        patience: int = 0,
        verbose: int = 0,
        mode: str = "auto",
        baseline: float | None = None,
        restore_best_weights: bool = False,
    ) -> None:
        """
        Args:
          monitor: the figure.
          min_delta: a smaller change is none.
          baseline: the figure must be better than this.
          restore_best_weights: whether to take the weights of the best epoch at the end.
        """
        super().__init__(monitor, mode, min_delta)
        self.patience, self.verbose, self.baseline = patience, verbose, baseline
        self.restore_best_weights = restore_best_weights
        self.wait = self.stopped_epoch = 0
        self._weights: Any = None

    def on_train_begin(self, logs: Logs = None) -> None:
        self.wait = self.stopped_epoch = 0
        self.best = -np.inf * self._sign if self.baseline is None else self.baseline

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        value = self._found(logs)
        if np.isnan(value) and self.monitor not in (logs or {}):
            return
        if self._is_better(value):
            self.best, self.wait = value, 0
            if self.restore_best_weights:
                self._weights = self.model.get_weights()
            return
        self.wait += 1
        if self.wait >= self.patience:
            self.stopped_epoch = epoch
            self.model.stop_training = True
            if self._weights is not None:
                self.model.set_weights(self._weights)

    def on_train_end(self, logs: Logs = None) -> None:
        if self.stopped_epoch and self.verbose:
            print(f"Epoch {self.stopped_epoch + 1}: early stopping", flush=True)


class ModelCheckpoint(_Watcher):
    """Saves the model, or its weights, after epochs, as `save` and `save_weights` write them.

    `filepath` may have {epoch} (from 1) and figures in it: "weights-{epoch:02d}-{val_loss:.2f}".
    """

    def __init__(
        self,
        filepath: str,
        monitor: str = "val_loss",
        verbose: int = 0,
        save_best_only: bool = False,
        save_weights_only: bool = False,
        mode: str = "auto",
        period: int = 1,
        save_freq: Any = "epoch",
        **kwargs: Any,
    ) -> None:
        """
        Args:
          monitor: the figure that says which epoch is the best.
          save_weights_only: whether to write weights rather than whole models, which are HDF5 files.
          period: epochs between two files.
          save_freq: "epoch"; another value is not supported.

        Raises:
          ValueError: `save_freq` is a number of batches.
        """
        super().__init__(monitor, mode)
        if save_freq != "epoch":
            raise ValueError(f"ModelCheckpoint saves after epochs; save_freq={save_freq!r} is not supported")
        kwargs.pop("load_weights_on_restart", None)
        kwargs.pop("options", None)
        if kwargs:
            raise TypeError(f"Unknown arguments of ModelCheckpoint: {sorted(kwargs)}")
        self.filepath, self.verbose = filepath, verbose
        self.save_best_only, self.period, self.save_weights_only = save_best_only, period, save_weights_only
        self._epochs = 0

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        self._epochs += 1
        if self._epochs < self.period:
            return
        self._epochs = 0
        if self.save_best_only:
            value = self._found(logs)
            if not self._is_better(value):
                return
            self.best = value
        path = self.filepath.format(epoch=epoch + 1, **(logs or {}))
        if self.save_weights_only:
            self.model.save_weights(path)
        else:
            self.model.save(path)
        if self.verbose:
            what = "the weights" if self.save_weights_only else "the model"
            print(f"Epoch {epoch + 1}: saved {what} to {path}", flush=True)


class TensorBoard(Callback):
    """Writes the figures of each epoch for TensorBoard: "epoch_loss" into log_dir/train and log_dir/validation."""

    def __init__(self, log_dir: str = "./logs", *args: Any, **kwargs: Any) -> None:
        super().__init__()
        self.log_dir = log_dir
        self._writers: dict[str, Any] = {}

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        from dtf.train.summary_writer import FileWriter
        from dtf.wire.pb import summary_pb2

        for name, value in (logs or {}).items():
            part = "validation" if name.startswith("val_") else "train"
            if part not in self._writers:
                self._writers[part] = FileWriter(f"{self.log_dir}/{part}")
            tag = f"epoch_{name.removeprefix('val_')}"
            summary = summary_pb2.Summary(value=[summary_pb2.Summary.Value(tag=tag, simple_value=float(value))])
            self._writers[part].add_summary(summary, epoch)
        for writer in self._writers.values():
            writer.flush()

    def on_train_end(self, logs: Logs = None) -> None:
        for writer in self._writers.values():
            writer.close()
        self._writers = {}


class CSVLogger(Callback):
    """Writes the figures of each epoch as a line of a CSV file."""

    def __init__(self, filename: str, separator: str = ",", append: bool = False) -> None:
        super().__init__()
        self.filename, self.separator, self.append = filename, separator, append
        self._file: IO[str] | None = None

    def on_train_begin(self, logs: Logs = None) -> None:
        self._file = filesystems.open(self.filename, "a" if self.append else "w")

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        assert self._file is not None
        row = {"epoch": epoch, **dict(sorted((logs or {}).items()))}
        writer = csv.DictWriter(self._file, list(row), delimiter=self.separator)
        if self._file.tell() == 0:
            writer.writeheader()
        writer.writerow(row)
        self._file.flush()

    def on_train_end(self, logs: Logs = None) -> None:
        if self._file is not None:
            self._file.close()


class TerminateOnNaN(Callback):
    """Ends training at a loss that is not finite."""

    def on_batch_end(self, batch: int, logs: Logs = None) -> None:
        if not np.isfinite((logs or {}).get("loss", 0.0)):
            print(f"Batch {batch}: the loss is not finite, training ends", flush=True)
            self.model.stop_training = True


class LearningRateScheduler(Callback):
    """Sets the learning rate before each epoch: schedule(epoch) or schedule(epoch, rate)."""

    def __init__(self, schedule: Callable[..., float], verbose: int = 0) -> None:
        super().__init__()
        self.schedule, self.verbose = schedule, verbose

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        rate = _rate_of(self.model)
        try:
            rate = self.schedule(epoch, rate)
        except TypeError:
            rate = self.schedule(epoch)
        if not isinstance(rate, int | float | np.number):
            raise ValueError(f"The schedule of LearningRateScheduler must return a number, not {rate!r}")
        _set_rate(self.model, float(rate))
        if self.verbose:
            print(f"Epoch {epoch + 1}: the learning rate is {rate}", flush=True)

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        if logs is not None:
            logs["lr"] = _rate_of(self.model)


class ReduceLROnPlateau(_Watcher):
    """Multiplies the learning rate by `factor` when a figure does not get better for `patience` epochs."""

    def __init__(
        self, monitor: str = "val_loss", factor: float = 0.1, patience: int = 10, verbose: int = 0, mode: str = "auto",
        min_delta: float = 1e-4, cooldown: int = 0, min_lr: float = 0, **kwargs: Any,
    ) -> None:  # fmt: skip
        """
        Args:
          min_delta: a smaller change is none; `epsilon` is its older name.
          cooldown: epochs to wait after a change.
          min_lr: the learning rate stays above it.

        Raises:
          ValueError: factor is 1 or more.
        """
        min_delta = kwargs.pop("epsilon", min_delta)
        super().__init__(monitor, mode, min_delta)
        if factor >= 1.0:
            raise ValueError(f"ReduceLROnPlateau needs a factor below 1, not {factor}")
        self.factor, self.patience, self.verbose = factor, patience, verbose
        self.cooldown, self.min_lr = cooldown, min_lr
        self.wait = self.cooldown_counter = 0

    def on_train_begin(self, logs: Logs = None) -> None:
        self.wait = self.cooldown_counter = 0
        self.best = -np.inf * self._sign

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        if logs is not None:
            logs["lr"] = _rate_of(self.model)
        value = self._found(logs)
        if np.isnan(value) and self.monitor not in (logs or {}):
            return
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.wait = 0
        if self._is_better(value):
            self.best, self.wait = value, 0
        elif self.cooldown_counter <= 0:
            self.wait += 1
            rate = _rate_of(self.model)
            if self.wait >= self.patience and rate > self.min_lr:
                rate = max(rate * self.factor, self.min_lr)
                _set_rate(self.model, rate)
                if self.verbose:
                    print(f"Epoch {epoch + 1}: the learning rate is reduced to {rate}", flush=True)
                self.cooldown_counter, self.wait = self.cooldown, 0


class BaseLogger(Callback):
    """Accepted; models average the figures of an epoch themselves."""

    def __init__(self, stateful_metrics: Any = None) -> None:
        super().__init__()


class ProgbarLogger(Callback):
    """Accepted; models print the figures of an epoch themselves."""

    def __init__(self, count_mode: str = "samples", stateful_metrics: Any = None) -> None:
        super().__init__()


class RemoteMonitor(Callback):
    """Sends the figures of each epoch to a server as JSON."""

    def __init__(
        self, root: str = "http://localhost:9000", path: str = "/publish/epoch/end/", field: str = "data",
        headers: Any = None, send_as_json: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.root, self.path, self.field = root, path, field
        self.headers, self.send_as_json = headers, send_as_json

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        import json
        import urllib.parse
        import urllib.request

        row = json.dumps({"epoch": epoch, **{name: float(value) for name, value in (logs or {}).items()}})
        headers = dict(self.headers or {})
        body = row if self.send_as_json else urllib.parse.urlencode({self.field: row})
        if self.send_as_json:
            headers["Content-Type"] = "application/json"
        request = urllib.request.Request(self.root + self.path, body.encode(), headers)
        try:
            urllib.request.urlopen(request, timeout=10).close()
        except OSError as error:
            logging.warning("RemoteMonitor cannot reach %s: %s", self.root, error)


def _rate_of(model: Any) -> float:
    from dtf.keras import backend

    if not hasattr(model.optimizer, "lr"):
        raise ValueError(f"The optimizer {type(model.optimizer).__name__} has no variable lr; use one of tf.keras")
    with model._own_graph().as_default():
        return float(backend.get_value(model.optimizer.lr))


def _set_rate(model: Any, rate: float) -> None:
    from dtf.keras import backend

    with model._own_graph().as_default():
        backend.set_value(model.optimizer.lr, rate)
