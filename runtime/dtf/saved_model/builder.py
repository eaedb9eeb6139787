"""SavedModelBuilder: writes a SavedModel.

Owns the folder until `save`. Variables and assets are written first, saved_model.pb last and in one piece, so that a
folder with that file is complete.

    builder = tf.saved_model.Builder("model")
    signature = tf.saved_model.predict_signature_def({"x": x}, {"y": y})
    builder.add_meta_graph_and_variables(session, ["serve"], {"serving_default": signature})
    builder.save()

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/saved_model/Builder
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from google.protobuf import any_pb2

from dtf.build.constant_value import constant_value
from dtf.build.default_graph import add_to_collection, get_collection
from dtf.build.graph import Operation, Tensor
from dtf.saved_model import constants, signature_constants, tag_constants
from dtf.saved_model.signature_def_utils import predict_signature_def
from dtf.train.graph_io import message_bytes
from dtf.train.saveable import all_saveable_objects
from dtf.train.saver import Saver
from dtf.wire import filesystems
from dtf.wire.files import file_errors, write_atomically
from dtf.wire.pb import meta_graph_pb2, saved_model_pb2

ASSET_TYPE_URL = "type.googleapis.com/tensorflow.AssetFileDef"
"""How collections say that an entry is an AssetFileDef: by TensorFlow's name of the message."""


class SavedModelBuilder:
    """Gathers meta graphs, the first with the values of its variables, and writes them into a new folder.

    Args:
      export_dir: the folder; it must be empty or missing.

    Raises:
      AssertionError: there is something in the folder.
      OpError: it cannot be made.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/saved_model/builder/SavedModelBuilder
    """

    def __init__(self, export_dir: str) -> None:
        self._folder = os.fsdecode(export_dir)
        self._saved_model = saved_model_pb2.SavedModel(
            saved_model_schema_version=constants.SAVED_MODEL_SCHEMA_VERSION
        )
        with file_errors(self._folder):
            if filesystems.exists(self._folder) and filesystems.listdir(self._folder):
                raise AssertionError(
                    f"Export directory {self._folder} already exists, and isn't empty. Please choose a different "
                    "export directory, or delete all the contents of the specified directory."
                )
            filesystems.makedirs(self._folder)
        self._has_variables = False
        self._assets: dict[str, str] = {}  # file name in the model -> where it was copied from

    def add_meta_graph_and_variables(
        self,
        sess: Any,
        tags: Sequence[str],
        signature_def_map: Mapping[str, Any] | None = None,
        assets_collection: Sequence[Tensor] | None = None,
        legacy_init_op: Any = None,
        clear_devices: bool = False,
        main_op: Operation | None = None,
        strip_default_attrs: bool = False,
        saver: Saver | None = None,
    ) -> None:
        """Adds the default graph, and writes the variables that `sess` has, and the assets.

        Args:
          tags: tags by which a loader finds this graph.
          signature_def_map: SignatureDefs by key.
          assets_collection: constant string tensors, whose paths name files to copy into the model.
          legacy_init_op, main_op: an operation that a loader runs last.
          clear_devices: leave the devices out: the serving cluster is seldom the training cluster.
          strip_default_attrs: leave attributes with default values out, for older readers.
          saver: writes the variables, and its ops restore them; a new sharded one of everything by default.

        Raises:
          AssertionError: there is a first graph already.
          ValueError: an asset is not a constant path, or has another asset's name; the graph has a main op already.
          TypeError: tags, a signature, or the main op is of another type.
          OpError: writing failed.
        """
        if self._has_variables:
            raise AssertionError(
                "Graph state including variables and assets has already been saved. Please invoke "
                "`add_meta_graph()` instead."
            )
        self._prepare(signature_def_map, legacy_init_op if main_op is None else main_op, assets_collection)
        variables = os.path.join(self._folder, constants.VARIABLES_DIRECTORY)
        with file_errors(variables):
            filesystems.makedirs(variables)
        saver = saver or _saver_of_everything()
        saver.save(
            sess, os.path.join(variables, constants.VARIABLES_FILENAME), write_meta_graph=False, write_state=False
        )
        self._add(saver, tags, signature_def_map, clear_devices, strip_default_attrs)
        self._has_variables = True

    def add_meta_graph(
        self,
        tags: Sequence[str],
        signature_def_map: Mapping[str, Any] | None = None,
        assets_collection: Sequence[Tensor] | None = None,
        legacy_init_op: Any = None,
        clear_devices: bool = False,
        main_op: Operation | None = None,
        strip_default_attrs: bool = False,
        saver: Saver | None = None,
    ) -> None:
        """Adds the default graph; the first graph must have written its variables.

        Raises:
          AssertionError: there is no first graph yet.
          ValueError, TypeError: as of `add_meta_graph_and_variables`.
        """
        if not self._has_variables:
            raise AssertionError(
                "Graph state including variables and assets has not been saved yet. Please invoke "
                "`add_meta_graph_and_variables()` first."
            )
        self._prepare(signature_def_map, legacy_init_op if main_op is None else main_op, assets_collection)
        self._add(saver or _saver_of_everything(), tags, signature_def_map, clear_devices, strip_default_attrs)

    def save(self, as_text: bool = False) -> bytes:
        """Writes the graphs. Returns the file's path.

        Raises OpError if it cannot be written.
        """
        name = constants.SAVED_MODEL_FILENAME_PBTXT if as_text else constants.SAVED_MODEL_FILENAME_PB
        path = os.path.join(self._folder, name)
        with file_errors(path):
            write_atomically(path, message_bytes(self._saved_model, as_text))
        return path.encode()

    def _prepare(self, signatures: Mapping[str, Any] | None, main_op: Any, assets: Sequence[Tensor] | None) -> None:
        _check_signatures(signatures)
        _add_main_op(main_op)
        self._add_assets(assets or ())

    def _add(
        self, saver: Saver, tags: Sequence[str], signatures: Mapping[str, Any] | None, clear_devices: bool, strip: bool
    ) -> None:
        if isinstance(tags, str):
            raise TypeError(f"tags must be a list or set of words, not one: {tags!r}")
        meta_graph = saver.export_meta_graph(clear_devices=clear_devices, strip_default_attrs=strip)
        meta_graph.meta_info_def.tags.extend(tags)
        for key, signature in (signatures or {}).items():
            meta_graph.signature_def[key].CopyFrom(signature)
        self._saved_model.meta_graphs.add().CopyFrom(meta_graph)

    def _add_assets(self, assets: Sequence[Tensor]) -> None:
        """Copies the files, and says in a collection which tensor names which."""
        collected = get_collection(constants.ASSETS_KEY)
        for tensor in assets:
            path = _path_of(tensor)
            name = os.path.basename(path)
            if self._assets.get(name, path) != path:
                raise ValueError(f"Two assets have the same file name {name!r}: {self._assets[name]} and {path}")
            if name not in self._assets:
                self._copy_asset(path, name)
            asset = meta_graph_pb2.AssetFileDef(filename=name)
            asset.tensor_info.name = tensor.name
            packed = any_pb2.Any(type_url=ASSET_TYPE_URL, value=asset.SerializeToString())
            if packed not in collected:
                add_to_collection(constants.ASSETS_KEY, packed)

    def _copy_asset(self, path: str, name: str) -> None:
        folder = os.path.join(self._folder, constants.ASSETS_DIRECTORY)
        with file_errors(path):
            filesystems.makedirs(folder)
            filesystems.copyfile(path, os.path.join(folder, name))
        self._assets[name] = path


def simple_save(
    session: Any,
    export_dir: str,
    inputs: Mapping[str, Any],
    outputs: Mapping[str, Any],
    legacy_init_op: Any = None,
) -> None:
    """Writes the default graph and the variables of `session`, tagged "serve", with one signature, "serving_default".

    Args:
      inputs, outputs: tensors by name.
      legacy_init_op: an operation that a loader runs last.

    Raises:
      AssertionError, ValueError, OpError: as of SavedModelBuilder.
    """
    key = signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY
    builder = SavedModelBuilder(export_dir)
    builder.add_meta_graph_and_variables(
        session,
        [tag_constants.SERVING],
        {key: predict_signature_def(inputs, outputs)},
        assets_collection=get_collection("asset_filepaths"),
        main_op=legacy_init_op,
        clear_devices=True,
    )
    builder.save()


def _saver_of_everything() -> Saver:
    return Saver(all_saveable_objects(), sharded=True, allow_empty=True)


def _check_signatures(signatures: Mapping[str, Any] | None) -> None:
    for key, signature in (signatures or {}).items():
        if not isinstance(signature, meta_graph_pb2.SignatureDef):
            raise TypeError(f"The signature {key!r} must be a SignatureDef, not a {type(signature).__name__}")
        for name, info in (*signature.inputs.items(), *signature.outputs.items()):
            if info.WhichOneof("encoding") is None or not info.dtype:
                raise AssertionError(
                    f"Tensor {name!r} of the signature {key!r} must have a name and a dtype; found: {info}"
                )


def _add_main_op(main_op: Any) -> None:
    if main_op is None:
        return
    if not isinstance(main_op, Operation):
        raise TypeError(f"Expected {main_op} to be an Operation, not a {type(main_op).__name__}")
    for key in (constants.MAIN_OP_KEY, constants.LEGACY_INIT_OP_KEY):
        if get_collection(key):
            raise ValueError(f"The graph has a main op already, under the collection {key}.")
    add_to_collection(constants.MAIN_OP_KEY, main_op)


def _path_of(tensor: Any) -> str:
    value = constant_value(tensor) if isinstance(tensor, Tensor) else None
    if value is None or value.ndim or not isinstance(value.item(), bytes) or not value.item():
        raise ValueError(f"Every asset must be a constant string tensor with the path of a file; found {tensor}")
    return value.item().decode()
