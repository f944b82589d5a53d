"""Fourier transforms, spectra and windows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from op_table import Row

HALF = {"float dtypes": "half types have no transform, as in PyTorch on the CPU"}
ROUNDING = {"strided": "another order of summation"}
SIGNALS = (((6,),), ((2, 5),), ((2, 3, 4),))
PLANES = (((4, 5),), ((2, 3, 4),))


def _parts(m: Any, y: Any) -> Any:
    return m.view_as_real(m.resolve_conj(y)) if y.is_complex() else y


def _row(name: str, call: Callable[..., Any], shapes: Any = SIGNALS, **options: Any) -> Row:
    options["exempt"] = HALF | ROUNDING | options.pop("exempt", {})
    return Row(name, lambda m, *xs: _parts(m, call(m, *xs)), shapes, **options)


def _of_complex(name: str, call: Callable[..., Any], shapes: Any = SIGNALS, **options: Any) -> Row:
    pairs = tuple((shape[0], shape[0]) for shape in shapes)
    return _row(name, lambda m, a, b: call(m, m.complex(a, b)), pairs, **options)


def _window(m: Any, n: int, like: Any) -> Any:
    return m.tensor([0.3 + 0.1 * k * (n - k) for k in range(n)], dtype=like.dtype)


ONE_AXIS = [
    *[
        make(
            f"{name} {options}",
            lambda m, x, name=name, options=options: getattr(m.fft, name)(x, **options),
        )
        for name, make in (
            ("fft", _of_complex),
            ("ifft", _of_complex),
            ("rfft", _row),
            ("irfft", _of_complex),
            ("hfft", _of_complex),
            ("ihfft", _row),
        )
        for options in ({}, {"n": 7, "norm": "ortho"}, {"n": 4, "dim": 0, "norm": "forward"})
    ],
    _row("fft real", lambda m, x: m.fft.fft(x)),
    _row("ifft real", lambda m, x: m.fft.ifft(x, dim=0)),
    _row("rfft and back", lambda m, x: m.fft.irfft(m.fft.rfft(x) * 2, x.shape[-1])),
]
SEVERAL = [
    *[
        make(
            f"{name} {i}",
            lambda m, x, name=name, options=options: getattr(m.fft, name)(x, **options),
            PLANES,
        )
        for name, make in (
            ("fft2", _of_complex),
            ("ifft2", _of_complex),
            ("rfft2", _row),
            ("irfft2", _of_complex),
            ("fftn", _of_complex),
            ("ifftn", _of_complex),
            ("rfftn", _row),
            ("irfftn", _of_complex),
            ("hfft2", _of_complex),
            ("ihfft2", _row),
            ("hfftn", _of_complex),
            ("ihfftn", _row),
        )
        for i, options in enumerate(({}, {"s": (3, 6), "norm": "ortho"}, {"dim": (1, 0)}))
    ],
]
SHIFTS = [
    _row("fftshift", lambda m, x: m.fft.fftshift(x)),
    _row("fftshift dim", lambda m, x: m.fft.fftshift(x, dim=-1)),
    _row("ifftshift", lambda m, x: m.fft.ifftshift(x)),
]
SPECTRA = [
    _row(
        "stft",
        lambda m, x: m.stft(x, 4, window=_window(m, 4, x), return_complex=True),
        (((9,),), ((2, 11),)),
    ),
    _row(
        "stft options",
        lambda m, x: m.stft(
            x,
            6,
            hop_length=4,
            win_length=4,
            window=_window(m, 4, x),
            center=False,
            normalized=True,
            onesided=False,
            return_complex=True,
        ),
        (((2, 15),),),
    ),
    *[
        _row(
            f"stft {mode}",
            lambda m, x, mode=mode: m.stft(
                x, 4, 3, window=_window(m, 4, x), pad_mode=mode, return_complex=True
            ),
            (((8,),),),
        )
        for mode in ("constant", "replicate", "circular")
    ],
    _row(
        "istft",
        lambda m, x: m.istft(
            m.stft(x, 4, window=_window(m, 4, x), return_complex=True) ** 2,
            4,
            window=_window(m, 4, x),
        ),
        (((9,),), ((2, 11),)),
        exempt={"waits": "the answer decides whether the windows leave a gap"},
    ),
    _of_complex(
        "istft options",
        lambda m, z: m.istft(
            z,
            6,
            hop_length=2,
            win_length=5,
            window=_window(m, 5, z.real),
            normalized=True,
            length=9,
        ),
        (((4, 5),), ((2, 4, 5),)),
        exempt={"waits": "the answer decides whether the windows leave a gap"},
    ),
]
ROWS = [*ONE_AXIS, *SEVERAL, *SHIFTS, *SPECTRA]
