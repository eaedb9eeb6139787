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
    r"ragged\.constant\(.*(\]$|to_sparse)|(reduce_\w+|tile|dynamic_partition)\(tf\.ragged|unicode_split": (
        "TensorFlow runs operations on constants while it builds, to learn sizes; dtf's shape rules run no kernels"
    ),
    r"strings\.split\(.*RaggedTensor": "TensorFlow runs operations on constants while it builds, to learn sizes",
    r"ragged\.constant\(.*\+ tf\.ragged": "unequal rows of constants are refused while the graph is built",
    r"extract_glimpse\(.*(centered|normalized)=False|extract_glimpse\(.*noise=": "noise outside the image is random",
    r"resize_image_with_pad\((P|S)\(": (
        "TensorFlow's graph optimizer divides by a constant size as a product with its reciprocal, and loses a column"
    ),
    r"compute_output_shape\(\(None, 3\)\)": "an input shape of the wrong rank is refused with the layer's name",
    r"sparse_placeholder\(.*None": "TensorFlow 1.15 makes a Placeholder of a shape that is partly known; 2.21 does not",
    r"ones_like\(\[1\]\)\)\.graph": "TensorFlow 1.15 names the shape ones_like/Shape",
    r"softmax_cross_entropy\w*\(labels=\[1\., 0\.\]": (
        "labels of another rank than the logits: TensorFlow 2.21 knows a static shape that is wrong"
    ),
    r"softmax_cross_entropy_with_logits\(.*axis=-1": "TensorFlow takes no `axis` beside the default of `dim`; dtf does",
    r"linalg\.diag\(Q\(.*k=1": "TensorFlow 2.21's static shape is wrong: [?, 0, 0] for rows of unknown length",
    r"layers\.dropout\(T\(\[\[1, 2\]\]\), 0\.": "TensorFlow 1.15 refuses integers even for the rate 0",
    r"transpose_image\(P\(": "TensorFlow 2.21 runs both branches on an image of unknown rank, and fails",
    r"lin_?space\(0\., 1\., 0\)": "TensorFlow 1.15 refuses 0 numbers",
    r"Uniform\((1|np\.float64\(1\.\)), 2\.\)|einsum\('ij,jkl->il'|constant\(\[\[1\], \[2, 3\]\], tf\.string|"
    r"ones\(\[-1\], tf\.string|softmax\(T\(\[\[1, 2\]\]\), axis=T\(1\)": (
        "of two faults in one call another one is named first"
    ),
    r"\| \(\[1, 2\]\)|interleave\(lambda x: x\)|map_fn\(5|(auc|mean_iou)\(.*weights=\[1\., [02]\., 1\.\]": (
        "TensorFlow fails on a Python attribute; dtf names the argument"
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
