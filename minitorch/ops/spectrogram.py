"""Spectra of short overlapping pieces of a signal, and back.

Source: Griffin and Lim, "Signal estimation from modified short-time Fourier transform", 1984.
"""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError, DtypeError, ShapeError, describe
from . import elementwise as el
from . import fourier, joining, reduction, shape
from .complex_numbers import is_complex, view_as_real


def _frames(x: Any, size: int, hop: int) -> Any:
    """The pieces of `f[b, t]` that start at each multiple of `hop`, as f[b, pieces, size]."""
    count = (x.shape[-1] - size) // hop + 1
    parts = -(-size // hop)  # of length hop that a piece covers
    total = (count + parts - 1) * hop
    x = x[:, :total] if x.shape[-1] > total else fourier._sized(x, 1, total)
    blocks = shape.reshape(x, (x.shape[0], count + parts - 1, hop))
    pieces = [joining.narrow(blocks, 1, k, count) for k in range(parts)]
    return joining.cat(pieces, -1)[..., :size]


def _overlapped(frames: Any, hop: int) -> Any:
    """The sum of the pieces `f[b, pieces, size]`, each `hop` after the one before, f[b, t]."""
    b, count, size = frames.shape
    parts = -(-size // hop)
    frames = fourier._sized(frames, 2, parts * hop)
    blocks = shape.reshape(frames, (b, count, parts, hop))
    total: Any = 0
    for k in range(parts):
        widths = ((0, 0), (k, parts - 1 - k), (0, 0))
        total = total + shape.pad_constant(blocks[:, :, k], widths)
    return shape.reshape(total, (b, -1))[:, : size + hop * (count - 1)]


def _centred(window: Any, size: int) -> Any:
    """The window in the middle of `size` elements."""
    before = (size - window.shape[0]) // 2
    return shape.pad_constant(window, ((before, size - window.shape[0] - before),))


def _window_of(name: str, window: Any, length: int, n_fft: int, like: Any) -> Any:
    if not 0 < length <= n_fft:
        raise ArgumentError(f"{name}: win_length must be from 1 to n_fft={n_fft}. Got {length}.")
    if window is None:
        window = like.new_ones(length)
        window = window if not is_complex(window) else window.real
    elif window.ndim != 1 or window.shape[0] != length:
        raise ShapeError(
            f"{name}: the window must be a vector with {length} elements, the win_length. "
            f"Got {describe(window)}."
        )
    return _centred(window, n_fft)


def _reflected(x: Any, width: int, mode: str) -> Any:
    """`width` more elements at both ends of `f[b, t]`."""
    if mode == "constant":
        return shape.pad_constant(x, ((0, 0), (width, width)))
    n = x.shape[-1]
    if mode == "reflect":
        if width >= n:
            raise ShapeError(
                f"stft: the signal must be longer than the padding, n_fft // 2 = {width}, to be "
                f"reflected. Got {describe(x)}. Use center=False or pad_mode='constant'."
            )
        before, after = x[:, 1 : width + 1], x[:, n - 1 - width : n - 1]
        return joining.cat([shape.flip(before, 1), x, shape.flip(after, 1)], 1)
    if mode == "replicate":
        ends = [shape.expand(end, x.shape[0], width) for end in (x[:, :1], x[:, -1:])]
        return joining.cat([ends[0], x, ends[1]], 1)
    if mode == "circular":
        return joining.cat([x[:, n - width :], x, x[:, :width]], 1)
    raise ArgumentError(
        f"stft: pad_mode must be 'reflect', 'constant', 'replicate' or 'circular'. Got {mode!r}."
    )


def stft(
    input: Any,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Any = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Any:
    """The spectra of windowed pieces of a signal.

    `X[f, t] = Σ_k window[k] input[t·hop + k] exp(-2πi fk / n_fft)`.

    Args:
        input: f[t] or f[b, t], or complex.
        n_fft: The length of a piece.
        hop_length: From one piece to the next; n_fft // 4 by default.
        win_length: The length of the window, in the middle of the piece; n_fft by default.
        window: f[win_length]; ones by default.
        center: The pieces are centred at multiples of hop_length; the ends are padded.
        pad_mode: How: `"reflect"`, `"constant"`, `"replicate"` or `"circular"`.
        normalized: Divide by √n_fft.
        onesided: Only n_fft // 2 + 1 frequencies; True for real signals.
        return_complex: Must be True, or False for the parts along a last axis.

    Returns:
        c[b, frequencies, pieces].

    Raises:
        ArgumentError: `return_complex` is missing for a real signal, or an option is out of range.
        ShapeError: The signal is shorter than a piece.
    """
    if input.ndim not in (1, 2):
        raise ShapeError(f"stft: the signal must be f[t] or f[b, t]. Got {describe(input)}.")
    of_complex = is_complex(input) or (window is not None and is_complex(window))
    if return_complex is None and not of_complex:
        raise ArgumentError("stft: return_complex must be given for real signals. Pass True.")
    hop = n_fft // 4 if hop_length is None else hop_length
    if n_fft <= 0 or hop <= 0:
        raise ArgumentError(f"stft: n_fft and hop_length must be positive. Got {n_fft} and {hop}.")
    window = _window_of("stft", window, win_length or n_fft, n_fft, input)
    x = shape.unsqueeze(input, 0) if input.ndim == 1 else input
    if center:
        x = _reflected(x, n_fft // 2, pad_mode)
    if x.shape[-1] < n_fft:
        raise ShapeError(
            f"stft: the signal must have at least n_fft={n_fft} elements. Got {describe(input)}. "
            "Use a smaller n_fft or center=True."
        )
    one_sided = not of_complex if onesided is None else onesided
    if one_sided and of_complex:
        raise ArgumentError(
            "stft: complex signals have two sides. Got onesided=True. Leave it out."
        )
    pieces = _frames(x, n_fft, hop) * window
    norm = "ortho" if normalized else "backward"
    spectra = (fourier.rfft if one_sided else fourier.fft)(pieces, norm=norm)
    spectra = shape.transpose(spectra, 1, 2)
    spectra = shape.squeeze(spectra, 0) if input.ndim == 1 else spectra
    return view_as_real(spectra) if return_complex is False else spectra


def istft(
    input: Any,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Any = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Any:
    """The signal whose `stft` is nearest to `input`.

    Args:
        input: c[frequencies, pieces] or c[b, frequencies, pieces].
        length: The length of the signal; what is missing is 0.
        return_complex: The signal is complex.

    Other arguments as for `stft`.

    Returns:
        f[t] or f[b, t].

    Raises:
        DtypeError: The input is real.
        ShapeError: The number of frequencies does not fit n_fft.
        ArgumentError: The windows leave a gap.
    """
    if not is_complex(input):
        raise DtypeError(f"istft: the input must be complex. Got {describe(input)}.")
    hop = n_fft // 4 if hop_length is None else hop_length
    one_sided = not return_complex if onesided is None else onesided
    wanted = n_fft // 2 + 1 if one_sided else n_fft
    if input.ndim not in (2, 3) or input.shape[-2] != wanted:
        raise ShapeError(
            f"istft: the input must be c[b, {wanted}, pieces] for n_fft={n_fft}. "
            f"Got {describe(input)}."
        )
    x = shape.unsqueeze(input, 0) if input.ndim == 2 else input
    size = win_length or n_fft
    if not 0 < hop <= size:
        raise ArgumentError(f"istft: hop_length must be from 1 to win_length={size}. Got {hop}.")
    window = _window_of("istft", window, size, n_fft, input)
    x = shape.transpose(x, 1, 2)
    norm = "ortho" if normalized else "backward"
    if return_complex:
        pieces = fourier.ifft(x, norm=norm)
    else:
        pieces = fourier.irfft(x[..., : n_fft // 2 + 1], n_fft, norm=norm)
    count = pieces.shape[1]
    signal = _overlapped(pieces * window, hop)
    weights = _overlapped(shape.broadcast_to(el.square(window), (1, count, n_fft)), hop)
    start = n_fft // 2 if center else 0
    full = signal.shape[1]
    end = full - start if center else full
    end = min(full, start + length) if length is not None else end
    signal, weights = signal[:, start:end], weights[:, start:end]
    if bool((reduction.amin(el.abs(weights)) < 1e-11) if weights.numel() else False):
        raise ArgumentError(
            "istft: every element must lie under a window. Got a sum of squared windows of 0. "
            "Use a smaller hop_length, center=True, or a window without zeros."
        )
    signal = signal / weights
    if length is not None and signal.shape[1] < length:
        signal = fourier._sized(signal, 1, length)
    return shape.squeeze(signal, 0) if input.ndim == 2 else signal
