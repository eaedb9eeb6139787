"""Cases of the ops of sound."""

from __future__ import annotations

import numpy as np

import dtf as tf
from dtf.wire import errors
from tests.runtime.op_cases import RECORDED, Case, Vary
from tests.runtime.op_cases.array import evaluate, ints
from tests.runtime.op_cases.io import raises

SOUND = np.float32([[0, 0.5], [-1, 1], [0.25, -0.3], [1.2, -1.2]])
SAMPLES = np.random.RandomState(0).uniform(-1, 1, (20, 2)).astype(np.float32)
SPECTRA = np.random.RandomState(1).uniform(0, 3, (1, 2, 65)).astype(np.float32)
FILE = (
    b"RIFF4\0\0\0WAVEfmt \x10\0\0\0\x01\0\x02\0@\x1f\0\0\0}\0\0\x04\0\x10\0data\x10\0\0\0"
    b"\0\0\0@\0\x80\xff\x7f\0 \x9a\xd9\xff\x7f\0\x80"
)
CONTENTS = np.array(FILE, object)


def bad_files_are_refused():
    for contents, words in (
        (b"hello", "Header mismatch: Expected RIFF but found hell"),
        (b"", "Data too short when trying to read string"),
        (FILE[:34] + b"\x08" + FILE[35:], "Can only read 16-bit WAV files, but received 8"),
        (FILE[:40], "Data too short"),
    ):
        with tf.Graph().as_default(), raises(errors.InvalidArgumentError, words):
            evaluate(tf.audio.decode_wav(contents).audio)


def a_chunk_that_is_not_known_is_passed_over():
    extended = FILE[:36] + b"LIST\x02\0\0\0ab" + FILE[36:]
    with tf.Graph().as_default():
        made = [tf.audio.decode_wav(contents) for contents in (FILE, extended)]
        first, second, rate = evaluate(made[0].audio, made[1].audio, made[1].sample_rate)
    np.testing.assert_array_equal(first, second)
    assert rate == 8000 and first.shape == (4, 2)


CASES = [
    Case("EncodeWav", [SOUND, ints(8000)], {}, CONTENTS, vary=Vary(odd_values=False)),
    Case("DecodeWav", [CONTENTS], {}, RECORDED),
    Case("DecodeWav", [CONTENTS], {"desired_channels": 1, "desired_samples": 2}, RECORDED, name="less"),
    Case("DecodeWav", [CONTENTS], {"desired_channels": 3, "desired_samples": 6}, RECORDED, name="more"),
    Case("DecodeWav", run=bad_files_are_refused, name="bad"),
    Case("DecodeWav", run=a_chunk_that_is_not_known_is_passed_over, name="chunks"),
    *(
        Case(
            "AudioSpectrogram", [SAMPLES], {"window_size": size, "stride": stride, "magnitude_squared": squared},
            RECORDED, name=f"{size}x{stride}", vary=Vary(odd_values=False, fixed_attrs=("window_size", "stride")),
        )
        for size, stride, squared in ((8, 3, False), (8, 8, True), (5, 5, False), (6, 2, True))
    ),
    Case("Mfcc", [SPECTRA, ints(16000)], {}, RECORDED, atol=1e-4, vary=Vary(odd_values=False)),
    Case(
        "Mfcc", [SPECTRA, ints(8000)],
        {"upper_frequency_limit": 3000.0, "lower_frequency_limit": 100.0, "filterbank_channel_count": 8,
         "dct_coefficient_count": 5},
        RECORDED, name="narrow", atol=1e-4, vary=Vary(odd_values=False),
    ),
]  # fmt: skip
