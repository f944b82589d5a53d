"""Two thousand random calls of einsum, linear algebra and Fourier transforms, against torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minitorch as mt

torch = pytest.importorskip("torch", reason="parity needs torch, which is not installed")

Call = Callable[[Any], Any]
LETTERS = "abcdeXY"


class Draw:
    """Random choices from one seed; each call is built once and run in both libraries."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.text = ""

    def one(self, *choices: Any) -> Any:
        """One of the choices."""
        return choices[int(self.rng.integers(len(choices)))]

    def number(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`."""
        return int(self.rng.integers(low, high + 1))

    def array(self, *shape: int, kind: str | None = None) -> np.ndarray:
        """Normal numbers, sometimes complex."""
        kind = self.one("f", "f", "c") if kind is None else kind
        a = np.asarray(self.rng.standard_normal(shape))
        return a + 1j * self.rng.standard_normal(shape) if kind == "c" else a

    def note(self, *parts: Any) -> None:
        """Says what the call is, for the message of a difference."""
        self.text = " ".join(str(p) for p in parts)


def _einsum(d: Draw) -> tuple[Call, list[np.ndarray]]:
    sizes = {n: d.one(1, 2, 3, 3, 0) if d.number(0, 9) == 0 else d.number(2, 3) for n in LETTERS}
    kind, dots = d.one("f", "f", "c"), d.number(0, 3)
    arrays, inputs = [], []
    for _ in range(d.number(1, 4)):
        letters = [d.one(*LETTERS) for _ in range(d.number(0, 3))]
        lengths = [1 if d.number(0, 11) == 0 else sizes[n] for n in letters]
        for i, n in enumerate(letters):
            lengths[i] = lengths[letters.index(n)]
        if dots == 1:
            extra = [d.one(1, 2) for _ in range(d.number(0, 2))]
            place = d.number(0, len(letters))
            lengths[place:place] = extra
            text = "".join(letters[:place]) + "..." + "".join(letters[place:])
        else:
            text = "".join(letters)
        inputs.append(text)
        arrays.append(d.array(*lengths, kind=kind))
    equation = ",".join(inputs)
    if d.number(0, 3):
        used = sorted({n for n in equation if n in LETTERS})
        kept = [n for n in used if d.number(0, 1)]
        d.rng.shuffle(kept)
        equation += "->" + ("..." if dots == 1 else "") + "".join(kept)
    d.note("einsum", equation, [a.shape for a in arrays])
    return (lambda m, *xs: m.einsum(equation, *xs)), arrays


def _batch(d: Draw) -> tuple[int, ...]:
    return d.one((), (), (2,), (2, 1), (0,))


def _square(d: Draw) -> np.ndarray:
    n = d.number(1, 4)
    return d.array(*_batch(d), n, n) + 3 * np.eye(n)


def _tall(d: Draw) -> np.ndarray:
    return d.array(*_batch(d), d.number(1, 4), d.number(1, 4))


def _of_square(d: Draw) -> tuple[Call, list[np.ndarray]]:
    power, order = d.number(-3, 4), d.one(None, 1, 2, -2, "fro", "nuc")
    calls: dict[str, Call] = {
        "inv": lambda m, x: m.linalg.inv(x),
        "det": lambda m, x: m.linalg.det(x),
        "slogdet": lambda m, x: m.linalg.slogdet(x),
        "cholesky": lambda m, x: m.linalg.cholesky(x @ x.mH + m.eye(x.shape[-1], dtype=x.dtype)),
        "eigh": lambda m, x: m.linalg.eigh(x + x.mH)[0],
        "eigvalsh": lambda m, x: m.linalg.eigvalsh(x + x.mH, UPLO="U"),
        "eigvals": lambda m, x: m.linalg.eigvals(x).sum(-1),
        "matrix_exp": lambda m, x: m.linalg.matrix_exp(x * 0.5),
        "matrix_power": lambda m, x: m.linalg.matrix_power(x, power),
        "lu": lambda m, x: m.linalg.lu(x),
        "lu_factor": lambda m, x: m.linalg.lu_factor(x),
        "cond": lambda m, x: m.linalg.cond(x, order),
        "pinv hermitian": lambda m, x: m.linalg.pinv(x + x.mH, hermitian=True),
    }
    name = d.one(*calls)
    x = _square(d)
    if name == "cond" and not x.size:
        x = np.eye(2)
    d.note(name, x.shape, x.dtype)
    return calls[name], [x]


def _of_any(d: Draw) -> tuple[Call, list[np.ndarray]]:
    order = d.one(2, 1, 0, 3, 1.5, float("inf"), float("-inf"), -1)
    matrix = d.one("fro", "nuc", 2, -2, 1, -1, float("inf"), float("-inf"))
    dims, keep = d.one(None, 0, -1, (0, 1)), d.one(False, True)
    full = d.one(False, True)
    calls: dict[str, Call] = {
        "pinv": lambda m, x: m.linalg.pinv(x),
        "svdvals": lambda m, x: m.linalg.svdvals(x),
        "svd": lambda m, x: [part.abs() for part in m.linalg.svd(x, full_matrices=False)],
        "svd full": lambda m, x: [p.shape for p in m.linalg.svd(x, full_matrices=full)],
        "qr": lambda m, x: [part.abs() for part in m.linalg.qr(x)],
        "qr complete": lambda m, x: [p.shape for p in m.linalg.qr(x, mode="complete")],
        "matrix_rank": lambda m, x: m.linalg.matrix_rank(x),
        "vector_norm": lambda m, x: m.linalg.vector_norm(x, order, dims, keep),
        "matrix_norm": lambda m, x: m.linalg.matrix_norm(x, matrix, (-2, -1), keep),
        "norm": lambda m, x: m.linalg.norm(x, matrix, (-1, -2), keep),
        "cov": lambda m, x: m.cov(x.reshape(-1, x.shape[-1]), correction=0),
        "lu": lambda m, x: m.linalg.lu(x),
    }
    name = d.one(*calls)
    x = _tall(d)
    if not x.size and "norm" in name or name == "cov":
        x = d.array(3, 4)
    d.note(name, x.shape, x.dtype, order, matrix, dims, keep)
    return calls[name], [x]


def _of_two(d: Draw) -> tuple[Call, list[np.ndarray]]:
    n, k, kind = d.number(1, 4), d.number(1, 3), d.one("f", "c")
    batch = d.one((), (2,), (0,))
    a = d.array(*batch, n, n, kind=kind) + 3 * np.eye(n)
    up, unit, p = d.one(False, True), d.one(False, True), d.one(0, 1, 2, 3, float("inf"))
    b = d.array(*d.one(batch, ()), n, k, kind=kind)
    x, y = d.array(*batch, n, 3, kind="f"), d.array(k, 3, kind="f")
    calls: dict[str, tuple[Call, list[np.ndarray]]] = {
        "solve": (lambda m, p, q: m.linalg.solve(p, q), [a, b]),
        "solve vector": (lambda m, p, q: m.linalg.solve(p, q), [a, b[..., 0].reshape(-1)[:n]]),
        "solve right": (lambda m, p, q: m.linalg.solve(p, q.mT, left=False), [a, b]),
        "solve_triangular": (
            lambda m, p, q: m.linalg.solve_triangular(p, q, upper=up, unitriangular=unit),
            [a, b],
        ),
        "lstsq": (lambda m, p, q: m.linalg.lstsq(p, q)[0], [a[..., :2], a[..., -2:]]),
        "cdist": (lambda m, p_, q: m.cdist(p_, q, p), [x, y]),
        "kron": (lambda m, p, q: m.kron(p, q), [x, y]),
        "tensordot": (lambda m, p, q: m.tensordot(p, q, ([-1], [1])), [x, y]),
        "inner": (lambda m, p, q: m.inner(p, q), [x, y]),
        "cross": (lambda m, p, q: m.linalg.cross(p, q), [x, x + 1]),
        "vecdot": (lambda m, p, q: m.linalg.vecdot(p, q), [a, a[..., :1, :]]),
        "multi_dot": (lambda m, p, q: m.linalg.multi_dot([p, q.mT, q]), [y, y]),
    }
    name = d.one(*calls)
    call, arrays = calls[name]
    if name == "solve vector" and not a.size:
        arrays = [np.eye(n), np.ones(n)]
    d.note(name, [z.shape for z in arrays], up, unit, p)
    return call, arrays


ONE_AXIS = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
SEVERAL = tuple(f"{name}{suffix}" for name in ONE_AXIS for suffix in ("2", "n"))


def _fourier(d: Draw) -> tuple[Call, list[np.ndarray]]:
    name = d.one(*ONE_AXIS, *SEVERAL, "fftshift", "ifftshift")
    x = d.array(*[d.number(1, 5) for _ in range(d.number(1, 3))])
    options: dict[str, Any] = {}
    if name in ONE_AXIS:
        options["dim"] = d.number(-x.ndim, x.ndim - 1)
        if d.number(0, 1):
            options["n"] = d.number(1, 7)
    elif name in SEVERAL:
        axes = [int(i) for i in d.rng.permutation(x.ndim)[: d.number(1, x.ndim)]]
        if d.number(0, 1) or name.endswith("2") and x.ndim < 2:
            options["dim"] = axes
        if d.number(0, 1):
            count = (
                len(options["dim"]) if "dim" in options else 2 if name.endswith("2") else len(axes)
            )
            options["s"] = [d.one(-1, d.number(2, 6)) for _ in range(count)]
    else:
        options["dim"] = d.one(None, 0, -1)
    if name not in ("fftshift", "ifftshift"):
        options["norm"] = d.one(None, "forward", "backward", "ortho")
    d.note(name, x.shape, x.dtype, options)
    return (lambda m, z: getattr(m.fft, name)(z, **options)), [x]


def _stft(d: Draw) -> tuple[Call, list[np.ndarray]]:
    n = d.number(2, 9)
    size = d.number(1, n)
    options: dict[str, Any] = {
        "hop_length": d.number(1, n),
        "win_length": size,
        "center": d.one(True, False),
        "pad_mode": d.one("reflect", "constant", "replicate", "circular"),
        "normalized": d.one(False, True),
        "onesided": d.one(None, False),
        "return_complex": True,
    }
    x = d.array(*d.one((), (2,)), d.number(1, 25), kind=d.one("f", "f", "f", "c"))
    window = np.abs(d.array(size, kind="f"))
    d.note("stft", x.shape, x.dtype, n, options)
    return (lambda m, z, w: m.stft(z, n, window=w, **options)), [x, window]


KINDS = (_einsum, _of_square, _of_any, _of_two, _fourier, _fourier, _stft, _einsum)


def _run(m: Any, call: Any, arrays: list[np.ndarray]) -> tuple[Any, Any, str]:
    """The result, the leaves and the text of an error."""
    leaves = [m.tensor(a).requires_grad_() for a in arrays]
    try:
        return call(m, *leaves), leaves, ""
    except (RuntimeError, ValueError, IndexError, TypeError) as error:
        return None, leaves, f"{type(error).__name__}: {error}"


def _listed(result: Any) -> list[Any]:
    return list(result) if isinstance(result, list | tuple) else [result]


def _gradients(m: Any, result: Any, leaves: list[Any]) -> list[Any]:
    """The gradients of a number that every differentiable part has a different share in."""
    loss: Any = 0
    for i, y in enumerate(_listed(result)):
        if not getattr(y, "requires_grad", False):
            continue
        weights = np.cos(np.arange(y.numel()) + i).reshape(tuple(y.shape))
        y = y.real - 2 * y.imag if y.is_complex() else y
        loss = loss + (y * m.tensor(weights)).sum()
    return [] if isinstance(loss, int) else list(m.autograd.grad(loss, leaves, allow_unused=True))


def _compare(got: Any, want: Any, text: str) -> None:
    for g, w in zip(_listed(got), _listed(want), strict=True):
        if isinstance(w, torch.Size):
            assert tuple(g) == tuple(w), text
            continue
        assert tuple(g.shape) == tuple(w.shape), f"{text}: {tuple(g.shape)} {tuple(w.shape)}"
        assert str(g.dtype).split(".")[1] == str(w.dtype).split(".")[1], text
        a, b = g.detach().numpy(), w.detach().resolve_conj().resolve_neg().numpy()
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-8, err_msg=text)


def _compare_gradients(got: Any, ours: list[Any], want: Any, theirs: list[Any], text: str) -> None:
    try:
        expected = _gradients(torch, want, theirs)
    except RuntimeError:
        return  # torch has none there: a deficient rank, or a defect of its own
    if any(e is not None and e.numel() and not e.abs().max() < 1e4 for e in expected):
        return  # too near to a pole for a comparison
    found = _gradients(mt, got, ours) or [None] * len(expected)  # constants have no graph here
    for g, e in zip(found, expected, strict=True):
        a = np.zeros(e.shape if e is not None else g.shape) if g is None else g.numpy()
        b = np.zeros(a.shape) if e is None else e.resolve_conj().resolve_neg().numpy()
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6, err_msg=f"gradient {text}")


@pytest.mark.parametrize("start", range(0, 2000, 200))
def test_calls_do_what_torch_does(start: int) -> None:
    for seed in range(start, start + 200):
        draw = Draw(seed)
        call, arrays = draw.one(*KINDS)(draw)
        got, ours, error = _run(mt, call, arrays)
        want, theirs, refused = _run(torch, call, arrays)
        assert bool(error) == bool(refused), f"{seed} {draw.text}: {error!r} against {refused!r}"
        if not error:
            _compare(got, want, f"{seed} {draw.text}")
            _compare_gradients(got, ours, want, theirs, f"{seed} {draw.text}")
