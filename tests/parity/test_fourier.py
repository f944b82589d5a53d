"""Windows, frequencies, complex signals and errors of Fourier transforms, against torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minitorch as mt

torch = pytest.importorskip("torch", reason="parity needs torch, which is not installed")

WINDOWS = ("bartlett", "blackman", "hamming", "hann", "kaiser")


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("periodic", [True, False])
def test_windows(name: str, periodic: bool) -> None:
    for length in (0, 1, 2, 7, 8):
        for dtype in ("float32", "float64"):
            ours, theirs = (
                getattr(m, f"{name}_window")(length, periodic, dtype=getattr(m, dtype))
                for m in (mt, torch)
            )
            assert ours.dtype is getattr(mt, dtype)
            np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-4, atol=1e-6)


def test_windows_take_their_options() -> None:
    ours, theirs = (m.hamming_window(5, True, 0.6, 0.3) for m in (mt, torch))
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-5, atol=1e-7)
    ours, theirs = (m.kaiser_window(5, True, 3.0) for m in (mt, torch))
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-5)
    assert mt.hann_window(4, requires_grad=True).requires_grad


@pytest.mark.parametrize("n", [1, 4, 5])
def test_frequencies(n: int) -> None:
    for name in ("fftfreq", "rfftfreq"):
        ours, theirs = (getattr(m.fft, name)(n, 0.25) for m in (mt, torch))
        assert ours.dtype is mt.float32
        np.testing.assert_allclose(ours.numpy(), theirs.numpy())


@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "complex64", "complex128", "int64", "bool"]
)
def test_dtypes_of_results(dtype: str) -> None:
    x = np.arange(6).reshape(2, 3) % 2
    for name in ("fft", "ifft", "fftn", "irfft", "hfft", "rfft", "ihfft"):
        if name in ("rfft", "ihfft") and dtype.startswith("complex"):
            continue
        ours, theirs = (
            getattr(m.fft, name)(m.tensor(x).to(getattr(m, dtype))) for m in (mt, torch)
        )
        assert str(ours.dtype).split(".")[1] == str(theirs.dtype).split(".")[1]
        np.testing.assert_allclose(
            ours.numpy(), theirs.resolve_conj().numpy(), rtol=1e-5, atol=1e-6
        )


def test_a_complex_signal_has_two_sides() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 20)) + 1j * rng.standard_normal((2, 20))
    spectra = []
    for m in (mt, torch):
        z = m.tensor(x)
        window = m.hann_window(8, dtype=m.float64)
        spectrum = m.stft(z, 8, window=window, return_complex=True)
        back = m.istft(spectrum, 8, window=window, return_complex=True, onesided=False)
        spectra.append((spectrum.numpy(), back.numpy()))
    for got, want in zip(*spectra, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)


def test_the_signal_comes_back() -> None:
    x = mt.randn(2, 50)
    window = mt.hann_window(16)
    back = mt.istft(
        mt.stft(x, 16, window=window, return_complex=True), 16, window=window, length=50
    )
    np.testing.assert_allclose(back[:, :48].numpy(), x[:, :48].numpy(), atol=1e-5)
    parts = mt.stft(x, 16, window=window, return_complex=False)
    assert parts.shape == (2, 9, 13, 2)
    assert x.stft(16, return_complex=True).istft(16).shape == (2, 48)


def _z(*shape: int) -> Any:
    return mt.complex(mt.ones(*shape), mt.ones(*shape))


WRONG: list[tuple[Callable[[], Any], str]] = [
    (lambda: mt.fft.fft(mt.ones(3).half()), "fft: half types have no transform"),
    (lambda: mt.fft.fft(mt.ones(3), norm="both"), "fft: norm must be one of"),
    (lambda: mt.fft.fft(mt.ones(0)), "fft: an axis must have at least one element"),
    (lambda: mt.fft.fft(mt.ones(3), n=0), "fft: an axis must have at least one element"),
    (lambda: mt.fft.fft(mt.ones(3), dim=2), "fft: dim must be from -1 to 0"),
    (lambda: mt.fft.rfft(_z(3)), "rfft: the input must be real"),
    (lambda: mt.fft.irfft(_z(1)), "irfft: the result must have at least one element"),
    (lambda: mt.fft.fftn(mt.ones(2, 2), dim=(0, 0)), "fftn: each axis may be named once"),
    (lambda: mt.fft.rfftn(mt.ones(2, 2), dim=()), "rfftn: at least one axis is needed"),
    (lambda: mt.hann_window(-1), "hann_window: the length must not be negative"),
    (lambda: mt.hann_window(3, dtype=mt.int64), "hann_window: the dtype must be floating"),
    (lambda: mt.stft(mt.ones(9), 4), "stft: return_complex must be given"),
    (lambda: mt.stft(mt.ones(1, 1, 9), 4, return_complex=True), "stft: the signal must be"),
    (lambda: mt.stft(mt.ones(9), 4, 0, return_complex=True), "hop_length must be positive"),
    (lambda: mt.stft(mt.ones(2), 8, return_complex=True), "must be longer than the padding"),
    (lambda: mt.stft(mt.ones(2), 8, center=False, return_complex=True), "at least n_fft=8"),
    (
        lambda: mt.stft(mt.ones(9), 4, pad_mode="edge", return_complex=True),
        "stft: pad_mode must be",
    ),
    (
        lambda: mt.stft(mt.ones(9), 4, window=mt.ones(3), return_complex=True),
        "the window must be a vector with 4 elements",
    ),
    (lambda: mt.stft(mt.ones(9), 4, win_length=5, return_complex=True), "win_length must be from"),
    (lambda: mt.stft(_z(9), 4, onesided=True), "stft: complex signals have two sides"),
    (lambda: mt.istft(mt.ones(3, 3), 4), "istft: the input must be complex"),
    (lambda: mt.istft(_z(4, 3), 4), r"istft: the input must be c\[b, 3, pieces\]"),
    (lambda: mt.istft(_z(3, 3), 4, hop_length=5), "istft: hop_length must be from 1"),
    (
        lambda: mt.istft(_z(3, 3), 4, hop_length=4, window=mt.hann_window(4)),
        "istft: every element must lie under a window",
    ),
]


@pytest.mark.parametrize(("call", "text"), WRONG)
def test_messages(call: Callable[[], Any], text: str) -> None:
    with pytest.raises((RuntimeError, ValueError), match=text):
        call()
