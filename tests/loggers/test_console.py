"""The logger that prints, and TensorBoard's layout of charts."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from minitorch.loggers import ConsoleLogger, LoggerError, TensorBoardLogger


def printed(every_n: int = 1, prefix: str = "") -> str:
    stream = io.StringIO()
    logger = ConsoleLogger(every_n, stream, prefix)
    for n in range(1, 5):
        logger.log_metrics({"train/loss": 1.0 / n, "epoch": 0}, 10 * n)
    logger.log_metrics({"val/acc": 0.9375, "count": 3}, 40)
    logger.log_text("note", "words", 41)
    logger.finalize("success")
    logger.log_metrics({"train/loss": 7.0, "epoch": 1}, 50)
    logger.flush()
    return stream.getvalue()


def test_lines() -> None:
    assert printed(prefix="") == (
        "step 10, epoch 0: train/loss=1\n"
        "step 20, epoch 0: train/loss=0.5\n"
        "step 30, epoch 0: train/loss=0.3333\n"
        "step 40, epoch 0: train/loss=0.25\n"
        "step 40: val/acc=0.9375, count=3\n"
        "step 41: note=words\n"
        "step 50, epoch 1: train/loss=7\n"
    )


def test_every_nth_of_a_kind() -> None:
    steps = [line.split(":")[0].split(",")[0] for line in printed(2).splitlines()]
    assert steps == ["step 10", "step 30", "step 40", "step 41", "step 50"]


def test_stderr_by_default(capsys: pytest.CaptureFixture[str]) -> None:
    logger = ConsoleLogger(prefix="a")
    assert (logger.name, logger.version, logger.save_dir) == ("console", 0, None)
    logger.log_metrics({"x": 1.5}, 1)
    logger.flush()
    assert capsys.readouterr() == ("", "step 1: a-x=1.5\n")


def test_a_stream_that_breaks_is_an_error(tmp_path: Path) -> None:
    file = open(tmp_path / "out", "w")
    file.close()
    logger = ConsoleLogger(stream=file)
    logger.log_metrics({"x": 1.0}, 1)
    with pytest.raises(LoggerError, match="cannot write records.*pass another stream"):
        logger.flush()


def test_wrong_argument() -> None:
    with pytest.raises(ValueError, match="every_n must be at least 1"):
        ConsoleLogger(0)


def test_layout_of_charts(tmp_path: Path, accumulate: Any) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.plugins.custom_scalar import layout_pb2

    layout = {
        "Quality": {
            "loss": ["Multiline", ["train/loss", "val/loss"]],
            "band": ["Margin", ["mean", "low", "high"]],
        }
    }
    logger = TensorBoardLogger(tmp_path, layout=layout)
    logger.log_metrics({"train/loss": 1.0}, 1)
    logger.finalize("success")
    logger.log_metrics({"train/loss": 1.0}, 2)
    logger.finalize("success")
    events = accumulate(logger.log_dir)
    [event] = events.Tensors("custom_scalars__config__")
    found = layout_pb2.Layout.FromString(event.tensor_proto.string_val[0])
    [category] = found.category
    assert category.title == "Quality"
    assert [chart.title for chart in category.chart] == ["loss", "band"]
    assert list(category.chart[0].multiline.tag) == ["train/loss", "val/loss"]


def test_figure_through_the_writer(tmp_path: Path, accumulate: Any) -> None:
    figure = pytest.importorskip("matplotlib.figure").Figure(figsize=(1, 1))
    figure.add_subplot().plot([1, 2])
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(figure)
    logger = TensorBoardLogger(tmp_path)
    logger.experiment.add_figure("plot", figure, 3)
    logger.finalize("success")
    [image] = accumulate(logger.log_dir).Images("plot")
    assert image.step == 3
    assert image.encoded_image_string.startswith(b"\x89PNG")
