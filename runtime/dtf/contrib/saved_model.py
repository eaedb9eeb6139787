"""tf.contrib.saved_model: signatures of a meta graph.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/saved_model
"""

from __future__ import annotations

from typing import Any

__all__ = ["get_signature_def_by_key"]


def get_signature_def_by_key(meta_graph_def: Any, signature_def_key: str) -> Any:
    """The signature of a name.

    Raises:
      ValueError: the meta graph has no such signature.
    """
    if signature_def_key not in meta_graph_def.signature_def:
        known = ", ".join(sorted(meta_graph_def.signature_def)) or "none"
        raise ValueError(f"No SignatureDef with key '{signature_def_key}' found in MetaGraphDef; it has {known}")
    return meta_graph_def.signature_def[signature_def_key]
