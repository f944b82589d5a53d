"""Operations that load on first use: the file that holds each, as function and as method.

An in-place form stands in the file of its operation: `name_ = in_place("name_", name)`.
"""

from __future__ import annotations

# File in this folder: the names that `minitorch` exports from it.
FUNCTIONS: dict[str, str] = {
    "medians": "median nanmedian",
    "complex_numbers": "adjoint angle complex conj conj_physical imag is_complex is_conj isreal "
    "polar real resolve_conj sgn view_as_complex view_as_real",
    "maths": "addcdiv addcmul copysign deg2rad fix float_power fmax fmin frac frac_ frexp gcd "
    "greater greater_equal heaviside hypot isin isneginf isposinf lcm lerp ldexp less less_equal "
    "logaddexp2 logit nextafter nan_to_num nan_to_num_ not_equal positive rad2deg rsub sinc xlogy "
    "arccosh arcsinh arctanh deg2rad_ fix_ gcd_ lcm_ ldexp_ logit_ rad2deg_ sinc_ xlogy_",
    "special_functions": "digamma erfc erfc_ erfinv i0 i0_ lgamma mvlgamma polygamma",
    "layout": "as_strided atleast_1d atleast_2d atleast_3d block_diag cartesian_prod column_stack "
    "combinations diag_embed diagflat dsplit dstack fliplr flipud hsplit repeat_interleave rot90 "
    "row_stack split_with_sizes swapdims tensor_split tril_indices triu_indices unravel_index "
    "vsplit narrow_copy",
    "scattering": "argwhere diagonal_scatter index_add index_copy index_fill index_put index_put_ "
    "index_reduce kthvalue masked_scatter msort put scatter_reduce select_scatter slice_scatter "
    "take",
    "statistics": "aminmax bincount cumulative_trapezoid diff dist histc histogram mode nanmean "
    "nanquantile nansum quantile renorm trapezoid trapz",
    "scans": "cummax cummin logcumsumexp",
    "searching": "bucketize searchsorted unique_consecutive",
    "forms": "abs_ acos_ acosh_ arccos_ arccosh_ arcsin_ arcsinh_ arctan_ arctanh_ asin_ asinh_ "
    "atan_ atanh_ ceil_ clamp_ clamp_max_ clamp_min_ clip_ cos_ cosh_ erf_ exp2_ exp_ expm1_ "
    "fill_ floor_ log10_ log1p_ log2_ log_ neg_ negative_ reciprocal_ relu_ round_ rsqrt_ "
    "sigmoid_ sin_ sinh_ sqrt_ square_ tan_ tanh_ trunc_ zero_ resize_as_",
    "making": "asarray binomial empty_permuted empty_strided frombuffer poisson range "
    "scalar_tensor vander",
    "inspecting": "can_cast detach detach_ get_device is_inference is_nonzero is_same_size "
    "is_signed is_storage typename BFloat16Tensor BoolTensor ByteTensor CharTensor DoubleTensor "
    "FloatTensor HalfTensor IntTensor LongTensor ShortTensor",
    "contraction": "addbmm addmv addr chain_matmul einsum ger inner kron tensordot vdot",
    "assembly": "cdist corrcoef cov cross trace",
    "solving": "cholesky_inverse cholesky_solve det inverse logdet pinverse slogdet "
    "triangular_solve",
    "decomposition": "cholesky",
    "old_decompositions": "lu_solve qr svd",
    "matrix_functions": "matrix_exp matrix_power",
    "spectrogram": "istft stft",
    "windows": "bartlett_window blackman_window hamming_window hann_window kaiser_window",
}

# File in this folder: the names that are methods of Tensor.
METHODS: dict[str, str] = {
    "medians": "median nanmedian",
    "complex_numbers": "adjoint angle cdouble cfloat conj conj_physical is_conj isreal "
    "resolve_conj sgn",
    "maths": "addcdiv addcdiv_ addcmul addcmul_ lerp lerp_ copysign copysign_ deg2rad deg2rad_ "
    "fix fix_ float_power float_power_ fmax fmin frac frac_ frexp gcd gcd_ greater greater_equal "
    "heaviside heaviside_ hypot hypot_ isneginf isposinf lcm lcm_ ldexp ldexp_ less less_equal "
    "logaddexp2 logit logit_ nextafter nextafter_ nan_to_num nan_to_num_ not_equal positive "
    "rad2deg rad2deg_ sgn_ sinc sinc_ xlogy xlogy_ arccosh arcsinh arctanh",
    "special_functions": "digamma digamma_ erfc erfc_ erfinv erfinv_ i0 i0_ lgamma lgamma_ "
    "mvlgamma mvlgamma_ polygamma polygamma_",
    "layout": "as_strided diag_embed diagflat dsplit fliplr flipud hsplit repeat_interleave rot90 "
    "split_with_sizes storage_offset swapdims tensor_split unfold vsplit narrow_copy",
    "scattering": "argwhere diagonal_scatter index_add index_add_ index_copy index_copy_ "
    "index_fill index_fill_ index_put index_put_ index_reduce index_reduce_ kthvalue "
    "masked_scatter masked_scatter_ msort put put_ scatter_reduce scatter_reduce_ select_scatter "
    "slice_scatter take",
    "statistics": "aminmax bincount diff dist histc histogram mode nanmean nanquantile nansum "
    "quantile renorm renorm_",
    "scans": "cummax cummin logcumsumexp",
    "searching": "unique_consecutive",
    "forms": "absolute_ acos_ acosh_ arccos_ arccosh_ arcsin_ arcsinh_ arctan2_ arctan_ arctanh_ "
    "asin_ asinh_ atan2_ atan_ atanh_ bitwise_and_ bitwise_left_shift_ bitwise_not_ bitwise_or_ "
    "bitwise_right_shift_ bitwise_xor_ cosh_ cumprod_ cumsum_ divide_ eq_ erf_ exp2_ expm1_ "
    "fill_diagonal_ floor_divide_ fmod_ ge_ greater_ greater_equal_ gt_ le_ less_ less_equal_ "
    "log10_ log1p_ log2_ logical_and_ logical_or_ logical_xor_ lt_ map_ multiply_ ne_ negative_ "
    "not_equal_ remainder_ resize_ resize_as_ set_ sign_ sinh_ squeeze_ subtract_ swapaxes_ "
    "swapdims_ t_ tan_ transpose_ true_divide_ trunc_ unsqueeze_",
    "making": "cauchy_ geometric_ log_normal_",
    "inspecting": "is_inference is_nonzero is_pinned is_same_size is_signed ndimension new "
    "new_empty_strided share_memory_",
    "contraction": "addbmm addmv addr ger inner kron vdot",
    "assembly": "corrcoef cov cross trace",
    "solving": "cholesky_inverse cholesky_solve det inverse logdet pinverse slogdet "
    "triangular_solve",
    "decomposition": "cholesky",
    "old_decompositions": "lu_solve qr svd",
    "matrix_functions": "matrix_exp matrix_power",
    "spectrogram": "istft stft",
}

METHOD_HOLDER = {name: file for file, names in METHODS.items() for name in names.split()}
