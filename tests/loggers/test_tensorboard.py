"""TensorBoardLogger, read back by TensorBoard itself."""

import io
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from minitorch.loggers import TensorBoardLogger

ODD_TAGS = ["train loss (x)", "/leading", "ünïcode ☃", "a//b", "tab\there", "x" * 300, " "]


@pytest.fixture
def logger(tmp_path: Path) -> TensorBoardLogger:
    return TensorBoardLogger(tmp_path)


@pytest.mark.parametrize("tag", ODD_TAGS)
def test_tags_are_kept(logger: TensorBoardLogger, accumulate: Callable, tag: str) -> None:
    logger.log_metrics({tag: 1.0}, 0)
    logger.log_histogram(tag + "h", [1.0, 2.0], 0)
    logger.log_image(tag + "i", np.zeros((2, 2)), 0, "HW")
    logger.log_text(tag + "t", "x", 0)
    logger.experiment.add_scalar(tag + "s", 1.0, 0)
    logger.flush()
    found = accumulate(logger.log_dir).Tags()
    assert found["scalars"] == [tag, tag + "s"]
    assert found["histograms"] == [tag + "h"]
    assert found["images"] == [tag + "i"]
    assert found["tensors"] == [tag + "t"]
    logger.finalize("success")


def test_flush_is_enough_for_tensorboard(logger: TensorBoardLogger, accumulate: Callable) -> None:
    for step in range(200):
        logger.log_metrics({"a": step}, step)
    logger.flush()
    assert len(accumulate(logger.log_dir).Scalars("a")) == 200
    logger.finalize("success")


def test_wall_time_is_set_everywhere(logger: TensorBoardLogger, events: Callable) -> None:
    before = time.time()
    logger.log_hyperparams({"lr": 0.1})
    logger.log_graph(SimpleNamespace(nodes=[]))
    logger.log_metrics({"a": 1.0}, 0)
    logger.log_histogram("h", [1.0], 0)
    with logger.experiment.use_metadata(global_step=7):
        logger.experiment.add_pr_curve("pr", np.array([0, 1]), np.array([0.1, 0.9]))
        logger.experiment.add_scalar("s", 1.0)
    logger.finalize("success")
    found = events(logger.log_dir)
    assert found[0].file_version == "brain.Event:2"
    assert all(before <= event.wall_time <= time.time() for event in found)
    assert [e.step for e in found if any(v.tag in ("pr", "s") for v in e.summary.value)] == [7, 7]


def test_values_beyond_float32(logger: TensorBoardLogger, accumulate: Callable) -> None:
    logger.log_metrics({"a": 1e300, "b": -1e300, "c": 16777217}, -5)
    logger.finalize("success")
    found = accumulate(logger.log_dir)
    assert [found.Scalars(t)[0].value for t in "abc"] == [np.inf, -np.inf, 16777216]
    assert found.Scalars("a")[0].step == -5


def test_two_files_of_one_run_are_read_together(tmp_path: Path, accumulate: Callable) -> None:
    one, two = (TensorBoardLogger(tmp_path, version="run") for _ in range(2))
    for step in range(3):
        one.log_metrics({"a": step}, step)
        two.log_metrics({"b": step}, step)
    one.finalize("success")
    two.finalize("success")
    found = accumulate(one.log_dir)
    assert [[e.value for e in found.Scalars(tag)] for tag in "ab"] == [[0, 1, 2]] * 2


def test_sub_dir(tmp_path: Path) -> None:
    logger = TensorBoardLogger(tmp_path, sub_dir="rank0")
    logger.log_metrics({"a": 1.0}, 0)
    logger.finalize("success")
    assert logger.log_dir == str(tmp_path / "default/version_0/rank0")
    assert len(list(Path(logger.log_dir).glob("*tfevents*"))) == 1


def sessions(folder: str | Path) -> Any:
    """What TensorBoard's HParams tab shows for a folder of runs."""
    from tensorboard.backend.event_processing import plugin_event_multiplexer
    from tensorboard.backend.event_processing.data_provider import MultiplexerDataProvider
    from tensorboard.context import RequestContext
    from tensorboard.plugins.base_plugin import TBContext
    from tensorboard.plugins.hparams import api_pb2, backend_context, list_session_groups

    multiplexer = plugin_event_multiplexer.EventMultiplexer()
    multiplexer.AddRunsFromDirectory(str(folder))
    multiplexer.Reload()
    provider = MultiplexerDataProvider(multiplexer, str(folder))
    context = backend_context.Context(TBContext(data_provider=provider))
    request = api_pb2.ListSessionGroupsRequest(
        start_index=0, slice_size=10, allowed_statuses=[0, 1, 2, 3]
    )
    handler = list_session_groups.Handler(RequestContext(), context, "exp", request)
    return list(handler.run().session_groups), sorted(multiplexer.Runs())


@pytest.mark.parametrize(("status", "number"), [("success", 1), ("finished", 1), ("failed", 2)])
def test_hyperparameters_stay_in_the_run(tmp_path: Path, status: str, number: int) -> None:
    logger = TensorBoardLogger(tmp_path)
    params = {"lr": 0.1, "net": {"width": np.int64(8), "act": "relu"}, "nesterov": True, "x": None}
    logger.log_hyperparams(params, {"val/acc": 0.0})
    logger.log_metrics({"val/acc": 0.75}, 10)
    logger.finalize(status)
    [group], runs = sessions(tmp_path)
    assert runs == ["default/version_0"]
    shown = {
        name: getattr(value, value.WhichOneof("kind")) for name, value in group.hparams.items()
    }
    assert shown == {
        "lr": 0.1, "net/width": 8, "net/act": "relu", "nesterov": True, "x": "None"
    }  # fmt: skip
    [session] = group.sessions
    assert session.name == "default/version_0"
    assert session.status == number
    assert session.end_time_secs >= session.start_time_secs > 1e9
    [metric] = group.metric_values
    assert (metric.name.tag, metric.value, metric.training_step) == ("val/acc", 0.75, 10)


@pytest.mark.parametrize("default", [True, False])
def test_default_hp_metric(tmp_path: Path, accumulate: Callable, default: bool) -> None:
    logger = TensorBoardLogger(tmp_path, default_hp_metric=default)
    logger.log_hyperparams({"lr": 0.1})
    logger.finalize("success")
    found = accumulate(logger.log_dir)
    assert found.Tags()["scalars"] == (["hp_metric"] if default else [])
    if default:
        assert [e.value for e in found.Scalars("hp_metric")] == [-1.0]


def node(name: str, op: str, *inputs: str, **attrs: str) -> SimpleNamespace:
    return SimpleNamespace(name=name, op=op, inputs=inputs, attrs=attrs)


def test_graph(logger: TensorBoardLogger, accumulate: Callable) -> None:
    nodes = [
        node("x", "Placeholder", shape="f32[8,3]"),
        node("net/0/weight", "Parameter", shape="(4, 3)", device="cuda:0"),
        node("net/0/linear", "Linear", "x", "net/0/weight", shape="8,4", note="naïve"),
        node("loss", "Mean", "net/0/linear", shape="[]"),
        node("other", "Print", "loss", shape="unknown"),
    ]
    logger.log_graph(SimpleNamespace(nodes=iter(nodes)))
    logger.finalize("success")
    graph = accumulate(logger.log_dir).Graph()
    assert [(n.name, n.op, list(n.input)) for n in graph.node] == [
        (n.name, n.op, list(n.inputs)) for n in nodes
    ]
    assert graph.node[2].attr["note"].s.decode() == "naïve"
    assert graph.node[1].device == "cuda:0"
    shapes = [
        [tuple(d.size for d in s.dim) for s in n.attr["_output_shapes"].list.shape]
        for n in graph.node
    ]
    assert shapes == [[(8, 3)], [(4, 3)], [(8, 4)], [()], []]


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([node("a", "X"), node("a", "X")], "must have unique names. Got 'a' twice. Number them."),
        ([node("a", "X", "b")], "must be names of nodes. Got 'b' as input of 'a'. Add a node"),
        ([node("", "X")], "must not be empty, start with '^', '/' or '_', or hold ':'. Got ''."),
        ([node("a:0", "X")], "Got 'a:0'. Use names such as 'net/0/linear'."),
    ],
)
def test_bad_graphs(logger: TensorBoardLogger, nodes: list, message: str) -> None:
    with pytest.raises(ValueError, match="graph") as caught:
        logger.log_graph(SimpleNamespace(nodes=nodes))
    assert message in str(caught.value)


@pytest.mark.parametrize("wanted", [True, False])
def test_wants_graph(tmp_path: Path, wanted: bool) -> None:
    assert TensorBoardLogger(tmp_path, log_graph=wanted).wants_graph is wanted


RNG = np.random.default_rng(0)
HISTOGRAMS = {
    "normal": RNG.normal(size=1000),
    "float16": RNG.normal(size=(10, 10)).astype(np.float16),
    "one": np.array([3.0]),
    "zeros": np.zeros(7),
    "signs": np.array([-1e-3, -5.0, 0.0, 2.0, 1e-20, 1e25, -1e25]),
    "int": np.arange(-5, 20),
    "bool": np.array([True, False, True]),
    "broken": np.array([1.0, np.nan, np.inf, -np.inf, 2.0]),
    "float32 tiny": np.array([1e-44, 1.0], np.float32),
}


@pytest.mark.parametrize("values", HISTOGRAMS.values(), ids=HISTOGRAMS.keys())
def test_histograms(logger: TensorBoardLogger, accumulate: Callable, values: np.ndarray) -> None:
    logger.log_histogram("h", values, 3)
    logger.finalize("success")
    [event] = accumulate(logger.log_dir).Histograms("h")
    shown = event.histogram_value
    finite = values.astype(np.float64)[np.isfinite(values)]
    assert event.step == 3
    assert (shown.min, shown.max, shown.num) == (finite.min(), finite.max(), finite.size)
    np.testing.assert_allclose(shown.sum, finite.sum(), rtol=1e-12, atol=1e-9)
    np.testing.assert_allclose(shown.sum_squares, (finite**2).sum(), rtol=1e-12)
    limits, counts = np.array(shown.bucket_limit), np.array(shown.bucket)
    assert np.all(np.diff(limits) > 0)
    assert counts.sum() == finite.size
    below = np.array([(finite < limit * (1 + np.sign(limit) * 1e-6)).sum() for limit in limits])
    np.testing.assert_allclose(below[:-1], counts.cumsum()[:-1], atol=1)


def test_a_histogram_without_finite_values(logger: TensorBoardLogger, accumulate: Callable) -> None:
    logger.log_histogram("h", [np.nan, np.inf], 0)
    logger.finalize("success")
    [event] = accumulate(logger.log_dir).Histograms("h")
    assert event.histogram_value.num == 0


def test_histograms_of_other_libraries(
    logger: TensorBoardLogger, accumulate: Callable, array_type: Any
) -> None:
    source = array_type(np.ones((2, 3)))
    logger.log_histogram("h", source, 0)
    logger.finalize("success")
    assert accumulate(logger.log_dir).Histograms("h")[0].histogram_value.sum == 6


def test_arrays_are_copied_when_logged(logger: TensorBoardLogger, accumulate: Callable) -> None:
    values, picture = np.ones(4), np.ones((1, 1, 1), np.uint8)
    logger.log_histogram("h", values, 0)
    logger.log_image("i", picture, 0)
    logger.experiment.add_histogram("h2", values, 0)
    values[:], picture[:] = 5, 9
    logger.finalize("success")
    found = accumulate(logger.log_dir)
    assert found.Histograms("h")[0].histogram_value.max == 1
    assert found.Histograms("h2")[0].histogram_value.max == 1
    assert decode(found.Images("i")[0]).tolist() == [[1]]


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ([], ValueError, "a histogram needs at least one value. Got h: float64[0]. Skip arrays"),
        ([1j], TypeError, "a histogram needs real numbers. Got h: complex128[1]. Take np.abs"),
        ("text", TypeError, "a histogram needs real numbers. Got h: <U4[]."),
        ({"a": 1}, TypeError, "a histogram needs real numbers. Got h: "),
    ],
)
def test_bad_histograms(
    logger: TensorBoardLogger, values: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as caught:
        logger.log_histogram("h", values, 0)
    assert message in str(caught.value)


def decode(event: Any) -> np.ndarray:
    from PIL import Image

    with Image.open(io.BytesIO(event.encoded_image_string)) as picture:
        return np.asarray(picture)


PIXELS = RNG.integers(0, 256, (5, 7, 3), dtype=np.uint8)
IMAGES: dict[str, tuple[Any, str, np.ndarray]] = {
    "HWC": (PIXELS, "HWC", PIXELS),
    "CHW": (PIXELS.transpose(2, 0, 1), "CHW", PIXELS),
    "HW": (PIXELS[..., 0], "hw", PIXELS[..., 0]),
    "grey": (PIXELS[None, ..., 0], "CHW", PIXELS[..., 0]),
    "rgba": (np.dstack([PIXELS, PIXELS[..., 0]]), "HWC", np.dstack([PIXELS, PIXELS[..., 0]])),
    "grey alpha": (PIXELS[..., :2], "HWC", PIXELS[..., :2]),
    "floats": (PIXELS / np.float32(255), "HWC", PIXELS),
    "clipped": (
        np.array([[-1.0, 0.5, 2.0, np.nan, np.inf]]), "HW", np.array([[0, 128, 255, 0, 255]])
    ),
    "int64": (np.array([[-3, 7, 300]]), "HW", np.array([[0, 7, 255]])),
    "bool": (np.array([[True, False]]), "HW", np.array([[255, 0]])),
    "batch": (
        np.arange(3, dtype=np.uint8)[:, None, None, None] + np.zeros((3, 1, 1, 1), np.uint8),
        "NCHW",
        np.array([[0, 1], [2, 0]]),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("image", "formats", "expected"), IMAGES.values(), ids=IMAGES.keys())
def test_images(
    logger: TensorBoardLogger, accumulate: Callable, image: Any, formats: str, expected: np.ndarray
) -> None:
    logger.log_image("i", image, 3, formats)
    logger.finalize("success")
    [event] = accumulate(logger.log_dir).Images("i")
    assert (event.step, event.height, event.width) == (3, *expected.shape[:2])
    np.testing.assert_array_equal(decode(event), expected)


def test_images_of_other_libraries(
    logger: TensorBoardLogger, accumulate: Callable, array_type: Any
) -> None:
    logger.log_image("i", array_type(np.full((3, 2, 2), 1.0)), 0)
    logger.finalize("success")
    assert decode(accumulate(logger.log_dir).Images("i")[0]).min() == 255


@pytest.mark.parametrize(
    ("image", "formats", "error", "message"),
    [
        (np.zeros((2, 2)), "CHW", ValueError, "one letter an axis. Got 'CHW' for i: float64[2,2]. "
         "Pass dataformats='HW'."),
        (np.zeros((8, 8, 3)), "HW", ValueError, "Pass dataformats='HWC'."),
        (np.zeros((9, 8, 8, 3)), "CHW", ValueError, "Pass dataformats='NHWC'."),
        (np.zeros((9, 3, 8, 8)), "CHW", ValueError, "Pass dataformats='NCHW'."),
        (np.zeros((28, 28, 1)), "CHW", ValueError, "1 to 4 channels. Got 28 in i: float64[28,28,"),
        (np.zeros((1, 0, 4)), "CHW", ValueError, "must have pixels. Got i: float64[1,0,4]."),
        (np.zeros((1, 2)), "XY", ValueError, "must name each axis once: 'HW', 'CHW', 'HWC',"),
        (np.zeros((1, 2), complex), "HW", TypeError, "needs real numbers. Got i: complex128[1,2]."),
    ],
)  # fmt: skip
def test_bad_images(
    logger: TensorBoardLogger, image: Any, formats: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as caught:
        logger.log_image("i", image, 0, formats)
    assert message in str(caught.value)


def test_texts(logger: TensorBoardLogger, accumulate: Callable) -> None:
    logger.log_text("notes", "**bold** ☃ \ud800", 4)
    logger.finalize("success")
    found = accumulate(logger.log_dir)
    [event] = found.Tensors("notes")
    assert event.step == 4
    assert event.tensor_proto.string_val[0].decode() == "**bold** ☃ \\ud800"
    assert found.SummaryMetadata("notes").plugin_data.plugin_name == "text"


def test_steps_of_every_kind_are_integers(logger: TensorBoardLogger) -> None:
    for call in (
        lambda: logger.log_histogram("h", [1.0], 0.5),  # type: ignore[arg-type]
        lambda: logger.log_image("i", [[1]], 0.5, "HW"),  # type: ignore[arg-type]
        lambda: logger.log_text("t", "x", 0.5),  # type: ignore[arg-type]
        lambda: logger.experiment.add_scalar("s", 1.0, 0.5),
        lambda: logger.experiment.add_pr_curve("p", np.array([0, 1]), np.array([0.1, 0.9]), 0.5),
    ):
        with pytest.raises(TypeError, match=r"step must be an integer. Got 0.5"):
            call()


def test_experiment_writes_into_the_run(logger: TensorBoardLogger, accumulate: Callable) -> None:
    writer = logger.experiment
    assert logger.experiment is writer
    writer.add_scalar("a", np.float32(1.0), 1)
    writer.add_scalar("named", 1.0, 1, display_name="shown")
    writer.add_scalar("old", 1.0, 1, walltime=5.0)
    writer.add_scalars("lines", {"train": 1.0, "val": 2.0}, 1)
    writer.add_histogram("h", np.ones(3), 1)
    writer.add_histogram("h_numpy", np.arange(3.0), 1, bins="auto")
    writer.add_image("i", np.zeros((3, 2, 2)), 1)
    writer.add_images("is", np.zeros((4, 3, 2, 2)), 1)
    writer.add_text("t", "text", 1)
    writer.add_pr_curve("pr", np.array([0, 1]), np.array([0.1, 0.9]), 1)
    writer.add_mesh("m", np.zeros((1, 3, 3)), global_step=1)
    writer.add_custom_scalars({"c": {"lines": ["Multiline", ["a", "old"]]}})
    writer.add_hparams({"lr": 0.1}, {"acc": 0.5}, "ignored", 1)
    writer.flush()
    writer.close()
    writer.add_scalar("a", 2.0, 2)
    with writer as same:
        same.add_scalar("a", 3.0, 3)
    logger.log_metrics({"a": 4.0}, 4)
    logger.finalize("success")
    files = sorted(path.name for path in Path(logger.log_dir).iterdir())
    assert len(files) == 2
    assert files[1] == "hparams.json"
    found = accumulate(logger.log_dir)
    assert [e.value for e in found.Scalars("a")] == [1, 2, 3, 4]
    assert found.Scalars("old")[0].wall_time == 5.0
    assert {"lines/train", "lines/val", "named", "acc"} <= set(found.Tags()["scalars"])
    assert found.Tags()["histograms"] == ["h", "h_numpy"]
    assert found.Tags()["images"] == ["i", "is"]
    tensors = found.Tags()["tensors"]
    assert {"t", "pr"} <= set(tensors)
    assert any(tag.startswith("m_") for tag in tensors)


def test_tensorboardx_makes_no_thread_queue_or_torch(tmp_path: Path, python: Callable) -> None:
    done = python(
        "import sys, threading\n"
        "from minitorch.loggers import TensorBoardLogger\n"
        "logger = TensorBoardLogger('runs')\n"
        "logger.experiment.add_scalar('a', 1.0, 0)\n"
        "logger.log_hyperparams({'lr': 1})\n"
        "print(threading.active_count(), 'torch' in sys.modules, 'tensorboardX' in sys.modules)\n"
    )
    assert (done.stdout.strip(), done.stderr) == ("2 False True", "")


def test_without_tensorboardx(tmp_path: Path, python: Callable) -> None:
    done = python(
        "import sys\n"
        "sys.modules['tensorboardX'] = None\n"
        "from minitorch.loggers import TensorBoardLogger\n"
        "TensorBoardLogger('runs').log_metrics({'a': 1.0}, 0)\n"
    )
    assert done.stderr.splitlines()[-1] == (
        "ModuleNotFoundError: TensorBoardLogger needs tensorboardX, which is not installed. "
        "Run: pip install tensorboardX (or use CSVLogger)."
    )


def test_tensorboard_inspects_the_file(tmp_path: Path) -> None:
    logger = TensorBoardLogger(tmp_path)
    logger.log_metrics({"loss": 1.0}, 0)
    logger.log_histogram("h", [1.0], 0)
    logger.finalize("success")
    done = subprocess.run(
        [sys.executable, "-m", "tensorboard.main", "--inspect", "--logdir", logger.log_dir],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "loss" in done.stdout, done.stderr
