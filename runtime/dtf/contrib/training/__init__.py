"""tf.contrib.training: training ops and loops, evaluation, hyperparameters, and placement strategies.

Only re-exports names; each part is imported at first use.
"""

from __future__ import annotations

from dtf import late

_HERE = "dtf.contrib.training."
_NAMES = {
    **dict.fromkeys(("GreedyLoadBalancingStrategy", "RandomStrategy", "byte_size_load_fn"), "dtf.train.device_setter"),
    **dict.fromkeys(("HParams", "parse_values"), _HERE + "hparam"),
    **dict.fromkeys(
        ("add_gradients_summaries", "clip_gradient_norms", "clip_gradient_norms_fn", "create_train_op",
         "multiply_gradients", "train"),
        _HERE + "train_ops",
    ),
    **dict.fromkeys(
        ("StopAfterNEvalsHook", "SummaryAtEndHook", "checkpoints_iterator", "evaluate_once", "evaluate_repeatedly",
         "get_or_create_eval_step", "wait_for_new_checkpoint"),
        _HERE + "evaluation",
    ),
    **dict.fromkeys(("bucket", "bucket_by_sequence_length"), _HERE + "buckets"),
}  # fmt: skip
_NAMESPACES = {name: _HERE + name for name in "buckets evaluation hparam train_ops".split()}
__getattr__, __dir__ = late.names(globals(), _NAMES, _NAMESPACES)
