"""Cases of discrete Fourier transforms and of the cutting of signals into frames."""

from __future__ import annotations

import numpy as np

import dtf as tf
from tests.runtime.op_cases import Case
from tests.runtime.op_cases.array import doubles, evaluate, ints
from tests.runtime.op_cases.linalg import check_gradient

REAL = doubles(2, 3, 4, 5)
COMPLEX = REAL + 1j * doubles(2, 3, 4, 5)[::-1]
LAST = {1: [-1], 2: [-2, -1], 3: [-3, -2, -1]}
NAMES = {1: "", 2: "2D", 3: "3D"}


def the_gradient_of_a_transform_is_that_of_differences():
    for rank, name in NAMES.items():
        forward, backward = (getattr(tf.signal, (each + name).lower()) for each in ("fft", "ifft"))
        weights = doubles(2, 2, 3)

        def loss(x, forward=forward, backward=backward, weights=weights):
            spectrum = forward(tf.complex(x, x * x))
            again = backward(spectrum * spectrum)
            return tf.reduce_sum(weights * (tf.real(spectrum) + tf.imag(again)))

        check_gradient(loss, doubles(2, 2, 3))
        real, whole = (getattr(tf.signal, (each + name).lower()) for each in ("rfft", "irfft"))
        for last in (3, 4):

            def real_loss(x, real=real, whole=whole, last=last, rank=rank):
                spectrum = real(x, [2, 2, last][-rank:])
                squared = whole(spectrum * spectrum, [2, 2, last][-rank:])
                return tf.reduce_sum(squared * squared) + tf.reduce_sum(tf.imag(spectrum))

            check_gradient(real_loss, doubles(2, 2, 5))


def real_transforms_cut_and_fill():
    with tf.Graph().as_default():
        x = tf.constant(REAL)
        unknown = tf.placeholder_with_default(REAL, [2, 3, 4, None])
        found = evaluate(
            tf.signal.rfft(x, [8]), tf.signal.rfft(x, [3]), tf.signal.irfft(tf.constant(COMPLEX)),
            tf.signal.irfft(tf.constant(COMPLEX), [12]), tf.signal.rfft(unknown),
        )  # fmt: skip
    np.testing.assert_allclose(found[0], np.fft.rfft(REAL, 8))
    np.testing.assert_allclose(found[1], np.fft.rfft(REAL, 3))
    np.testing.assert_allclose(found[2], np.fft.irfft(COMPLEX))
    np.testing.assert_allclose(found[3], np.fft.irfft(COMPLEX, 12))
    np.testing.assert_allclose(found[4], np.fft.rfft(REAL))


def a_signal_is_cut_into_windows():
    signal = np.arange(10.0)
    with tf.Graph().as_default():
        found = evaluate(
            tf.signal.frame(signal, 4, 3), tf.signal.frame(signal, 4, 3, pad_end=True), tf.signal.hann_window(4),
            tf.signal.hamming_window(5, periodic=False), tf.signal.stft(signal.astype(np.float32), 4, 2),
            tf.signal.fftshift(signal), tf.signal.ifftshift(np.arange(5)),
        )  # fmt: skip
    windows = np.stack([signal[start : start + 4] for start in (0, 3, 6)])
    np.testing.assert_array_equal(found[0], windows)
    np.testing.assert_array_equal(found[1], np.vstack([windows, [9, 0, 0, 0]]))
    np.testing.assert_allclose(found[2], [0, 0.5, 1, 0.5], atol=1e-6)
    np.testing.assert_allclose(found[3], np.hamming(5), atol=1e-6)
    rows = np.stack([signal[start : start + 4] for start in (0, 2, 4, 6)])
    np.testing.assert_allclose(found[4], np.fft.rfft(rows * [0, 0.5, 1, 0.5]), atol=1e-5)
    np.testing.assert_array_equal(found[5], np.fft.fftshift(signal))
    np.testing.assert_array_equal(found[6], np.fft.ifftshift(np.arange(5)))


def of_rank(rank):
    name, axes = NAMES[rank], LAST[rank]
    sizes, halved = ints([2, 4, 4][-rank:]), ints([3, 3, 6][-rank:])
    cut = tuple([..., *(slice(size) for size in sizes)])
    halves = tuple([..., *(slice(size) for size in [*halved[:-1], halved[-1] // 2 + 1])])
    yield Case("FFT" + name, [COMPLEX], expect=lambda x: np.fft.fftn(x, axes=axes))
    yield Case("IFFT" + name, [COMPLEX], expect=lambda x: np.fft.ifftn(x, axes=axes))
    yield Case("RFFT" + name, [REAL, sizes], {"Tcomplex": np.complex128},
               expect=lambda x, n: np.fft.rfftn(x[cut], axes=axes))
    yield Case("IRFFT" + name, [COMPLEX, halved], {"Treal": np.float64},
               expect=lambda x, n: np.fft.irfftn(x[halves], halved, axes=axes))


CASES = [
    *of_rank(1), *of_rank(2), *of_rank(3),
    Case("FFT", [COMPLEX.astype(np.complex64)], expect=np.fft.fft, atol=1e-5, name="complex64"),
    Case("RFFT", [REAL[:0], ints([4])], {"Tcomplex": np.complex128}, expect=np.zeros((0, 3, 4, 3)), name="of_nothing"),
    Case("FFT", run=the_gradient_of_a_transform_is_that_of_differences, name="gradient"),
    Case("RFFT", run=real_transforms_cut_and_fill, name="lengths"),
    Case("RFFT", run=a_signal_is_cut_into_windows, name="windows"),
]  # fmt: skip
