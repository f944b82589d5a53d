"""Wrong calls of layers and functions: each gets an error that states rule, value and fix."""

import pytest

import minitorch as mt
from minitorch import nn
from minitorch.nn import functional as F

X, IMAGE = mt.ones(2, 3), mt.ones(2, 3, 8, 8)
W = mt.ones(4, 3, 3, 3)
SHAPE, DTYPE, VALUE = mt.ShapeError, mt.DtypeError, mt.ArgumentError
CLASSES = mt.tensor([0, 2])


def softmaxed():
    return F.softmax(mt.ones(2, 3, requires_grad=True), 1)


WRONG = [
    # linear maps and embeddings
    ("linear features", lambda: nn.Linear(4, 2)(X), SHAPE, "must have 4 features"),
    ("linear list", lambda: nn.Linear(3, 2)([1.0, 2.0, 3.0]), TypeError, "must be a Tensor"),
    ("linear dtype", lambda: nn.Linear(3, 2)(X.double()), DTYPE, "one dtype"),
    ("linear size", lambda: nn.Linear(0, 2), VALUE, "in_features must be a whole number"),
    ("linear size kind", lambda: nn.Linear(3, 2.0), VALUE, "Got 2.0"),
    ("bilinear size", lambda: nn.Bilinear(0, 2, 1), VALUE, "in1_features"),
    ("embedding dtype", lambda: nn.Embedding(5, 3)(X), DTYPE, "whole numbers"),
    ("embedding high", lambda: nn.Embedding(5, 3)(mt.tensor([5])), IndexError, "from 0 to 4"),
    ("embedding low", lambda: nn.Embedding(5, 3)(mt.tensor([-1])), IndexError, "-1"),
    ("embedding padding", lambda: nn.Embedding(5, 3, padding_idx=5), VALUE, "padding_idx"),
    (
        "embedding F padding",
        lambda: F.embedding(CLASSES, mt.ones(5, 3), padding_idx=9),
        VALUE,
        "padding_idx",
    ),
    ("embedding weight", lambda: F.embedding(CLASSES, mt.ones(5)), SHAPE, "[rows, width]"),
    ("dropout p", lambda: nn.Dropout(1.5), VALUE, "from 0 to 1"),
    ("dropout F p", lambda: F.dropout(X, -0.1), VALUE, "from 0 to 1"),
    ("dropout alpha p", lambda: F.alpha_dropout(X, 2, True), VALUE, "from 0 to 1"),
    ("dropout dtype", lambda: F.dropout(CLASSES), DTYPE, "floating"),
    ("dropout axes", lambda: F.dropout2d(X), SHAPE, "4 axes"),
    # convolution
    ("conv channels", lambda: F.conv2d(mt.ones(2, 8, 8, 3), W), SHAPE, "permute(0, 3, 1, 2)"),
    ("conv axes", lambda: F.conv2d(X, W), SHAPE, "NCHW or CHW"),
    ("conv1d axes", lambda: F.conv1d(IMAGE, mt.ones(4, 3, 3)), SHAPE, "NCL or CL"),
    ("conv weight", lambda: F.conv2d(IMAGE, mt.ones(4, 3, 3)), SHAPE, "weight must have the axes"),
    ("conv bias", lambda: F.conv2d(IMAGE, W, mt.ones(3)), SHAPE, "bias must have the shape (4,)"),
    ("conv groups", lambda: F.conv2d(IMAGE, W, groups=3), VALUE, "groups must divide"),
    ("conv dtype", lambda: F.conv2d(IMAGE.double(), W), DTYPE, "one floating dtype"),
    ("conv large", lambda: F.conv2d(mt.ones(1, 3, 2, 2), W), SHAPE, "must fit"),
    ("conv stride", lambda: F.conv2d(IMAGE, W, stride=0), VALUE, "stride must be"),
    ("conv stride 3", lambda: F.conv2d(IMAGE, W, stride=(1, 1, 1)), VALUE, "or 2 of them"),
    ("conv padding", lambda: F.conv2d(IMAGE, W, padding=-1), VALUE, "at least 0"),
    ("conv padding word", lambda: F.conv2d(IMAGE, W, padding="full"), VALUE, "'valid' or 'same'"),
    ("conv same", lambda: F.conv2d(IMAGE, W, stride=2, padding="same"), VALUE, "needs stride 1"),
    ("Conv same", lambda: nn.Conv2d(3, 4, 3, 2, "same"), VALUE, "needs stride 1"),
    ("Conv word", lambda: nn.Conv2d(3, 4, 3, 1, "full"), VALUE, "'valid' or 'same'"),
    ("Conv groups", lambda: nn.Conv2d(3, 4, 3, groups=2), VALUE, "groups must divide"),
    ("Conv mode", lambda: nn.Conv2d(3, 4, 3, padding_mode="zero"), VALUE, "padding_mode"),
    ("Conv kernel", lambda: nn.Conv2d(3, 4, 1.5), VALUE, "kernel_size"),
    ("unfold large", lambda: F.unfold(IMAGE, 9), SHAPE, "must fit"),
    ("fold shape", lambda: F.fold(mt.ones(1, 12, 5), 4, 2), SHAPE, "must be [N, C·4, 9]"),
    ("pad odd", lambda: F.pad(X, (1,)), VALUE, "pairs"),
    ("pad many", lambda: F.pad(X, (1,) * 6), SHAPE, "more widths than axes"),
    ("pad mode", lambda: F.pad(X, (1, 1), mode="edge"), VALUE, "'replicate'"),
    ("pad wide", lambda: F.pad(X, (3, 0), mode="reflect"), SHAPE, "at most 2"),
    # pooling
    ("pool axes", lambda: F.max_pool2d(X, 2), SHAPE, "NCHW or CHW"),
    ("pool large", lambda: F.max_pool2d(IMAGE, 9), SHAPE, "fewer layers"),
    ("pool padding", lambda: F.max_pool2d(IMAGE, 2, padding=2), VALUE, "half of the window"),
    ("pool kernel", lambda: F.avg_pool2d(IMAGE, 0), VALUE, "kernel_size"),
    ("pool dtype", lambda: F.avg_pool2d(IMAGE.long(), 2), DTYPE, "floating"),
    ("pool divisor", lambda: F.avg_pool2d(IMAGE, 2, divisor_override=0), VALUE, "not be 0"),
    ("adaptive size", lambda: F.adaptive_avg_pool2d(IMAGE, (1, 2, 3)), VALUE, "output_size"),
    ("adaptive negative", lambda: F.adaptive_avg_pool2d(IMAGE, -1), VALUE, "output_size"),
    ("adaptive empty", lambda: F.adaptive_avg_pool1d(mt.ones(2, 0), 1), SHAPE, "only the batch"),
    # normalisation
    ("norm one", lambda: nn.BatchNorm1d(3)(mt.ones(1, 3)), VALUE, "more than 1 value"),
    ("norm axes", lambda: nn.BatchNorm2d(3)(X), SHAPE, "must have 4 axes"),
    ("norm channels", lambda: nn.BatchNorm1d(4)(X), SHAPE, "num_features=3"),
    ("norm vector", lambda: F.batch_norm(mt.ones(3), None, None), SHAPE, "[N, C, …]"),
    ("norm dtype", lambda: F.batch_norm(X.long(), None, None), DTYPE, "floating"),
    ("norm statistics", lambda: F.batch_norm(X, None, None), VALUE, "running_mean"),
    ("instance", lambda: F.instance_norm(mt.ones(2, 3, 1)), VALUE, "more than 1 value"),
    ("layer shape", lambda: nn.LayerNorm(4)(X), SHAPE, "last axes of the input must be (4,)"),
    ("layer weight", lambda: F.layer_norm(X, (3,), mt.ones(2)), SHAPE, "weight must have"),
    ("layer dtype", lambda: F.layer_norm(X.long(), (3,)), DTYPE, "floating"),
    ("rms shape", lambda: nn.RMSNorm(4)(X), SHAPE, "rms_norm"),
    ("group", lambda: F.group_norm(IMAGE, 2), SHAPE, "divide the channels"),
    ("Group", lambda: nn.GroupNorm(2, 3), VALUE, "must divide num_channels"),
    ("cosine", lambda: F.cosine_similarity(X, X.double()), DTYPE, "one floating dtype"),
    # activations
    ("relu list", lambda: F.relu([1.0]), TypeError, "expected a Tensor"),
    ("gelu dtype", lambda: F.gelu(CLASSES), DTYPE, "must be floating"),
    ("gelu word", lambda: F.gelu(X, "exact"), VALUE, "'none' or 'tanh'"),
    ("glu odd", lambda: F.glu(X), SHAPE, "even length"),
    ("prelu", lambda: F.prelu(X, mt.ones(2)), SHAPE, "3 channels"),
    ("hardtanh", lambda: F.hardtanh(X, 1, 0), VALUE, "min_val"),
    ("softmax", lambda: F.softmax(X), VALUE, "dim must be named"),
    ("Softmax", lambda: nn.LogSoftmax()(X), VALUE, "dim must be named"),
    # losses
    ("mse shape", lambda: F.mse_loss(mt.ones(4, 1), mt.ones(4)), SHAPE, "input.squeeze(-1)"),
    ("l1 shape", lambda: nn.L1Loss()(mt.ones(4), mt.ones(4, 1)), SHAPE, "target.squeeze(-1)"),
    ("huber shape", lambda: F.huber_loss(X, mt.ones(3)), SHAPE, "does not broadcast"),
    ("smooth shape", lambda: F.smooth_l1_loss(X, mt.ones(3)), SHAPE, "f32[2,3] and f32[3]"),
    ("mse list", lambda: F.mse_loss(X, [1.0]), TypeError, "target must be a Tensor"),
    ("mse dtype", lambda: F.mse_loss(CLASSES, CLASSES), DTYPE, "floating"),
    ("mse weight", lambda: F.mse_loss(X, X, weight=mt.ones(3)), SHAPE, "weight must have"),
    ("reduction", lambda: F.mse_loss(X, X, reduction="avg"), VALUE, "'mean', 'sum' or 'none'"),
    ("Reduction", lambda: nn.MSELoss(reduction="batchmean"), VALUE, "'mean', 'sum' or 'none'"),
    ("beta", lambda: F.smooth_l1_loss(X, X, beta=-1), VALUE, "beta"),
    ("delta", lambda: F.huber_loss(X, X, delta=0), VALUE, "delta must be positive"),
    ("bce range", lambda: F.binary_cross_entropy(X * 2, X), VALUE, "from 0 to 1. Got 2 to 2"),
    ("bce nan", lambda: F.binary_cross_entropy(X * mt.nan, X), VALUE, "probabilities"),
    ("bce shape", lambda: F.binary_cross_entropy(X, mt.ones(3)), SHAPE, "does not broadcast"),
    (
        "bce weight",
        lambda: F.binary_cross_entropy(mt.ones(4), mt.ones(4), mt.ones(4, 1)),
        SHAPE,
        "Did you mean weight.squeeze(-1)?",
    ),
    (
        "bce logits weight",
        lambda: F.binary_cross_entropy_with_logits(mt.ones(4), mt.ones(4), mt.ones(4, 1)),
        SHAPE,
        "weight must have the shape of the input",
    ),
    (
        "bce pos_weight",
        lambda: F.binary_cross_entropy_with_logits(X, X, pos_weight=mt.ones(2)),
        SHAPE,
        "Got f32[2] and f32[2,3]. Reshape pos_weight.",
    ),
    (
        "bce logits sigmoid",
        lambda: F.binary_cross_entropy_with_logits(
            F.sigmoid(mt.ones(2, requires_grad=True)), mt.ones(2)
        ),
        VALUE,
        "Leave sigmoid away",
    ),
    (
        "bce logits dtype",
        lambda: F.binary_cross_entropy_with_logits(CLASSES, CLASSES),
        DTYPE,
        "floating",
    ),
    ("kl reduction", lambda: F.kl_div(X, X, reduction="avg"), VALUE, "'mean'"),
    ("gauss shape", lambda: F.gaussian_nll_loss(X, X, mt.ones(4)), SHAPE, "does not broadcast"),
    ("ce softmax", lambda: F.cross_entropy(softmaxed(), CLASSES), VALUE, "Leave softmax away"),
    ("nll softmax", lambda: F.nll_loss(softmaxed(), CLASSES), VALUE, "log_softmax instead"),
    ("ce high", lambda: F.cross_entropy(X, mt.tensor([1, 3])), VALUE, "Did you mean target - 1?"),
    ("ce low", lambda: F.cross_entropy(X, mt.tensor([-1, 0])), VALUE, "Got -1 to 0"),
    ("ce float", lambda: F.cross_entropy(X, mt.ones(2)), DTYPE, "target.long(), or probabilities"),
    ("ce bool", lambda: F.cross_entropy(X, mt.ones(2) > 0), DTYPE, "must be integers"),
    ("ce onehot", lambda: F.cross_entropy(X, X.long()), SHAPE, "target.argmax(1)"),
    ("ce column", lambda: F.cross_entropy(X, mt.tensor([[0], [1]])), SHAPE, "target.squeeze(-1)"),
    (
        "ce axis",
        lambda: F.cross_entropy(mt.ones(2, 5, 3), mt.zeros(2, 5).long()),
        SHAPE,
        "input.transpose(1, 2)",
    ),
    ("ce length", lambda: F.cross_entropy(X, mt.tensor([0])), SHAPE, "shape (2,)"),
    ("ce ignored", lambda: F.cross_entropy(X, mt.tensor([1, 1]), ignore_index=1), VALUE, "0/0"),
    ("ce weight", lambda: F.cross_entropy(X, CLASSES, mt.ones(2)), SHAPE, "3 classes"),
    ("ce smooth", lambda: F.cross_entropy(X, CLASSES, label_smoothing=2), VALUE, "from 0 to 1"),
    ("ce input", lambda: F.cross_entropy(X.long(), CLASSES), DTYPE, "[N, C, …]"),
    ("nll high", lambda: F.nll_loss(X, mt.tensor([0, 3])), VALUE, "from 0 to 2"),
    # containers and init
    ("Sequential class", lambda: nn.Sequential(nn.ReLU), TypeError, "ReLU() and not ReLU"),
    ("ModuleList", lambda: nn.ModuleList([1]), TypeError, "must be a Module"),
    ("ModuleList index", lambda: nn.ModuleList()[0], IndexError, "index must be"),
    ("ModuleDict", lambda: nn.ModuleDict({"a": F.relu}), TypeError, "must be a Module"),
    ("ModuleDict dot", lambda: nn.ModuleDict({"a.b": nn.ReLU()}), VALUE, "without '.'"),
    ("ModuleDict name", lambda: nn.ModuleDict({"pop": nn.ReLU()}), VALUE, "Choose another key"),
    ("ParameterList", lambda: nn.ParameterList([3]), TypeError, "nn.Parameter"),
    ("ParameterDict", lambda: nn.ParameterDict({"a": 3}), TypeError, "nn.Parameter"),
    ("gain", lambda: nn.init.calculate_gain("swish"), VALUE, "leaky_relu"),
    ("fan", lambda: nn.init.xavier_uniform_(mt.ones(3)), SHAPE, "at least 2 axes"),
    ("fan mode", lambda: nn.init.kaiming_normal_(X, mode="in"), VALUE, "'fan_in' or 'fan_out'"),
    ("std", lambda: nn.init.normal_(X.clone(), std=-1), VALUE, "std must not be negative"),
    ("trunc", lambda: nn.init.trunc_normal_(X.clone(), a=9, b=10), VALUE, "absolute values"),
    ("eye", lambda: nn.init.eye_(mt.ones(3)), SHAPE, "a matrix is needed"),
    ("dirac", lambda: nn.init.dirac_(X.clone()), SHAPE, "weight of a convolution"),
    ("orthogonal", lambda: nn.init.orthogonal_(mt.ones(3)), SHAPE, "2 axes"),
    ("sparse", lambda: nn.init.sparse_(mt.ones(3), 0.5), SHAPE, "a matrix is needed"),
]


@pytest.mark.parametrize(
    ("call", "kind", "text"), [w[1:] for w in WRONG], ids=[w[0] for w in WRONG]
)
def test_message(call, kind, text):
    with pytest.raises(kind) as caught:
        call()
    assert text in str(caught.value)


def test_a_target_of_ones_to_c_is_explained():
    with pytest.raises(mt.ArgumentError, match="from 0 to 2 for 3 classes"):
        F.cross_entropy(mt.ones(3, 3), mt.tensor([1, 2, 3]))


def test_sums_over_nothing_but_ignored_targets_are_0():
    target = mt.full((2,), -100)
    assert F.cross_entropy(X, target, reduction="sum").item() == 0
    assert F.cross_entropy(X, target, reduction="none").tolist() == [0, 0]
    assert F.nll_loss(X, target, reduction="sum").item() == 0


def test_ignored_rows_may_hold_nan():
    x = mt.tensor([[1.0, 2.0], [mt.nan, mt.inf]], requires_grad=True)
    loss = F.cross_entropy(x, mt.tensor([1, -100]))
    loss.backward()
    assert loss.isfinite().item()
    assert x.grad.tolist()[1] == [0, 0]


def test_int32_and_uint8_classes_are_accepted():
    expected = F.cross_entropy(X, CLASSES).item()
    for dtype in (mt.int32, mt.uint8, mt.int16):
        assert F.cross_entropy(X, CLASSES.to(dtype)).item() == expected
