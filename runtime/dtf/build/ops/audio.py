"""Sound: WAV files, spectrograms, mel-frequency cepstral coefficients; public functions and static shapes.

Samples are float32 in [-1, 1], [n, channels]. Source:
https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/audio
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dtf.build.apply import apply_op
from dtf.build.shape_rules import scalar, shape_rule
from dtf.build.tensor import Operation, Tensor
from dtf.wire.tensor_shape import TensorShape

if TYPE_CHECKING:
    from dtf.build.tensor_like import TensorLike

__all__ = ["decode_wav", "encode_wav"]


def decode_wav(
    contents: TensorLike, desired_channels: int = -1, desired_samples: int = -1, name: str | None = None
) -> Any:
    """(samples, samples per second) of a WAV file of 16 bits.

    A desired number of channels or samples cuts, repeats the last channel, or fills up with silence.
    """
    return apply_op(
        "DecodeWav", name, contents=contents, desired_channels=desired_channels, desired_samples=desired_samples
    )


def encode_wav(audio: Any, sample_rate: Any, name: str | None = None) -> Tensor:
    """The contents of a WAV file of 16 bits, a scalar string."""
    return apply_op("EncodeWav", name, audio=audio, sample_rate=sample_rate)


# -- shape rules


@shape_rule("DecodeWav")
def _(op: Operation) -> list[TensorShape]:
    wanted = [op.get_attr(name) for name in ("desired_samples", "desired_channels")]
    return [TensorShape([size if size > 0 else None for size in wanted]), TensorShape([])]


shape_rule("EncodeWav")(scalar)


@shape_rule("AudioSpectrogram")
def _(op: Operation) -> list[TensorShape]:
    samples, channels = op.inputs[0].shape.with_rank(2).as_list()
    size, stride = op.get_attr("window_size"), op.get_attr("stride")
    if size <= 1 or stride <= 0:
        raise ValueError(f"window size must be > 1 and stride positive, got {size} and {stride}")
    count = None if samples is None else max(0, (samples - size) // stride + 1)
    return [TensorShape([channels, count, (1 << (size - 1).bit_length()) // 2 + 1])]


@shape_rule("Mfcc")
def _(op: Operation) -> list[TensorShape]:
    return [op.inputs[0].shape.with_rank(3)[:2].concatenate([op.get_attr("dct_coefficient_count")])]
