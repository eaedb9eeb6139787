"""tf.saved_model: models as folders that other programs serve: a graph, its variables, files, and named signatures.

    tf.saved_model.simple_save(session, "model", inputs={"x": x}, outputs={"y": y})
    meta_graph = tf.saved_model.loader.load(session, ["serve"], "model")

Owns the contents of the folder (`constants`), how it is written (`builder`) and read (`loader`), and its signatures
(`signature_def_utils`, `tensor_info`). `train.meta_graph` converts graphs and collections to messages; `train.saver`
writes the variables' files. TensorFlow loads folders written here, and the other way round. Of a folder that
TensorFlow 2's `tf.saved_model.save` wrote, the signatures run; the objects around them are ignored.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/saved_model
"""

from __future__ import annotations

import sys as _sys

from dtf import late as _late
from dtf.saved_model import (
    builder,
    constants,
    loader,
    main_op,
    signature_constants,
    signature_def_utils,
    tag_constants,
    tensor_info,
)
from dtf.saved_model.builder import SavedModelBuilder, simple_save
from dtf.saved_model.constants import *
from dtf.saved_model.loader import contains_saved_model, load, maybe_saved_model_directory
from dtf.saved_model.main_op import main_op_with_restore
from dtf.saved_model.signature_constants import *
from dtf.saved_model.signature_def_utils import (
    build_signature_def,
    classification_signature_def,
    is_valid_signature,
    predict_signature_def,
    regression_signature_def,
)
from dtf.saved_model.tag_constants import *
from dtf.saved_model.tensor_info import build_tensor_info, get_tensor_from_tensor_info

Builder = SavedModelBuilder

# TensorFlow's name of that module.
utils = tensor_info
_sys.modules["dtf.saved_model.utils"] = tensor_info

__getattr__ = _late.refusals(__name__)
