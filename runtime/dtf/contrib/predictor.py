"""tf.contrib.predictor: a saved model or an Estimator as a function from arrays to arrays.

    predict = tf.contrib.predictor.from_saved_model("export/1")
    predict({"images": images})["scores"]

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/predictor
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import dtf as tf

__all__ = ["from_contrib_estimator", "from_estimator", "from_saved_model"]


class Predictor:
    """A session and the tensors that it feeds and fetches, by name."""

    def __init__(self, graph: Any, session: Any, feed_tensors: Mapping[str, Any], fetch_tensors: Mapping[str, Any],
                 ) -> None:  # fmt: skip
        self._graph, self._session = graph, session
        self._feed_tensors, self._fetch_tensors = dict(feed_tensors), dict(fetch_tensors)

    @property
    def graph(self) -> Any:
        """The graph of the model."""
        return self._graph

    @property
    def session(self) -> Any:
        """The session with the model's variables."""
        return self._session

    @property
    def feed_tensors(self) -> dict[str, Any]:
        """The inputs by name."""
        return self._feed_tensors

    @property
    def fetch_tensors(self) -> dict[str, Any]:
        """The outputs by name."""
        return self._fetch_tensors

    def __call__(self, input_dict: Mapping[str, Any]) -> dict[str, Any]:
        """The outputs {name: array} for inputs {name: array}.

        Raises:
          ValueError: an input has an unknown name.
        """
        unknown = sorted(set(input_dict) - set(self._feed_tensors))
        if unknown:
            raise ValueError(f"unexpected inputs {unknown}; the model takes {sorted(self._feed_tensors)}")
        feeds = {self._feed_tensors[name]: value for name, value in input_dict.items() if value is not None}
        found: dict[str, Any] = self._session.run(self._fetch_tensors, feeds)
        return found


def from_saved_model(
    export_dir: str, signature_def_key: str | None = None, signature_def: Any = None,
    input_names: Mapping[str, str] | None = None, output_names: Mapping[str, str] | None = None,
    tags: str | Sequence[str] | None = None, graph: Any = None, config: Any = None,
) -> Predictor:  # fmt: skip
    """The predictor of a SavedModel's folder.

    Args:
      signature_def_key: the signature; "serving_default" by default.
      signature_def, input_names, output_names: a signature, or names of tensors, in its place.
      tags: of the meta graph, a list or words with commas; "serve" by default.
      config: a ConfigProto.

    Raises:
      ValueError: no such signature, or input_names without output_names.
    """
    if (input_names is None) != (output_names is None):
        raise ValueError("input_names and output_names must both be given, or neither")
    graph = graph or tf.Graph()
    words = tags.split(",") if isinstance(tags, str) else list(tags or [tf.saved_model.tag_constants.SERVING])
    with graph.as_default():
        session = tf.Session(config=config)
        meta_graph = tf.saved_model.loader.load(session, words, export_dir)
    if input_names is None or output_names is None:
        key = signature_def_key or tf.saved_model.signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY
        if signature_def is None and key not in meta_graph.signature_def:
            raise ValueError(f"no signature {key!r} in {export_dir}; it has {sorted(meta_graph.signature_def)}")
        chosen = signature_def if signature_def is not None else meta_graph.signature_def[key]
        input_names = {name: info.name for name, info in chosen.inputs.items()}
        output_names = {name: info.name for name, info in chosen.outputs.items()}
    return Predictor(graph, session, _tensors(graph, input_names), _tensors(graph, output_names))


def from_estimator(
    estimator: Any, serving_input_receiver_fn: Any, output_key: str | None = None, graph: Any = None, config: Any = None
) -> Predictor:
    """The predictor of an Estimator's newest checkpoint.

    Args:
      serving_input_receiver_fn: as for `export_saved_model`.
      output_key: one of the export outputs.
    """
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        export = estimator.export_saved_model(folder, serving_input_receiver_fn)
        export = export.decode() if isinstance(export, bytes) else export
        return from_saved_model(export, output_key, graph=graph, config=config)


from_contrib_estimator = from_estimator


def _tensors(graph: Any, names: Mapping[str, str]) -> dict[str, Any]:
    return {key: graph.get_tensor_by_name(name) for key, name in names.items()}
