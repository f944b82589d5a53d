"""Probability distributions, with PyTorch's names, shapes and numbers."""

from ..lazy import lazy

_HOLDERS = {
    "bernoulli": "Bernoulli",
    "beta": "Beta",
    "binomial": "Binomial",
    "categorical": "Categorical",
    "cauchy": "Cauchy",
    "chi2": "Chi2",
    "dirichlet": "Dirichlet",
    "distribution": "Distribution",
    "exponential": "Exponential",
    "gamma": "Gamma",
    "geometric": "Geometric",
    "gumbel": "Gumbel",
    "half_cauchy": "HalfCauchy",
    "half_normal": "HalfNormal",
    "independent": "Independent",
    "inverse_gamma": "InverseGamma",
    "kl": "kl_divergence register_kl",
    "laplace": "Laplace",
    "log_normal": "LogNormal",
    "mixture_same_family": "MixtureSameFamily",
    "multinomial": "Multinomial",
    "multivariate_normal": "MultivariateNormal",
    "negative_binomial": "NegativeBinomial",
    "normal": "Normal",
    "one_hot_categorical": "OneHotCategorical OneHotCategoricalStraightThrough",
    "pareto": "Pareto",
    "poisson": "Poisson",
    "relaxed_bernoulli": "RelaxedBernoulli",
    "relaxed_categorical": "RelaxedOneHotCategorical",
    "studentT": "StudentT",
    "transformed_distribution": "TransformedDistribution",
    "transforms": "AbsTransform AffineTransform ComposeTransform ExpTransform "
    "IndependentTransform PowerTransform ReshapeTransform SigmoidTransform SoftmaxTransform "
    "SoftplusTransform StickBreakingTransform TanhTransform Transform identity_transform",
    "uniform": "Uniform",
    "von_mises": "VonMises",
    "weibull": "Weibull",
}
__getattr__, __dir__ = lazy(__name__, _HOLDERS, ["constraints", "transforms", "kl", "utils"])
