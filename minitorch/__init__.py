"""minitorch: an eager autograd framework on NumPy and CuPy, and a Trainer above it."""

import builtins
import importlib
import warnings
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
from .device import device, get_default_device, set_default_device
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
    PitfallWarning,
    ShapeError,
    TrainerError,
)
from .lazy import lazy
from .ops import late
from .ops.comparison import (
    allclose,
    bitwise_and,
    bitwise_left_shift,
    bitwise_not,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    eq,
    equal,
    ge,
    gt,
    isclose,
    isfinite,
    isinf,
    isnan,
    le,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    lt,
    ne,
    signbit,
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
from .ops.cumulative import cumprod, cumsum
from .ops.elementwise import (
    abs,
    absolute,
    acos,
    acosh,
    add,
    arccos,
    arcsin,
    arctan,
    arctan2,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    ceil,
    clamp,
    clamp_max,
    clamp_min,
    clip,
    clone,
    cos,
    cosh,
    divide,
    erf,
    exp,
    exp2,
    expm1,
    floor,
    floor_divide,
    fmod,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
    masked_fill,
    maximum,
    minimum,
    mul,
    multiply,
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
    gather,
    index_select,
    masked_select,
    nonzero,
    scatter,
    scatter_add,
    take_along_dim,
)
from .ops.joining import (
    cat,
    chunk,
    concat,
    concatenate,
    hstack,
    narrow,
    select,
    split,
    stack,
    unbind,
    vstack,
)
from .ops.linalg import addmm, baddbmm, bmm, dot, matmul, mm, mv, outer
from .ops.ordering import argsort, diag, diagonal, sort, topk, unique
from .ops.reduction import (
    all,
    amax,
    amin,
    any,
    argmax,
    argmin,
    count_nonzero,
    max,
    mean,
    min,
    norm,
    prod,
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
    flatten,
    flip,
    moveaxis,
    movedim,
    permute,
    ravel,
    reshape,
    roll,
    squeeze,
    swapaxes,
    t,
    tile,
    transpose,
    tril,
    triu,
    unflatten,
    unsqueeze,
)
from .ops.softmax import log_softmax, logsumexp, softmax
from .printing import set_printoptions
from .random import Generator, get_rng_state, initial_seed, manual_seed, seed, set_rng_state
from .tensor import Parameter, Size, Tensor

float, double, half, long, int, short = float32, float64, float16, int64, int32, int16
cfloat, cdouble = complex64, complex128
bool = bool_

# NumPy's notes on overflow and NaN inside of operations; PyTorch gives none.
warnings.filterwarnings(
    "ignore",
    r"(divide by zero|invalid value|overflow|underflow) encountered",
    RuntimeWarning,
    r"minitorch\.",
)

_HOLDERS = {
    "io": "load save",
    "layouts": "channels_last channels_last_3d contiguous_format layout memory_format "
    "preserve_format strided",
    "amp": "autocast is_autocast_enabled",
    "func.mapping": "vmap",
    "settings": "are_deterministic_algorithms_enabled get_float32_matmul_precision "
    "is_deterministic_algorithms_warn_only_enabled set_float32_matmul_precision "
    "use_deterministic_algorithms",
    "checks": "intended",
    "compiler": "compile",
    "kernels.threads": "get_num_threads set_num_threads",
    "nn.functional": "bilinear celu celu_ dropout hardshrink prelu rrelu rrelu_ selu selu_ "
    "threshold threshold_",
    "nn.functional.conv": "conv1d conv2d conv3d",
    "nn.functional.norm": "cosine_similarity group_norm layer_norm rms_norm",
    "nn.functional.pool": "adaptive_avg_pool1d avg_pool1d max_pool1d max_pool2d max_pool3d",
    "nn.functional.transposed": "conv_transpose1d conv_transpose2d conv_transpose3d",
    "nn.functional.vision": "channel_shuffle pixel_shuffle pixel_unshuffle",
    "nn.functional.recurrent": "gru gru_cell lstm lstm_cell rnn_relu rnn_relu_cell rnn_tanh "
    "rnn_tanh_cell",
    "nn.functional.similarity": "pairwise_distance pdist",
    **{f"ops.{file}": names for file, names in late.FUNCTIONS.items()},
}
_PACKAGES = [
    "amp",
    "autograd",
    "backend",
    "backends",
    "callbacks",
    "compiler",
    "cuda",
    "data",
    "distributions",
    "distributed",
    "fft",
    "func",
    "hub",
    "io",
    "jit",
    "kernels",
    "linalg",
    "loggers",
    "metrics",
    "models",
    "nn",
    "onnx",
    "optim",
    "profiler",
    "pytree",
    "serialization",
    "special",
    "trainer",
    "types",
    "utils",
    "version",
]
_load, __dir__ = lazy(__name__, _HOLDERS, _PACKAGES)


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
    if name == "__version__":
        return importlib.import_module("importlib.metadata").version("minitorch-trainer")
    return _load(name)
