"""Cases in which dtf answers otherwise on purpose, with the reason."""

from __future__ import annotations

import re
from pathlib import Path

#: A pattern of the expression -> why the outcome may differ.
KNOWN: dict[str, str] = {
    r"tf\.add\(.*as_graph_def": "tf.add makes the op Add, as TensorFlow 1.15 does; 2.21 makes AddV2",
    r"encode_png": "another compressor makes other bytes of the same image",
    r"sorted=False": "the order of unsorted results is not said",
    r"convert_image_dtype\(.*uint8": "floating-point numbers out of range have no defined value",
    r"softmax_cross_entropy_with_logits\(T": "arguments by position are refused, as TensorFlow 1.15 does",
    r"fused_batch_norm\(.*is_training=False": "TensorFlow's graph optimizer loses fetched outputs of its constants",
    r"einsum\(.*, \[\[": "TensorFlow 2.21 asks a list for its shape; 1.15 converts it",
    r"get_variable\(.*use_resource=True": "TensorFlow's resource variables are no tf.Variable here",
    r"range\(.*\)\.shuffle\(0\)$": "the class of a dataset has another name",
    r"clip_by_norm\(.*, -1\.": "a negative norm has no meaning; TensorFlow 2.21 gives 0",
    r"nn\.nth_element\(.*, 7\)": "TensorFlow 2.21 has no tf.nn.nth_element; 1.15 has",
    r"Dataset\.(range\(5\)\.(batch\(0\)|shard\()|list_files\('/non)": "the class of a dataset has another name",
    r"RaggedTensor\.from_(value_rowids|row_splits|uniform_row_length)\(\[": (
        "parts that are known to be wrong are refused while the graph is built, as 1.15's checks do"
    ),
    r"softmax\(P\(.*axis=5\)": "TensorFlow 2.21 fails in its own message; the step refuses the axis",
    r"case\(\[\(T\(True\).*exclusive=True": "TensorFlow 2.21 folds the constants and drops the check",
    r"q\.enqueue\(\[T\(1\), T\(2\)\]\)": "TensorFlow drops components that the queue does not have; dtf refuses them",
    r"gather_nd\(P\(.*batch_dims=1\)": "dtf takes an unknown rank with batch_dims; the step refuses bad indices",
    r"tensordot\(.*P\(.*, 3\)": "an unknown rank that does not fit is refused by the step",
    r"TensorArray\('int32', 3\)\.(write|scatter|unstack)": (
        "a Python value of another dtype is refused while the graph is built, not by the step"
    ),
    r"rot90\(P": "TensorFlow 1.15 takes an image of unknown rank for one of three dimensions",
}


#: Cases in which dtf still differs, one a line; `python -m tests.interop.argument_forms --open` writes the file.
OPEN = Path(__file__).with_name("open.txt")


def open_cases() -> set[str]:
    """The cases of the file OPEN."""
    return set(OPEN.read_text(encoding="utf-8").splitlines()) if OPEN.exists() else set()


def reason(case: str) -> str:
    """Why the outcome of a case may differ; empty where it may not."""
    return next((text for pattern, text in KNOWN.items() if re.search(pattern, case)), "")
