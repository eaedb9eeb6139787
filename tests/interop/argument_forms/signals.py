"""tf.signal and Fourier transforms: lengths as numbers and tensors, signals of unknown rank and length."""

from __future__ import annotations

from tests.interop.argument_forms.forms import each, forms, tensors

_SIGNAL = [*tensors("[[1., 2., 3., 4., 5., 6., 7., 8.]]"), "S([[1., 2., 3., 4., 5., 6., 7., 8.]], [1, None])",
    "T([1., 2., 3., 4., 5., 6., 7., 8.])", "[1., 2., 3., 4., 5., 6., 7., 8.]"]
_COMPLEX = ["T([[1 + 1j, 2.], [3., 4j]], tf.complex64)", "P(np.array([[1 + 1j, 2.], [3., 4j]]), tf.complex64)",
    "T([[1., 2.]])"]

CASES = [
    *each("fft ifft fft2d ifft2d fftshift ifftshift", "tf.signal.{f}({x})", x=_COMPLEX),
    *each("fftshift ifftshift", "tf.signal.{f}({x}{a})", x=_SIGNAL, a=["", ", 0", ", axes=[0]", ", axes=-1",
        ", (0,)"]),
    *each("rfft irfft", "tf.signal.{f}({x}{a})", x=[*_SIGNAL, *_COMPLEX], a=["", ", [4]", ", fft_length=T([6])",
        ", P([8])"]),
    *each("rfft2d", "tf.signal.{f}({x}{a})", x=_SIGNAL[:4], a=["", ", [1, 4]"]),
    *forms("tf.signal.frame({x}, {a})", x=_SIGNAL, a=["4, 2", "T(4), T(2)", "3, 2, pad_end=True", "3, 2, True, 9.",
        "2, 1, axis=0", "frame_length=P(4), frame_step=2", "4, 2, axis=T(-1)", "10, 1",
        "4, 2, pad_end=True, pad_value=T(1.)"]),
    *forms("tf.signal.stft({x}, {a})", x=_SIGNAL, a=["4, 2", "4, 2, 8",
        "frame_length=T(4), frame_step=2, fft_length=4", "4, 2, window_fn=None", "4, 2, pad_end=True", "P(4), 2"]),
    *forms("tf.signal.overlap_and_add({x}, {a})", x=["T([[1., 2., 3.], [4., 5., 6.]])",
        "Q([[1., 2., 3.], [4., 5., 6.]])", "P([[1., 2., 3.], [4., 5., 6.]])"], a=["2", "T(1)", "frame_step=3",
        "P(2)"]),
    *each("hann_window hamming_window", "tf.signal.{f}({a})", a=["4", "T(5)", "4, periodic=False", "P(4)",
        "4, True, tf.float64", "1", "window_length=6, name='w'"]),
    *each("kaiser_window vorbis_window kaiser_bessel_derived_window", "tf.signal.{f}({a})", a=["4", "T(6)",
        "window_length=4"]),
    *forms("tf.signal.dct({x}{a})", x=_SIGNAL, a=["", ", 3", ", type=1", ", 2, 4", ", norm='ortho'", ", axis=0",
        ", 4"]),
    *forms("tf.signal.idct({x}{a})", x=_SIGNAL, a=["", ", 3, norm='ortho'", ", type=1"]),
    *forms("tf.signal.linear_to_mel_weight_matrix({a})", a=["", "4, 9, 8000",
        "num_mel_bins=3, num_spectrogram_bins=T(9), sample_rate=16000", "4, 9, 8000, 80., 3600.", "4, 9, T(8000.)",
        "0, 9", "4, 9, 8000, 80., 9000."]),
    *forms("tf.signal.mfccs_from_log_mel_spectrograms({x})", x=_SIGNAL),
    *forms("tf.signal.inverse_stft(tf.signal.stft({x}, 4, 2), {a})", x=_SIGNAL[:4], a=["4, 2", "T(4), T(2)",
        "4, 2, 4", "4, 2, window_fn=tf.signal.inverse_stft_window_fn(2)"]),
    *forms("tf.signal.mdct({x}, {a})", x=_SIGNAL[:4], a=["4", "4, None", "frame_length=4, norm='ortho'"]),
]
