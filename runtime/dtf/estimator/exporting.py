"""A trained model as a SavedModel.

Owns the new folder, named by the time, and that it appears as a whole.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/estimator/Estimator#export_saved_model
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

from dtf.build.default_graph import get_collection
from dtf.build.graph import GraphKeys
from dtf.estimator.export import build_all_signature_defs
from dtf.estimator.export_output import PredictOutput
from dtf.estimator.spec import EstimatorSpec
from dtf.saved_model.builder import SavedModelBuilder
from dtf.saved_model.signature_constants import DEFAULT_SERVING_SIGNATURE_DEF_KEY
from dtf.saved_model.tag_constants import SERVING
from dtf.session import Session
from dtf.train.saver import Saver
from dtf.train.scaffold import Scaffold
from dtf.wire import filesystems
from dtf.wire.files import file_errors
from dtf.wire.unfinished import new_token, remove_abandoned

_ASIDE = "temp-"
_EXTRA_ASSETS = "assets.extra"


def export(
    spec: EstimatorSpec,
    receiver: Any,
    checkpoint_path: str,
    export_dir_base: str,
    assets_extra: Mapping[str, str] | None,
    as_text: bool,
    strip_default_attrs: bool,
    session_config: Any,
) -> str:
    """Writes the default graph with a checkpoint's values into a new folder of `export_dir_base`.

    Args:
      receiver: a ServingInputReceiver.
      assets_extra: paths of files to copy, by their paths in the model's folder assets.extra.

    Returns:
      The new folder, `export_dir_base/<seconds since the epoch>`.

    Raises:
      ValueError: none of the outputs can be served.
      OpError: writing failed, or the checkpoint lacks a variable.
    """
    outputs = spec.export_outputs or {DEFAULT_SERVING_SIGNATURE_DEF_KEY: PredictOutput(spec.predictions)}
    signatures = build_all_signature_defs(
        receiver.receiver_tensors, outputs, receiver.receiver_tensors_alternatives
    )
    folder, aside = _new_folder(export_dir_base)
    scaffold = spec.scaffold
    assert scaffold is not None
    saver = scaffold.saver or Saver(sharded=True, allow_empty=True)
    saver.build()
    ready = scaffold.local_init_op if scaffold.local_init_op is not None else Scaffold.default_local_init_op()
    try:
        with Session(config=session_config) as session:
            saver.restore(session, checkpoint_path)
            builder = SavedModelBuilder(aside)
            builder.add_meta_graph_and_variables(
                session,
                [SERVING],
                signatures,
                assets_collection=get_collection(GraphKeys.ASSET_FILEPATHS),
                main_op=ready,
                strip_default_attrs=strip_default_attrs,
                saver=saver,
            )
            builder.save(as_text)
        _copy_assets(assets_extra or {}, aside)
        with file_errors(folder):
            filesystems.replace(aside, folder)
    except BaseException:
        filesystems.rmtree(aside, ignore_errors=True)
        raise
    return folder


def exports_in(export_dir_base: str) -> list[str]:
    """The complete exports of a folder, oldest first."""
    if not filesystems.isdir(export_dir_base):
        return []
    names = [name for name in filesystems.listdir(export_dir_base) if name.isdigit()]
    return [os.path.join(export_dir_base, name) for name in sorted(names, key=int)]


def _new_folder(base: str) -> tuple[str, str]:
    """A name that no export has, and one to write it aside."""
    remove_abandoned(base, [_ASIDE])
    number = int(time.time())
    while True:
        folder, aside = os.path.join(base, str(number)), os.path.join(base, f"{_ASIDE}{number}-{new_token()}")
        if not filesystems.exists(folder):
            return folder, aside
        number += 1


def _copy_assets(assets: Mapping[str, str], folder: str) -> None:
    for name, source in assets.items():
        target = os.path.join(folder, _EXTRA_ASSETS, name)
        with file_errors(source):
            filesystems.makedirs(filesystems.dirname(target))
            filesystems.copyfile(source, target)
