"""Files that PyTorch and the safetensors package wrote, and ours read by them."""

from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
safetensors = pytest.importorskip("safetensors.torch")

import minitorch as mt  # noqa: E402
from minitorch import io, nn  # noqa: E402
from minitorch.errors import CheckpointError  # noqa: E402

DTYPES = [d.name for d in mt.dtypes.ALL]
BASE = torch.arange(24.0).reshape(4, 6)
TENSORS: dict[str, Any] = {
    **{f"dtype {name}": torch.tensor([[0, 1, 3]]).to(getattr(torch, name)) for name in DTYPES},
    "base": BASE,
    "transposed": BASE.t(),
    "slice": BASE[1:, ::2],
    "expanded": BASE[0, :1].expand(3),
    "0-d": torch.tensor(3),
    "empty": torch.empty(0, 3),
    "flat": BASE.view(-1),
    "conj": torch.tensor([1 + 2j]).conj(),
    "imag": torch.tensor([1 + 2j]).conj().imag,
    "large": torch.randn(100, 100),
}


def equal(ours: mt.Tensor, theirs: Any) -> None:
    assert str(ours.dtype).split(".")[1] == str(theirs.dtype).split(".")[1]
    assert tuple(ours.shape) == tuple(theirs.shape)
    assert ours.tolist() == theirs.tolist()


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_every_kind_of_tensor_is_read(protocol: int, tmp_path: Path) -> None:
    torch.save(TENSORS, tmp_path / "a.pt", pickle_protocol=protocol)
    loaded = mt.load(tmp_path / "a.pt")
    assert list(loaded) == list(TENSORS)
    for name, tensor in TENSORS.items():
        equal(loaded[name], tensor)


def test_state_dicts_with_optimizers_and_plain_values_are_read(tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    adam = torch.optim.Adam(model.parameters())
    model(torch.randn(5, 3)).sum().backward()
    adam.step()
    plain = {"epoch": 3, "best": 0.5, "name": "x", "none": None, "list": [1, (2, 3)], "flag": True}
    special = {"size": torch.Size([1, 2]), "dtype": torch.float16, "device": torch.device("cpu")}
    checkpoint = {"model": model.state_dict(), "optimizer": adam.state_dict()} | plain | special
    torch.save(checkpoint, tmp_path / "a.pt")
    loaded = mt.load(tmp_path / "a.pt", map_location="cpu", weights_only=True)
    assert type(loaded["model"]) is OrderedDict
    assert loaded["model"]._metadata == checkpoint["model"]._metadata
    for name, tensor in checkpoint["model"].items():
        equal(loaded["model"][name], tensor)
    equal(loaded["optimizer"]["state"][0]["exp_avg"], adam.state_dict()["state"][0]["exp_avg"])
    assert loaded["optimizer"]["param_groups"] == adam.state_dict()["param_groups"]
    assert {name: loaded[name] for name in plain} == plain
    assert loaded["size"] == mt.Size([1, 2])
    assert loaded["dtype"] is mt.float16
    assert loaded["device"] == mt.device("cpu")
    ours = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    ours.load_state_dict(loaded["model"])
    x = torch.randn(5, 3)
    np.testing.assert_allclose(
        ours(mt.tensor(x.numpy())).detach().numpy(), model(x).detach().numpy(), rtol=1e-5, atol=1e-6
    )


def test_parameters_and_gradients_are_kept(tmp_path: Path) -> None:
    parameter = torch.nn.Parameter(torch.ones(2))
    frozen = torch.nn.Parameter(torch.ones(2), requires_grad=False)
    leaf = torch.ones(2, requires_grad=True)
    torch.save([parameter, frozen, leaf, parameter], tmp_path / "a.pt")
    loaded = mt.load(tmp_path / "a.pt")
    assert [type(one) for one in loaded[:3]] == [mt.nn.Parameter, mt.nn.Parameter, mt.Tensor]
    assert [one.requires_grad for one in loaded[:3]] == [True, False, True]
    assert loaded[3] is loaded[0]


def test_tied_tensors_are_one_object_and_other_views_are_not(tmp_path: Path) -> None:
    embed, head = torch.nn.Embedding(5, 3), torch.nn.Linear(3, 5, bias=False)
    head.weight = embed.weight
    state = {
        "embed": embed.state_dict(),
        "head": head.state_dict(),
        "row": embed.weight.detach()[1],
    }
    torch.save(state, tmp_path / "a.pt")
    loaded = mt.load(tmp_path / "a.pt")
    assert loaded["embed"]["weight"] is loaded["head"]["weight"]
    loaded["embed"]["weight"].zero_()
    equal(loaded["row"], state["row"])


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (torch.nn.Linear(2, 2), "torch.nn.modules.linear.Linear"),
        (torch.ones(2).to(torch.float8_e4m3fn), "torch.float8_e4m3fn"),
        (torch.ones(2).to(torch.uint16), "torch.uint16"),
        (torch.eye(2).to_sparse(), "torch._utils._rebuild_sparse_tensor"),
        (np.float32(1), "numpy._core.multiarray.scalar"),
        (np.ones(2), "numpy._core.multiarray._reconstruct"),
        (Path("x"), "pathlib"),
        (OrderedDict, "collections.OrderedDict"),
        (torch.ones(2).untyped_storage(), "a storage without its tensor"),
    ],
)
def test_what_is_no_data_is_refused_by_name(value: Any, name: str, tmp_path: Path) -> None:
    holds = f"holds {name}.*, which is refused"
    if isinstance(value, torch.Tensor) and value.layout is torch.strided:
        holds = f"holds the element type {name}, which tensors here do not have"
    torch.save({"a": value}, tmp_path / "a.pt")
    for weights_only in (None, False):
        with pytest.raises(CheckpointError, match=holds):
            mt.load(tmp_path / "a.pt", weights_only=weights_only)


def test_safetensors_files_go_both_ways(tmp_path: Path) -> None:
    tensors = {
        name: tensor.contiguous().clone()
        for name, tensor in TENSORS.items()
        if name not in ("conj", "imag", "dtype complex128")
    }
    safetensors.save_file(tensors, tmp_path / "theirs", {"format": "pt"})
    loaded = io.load_file(tmp_path / "theirs")
    for name, tensor in tensors.items():
        equal(loaded[name], tensor)
    assert io.load_metadata(tmp_path / "theirs") == {"format": "pt"}
    io.save_file(loaded, tmp_path / "ours", {"format": "pt"})
    read = safetensors.load_file(tmp_path / "ours")
    assert set(read) == set(tensors)
    for name, tensor in tensors.items():
        assert torch.equal(read[name], tensor)
        assert read[name].dtype == tensor.dtype
    with safetensors.safe_open(tmp_path / "ours", "pt") as file:
        assert file.metadata() == {"format": "pt"}


def test_models_go_both_ways(tmp_path: Path) -> None:
    ours = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Flatten(), nn.Linear(8, 3))
    theirs = torch.nn.Sequential(
        torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.Flatten(), torch.nn.Linear(8, 3)
    )
    io.save_model(ours, tmp_path / "ours")
    assert safetensors.load_model(theirs, tmp_path / "ours") == (set(), [])
    theirs.eval()
    ours.eval()
    x = torch.randn(2, 1, 4, 4)
    wanted = theirs(x).detach().numpy()
    np.testing.assert_allclose(ours(mt.tensor(x.numpy())).detach().numpy(), wanted, atol=1e-5)
    with torch.no_grad():
        theirs[0].weight.fill_(0.5)
    safetensors.save_model(theirs, tmp_path / "theirs")
    assert io.load_model(ours, tmp_path / "theirs") == ([], [])
    assert ours[0].weight.tolist() == theirs[0].weight.tolist()


def test_folders_with_files_of_pytorch_are_read(tmp_path: Path) -> None:
    torch.save({"a": BASE}, tmp_path / "pytorch_model.bin")
    equal(io.load_folder(tmp_path)["a"], BASE)
    (tmp_path / "pytorch_model.bin").rename(tmp_path / "pytorch_model-1.bin")
    index = '{"weight_map": {"a": "pytorch_model-1.bin"}}'
    (tmp_path / "pytorch_model.bin.index.json").write_text(index)
    equal(io.load_folder(tmp_path)["a"], BASE)
