"""tf.contrib.deprecated: summaries under their names of TensorFlow 0. Only re-exports names.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/deprecated
"""

from dtf.summary import audio as audio_summary
from dtf.summary import histogram as histogram_summary
from dtf.summary import image as image_summary
from dtf.summary import merge as merge_summary
from dtf.summary import merge_all as merge_all_summaries
from dtf.summary import scalar as scalar_summary

__all__ = [
    "audio_summary", "histogram_summary", "image_summary", "merge_all_summaries", "merge_summary", "scalar_summary",
]  # fmt: skip
