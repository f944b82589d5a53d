"""What CuPy 13 has, as tables: its functions with their arguments, its ufuncs, its constants.

A line of `FUNCTIONS` or `METHODS` is `flags name arguments / options`. Arguments before `/` are
given to NumPy by position. `*name` must be a device array, `&name` a sequence of them.
Flags: `!` waits for the device, `~` gives views and needs no kernel, `=` answers on the host.
"""

from __future__ import annotations

from dataclasses import dataclass

_CREATION = """
arange start stop step / dtype
eye N / M k dtype order
identity n / dtype
indices dimensions / dtype
linspace start stop num / endpoint retstep dtype axis
logspace start stop num / endpoint base dtype axis
ones shape / dtype order
zeros shape / dtype order
full shape fill_value / dtype order
ones_like *a / dtype order subok shape
zeros_like *a / dtype order subok shape
full_like *a fill_value / dtype order subok shape
tri N M k / dtype
tril *m / k
triu *m / k
tril_indices n k m /
triu_indices n k m /
diag *v / k
diagflat *v / k
"""

_SHAPE = """
~ reshape *a newshape / order
~ ravel *a / order
~ transpose *a / axes
~ swapaxes *a axis1 axis2 /
~ moveaxis *a source destination /
~ rollaxis *a axis / start
~ expand_dims *a axis /
~ squeeze *a / axis
~ broadcast_to *array shape /
~ diagonal *a / offset axis1 axis2
~ flip *a / axis
~ fliplr *a /
~ flipud *a /
~ rot90 *a / k axes
~ split *ary indices_or_sections / axis
~ array_split *ary indices_or_sections / axis
~ hsplit *ary indices_or_sections /
~ vsplit *ary indices_or_sections /
roll *a shift / axis
tile *A reps /
repeat *a repeats / axis
pad *array pad_width / mode constant_values end_values stat_length reflect_type
concatenate &tup / axis out dtype casting
stack &tup / axis out dtype casting
hstack &tup / dtype casting
vstack &tup / dtype casting
dstack &tup /
column_stack &tup /
append *arr *values / axis
delete *arr indices / axis
"""

_CHOICE = """
where *condition x y /
select &condlist &choicelist / default
take_along_axis *a *indices / axis
fill_diagonal *a val / wrap
argmax *a / axis dtype out keepdims
argmin *a / axis dtype out keepdims
nanargmax *a / axis dtype out keepdims
nanargmin *a / axis dtype out keepdims
partition *a kth / axis
argpartition *a kth / axis
sort *a / axis kind
argsort *a / axis kind
lexsort *keys /
searchsorted *a v / side sorter
digitize *x *bins / right
! nonzero *a /
! flatnonzero *a /
! argwhere *a /
! extract *condition *a /
! compress *condition *a / axis out
! unique *ar / return_index return_inverse return_counts axis equal_nan
! bincount *x / weights minlength
! choose *a choices / out mode
! histogram *x / bins range weights density
! intersect1d *arr1 *arr2 / assume_unique return_indices
! union1d *arr1 *arr2 /
! setdiff1d *ar1 *ar2 / assume_unique
! average *a / axis weights returned keepdims
isin *element *test_elements / assume_unique invert
count_nonzero *a / axis
"""

_REDUCTIONS = """
all *a / axis out keepdims
any *a / axis out keepdims
amax *a / axis out keepdims
amin *a / axis out keepdims
max *a / axis out keepdims
min *a / axis out keepdims
ptp *a / axis out keepdims
sum *a / axis dtype out keepdims
prod *a / axis dtype out keepdims
mean *a / axis dtype out keepdims
std *a / axis dtype out ddof keepdims
var *a / axis dtype out ddof keepdims
cumsum *a / axis dtype out
cumprod *a / axis dtype out
nansum *a / axis dtype out keepdims
nanprod *a / axis dtype out keepdims
nanmean *a / axis dtype out keepdims
nanstd *a / axis dtype out ddof keepdims
nanvar *a / axis dtype out ddof keepdims
nanmax *a / axis out keepdims
nanmin *a / axis out keepdims
nancumsum *a / axis dtype out
nancumprod *a / axis dtype out
median *a / axis out overwrite_input keepdims
nanmedian *a / axis out overwrite_input keepdims
percentile *a q / axis out overwrite_input method keepdims
quantile *a q / axis out overwrite_input method keepdims
trace *a / offset axis1 axis2 dtype out
diff *a / n axis prepend append
gradient *f / axis edge_order
cov *a / y rowvar bias ddof fweights aweights dtype
corrcoef *a / y rowvar bias ddof dtype
"""

_MATHS = """
around *a / decimals out
round *a / decimals out
clip *a a_min a_max / out
nan_to_num *x / copy nan posinf neginf
angle *z / deg
real *val /
imag *val /
sinc *x /
i0 *x /
isclose a b / rtol atol equal_nan
allclose a b / rtol atol equal_nan
array_equal *a1 *a2 / equal_nan
interp *x *xp *fp / left right period
convolve *a *v / mode
correlate *a *v / mode
polyval *p *x /
dot a b / out
vdot *a *b /
inner a b /
outer a b / out
tensordot *a *b / axes
kron a b /
cross *a *b / axisa axisb axisc axis
matmul *x1 *x2 / out dtype casting axes axis
"""

_HOST_ANSWERS = """
= shape a /
= ndim a /
= iscomplexobj x /
= isrealobj x /
= isfortran a /
= isscalar element /
= may_share_memory a b / max_work
= shares_memory a b / max_work
= can_cast from_ to / casting
"""

FUNCTIONS_TEXT = _CREATION + _SHAPE + _CHOICE + _REDUCTIONS + _MATHS + _HOST_ANSWERS

VARIADIC = (
    "atleast_1d atleast_2d atleast_3d broadcast_arrays einsum meshgrid ix_ result_type common_type"
).split()

METHODS_TEXT = """
all / axis out keepdims
any / axis out keepdims
max / axis out keepdims
min / axis out keepdims
ptp / axis out keepdims
argmax / axis out dtype keepdims
argmin / axis out dtype keepdims
sum / axis dtype out keepdims
prod / axis dtype out keepdims
mean / axis dtype out keepdims
std / axis dtype out ddof keepdims
var / axis dtype out ddof keepdims
cumsum / axis dtype out
cumprod / axis dtype out
clip min max / out
round / decimals out
trace / offset axis1 axis2 dtype out
conj /
conjugate /
searchsorted v / side sorter
argsort / axis
sort / axis
argpartition kth / axis
partition kth / axis
repeat repeats / axis
flatten / order
dot *b / out
! nonzero /
! compress *condition / axis out
! choose choices / out mode
~ ravel / order
~ squeeze / axis
~ swapaxes axis1 axis2 /
~ diagonal / offset axis1 axis2
"""

UFUNCS = (
    "abs absolute add arccos arccosh arcsin arcsinh arctan arctan2 arctanh bitwise_and bitwise_not "
    "bitwise_or bitwise_xor cbrt ceil conj conjugate copysign cos cosh deg2rad degrees divide "
    "divmod equal exp exp2 expm1 fabs float_power floor floor_divide fmax fmin fmod frexp gcd "
    "greater greater_equal heaviside hypot invert isfinite isinf isnan lcm ldexp left_shift less "
    "less_equal log log10 log1p log2 logaddexp logaddexp2 logical_and logical_not logical_or "
    "logical_xor maximum minimum mod modf multiply negative nextafter not_equal positive power "
    "rad2deg radians reciprocal remainder right_shift rint sign signbit sin sinh sqrt square "
    "subtract tan tanh true_divide trunc"
).split()

FROM_NUMPY = (
    "bool_ broadcast_shapes byte cdouble complex128 complex64 complexfloating csingle double dtype "
    "e euler_gamma finfo float16 float32 float64 floating generic get_printoptions half iinfo "
    "index_exp inexact inf int16 int32 int64 int8 int_ intc integer intp issubdtype iterable "
    "longlong mintypecode nan ndindex newaxis number pi printoptions promote_types s_ "
    "set_printoptions short signedinteger single typename ubyte uint uint16 uint32 uint64 uint8 "
    "uintc uintp ulonglong unsignedinteger ushort"
).split()

LEFT_OUT = (
    "random sparse testing lib polynomial RawKernel RawModule ElementwiseKernel ReductionKernel "
    "fuse memoize get_default_pinned_memory_pool load save savez "
    "apply_along_axis vectorize piecewise histogram2d histogramdd mgrid ogrid r_ c_ vander poly1d "
    "trapz msort fix put putmask place packbits unpackbits unravel_index ravel_multi_index "
    "trim_zeros unwrap ediff1d array_repr array_str broadcast"
).split()

LINALG_TEXT = """
cholesky *a /
det *a /
eigh *a / UPLO
eigvalsh *a / UPLO
inv *a /
lstsq *a *b / rcond
matrix_power *M n /
matrix_rank *M / tol
norm *x / ord axis keepdims
pinv *a / rcond
qr *a / mode
slogdet *a /
solve *a *b /
svd *a / full_matrices compute_uv
tensorinv *a / ind
tensorsolve *a *b / axes
"""

FFT_TEXT = (
    "".join(
        f"{name} *a / {'n axis' if '2' not in name and not name.endswith('n') else 's axes'} norm\n"
        for name in (
            "fft ifft rfft irfft hfft ihfft fft2 ifft2 rfft2 irfft2 fftn ifftn rfftn irfftn"
        ).split()
    )
    + "fftfreq n / d\nrfftfreq n / d\nfftshift *x / axes\nifftshift *x / axes\n"
)


@dataclass(frozen=True)
class Signature:
    """The arguments of one CuPy function."""

    name: str
    positional: tuple[str, ...]
    options: tuple[str, ...]
    arrays: frozenset[str]
    sequences: frozenset[str]
    waits: bool
    views: bool
    on_host: bool


def parse(text: str) -> dict[str, Signature]:
    """The signatures of a table, by name."""
    return {one.name: one for one in map(_parse_line, filter(str.strip, text.splitlines()))}


def _parse_line(line: str) -> Signature:
    words = line.split()
    flags = words.pop(0) if words[0] in "!~=" else ""
    name, *rest = words
    cut = rest.index("/")
    plain = [word.lstrip("*&") for word in rest]
    return Signature(
        name,
        tuple(plain[:cut]),
        tuple(plain[cut + 1 :]),
        frozenset(word[1:] for word in rest if word[0] == "*"),
        frozenset(word[1:] for word in rest if word[0] == "&"),
        flags == "!",
        flags == "~",
        flags == "=",
    )


FUNCTIONS = parse(FUNCTIONS_TEXT)
METHODS = parse(METHODS_TEXT)
LINALG = parse(LINALG_TEXT)
FFT = parse(FFT_TEXT)
