"""Metrics against scikit-learn, in one batch and in several, merged, saved, and their errors."""

from __future__ import annotations

import doctest
import importlib
import math
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch import metrics as M

sk = pytest.importorskip("sklearn.metrics", reason="scikit-learn is the reference here")
Rng = np.random.Generator


def by_sklearn(function: Any, *args: Any, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*args, **options)


def in_batches(rng: Rng, make: Callable[[], Any], preds: Any, target: Any) -> Any:
    """The value by several updates and merges of a metric, checked against one update."""
    n = len(target)
    cuts = sorted(rng.integers(0, n + 1, 3).tolist())
    parts = [slice(a, b) for a, b in zip([0, *cuts], [*cuts, n], strict=True) if a < b]
    metrics = [make() for _ in range(2)]
    for i, part in enumerate(parts):
        metrics[i % 2].update(mt.tensor(preds[part]), mt.tensor(target[part]))
    whole = make()
    whole.update(mt.tensor(preds), mt.tensor(target))
    merged = metrics[0].merge(metrics[1])
    assert merged.updates == len(parts)
    np.testing.assert_allclose(merged.compute().numpy(), whole.compute().numpy(), 1e-9, 1e-12)
    copied = make()
    copied.load_state_dict(merged.state_dict())
    np.testing.assert_array_equal(copied.compute().numpy(), merged.compute().numpy())
    return whole.compute().numpy()


def labels(rng: Rng) -> tuple[int, Any, Any, Any]:
    k, n = int(rng.integers(2, 6)), int(rng.integers(1, 40))
    target = rng.integers(0, k, n)
    preds = np.where(rng.random(n) < 0.5, target, rng.integers(0, k, n))
    return k, n, preds, target


FAMILY = {"Precision": sk.precision_score, "Recall": sk.recall_score, "F1Score": sk.f1_score,
          "JaccardIndex": sk.jaccard_score}  # fmt: skip


def check_family(rng: Rng) -> None:
    name = str(rng.choice(list(FAMILY)))
    average: Any = rng.choice(["micro", "macro", "weighted", "none"])
    k, _, preds, target = labels(rng)
    options = {"num_classes": k, "average": str(average)}
    ours = in_batches(rng, lambda: getattr(M, name)(**options), preds, target)
    every = average == "none"
    expected = by_sklearn(
        FAMILY[name], target, preds, average=None if every else average, zero_division=0,
        labels=np.arange(k) if every else None,
    )  # fmt: skip
    np.testing.assert_allclose(ours, expected, 1e-9, 1e-12)


def check_binary(rng: Rng) -> None:
    name = str(rng.choice([*FAMILY, "Accuracy"]))
    n = int(rng.integers(1, 30))
    target, scores = rng.integers(0, 2, n), rng.random(n).astype(np.float32)
    threshold = float(rng.choice([0.5, 0.2]))
    ours = in_batches(rng, lambda: getattr(M, name)("binary", threshold=threshold), scores, target)
    found = scores > threshold
    if name == "Accuracy":
        expected = sk.accuracy_score(target, found)
    else:
        expected = by_sklearn(FAMILY[name], target, found, zero_division=0)
    np.testing.assert_allclose(ours, expected, 1e-9)


def check_matrix(rng: Rng) -> None:
    k, _, preds, target = labels(rng)
    normalize: Any = rng.choice(["true", "pred", "all", "no"])
    normalize = None if normalize == "no" else str(normalize)
    ours = in_batches(rng, lambda: M.ConfusionMatrix(num_classes=k, normalize=normalize),
                      preds, target)  # fmt: skip
    expected = by_sklearn(
        sk.confusion_matrix, target, preds, labels=np.arange(k), normalize=normalize
    )
    np.testing.assert_allclose(ours, expected, 1e-12)


def check_accuracy(rng: Rng) -> None:
    k, n, _, target = labels(rng)
    scores = rng.normal(size=(n, k)).astype(np.float32)
    top = int(rng.integers(1, k + 1))
    ours = in_batches(rng, lambda: M.Accuracy(num_classes=k, top_k=top), scores, target)
    best = np.argsort(-scores, axis=1, kind="stable")[:, :top]
    np.testing.assert_allclose(ours, (best == target[:, None]).any(1).mean(), 1e-12)
    macro = in_batches(rng, lambda: M.Accuracy(num_classes=k, average="weighted"), scores, target)
    np.testing.assert_allclose(macro, sk.accuracy_score(target, scores.argmax(1)), 1e-9)


def check_ranking(rng: Rng) -> None:
    n = int(rng.integers(2, 40))
    target = rng.integers(0, 2, n)
    target[:2] = [0, 1]
    scores = np.round(rng.random(n), int(rng.integers(1, 4)))
    for ours, theirs in ((M.AUROC, sk.roc_auc_score), (M.AveragePrecision,
                                                       sk.average_precision_score)):  # fmt: skip
        value = in_batches(rng, lambda ours=ours: ours("binary"), scores, target)
        np.testing.assert_allclose(value, theirs(target, scores), 1e-9)


def check_ranking_of_classes(rng: Rng) -> None:
    k, n = int(rng.integers(3, 5)), int(rng.integers(8, 40))
    target = np.concatenate([np.arange(k), rng.integers(0, k, n)])
    scores = rng.dirichlet(np.ones(k), len(target))
    average = str(rng.choice(["macro", "weighted"]))
    ours = in_batches(rng, lambda: M.AUROC(num_classes=k, average=average), scores, target)
    expected = sk.roc_auc_score(target, scores, multi_class="ovr", average=average)
    np.testing.assert_allclose(ours, expected, 1e-9)
    ours = in_batches(
        rng, lambda: M.AveragePrecision(num_classes=k, average=average), scores, target
    )
    expected = sk.average_precision_score(np.eye(k)[target], scores, average=average)
    np.testing.assert_allclose(ours, expected, 1e-9)


def check_regression(rng: Rng) -> None:
    n, outputs = int(rng.integers(2, 30)), int(rng.integers(1, 4))
    shape = (n,) if outputs == 1 and rng.random() < 0.5 else (n, outputs)
    target = rng.normal(size=shape) * 10.0 ** rng.integers(-2, 3) + rng.choice([0.0, 1e4])
    preds = target + rng.normal(size=shape)
    mse = in_batches(rng, M.MeanSquaredError, preds, target)
    np.testing.assert_allclose(mse, sk.mean_squared_error(target, preds), 1e-9)
    root = in_batches(rng, lambda: M.MeanSquaredError(squared=False), preds, target)
    np.testing.assert_allclose(root, mse**0.5, 1e-9)
    mae = in_batches(rng, M.MeanAbsoluteError, preds, target)
    np.testing.assert_allclose(mae, sk.mean_absolute_error(target, preds), 1e-9)
    how = str(rng.choice(["uniform_average", "variance_weighted", "raw_values"]))
    r2 = in_batches(rng, lambda: M.R2Score(how), preds, target)
    np.testing.assert_allclose(r2, sk.r2_score(target, preds, multioutput=how), 1e-6)


def check_perplexity(rng: Rng) -> None:
    n, k = int(rng.integers(1, 20)), int(rng.integers(2, 7))
    logits, target = rng.normal(size=(n, 3, k)) * 3, rng.integers(0, k, (n, 3))
    target[:, 1] = np.where(rng.random(n) < 0.3, -100, target[:, 1])
    ours = in_batches(rng, lambda: M.Perplexity(ignore_index=-100), logits, target)
    kept = target.reshape(-1) != -100
    chances = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    loss = sk.log_loss(target.reshape(-1)[kept], chances.reshape(-1, k)[kept], labels=np.arange(k))
    np.testing.assert_allclose(ours, np.exp(loss), 1e-9)


CHECKS: dict[Callable[[Rng], None], int] = {
    check_family: 450, check_binary: 200, check_matrix: 150, check_accuracy: 150,
    check_ranking: 150, check_ranking_of_classes: 80, check_regression: 120, check_perplexity: 100,
}  # fmt: skip


@pytest.mark.parametrize(("check", "times"), CHECKS.items(), ids=[c.__name__ for c in CHECKS])
def test_random_calls(check: Callable[[Rng], None], times: int) -> None:
    """More than 2 000 values in all, each by one update and by merged ones."""
    rng = np.random.default_rng(times)
    for _ in range(times):
        check(rng)


def test_padding_does_not_count() -> None:
    preds, target = mt.tensor([0, 1, 2, 1]), mt.tensor([0, 1, -1, 2])
    assert M.functional.accuracy(preds, target, num_classes=3, ignore_index=-1).item() == (
        pytest.approx(2 / 3)
    )
    scores = mt.tensor([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]])
    found = M.functional.accuracy(scores, mt.tensor([0, 1, -1]), num_classes=2, ignore_index=-1)
    assert found.item() == 1.0


def test_images_of_classes() -> None:
    rng = np.random.default_rng(0)
    scores, target = rng.normal(size=(2, 3, 4, 5)), rng.integers(0, 3, (2, 4, 5))
    ours = M.functional.jaccard_index(mt.tensor(scores), mt.tensor(target), num_classes=3)
    found = scores.argmax(1).reshape(-1)
    expected = sk.jaccard_score(target.reshape(-1), found, average="macro")
    assert ours.item() == pytest.approx(expected)


def test_logits_of_two_classes() -> None:
    logits, target = mt.tensor([-3.0, 2.0, 0.4]), mt.tensor([0, 1, 0])
    assert M.functional.accuracy(logits, target).item() == pytest.approx(2 / 3)


def test_functions() -> None:
    p, t = mt.tensor([0, 1, 1, 2]), mt.tensor([0, 1, 2, 2])
    for name in ("accuracy", "precision", "recall", "f1_score"):
        assert 0 < getattr(M.functional, name)(p, t, num_classes=3).item() < 1
    assert M.functional.confusion_matrix(p, t, num_classes=3).dtype is mt.int64
    s, b = mt.tensor([0.1, 0.9, 0.3]), mt.tensor([0, 1, 1])
    assert M.functional.auroc(s, b).item() == 1.0
    assert M.functional.average_precision(s, b).item() == 1.0
    x = mt.tensor([1.0, 2.0, 4.0])
    assert M.functional.mean_squared_error(x, x).item() == 0.0
    assert M.functional.mean_absolute_error(x, x + 1).item() == 1.0
    assert M.functional.r2_score(x, x).item() == 1.0
    assert M.functional.perplexity(mt.zeros(4, 5), mt.zeros(4).long()).item() == pytest.approx(5)


def test_a_batch_alone_and_all_together() -> None:
    metric = M.MeanAbsoluteError()
    assert metric(mt.tensor([1.0]), mt.tensor([2.0])).item() == 1.0
    assert metric(mt.tensor([1.0, 1.0, 1.0]), mt.tensor([4.0, 4.0, 4.0])).item() == 3.0
    assert metric.compute().item() == 2.5
    assert metric.clone().compute().item() == 2.5
    metric.reset()
    assert (metric.updates, metric.batch_value) == (0, None)


def test_constant_targets_and_classes_that_do_not_occur() -> None:
    y = mt.tensor([3.0, 3.0])
    assert M.functional.r2_score(y, y).item() == 1.0
    assert M.functional.r2_score(y + 1, y).item() == 0.0
    assert np.isnan(M.functional.auroc(mt.tensor([0.1, 0.2]), mt.tensor([1, 1])).item())
    scores = mt.tensor([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1]])
    assert M.functional.auroc(scores, mt.tensor([0, 1]), num_classes=3).item() == 1.0


def test_the_state_lives_on_the_device(pretend_gpu: ModuleType) -> None:
    rng = np.random.default_rng(0)
    scores, target = rng.random((20, 3)).astype(np.float32), rng.integers(0, 3, 20)
    makers: list[Callable[[], Any]] = [
        lambda: M.Accuracy(num_classes=3), lambda: M.Accuracy(num_classes=3, top_k=2),
        lambda: M.F1Score(num_classes=3, average="macro"), lambda: M.AUROC(num_classes=3),
        lambda: M.Perplexity(),
    ]  # fmt: skip
    for make in makers:
        here, there = make(), make()
        for _ in range(2):
            here.update(mt.tensor(scores), mt.tensor(target))
            there.update(mt.tensor(scores).to("cuda"), mt.tensor(target).to("cuda"))
        assert there.compute().item() == pytest.approx(here.compute().item())
        assert here.merge(there).updates == 4


def three() -> Any:
    return mt.tensor([0, 1, 2])


MISTAKES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "shapes": (
        lambda: M.functional.mean_squared_error(mt.zeros(3, 1), mt.zeros(3)),
        mt.ShapeError,
        r"preds and target must have one shape. Got f32\[3,1\] and f32\[3\]. Use squeeze",
    ),
    "labels": (
        lambda: M.functional.accuracy(three(), mt.tensor([0, 1]), num_classes=3),
        mt.ShapeError,
        "must have one shape",
    ),
    "classes": (
        lambda: M.functional.accuracy(mt.zeros(3, 4), three(), num_classes=3),
        mt.ShapeError,
        r"scores must be \[N, 3, …\]. Got f32\[3,4\]",
    ),
    "rows": (
        lambda: M.functional.accuracy(mt.zeros(2, 3), three(), num_classes=3),
        mt.ShapeError,
        r"need targets \[N, …\]",
    ),
    "range": (
        lambda: M.functional.recall(three(), three(), num_classes=2),
        mt.ArgumentError,
        "targets must be classes from 0 to 1. Got 0 to 2",
    ),
    "predictions": (
        lambda: M.functional.recall(three() + 1, three(), num_classes=3),
        mt.ArgumentError,
        "predictions must be classes from 0 to 2. Got 1 to 3",
    ),
    "float targets": (
        lambda: M.functional.recall(three(), mt.zeros(3), num_classes=3),
        mt.DtypeError,
        "targets must be class numbers",
    ),
    "task": (lambda: M.Accuracy("multilabel"), mt.ArgumentError, "task must be one of 'binary'"),
    "number": (lambda: M.Accuracy("multiclass"), mt.ArgumentError, "num_classes must be a whole"),
    "average": (lambda: M.F1Score(num_classes=2, average="all"), mt.ArgumentError, "Got 'all'"),
    "normalize": (
        lambda: M.ConfusionMatrix(num_classes=2, normalize="x"), mt.ArgumentError, "normalize must"
    ),
    "top": (lambda: M.Accuracy(num_classes=3, top_k=4), mt.ArgumentError, "from 1 to the 3"),
    "top of two": (lambda: M.Accuracy("binary", top_k=2), mt.ArgumentError, "several classes"),
    "top of labels": (
        lambda: M.functional.accuracy(three(), three(), num_classes=3, top_k=2),
        mt.ArgumentError,
        "top_k needs scores",
    ),
    "scores": (lambda: M.functional.auroc(three(), three()), mt.DtypeError, "must be scores"),
    "outputs": (
        lambda: M.functional.r2_score(mt.zeros(2, 2, 2), mt.zeros(2, 2, 2)),
        mt.ShapeError,
        r"\[N\] or \[N, outputs\]",
    ),
    "one sample": (
        lambda: M.functional.r2_score(mt.zeros(1), mt.zeros(1)), mt.ArgumentError, "two samples"
    ),
    "logits": (
        lambda: M.functional.perplexity(mt.zeros(2, 3), mt.zeros(3).long()),
        mt.ShapeError,
        r"logits \[..., classes\]",
    ),
    "token": (
        lambda: M.functional.perplexity(mt.zeros(3, 2), three()),
        mt.ArgumentError,
        "targets must be classes from 0 to 1. Got 0 to 2",
    ),
    "no tensor": (
        lambda: M.MeanSquaredError().update(1.0, 2.0), mt.ArgumentError, "must be tensors"
    ),
    "no update": (lambda: M.AUROC().compute(), mt.ArgumentError, "at least one update"),
    "merge": (
        lambda: M.Accuracy(num_classes=3).merge(M.Accuracy(num_classes=4)),
        mt.ArgumentError,
        "of one kind with equal options",
    ),
    "load": (
        lambda: M.AUROC().load_state_dict(M.MeanSquaredError().state_dict()),
        mt.CheckpointError,
        "must come from this kind. Got one of MeanSquaredError",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("program", "error", "text"), MISTAKES.values(), ids=MISTAKES.keys())
def test_mistakes(program: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        program()


def test_examples() -> None:
    module = importlib.import_module("minitorch.metrics.metric")
    result = doctest.testmod(module, extraglobs={"mt": mt})
    assert result.attempted
    assert not result.failed


@pytest.mark.parametrize("kind", ["Accuracy", "F1Score", "AUROC", "AveragePrecision"])
@pytest.mark.parametrize("task", ["binary", "multiclass"])
def test_scores_that_are_nan_are_refused(kind: str, task: str) -> None:
    classes = 3 if task == "multiclass" else None
    metric = getattr(mt.metrics, kind)(task=task, num_classes=classes)
    scores = mt.full((4, 3) if classes else (4,), math.nan)
    with pytest.raises(mt.ArgumentError, match="scores must be numbers. Got .* NaN among"):
        metric.update(scores, mt.tensor([0, 1, 0, 1]))
