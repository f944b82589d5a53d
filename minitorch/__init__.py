"""minitorch: an eager autograd framework on NumPy and CuPy, and a Trainer above it."""

import builtins
import importlib
from math import e, inf, nan, pi

from . import autograd, dtypes
from . import tensor as _tensor  # first, since the function of that name takes its place below
from .autograd import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    no_grad,
    set_grad_enabled,
)
from .device import device
from .dtypes import (
    bfloat16,
    bool_,
    complex64,
    complex128,
    dtype,
    finfo,
    float16,
    float32,
    float64,
    get_default_dtype,
    iinfo,
    int8,
    int16,
    int32,
    int64,
    promote_types,
    result_type,
    set_default_dtype,
    uint8,
)
from .errors import (
    ArgumentError,
    CheckpointError,
    DataError,
    DeviceError,
    DtypeError,
    GraphError,
    ShapeError,
    TrainerError,
)
from .ops.creation import (
    arange,
    as_tensor,
    empty,
    empty_like,
    eye,
    from_dlpack,
    from_numpy,
    full,
    full_like,
    linspace,
    logspace,
    meshgrid,
    ones,
    ones_like,
    tensor,
    zeros,
    zeros_like,
)
from .ops.elementwise import (
    abs,
    absolute,
    acos,
    acosh,
    add,
    addcdiv,
    addcmul,
    allclose,
    arccos,
    arcsin,
    arctan,
    arctan2,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    bitwise_and,
    bitwise_left_shift,
    bitwise_not,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    ceil,
    clamp,
    clamp_max,
    clamp_min,
    clip,
    clone,
    cos,
    cosh,
    divide,
    eq,
    equal,
    erf,
    exp,
    exp2,
    expm1,
    floor,
    floor_divide,
    fmod,
    frac,
    ge,
    gt,
    isclose,
    isfinite,
    isinf,
    isnan,
    le,
    lerp,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    lt,
    masked_fill,
    maximum,
    minimum,
    mul,
    multiply,
    nan_to_num,
    ne,
    neg,
    negative,
    pow,
    reciprocal,
    relu,
    remainder,
    round,
    rsqrt,
    sigmoid,
    sign,
    signbit,
    sin,
    sinh,
    sqrt,
    square,
    sub,
    subtract,
    tan,
    tanh,
    true_divide,
    trunc,
    where,
)
from .ops.elementwise import divide as div
from .ops.indexing import (
    argsort,
    diag,
    diagonal,
    gather,
    index_select,
    masked_select,
    nonzero,
    scatter,
    scatter_add,
    sort,
    take_along_dim,
    topk,
    unique,
)
from .ops.linalg import addmm, baddbmm, bmm, dot, matmul, mm, mv, outer
from .ops.reduction import (
    all,
    amax,
    amin,
    any,
    argmax,
    argmin,
    bincount,
    count_nonzero,
    cumprod,
    cumsum,
    log_softmax,
    logsumexp,
    max,
    mean,
    median,
    min,
    norm,
    prod,
    softmax,
    std,
    std_mean,
    sum,
    var,
    var_mean,
)
from .ops.sampling import (
    bernoulli,
    multinomial,
    normal,
    rand,
    rand_like,
    randint,
    randint_like,
    randn,
    randn_like,
    randperm,
)
from .ops.shape import (
    broadcast_shapes,
    broadcast_tensors,
    broadcast_to,
    cat,
    chunk,
    concat,
    concatenate,
    flatten,
    flip,
    hstack,
    moveaxis,
    movedim,
    narrow,
    permute,
    ravel,
    reshape,
    roll,
    select,
    split,
    squeeze,
    stack,
    swapaxes,
    t,
    tile,
    transpose,
    tril,
    triu,
    unbind,
    unflatten,
    unsqueeze,
    vstack,
)
from .printing import set_printoptions
from .random import Generator, get_rng_state, initial_seed, manual_seed, seed, set_rng_state
from .tensor import Parameter, Size, Tensor

float, double, half, long, int, short = float32, float64, float16, int64, int32, int16
bool = bool_

_PACKAGES = frozenset(
    "amp autograd backend callbacks data io kernels loggers nn optim trainer utils".split()
)
_FUNCTIONS = {
    "load": "io",
    "save": "io",
    "autocast": "amp",
}


def is_tensor(value: object) -> builtins.bool:
    """True if `value` is a Tensor."""
    return isinstance(value, Tensor)


def is_floating_point(input: Tensor) -> builtins.bool:
    """True if the dtype of `input` is floating."""
    return input.is_floating_point()


def numel(input: Tensor) -> builtins.int:
    """The number of elements of `input`."""
    return input.numel()


def __getattr__(name: str) -> object:
    if name in _PACKAGES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _FUNCTIONS:
        return getattr(importlib.import_module(f"{__name__}.{_FUNCTIONS[name]}"), name)
    if name == "__version__":
        return importlib.import_module("importlib.metadata").version("minitorch-trainer")
    raise AttributeError(f"module 'minitorch' has no attribute {name!r}")
