"""Transforms: kinds of images, values, randomness that depends on the sample only."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch.data import DataLoader, transforms
from minitorch.data.datasets import ImageFolder
from minitorch.errors import ArgumentError, DataError

T: Any = transforms
RNG = np.random.default_rng(0)
HWC = RNG.integers(0, 256, (6, 8, 3), dtype=np.uint8)
CHW = (HWC.transpose(2, 0, 1) / 255).astype(np.float32)
EVERY = {
    "resize": lambda: T.Resize((4, 5)),
    "resize int": lambda: T.Resize(3, "bicubic"),
    "nearest": lambda: T.Resize(3, "nearest"),
    "centre": lambda: T.CenterCrop(4),
    "centre of small": lambda: T.CenterCrop((9, 3)),
    "crop": lambda: T.RandomCrop(4),
    "padded": lambda: T.RandomCrop(8, padding=(1, 2), fill=0),
    "reflected": lambda: T.RandomCrop(9, pad_if_needed=True, padding_mode="reflect"),
    "resized crop": lambda: T.RandomResizedCrop(4),
    "flip": lambda: T.RandomHorizontalFlip(),
    "vertical": lambda: T.RandomVerticalFlip(),
    "rotation": lambda: T.RandomRotation(30),
    "smooth": lambda: T.RandomRotation((10, 50), "bilinear"),
    "jitter": lambda: T.ColorJitter(0.5, 0.5, 0.5, 0.2),
    "erasing": lambda: T.RandomErasing(0.9),
}


def run(transform: Any, image: Any, seed: int = 0) -> Any:
    return transform(image, rng=np.random.default_rng(seed))


@pytest.mark.parametrize("name", EVERY)
def test_the_kinds_of_images_agree(name: str) -> None:
    transform = EVERY[name]()
    for seed in range(3):
        floats = run(transform, CHW, seed)
        assert floats.dtype == np.float32
        tensor = run(transform, mt.tensor(CHW), seed)
        assert isinstance(tensor, mt.Tensor)
        np.testing.assert_array_equal(tensor.numpy(), floats)
        whole = run(transform, HWC, seed)
        assert whole.dtype == np.uint8
        np.testing.assert_allclose(whole.transpose(2, 0, 1) / 255, floats, atol=0.01)
        grey = run(transform, HWC[:, :, 0], seed)
        assert grey.shape == whole.shape[:2]
        assert run(transform, mt.tensor(HWC[:, :, 0])[None], seed).shape[0] == 1


@pytest.mark.parametrize("name", EVERY)
def test_the_image_itself_is_left_alone(name: str) -> None:
    image = CHW.copy()
    for seed in range(3):
        run(EVERY[name](), image, seed)
    np.testing.assert_array_equal(image, CHW)


@pytest.mark.parametrize("name", EVERY)
def test_without_rng_a_stream_is_drawn_from(name: str) -> None:
    transform = EVERY[name]()
    mt.manual_seed(3)
    first = [transform(CHW) for _ in range(3)]
    mt.manual_seed(3)
    for image in first:
        np.testing.assert_array_equal(transform(CHW), image)
    draws = not name.startswith(("resize int", "nearest", "centre")) and name != "resize"
    assert transform.wants_rng == draws
    assert repr(transform).startswith(type(transform).__name__ + "(")


def test_to_tensor_and_normalize() -> None:
    pipeline = T.Compose([T.ToTensor(), T.Normalize([0.5, 0.4, 0.3], [0.1, 0.2, 0.3])])
    wanted = (CHW - np.reshape([0.5, 0.4, 0.3], (3, 1, 1))) / np.reshape([0.1, 0.2, 0.3], (3, 1, 1))
    np.testing.assert_allclose(pipeline(HWC).numpy(), wanted, rtol=1e-4, atol=1e-5)
    tensor = T.ToTensor()(CHW)
    assert tensor.dtype is mt.float32
    assert T.ToTensor()(tensor) is tensor
    assert T.ToTensor()(HWC[:, :, 0]).shape == (1, 6, 8)
    assert not pipeline.wants_rng
    assert "ToTensor" in repr(pipeline)


def test_images_of_pillow_become_arrays() -> None:
    image = pytest.importorskip("PIL.Image", reason="needs Pillow")
    np.testing.assert_array_equal(T.CenterCrop(4)(image.fromarray(HWC)), HWC[1:5, 2:6])
    assert T.ToTensor()(image.fromarray(HWC[:, :, 0])).shape == (1, 6, 8)
    assert T.ToTensor()(image.fromarray(HWC).convert("RGBA")).shape == (3, 6, 8)


def test_crops_show_parts_of_the_image() -> None:
    places = set()
    for seed in range(60):
        crop = run(T.RandomCrop((5, 7)), CHW, seed)
        (found,) = [
            (i, j)
            for i in range(2)
            for j in range(2)
            if np.array_equal(crop, CHW[:, i : i + 5, j : j + 7])
        ]
        places.add(found)
    assert len(places) == 4
    padded = run(T.RandomCrop((10, 14), padding=(2, 2, 4, 2), fill=7), CHW)
    np.testing.assert_array_equal(padded[:, 2:-2, 2:-4], CHW)
    assert (padded[:, 0] == 7).all()
    np.testing.assert_array_equal(T.CenterCrop((8, 8))(CHW)[:, 1:7], CHW)


def test_flips_and_quarter_turns_move_pixels() -> None:
    np.testing.assert_array_equal(run(T.RandomHorizontalFlip(1.0), CHW), CHW[:, :, ::-1])
    np.testing.assert_array_equal(run(T.RandomVerticalFlip(1.0), CHW), CHW[:, ::-1])
    np.testing.assert_array_equal(run(T.RandomHorizontalFlip(0.0), CHW), CHW)
    square = CHW[:, :6, :6]
    for way in ("nearest", "bilinear"):
        turned = run(T.RandomRotation((90, 90), way), square)
        np.testing.assert_allclose(turned, np.rot90(square, 1, (1, 2)), atol=1e-6)
    assert run(T.RandomRotation((45, 45), fill=3), square)[0, 0, 0] == 3


def test_resized_crops_have_the_share_and_proportions() -> None:
    transform = T.RandomResizedCrop(4, scale=(0.2, 0.5), ratio=(0.5, 2.0))
    for seed in range(50):
        top, left, height, width = transform._place(40, 50, np.random.default_rng(seed))
        assert 0.17 < height * width / 2000 < 0.55
        assert 0.4 < width / height < 2.5
        assert top + height <= 40
        assert left + width <= 50
    for rows, columns in ((100, 2), (2, 100)):
        place = T.RandomResizedCrop(4, (1.0, 1.0))._place(rows, columns, np.random.default_rng(0))
        assert place[2] <= 3
        assert place[3] <= 3


def test_one_colour_change_at_a_time() -> None:
    grey = np.tensordot([0.2989, 0.587, 0.114], CHW, 1)
    for seed in range(5):
        bright = run(T.ColorJitter(brightness=(2, 2)), CHW, seed)
        np.testing.assert_allclose(bright, np.clip(CHW * 2, 0, 1), rtol=1e-6)
        flat = run(T.ColorJitter(contrast=(0, 0)), CHW, seed)
        np.testing.assert_allclose(flat, np.full_like(CHW, grey.mean()), rtol=1e-5)
        pale = run(T.ColorJitter(saturation=(0, 0)), CHW, seed)
        np.testing.assert_allclose(pale, np.stack([grey] * 3), rtol=1e-5)
    red = np.zeros((3, 1, 1), np.float32)
    red[0] = 1
    for shift, wanted in ((1 / 3, [0, 1, 0]), (-1 / 3, [0, 0, 1]), (0.5, [0, 1, 1])):
        turned = run(T.ColorJitter(hue=(shift, shift)), red)
        np.testing.assert_allclose(turned[:, 0, 0], wanted, atol=1e-6)
    near = run(T.ColorJitter(hue=(1e-9, 1e-9)), CHW)
    np.testing.assert_allclose(near, CHW, atol=1e-5)


def test_erased_parts() -> None:
    for value in (0.5, (0.1, 0.2, 0.3), "random"):
        erased = run(T.RandomErasing(1.0, value=value), np.ones((3, 30, 30), np.float32))
        share = (erased != 1).any(0).mean()
        assert 0.01 < share < 0.4
    assert run(T.RandomErasing(0.0), CHW) is CHW
    np.testing.assert_array_equal(run(T.RandomErasing(1.0, (1.0, 1.0), (1.0, 1.0)), CHW), CHW)


def double(image: Any) -> Any:
    return image * 2


def test_functions_are_transforms() -> None:
    np.testing.assert_array_equal(T.Compose([T.Lambda(double), double])(CHW), CHW * 4)


def test_mixed_batches() -> None:
    images = mt.tensor(RNG.random((4, 3, 8, 8)).astype(np.float32))
    labels = mt.tensor([0, 1, 2, 1])
    one_hot = np.eye(3)[[0, 1, 2, 1]]
    for kind in (T.MixUp, T.CutMix):
        for seed in range(5):
            mixed, shares = kind(num_classes=3)(images, labels, rng=np.random.default_rng(seed))
            assert mixed.shape == images.shape
            assert shares.dtype is mt.float32
            np.testing.assert_allclose(shares.sum(1).numpy(), 1, rtol=1e-6)
            share = float((shares.numpy() - np.roll(one_hot, 1, 0))[0, 0])
            wanted = one_hot * share + np.roll(one_hot, 1, 0) * (1 - share)
            np.testing.assert_allclose(shares.numpy(), wanted, atol=1e-6)
            if kind is T.MixUp:
                values = images.numpy() * share + np.roll(images.numpy(), 1, 0) * (1 - share)
                np.testing.assert_allclose(mixed.numpy(), values, atol=1e-6)
            else:
                kept = (mixed.numpy() == images.numpy()).mean()
                assert kept == pytest.approx(share, abs=1e-6)
    soft = mt.tensor(one_hot.astype(np.float32))
    assert T.MixUp()(images, soft)[1].shape == (4, 3)
    mt.manual_seed(0)
    first = T.MixUp()(images, soft)[0]
    assert (T.MixUp()(images, soft)[0] != first).any()
    mt.manual_seed(0)
    assert not (T.MixUp()(images, soft)[0] - first).any()


def test_mixing_on_the_gpu(pretend_gpu) -> None:
    images = mt.rand(4, 3, 8, 8).to("cuda:0")
    labels = mt.tensor([0, 1, 2, 1]).to("cuda:0")
    for kind in (T.MixUp, T.CutMix):
        mixed, shares = kind(num_classes=3)(images, labels)
        assert str(mixed.device) == str(shares.device) == "cuda:0"


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: T.Resize(0), "Resize: size must be one or two whole numbers"),
        (lambda: T.Resize((1, 2, 3)), "size must be one or two whole numbers > 0"),
        (lambda: T.Resize(3, "cubic"), "interpolation must be one of nearest, bilinear, bicubic"),
        (lambda: T.Resize(3, antialias=False), "antialias must be true"),
        (lambda: T.RandomResizedCrop(3, antialias=False), "antialias must be true"),
        (lambda: T.RandomResizedCrop(3, scale=(0.5, 0.1)), "scale must be .least, greatest."),
        (lambda: T.RandomCrop(3, padding=(1, 2, 3)), "padding must be one, two or four"),
        (lambda: T.RandomCrop(3, padding_mode="wrap"), "padding_mode must be one of constant"),
        (lambda: T.RandomHorizontalFlip(2), r"p must be a probability in \[0, 1\]. Got 2"),
        (lambda: T.RandomRotation(-1), "degrees must be d ≥ 0"),
        (lambda: T.RandomRotation(1, "bicubic"), "interpolation must be 'nearest' or 'bilinear'"),
        (lambda: T.ColorJitter(brightness=-1), "brightness must be a number ≥ 0"),
        (lambda: T.ColorJitter(hue=0.6), r"hue must be .* within \[-0.5, 0.5\]. Got 0.6"),
        (lambda: T.RandomErasing(scale=(0.5, 2)), "scale must be"),
        (lambda: T.RandomErasing(value="red"), "value must be numbers or 'random'"),
        (lambda: T.Normalize(0, 0), "std must not be 0"),
        (lambda: T.Lambda(3), "a function is needed. Got int"),
        (lambda: T.MixUp(alpha=0), "alpha must be > 0"),
        (lambda: T.MixUp()(mt.ones(2, 3, 4, 4), mt.tensor([0, 1])), "need num_classes"),
    ],
)
def test_wrong_options_are_refused(make: Any, text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        make()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: T.CenterCrop(3)(3), "an image must be a uint8 array .*Got int"),
        (lambda: T.CenterCrop(3)(CHW[0]), "an image must be a uint8 array"),
        (lambda: T.CenterCrop(3)(CHW.astype(int)), "an image must be a uint8 array"),
        (lambda: T.Normalize(0, 1)(HWC), "a floating image is needed. .*Put ToTensor before"),
        (lambda: T.Normalize([0, 0], 1)(CHW), "one for each channel. Got 2 and 1"),
        (lambda: T.RandomCrop(7)(CHW), r"at least as large as size=\(7, 7\). Got f32.3,6,8."),
        (lambda: T.ColorJitter(contrast=1)(CHW[:2]), "needs one or three channels"),
        (lambda: T.MixUp()(mt.ones(2, 3), mt.tensor([0, 1])), "images must be floating .N, C, H"),
    ],
)
def test_wrong_images_are_refused(call: Any, text: str) -> None:
    with pytest.raises(DataError, match=text):
        call()


def folder_of_images(root: Path) -> None:
    for name in ("cat", "dog"):
        (root / name).mkdir()
        for i in range(5):
            image = RNG.integers(0, 256, (9, 8, 3), dtype=np.uint8)
            np.save(root / name / f"{i}.npy", image)


PIPELINE = T.Compose(
    [
        T.RandomResizedCrop(6), T.RandomHorizontalFlip(), T.ColorJitter(0.2, 0.2, 0.2, 0.1),
        T.ToTensor(), T.RandomErasing(),
    ]
)  # fmt: skip


def batches(loader: DataLoader[Any], epochs: int = 2) -> list[np.ndarray]:
    return [images.numpy().copy() for _ in range(epochs) for images, _ in loader]


def test_workers_and_resumed_loaders_give_the_same_images(tmp_path: Path) -> None:
    folder_of_images(tmp_path)
    data = ImageFolder(tmp_path, PIPELINE)
    assert data.wants_rng

    def loader(**options: Any) -> DataLoader[Any]:
        return DataLoader(data, 4, shuffle=True, **options)

    wanted = batches(loader())
    assert not np.array_equal(wanted[0], wanted[3])
    for options in ({"num_workers": 2}, {"num_workers": 2, "worker_type": "process"}):
        for ours, theirs in zip(batches(loader(**options)), wanted, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    first = loader()
    one = iter(first)
    next(one)
    state = first.state_dict()
    one.close()
    again = loader()
    again.load_state_dict(state)
    for ours, theirs in zip(batches(again, 1), wanted[1:3], strict=True):
        np.testing.assert_array_equal(ours, theirs)
