"""What CuPy and NumPy share gives NumPy's values, as device arrays."""

from __future__ import annotations

import copy
import operator
import pickle

import numpy as np
import pytest

import pretend_gpu as gpu

RNG = np.random.default_rng(0)
A = RNG.uniform(0.1, 0.9, (3, 4)).astype(np.float32)
B = RNG.uniform(0.1, 0.9, (3, 4)).astype(np.float32)
I = RNG.integers(0, 3, (3, 4)).astype(np.int32)  # noqa: E741
SQUARE = (A @ A.T + np.eye(3, dtype=np.float32)).astype(np.float64)


def same(got: object, want: object) -> None:
    """Checks that `got` is `want` on the device, with 0-d results as arrays."""
    if isinstance(want, tuple | list):
        assert isinstance(got, tuple | list)
        for one, other in zip(got, want, strict=True):
            same(one, other)
        return
    assert isinstance(got, gpu.ndarray)
    host = got.get()
    want = np.asarray(want)
    assert host.dtype == want.dtype
    assert host.shape == want.shape
    np.testing.assert_allclose(host, want, rtol=1e-6, equal_nan=True)


UNARY = [
    n for n in gpu.surface.UFUNCS if getattr(np, n).nin == 1 and n not in ("invert", "bitwise_not")
]
BINARY = [n for n in gpu.surface.UFUNCS if getattr(np, n).nin == 2]
INTEGER = "bitwise_and bitwise_or bitwise_xor left_shift right_shift gcd lcm".split()


@pytest.mark.parametrize("name", UNARY)
def test_unary_ufuncs(name: str) -> None:
    with np.errstate(all="ignore"):
        want = getattr(np, name)(A)
    same(getattr(gpu, name)(gpu.asarray(A)), want)
    same(getattr(np, name)(gpu.asarray(A)), want)


@pytest.mark.parametrize("name", BINARY)
def test_binary_ufuncs(name: str) -> None:
    left, right = (I, I + 1) if name in INTEGER else (A, I if name == "ldexp" else B)
    same(getattr(gpu, name)(gpu.asarray(left), gpu.asarray(right)), getattr(np, name)(left, right))


FUNCTIONS = {
    "sum": (A,),
    "prod": (A, 0),
    "mean": (A, 1),
    "var": (A,),
    "std": (A, 0),
    "max": (A, 1),
    "min": (A,),
    "argmax": (A, 1),
    "argmin": (A,),
    "all": (A > 0,),
    "any": (A > 1,),
    "cumsum": (A, 1),
    "cumprod": (A, 0),
    "reshape": (A, (4, 3)),
    "transpose": (A,),
    "swapaxes": (A, 0, 1),
    "moveaxis": (A, 0, 1),
    "expand_dims": (A, 1),
    "squeeze": (A[:, :1],),
    "broadcast_to": (A[0], (2, 4)),
    "flip": (A, 1),
    "roll": (A, 1, 0),
    "tile": (A, 2),
    "repeat": (A, 2, 1),
    "pad": (A, ((1, 0), (0, 2))),
    "concatenate": ([A, B], 1),
    "stack": ([A, B],),
    "vstack": ([A, B],),
    "split": (A, 2, 1),
    "where": (A > 0.5, A, 0.0),
    "clip": (A, 0.2, None),
    "take": (A, I, 1),
    "take_along_axis": (A, I, 1),
    "sort": (A, 0),
    "argsort": (I, 1),
    "nonzero": (I,),
    "unique": (I,),
    "bincount": (I.ravel(),),
    "searchsorted": (np.sort(A[0]), B[0]),
    "count_nonzero": (I,),
    "isclose": (A, B),
    "allclose": (A, A),
    "array_equal": (A, B),
    "diag": (SQUARE,),
    "tril": (A,),
    "trace": (SQUARE,),
    "diff": (A,),
    "dot": (A, B.T),
    "outer": (A[0], B[0]),
    "tensordot": (A, B),
    "matmul": (A, B.T),
    "kron": (A, B),
    "round": (A, 1),
    "nan_to_num": (A,),
    "median": (A,),
    "percentile": (A, 30),
    "average": (A, 1),
    "isin": (I, I[0]),
    "arange": (2, 9, 3),
    "linspace": (0, 1, 5),
    "eye": (3,),
    "full": ((2, 2), 7),
    "ones": (3,),
    "zeros": ((2, 1), "f"),
    "ones_like": (A,),
    "atleast_2d": (A[0],),
    "broadcast_arrays": (A, B[0]),
    "meshgrid": (A[0], B[0]),
}


def _upload(value: object) -> object:
    if isinstance(value, np.ndarray):
        return gpu.asarray(value)
    return [_upload(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    args = FUNCTIONS[name]
    want = getattr(np, name)(*args)
    same(getattr(gpu, name)(*map(_upload, args)), want)
    if any(isinstance(arg, np.ndarray) for arg in args):
        same(getattr(np, name)(*map(_upload, args)), want)


def test_einsum() -> None:
    got = gpu.einsum("ij,kj->ik", gpu.asarray(A), gpu.asarray(B))
    same(got, np.einsum("ij,kj->ik", A, B))


METHODS = {
    "sum": {"axis": 0, "keepdims": True},
    "mean": {},
    "max": {"axis": (0, 1)},
    "argmin": {"axis": 1},
    "cumsum": {"axis": 0},
    "clip": {"min": 0.2, "max": 0.5},
    "round": {"decimals": 1},
    "flatten": {},
    "ravel": {},
    "squeeze": {},
    "diagonal": {},
    "astype": {"dtype": "i4"},
    "repeat": {"repeats": 2, "axis": 0},
    "any": {},
    "std": {"ddof": 1},
    "conj": {},
}


@pytest.mark.parametrize("name", METHODS)
def test_methods(name: str) -> None:
    options = METHODS[name]
    same(getattr(gpu.asarray(A), name)(**options), getattr(A, name)(**options))


def test_sort_and_partition_work_in_place() -> None:
    for name, args in {"sort": (), "partition": (1,)}.items():
        host, device = A.copy(), gpu.asarray(A)
        assert getattr(device, name)(*args) is None
        getattr(host, name)(*args)
        same(gpu.sort(device), np.sort(host))


LINALG = {
    "inv": (SQUARE,),
    "det": (SQUARE,),
    "cholesky": (SQUARE,),
    "solve": (SQUARE, SQUARE[:, :1]),
    "eigh": (SQUARE,),
    "qr": (SQUARE,),
    "svd": (SQUARE,),
    "norm": (SQUARE,),
    "slogdet": (SQUARE,),
}


@pytest.mark.parametrize("name", LINALG)
def test_linalg(name: str) -> None:
    want = getattr(np.linalg, name)(*LINALG[name])
    got = getattr(gpu.linalg, name)(*map(gpu.asarray, LINALG[name]))
    same(got, tuple(want) if isinstance(want, tuple) else want)


@pytest.mark.parametrize("name", ["fft", "rfft", "irfft", "fft2", "fftn", "fftshift"])
def test_fft(name: str) -> None:
    same(getattr(gpu.fft, name)(gpu.asarray(A)), getattr(np.fft, name)(A))


OPERATORS = {
    "add": (A, B),
    "sub": (A, 2),
    "mul": (0.5, A),
    "truediv": (1, A),
    "floordiv": (A, 0.2),
    "mod": (A, B),
    "pow": (2.0, A),
    "lshift": (I, 1),
    "and_": (I, 1),
    "or_": (I, I),
    "xor": (3, I),
    "matmul": (A, B.T),
    "lt": (A, B),
    "ge": (A, 0.5),
    "eq": (I, 1),
    "ne": (1, I),
    "iadd": (A, B),
    "imul": (A, 3),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators(name: str) -> None:
    left, right = OPERATORS[name]
    apply = getattr(operator, name)
    host = copy.copy(left)
    same(apply(_upload(left), _upload(right)), apply(host, right))


@pytest.mark.parametrize("name", ["neg", "pos", "abs", "invert"])
def test_unary_operators(name: str) -> None:
    same(getattr(operator, name)(gpu.asarray(I)), getattr(operator, name)(I))
    same(divmod(gpu.asarray(I), 2), divmod(I, 2))


def test_numpy_scalars_of_the_same_width_mix() -> None:
    same(np.float32(2) * gpu.asarray(A), np.float32(2) * A)
    same(gpu.asarray(A) + np.int8(1), A + np.int8(1))


def test_scalars_alone_give_0d_arrays() -> None:
    same(gpu.sqrt(4.0), np.float64(2))
    same(gpu.asarray(A)[0, 0] + 1, A[0, 0] + np.float32(1))


def test_division_by_zero_is_silent() -> None:
    got = 1 / gpu.zeros(2)
    assert np.isinf(got.get()).all()


def test_ufunc_methods() -> None:
    x = gpu.asarray(A)
    same(gpu.add.reduce(x, axis=1), A.sum(1))
    same(gpu.multiply.reduce(x), A.prod(0))
    same(gpu.add.accumulate(x, axis=1), A.cumsum(1))
    same(gpu.subtract.outer(x[0], x[1]), np.subtract.outer(A[0], A[1]))
    same(gpu.add(x, x, dtype="d"), np.add(A, A, dtype="d"))
    assert repr(gpu.add) == "<ufunc 'cupy_add'>"


def test_answers_about_arrays_stay_on_the_host() -> None:
    x = gpu.asarray(A)
    assert (gpu.shape(x), gpu.ndim(x), gpu.size(x), gpu.size(x, 0)) == ((3, 4), 2, 12, 3)
    assert gpu.result_type(x, 1.0) == np.float32
    assert gpu.can_cast(x.dtype, "d")
    assert gpu.may_share_memory(x, x[0]) is True
    assert gpu.get_array_module(x) is gpu
    assert gpu.get_array_module(A) is np
    assert gpu.get_array_module() is np


def test_pickle_and_deepcopy_keep_values() -> None:
    x = gpu.asarray(A)
    same(pickle.loads(pickle.dumps(x)), A)
    same(copy.deepcopy(x), A)
    same(copy.copy(x), A)


def test_empty_memory_has_values_no_one_expects() -> None:
    assert np.isnan(gpu.empty(3).get()).all()
    assert (gpu.empty_like(gpu.zeros(3, "i1")).get() == 127).all()
    assert gpu.ndarray((2,), bool).get().all()


def test_arrays_from_sequences() -> None:
    same(gpu.asarray([1.5, 2]), np.array([1.5, 2]))
    same(gpu.asarray([[gpu.asarray(1), gpu.asarray(2)]]), np.array([[1, 2]]))
    same(gpu.array([A, B], dtype="d"), np.array([A, B], dtype="d"))
    same(gpu.array(3, ndmin=2), np.array(3, ndmin=2))
    same(gpu.ascontiguousarray(gpu.asarray(A).T), A.T)
    assert gpu.asfortranarray(gpu.asarray(A)).flags.f_contiguous
    x = gpu.asarray(A)
    assert gpu.asarray(x) is x
    assert gpu.copy(x) is not x


def test_text_forms() -> None:
    x = gpu.asarray(A[:1, :2])
    assert repr(x) == repr(A[:1, :2])
    assert str(x) == str(A[:1, :2])
    assert f"{x[0, 0]:.2f}" == f"{A[0, 0]:.2f}"


def test_host_values() -> None:
    one = gpu.asarray(3)
    assert (int(one), float(one), complex(one), bool(one), one.item()) == (3, 3.0, 3 + 0j, True, 3)
    assert gpu.asarray(I).tolist() == I.tolist()
    assert gpu.asarray(I).tobytes() == I.tobytes()
    np.testing.assert_array_equal(gpu.asnumpy(gpu.asarray(A)), A)
    np.testing.assert_array_equal(gpu.asnumpy(A), A)
    assert 2 in gpu.asarray([1, 2])
