"""Models: sizes, initialisation, folders, ties, errors, training. Values: tests/parity."""

import doctest
import importlib
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import minitorch as mt
from minitorch import models
from minitorch.autograd import gradcheck
from minitorch.errors import ArgumentError, CheckpointError, ShapeError

GPT2 = models.GPT2Config(
    vocab_size=11, n_positions=8, n_embd=8, n_layer=2, n_head=2,
    resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
)  # fmt: skip
BERT = models.BertConfig(
    vocab_size=11, hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16,
    max_position_embeddings=8, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
)  # fmt: skip
RESNET = models.ResNetConfig(layers=(1, 1, 1, 1), width=4, num_classes=3)
DEEP = models.ResNetConfig("bottleneck", (1, 1, 1, 1), width=4, num_classes=3)
VGG = models.VGGConfig((4, 0, 8, 0), True, num_classes=3, hidden=16, dropout=0.0)
UNET = models.UNetConfig(n_channels=1, n_classes=2, width=4, depth=2)
IDS = np.array([[1, 2, 3, 4, 5], [6, 7, 8, 0, 0]])
CASES = {
    "gpt2": (models.GPT2LMHeadModel, GPT2, IDS),
    "gpt2 body": (models.GPT2Model, GPT2, IDS),
    "bert": (models.BertModel, BERT, IDS),
    "masked": (models.BertForMaskedLM, BERT, IDS),
    "resnet": (models.ResNet, RESNET, np.ones((2, 3, 32, 32), np.float32)),
    "bottleneck": (models.ResNet, DEEP, np.ones((2, 3, 32, 32), np.float32)),
    "vgg": (models.VGG, VGG, np.ones((2, 3, 8, 8), np.float32)),
    "unet": (models.UNet, UNET, np.ones((2, 1, 9, 8), np.float32)),
}


def first(output):
    """The tensor of an output that may be a named tuple."""
    if isinstance(output, mt.Tensor):
        return output
    return next(part for part in output if part is not None)


@pytest.mark.parametrize("name", CASES)
def test_folders_come_back(name: str, tmp_path: Path) -> None:
    kind, config, x = CASES[name]
    model = kind(config).eval()
    for most in (1 << 30, 2000):
        model.save_pretrained(tmp_path, max_shard_bytes=most)
        other = kind.from_pretrained(tmp_path)
        assert other.config == config
        assert not other.training
        np.testing.assert_array_equal(
            first(other(mt.tensor(x))).detach().numpy(), first(model(mt.tensor(x))).detach().numpy()
        )


@pytest.mark.parametrize("name", CASES)
def test_every_parameter_is_trained(name: str) -> None:
    kind, config, x = CASES[name]
    model = kind(config)
    x = mt.tensor(x)
    if x.is_floating_point():
        x = mt.randn(x.shape)

    def loss():
        output = model(x, labels=x) if name in ("gpt2", "masked") else model(x)
        if name == "bert":
            return (output.last_hidden_state[:, :, 0] - 1).square().mean() + (
                output.pooler_output[:, 0] - 1
            ).square().mean()
        if name in ("gpt2", "masked"):
            return output.loss
        return (output[:, 0] - 1).square().mean()

    adam = mt.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(8):
        adam.zero_grad()
        value = loss()
        value.backward()
        adam.step()
        losses.append(value.item())
    assert losses[-1] < losses[0]
    still = [n for n, p in model.named_parameters() if p.grad is None]
    assert not still


@pytest.mark.parametrize("name", ["gpt2", "bert", "resnet", "unet"])
def test_gradients(name: str) -> None:
    kind, config, x = CASES[name]
    model = kind(config).double().eval()
    x = mt.tensor(x[:1, :, :8, :8] if x.ndim == 4 else x[:1, :3])
    x = mt.randn(x.shape).double() if x.is_floating_point() else x
    first(model(x)).square().sum().backward()
    weights = [weight for weight in model.parameters() if weight.grad is not None]
    chosen = [weights[0], weights[len(weights) // 2], weights[-1]]
    direction = [mt.randn(w.shape).double() for w in chosen]

    def along(step):
        saved = [w.detach().clone() for w in chosen]
        with mt.no_grad():
            for w, d in zip(chosen, direction, strict=True):
                w.add_(d * step)
        value = first(model(x)).square().sum().item()
        with mt.no_grad():
            for w, old in zip(chosen, saved, strict=True):
                w.copy_(old)
        return value

    slope = sum((w.grad * d).sum().item() for w, d in zip(chosen, direction, strict=True))
    measured = (along(1e-6) - along(-1e-6)) / 2e-6
    assert slope == pytest.approx(measured, rel=1e-5)


def test_gradients_with_respect_to_images() -> None:
    net = models.UNet(models.UNetConfig(1, 1, width=1, depth=1)).double().eval()
    x = mt.randn(1, 1, 4, 4).double().requires_grad_()
    assert gradcheck(net, (x,))


def test_gpt2_starts_as_published() -> None:
    mt.manual_seed(0)
    config = models.GPT2Config(vocab_size=500, n_positions=64, n_embd=64, n_layer=8, n_head=4)
    state = models.GPT2LMHeadModel(config).state_dict()
    for name, tensor in state.items():
        if name.endswith("bias"):
            wanted = 0.0
        elif ".ln_" in name:
            wanted = 0.0
            assert tensor.tolist() == [1.0] * 64
        else:
            wanted = 0.02 / 4 if name.endswith("c_proj.weight") else 0.02
        assert tensor.std().item() == pytest.approx(wanted, rel=0.06), name
    assert state["lm_head.weight"] is state["transformer.wte.weight"]


def test_bert_starts_as_published() -> None:
    model = models.BertForMaskedLM(BERT)
    state = model.state_dict()
    assert not state["bert.embeddings.word_embeddings.weight"][0].any()
    assert model.cls.predictions.decoder.weight is model.bert.embeddings.word_embeddings.weight
    assert model.cls.predictions.decoder.bias is model.cls.predictions.bias


def test_sizes_are_the_published_ones() -> None:
    counts = {
        models.resnet18: 11_689_512,
        models.resnet34: 21_797_672,
        models.resnet50: 25_557_032,
    }
    for make, count in counts.items():
        assert sum(p.numel() for p in make().parameters()) == count
    assert sum(p.numel() for p in models.vgg11(hidden=1).parameters()) < 10_000_000
    for make, features in ((models.vgg16, 31), (models.vgg11_bn, 29), (models.vgg16_bn, 44)):
        assert len(make(hidden=1, num_classes=2).features) == features
    assert models.GPT2Config.of_size("gpt2-medium").n_layer == 24
    with pytest.raises(ArgumentError, match="sizes are gpt2, .*Got 'gpt3'"):
        models.GPT2Config.of_size("gpt3")


def test_resnets_may_start_as_the_identity() -> None:
    net = models.resnet18(3, width=4, zero_init_residual=True)
    assert not net.layer1[0].bn2.weight.any()
    assert not models.resnet50(3, width=4, zero_init_residual=True).layer1[0].bn3.weight.any()


def test_masked_places_do_not_count() -> None:
    mask = mt.tensor([[1, 1, 1, 0]])
    a, b = mt.tensor([[1, 2, 3, 4]]), mt.tensor([[1, 2, 3, 9]])
    bert = models.BertModel(BERT).eval()
    equal = bert(a, mask)[0][:, :3] - bert(b, mask)[0][:, :3]
    assert not equal.any()
    assert bert.sentence_embeddings(a, mask).norm().item() == pytest.approx(1.0, rel=1e-5)
    gpt2 = models.GPT2Model(GPT2).eval()
    assert not (gpt2(a)[:, :3] - gpt2(b)[:, :3]).any()
    left = mt.tensor([[0, 1, 1, 1]])
    c = mt.tensor([[7, 2, 3, 4]])
    assert not (gpt2(a, left)[:, 1:] - gpt2(c, left)[:, 1:]).any()


def test_files_with_and_without_the_prefix_are_read() -> None:
    whole = models.GPT2LMHeadModel(GPT2)
    full = whole.state_dict()
    full |= {
        "transformer.h.0.attn.bias": mt.ones(1),
        "transformer.h.0.attn.masked_bias": mt.ones(1),
    }
    body = {name.removeprefix("transformer."): t for name, t in full.items()}
    body.pop("lm_head.weight")
    for state in (full, body):
        for kind in (models.GPT2Model, models.GPT2LMHeadModel):
            model = kind(GPT2)
            model.load_published(state)
            ours = {n.removeprefix("transformer."): t for n, t in model.state_dict().items()}
            assert ours["h.1.mlp.c_fc.weight"].tolist() == body["h.1.mlp.c_fc.weight"].tolist()


def test_old_names_of_layer_norms_are_read() -> None:
    model = models.BertModel(BERT)
    state = {
        f"bert.{n}".replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ): mt.full_like(t, 0.5)
        for n, t in model.state_dict().items()
    }
    state["bert.embeddings.position_ids"] = mt.arange(8)
    state["cls.predictions.bias"] = mt.ones(11)
    model.load_published(state)
    assert all((t == 0.5).all() for t in model.state_dict().values())


def test_wrong_names_are_reported_with_the_nearest() -> None:
    model = models.BertModel(BERT)
    state = dict(model.state_dict())
    state["encoder.layer.0.attention.self.quary.weight"] = state.pop(
        "encoder.layer.0.attention.self.query.weight"
    )
    text = (
        "BertModel: the names of the weights .* 38 of 39 are there.*1 missing: .*query.weight.*"
        "1 unexpected: .*quary.*Did you mean 'encoder.layer.0.attention.self.query.weight' by"
    )
    with pytest.raises(CheckpointError, match=re.compile(text, re.DOTALL)):
        model.load_published(state)
    with pytest.warns(UserWarning, match="1 missing"):
        model.load_published(state, strict=False)
    with warnings.catch_warnings():
        models.BertModel(BERT, add_pooling_layer=True).load_published(model.state_dict())


def test_wrong_folders_and_fields_are_refused(tmp_path: Path) -> None:
    models.BertModel(BERT).save_pretrained(tmp_path)
    with pytest.raises(CheckpointError, match="says model_type 'bert'; GPT2Config is for 'gpt2'"):
        models.GPT2Model.from_pretrained(tmp_path)
    with pytest.raises(ArgumentError, match="no field 'hiden_size'. Did you mean 'hidden_size'"):
        models.BertModel.from_pretrained(tmp_path, hiden_size=3)
    with pytest.raises(ArgumentError, match="no field 'zzz'. It has vocab_size"):
        models.BertModel.from_pretrained(tmp_path, zzz=3)
    with pytest.raises(CheckpointError, match="of another shape"):
        models.BertModel.from_pretrained(tmp_path, intermediate_size=8)
    model = models.BertModel.from_pretrained(tmp_path, hidden_dropout_prob=0.3)
    assert model.config.hidden_dropout_prob == 0.3


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: models.BertModel(GPT2), "config must be a BertConfig. Got GPT2Config"),
        (lambda: models.BertConfig(hidden_size=7), "num_attention_heads must divide hidden_size"),
        (lambda: models.BertConfig(hidden_act="x"), "activation: one of gelu.*Got 'x'"),
        (lambda: models.BertConfig(position_embedding_type="r"), "must be 'absolute'. Got 'r'"),
        (lambda: models.GPT2Config(n_embd=7), "n_head must divide n_embd. Got 12 for 7"),
        (lambda: models.GPT2Config(scale_attn_by_inverse_layer_idx=True), "is not supported"),
        (lambda: models.ResNetConfig("x"), "block must be one of basic, bottleneck"),
        (lambda: models.UNetConfig(depth=0), "width and depth must be at least 1"),
    ],
)
def test_wrong_configurations_are_refused(make, text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        make()


def test_wrong_inputs_are_refused() -> None:
    for model in (models.BertModel(BERT), models.GPT2Model(GPT2)):
        for ids in (mt.tensor([1, 2]), mt.zeros(1, 9, dtype=mt.int64)):
            with pytest.raises(ShapeError, match=r"must be \(batch, length\) .* at most 8"):
                model(ids)
    with pytest.raises(ShapeError, match="sides of at least 4. Got f32.1,1,3,8."):
        models.UNet(UNET)(mt.ones(1, 1, 3, 8))


def test_models_run_on_the_gpu(pretend_gpu) -> None:
    for kind, config, x in (CASES["gpt2"], CASES["bert"], CASES["unet"]):
        model = kind(config).to("cuda:0")
        output = first(model(mt.tensor(x, device="cuda:0")))
        assert str(output.device) == "cuda:0"
        output.sum().backward()


@pytest.mark.parametrize("name", ["bert", "gpt2", "residual", "segmentation"])
def test_examples(name: str) -> None:
    module = importlib.import_module(f"minitorch.models.{name}")
    result = doctest.testmod(module, extraglobs={"mt": mt})
    assert result.attempted
    assert not result.failed
