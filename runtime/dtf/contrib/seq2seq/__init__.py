"""tf.contrib.seq2seq: attention, decoders that a helper feeds, beam search, and their loss.

    helper = seq2seq.TrainingHelper(inputs, lengths)
    decoder = seq2seq.BasicDecoder(cell, helper, cell.zero_state(batch, tf.float32), output_layer)
    outputs, state, lengths = seq2seq.dynamic_decode(decoder)

Only re-exports names. `attention` and `wrapper` have the attention mechanisms, `helpers` the decoder's inputs,
`decoders` and `beam_search` its steps, `loss` the loss.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/seq2seq
"""

from __future__ import annotations

from dtf import late

_SOURCES = {
    "attention": (
        "AttentionMechanism BahdanauAttention BahdanauMonotonicAttention LuongAttention LuongMonotonicAttention "
        "hardmax monotonic_attention safe_cumprod"
    ),
    "wrapper": "AttentionWrapper AttentionWrapperState",
    "helpers": (
        "CustomHelper GreedyEmbeddingHelper Helper InferenceHelper SampleEmbeddingHelper "
        "ScheduledEmbeddingTrainingHelper ScheduledOutputTrainingHelper TrainingHelper"
    ),
    "decoders": "BasicDecoder BasicDecoderOutput Decoder dynamic_decode",
    "beam_search": (
        "BeamSearchDecoder BeamSearchDecoderOutput BeamSearchDecoderState FinalBeamSearchDecoderOutput gather_tree "
        "tile_batch"
    ),
    "loss": "sequence_loss",
}
_NAMES = {name: f"dtf.contrib.seq2seq.{module}" for module, names in _SOURCES.items() for name in names.split()}
__getattr__, __dir__ = late.names(globals(), _NAMES, {})
