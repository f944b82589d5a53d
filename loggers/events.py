"""Builds TensorBoard's events with tensorboardX's messages; imported only when one is written."""

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from tensorboardX.proto.api_pb2 import (
    DataType,
    Experiment,
    HParamInfo,
    MetricInfo,
    MetricName,
    Status,
)
from tensorboardX.proto.event_pb2 import Event
from tensorboardX.proto.graph_pb2 import GraphDef
from tensorboardX.proto.plugin_hparams_pb2 import (
    HParamsPluginData,
    SessionEndInfo,
    SessionStartInfo,
)
from tensorboardX.proto.plugin_text_pb2 import TextPluginData
from tensorboardX.proto.summary_pb2 import HistogramProto, Summary, SummaryMetadata
from tensorboardX.proto.tensor_pb2 import TensorProto
from tensorboardX.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboardX.proto.versions_pb2 import VersionDef

from minitorch.loggers.logger import Graph
from minitorch.loggers.pictures import png

_SMALLEST = 1e-12  # edges of the histogram's buckets: ±1e-12 · 1.1^k, TensorBoard's own
_GROWTH = 1.1
_STEPS = 768
_TEMPLATES = 256


class EventEncoder:
    """Encodes logged items; keeps one message for each set of metrics that are logged together."""

    def __init__(self) -> None:
        self._templates: dict[tuple[str, ...], tuple[Any, list[Any]]] = {}

    def version(self, wall_time: float) -> bytes:
        """The first event of a file: the version of its format."""
        return _bytes(Event(wall_time=wall_time, file_version="brain.Event:2"))

    def event(self, wall_time: float, step: int, payload: Any) -> bytes:
        """Metrics (a dict), a Summary's builder, or the bytes of a complete event."""
        if type(payload) is dict:
            return self._scalars(wall_time, step, payload)
        if type(payload) is bytes:
            return payload
        return _bytes(Event(wall_time=wall_time, step=step, summary=payload()))

    def _scalars(self, wall_time: float, step: int, row: dict[str, float]) -> bytes:
        tags = tuple(row)
        template = self._templates.get(tags)
        if template is None:
            if len(self._templates) >= _TEMPLATES:
                self._templates.clear()
            event = Event(summary=Summary(value=[Summary.Value(tag=tag) for tag in tags]))
            template = self._templates[tags] = (event, list(event.summary.value))
        event, values = template
        event.wall_time = wall_time
        event.step = step
        for value, number in zip(values, row.values(), strict=True):
            value.simple_value = number
        return _bytes(event)


def histogram(tag: str, values: np.ndarray) -> Any:
    """Summary of the distribution of real values, any shape; non-finite ones are left out."""
    flat = values.reshape(-1)
    if flat.dtype not in (np.float32, np.float64):
        flat = flat.astype(np.float32 if flat.dtype == np.float16 else np.float64)
    flat = flat[np.isfinite(flat)]
    if flat.size == 0:
        return Summary(value=[Summary.Value(tag=tag, histo=HistogramProto())])
    magnitude = np.maximum(np.abs(flat), flat.dtype.type(_SMALLEST / _GROWTH))
    index = np.floor(np.log(magnitude / _SMALLEST) / np.log(_GROWTH)) + 1
    index = np.copysign(np.minimum(index, _STEPS), flat).astype(np.int64)
    first = int(index.min())
    counts = np.bincount(index - first)
    bucket = np.arange(first, first + len(counts))
    edge = np.where(bucket < 0, -bucket - 1, bucket)
    limits = np.copysign(_SMALLEST * _GROWTH**edge, np.where(bucket < 0, -1.0, 1.0))
    wide = flat.astype(np.float64)
    proto = HistogramProto(
        min=float(flat.min()),
        max=float(flat.max()),
        num=flat.size,
        sum=float(wide.sum()),
        sum_squares=float(wide @ wide),
        bucket_limit=limits.tolist(),
        bucket=counts.tolist(),
    )
    return Summary(value=[Summary.Value(tag=tag, histo=proto)])


def image(tag: str, pixels: np.ndarray) -> Any:
    """Summary of a picture uint8[H, W, C]."""
    height, width, channels = pixels.shape
    proto = Summary.Image(
        height=height, width=width, colorspace=channels, encoded_image_string=png(pixels)
    )
    return Summary(value=[Summary.Value(tag=tag, image=proto)])


def text(tag: str, content: str) -> Any:
    """Summary of a text; TensorBoard renders Markdown."""
    tensor = TensorProto(
        dtype="DT_STRING",
        string_val=[content.encode("utf-8", "backslashreplace")],
        tensor_shape=TensorShapeProto(dim=[TensorShapeProto.Dim(size=1)]),
    )
    metadata = _metadata("text", _bytes(TextPluginData(version=0)))
    return Summary(value=[Summary.Value(tag=tag, metadata=metadata, tensor=tensor)])


def hparams_start(
    params: Mapping[str, bool | int | float | str], metrics: list[str], wall_time: float
) -> list[Callable[[], Any]]:
    """Builders of the summaries that open a session of the HParams tab in the run itself."""
    start = SessionStartInfo(start_time_secs=wall_time)
    infos = []
    for name, value in params.items():
        if isinstance(value, bool):
            start.hparams[name].bool_value = value
            kind = "DATA_TYPE_BOOL"
        elif isinstance(value, str):
            start.hparams[name].string_value = value
            kind = "DATA_TYPE_STRING"
        else:
            start.hparams[name].number_value = value
            kind = "DATA_TYPE_FLOAT64"
        infos.append(HParamInfo(name=name, type=DataType.Value(kind)))
    experiment = Experiment(
        time_created_secs=wall_time,
        hparam_infos=infos,
        metric_infos=[MetricInfo(name=MetricName(tag=name)) for name in metrics],
    )
    return [
        _hparams("_hparams_/experiment", HParamsPluginData(experiment=experiment)),
        _hparams("_hparams_/session_start_info", HParamsPluginData(session_start_info=start)),
    ]


def hparams_end(success: bool, wall_time: float) -> Callable[[], Any]:
    """Builder of the summary that closes the session."""
    status = Status.Value("STATUS_SUCCESS" if success else "STATUS_FAILURE")
    end = SessionEndInfo(status=status, end_time_secs=wall_time)
    return _hparams("_hparams_/session_end_info", HParamsPluginData(session_end_info=end))


def graph(model: Graph, wall_time: float) -> bytes:
    """Event with the model's operations as a GraphDef.

    An attribute `shape` that lists integers (`8,3`, `f32[8,3]`) is shown on the outgoing edges;
    `device` places the node.

    Raises:
        ValueError: a name is not usable or taken, or an input is no node.
    """
    definition = GraphDef(versions=VersionDef(producer=22))
    nodes = list(model.nodes)
    names = {node.name for node in nodes}
    seen: set[str] = set()
    for node in nodes:
        _check_node(node.name, list(node.inputs), names, seen)
        seen.add(node.name)
        entry = definition.node.add(name=node.name, op=node.op, input=list(node.inputs))
        for key, value in node.attrs.items():
            entry.attr[key].s = str(value).encode("utf-8", "backslashreplace")
        entry.device = str(node.attrs.get("device", ""))
        sizes = re.fullmatch(r"(?:[^\[(]*[\[(])?([\d, ]*)[\])]?", str(node.attrs.get("shape", "?")))
        if sizes is not None:
            shape = entry.attr["_output_shapes"].list.shape.add()
            for size in re.findall(r"\d+", sizes[1]):
                shape.dim.add(size=int(size))
    return _bytes(Event(wall_time=wall_time, graph_def=_bytes(definition)))


def _check_node(name: str, inputs: list[str], names: set[str], seen: set[str]) -> None:
    if not name or name.startswith(("^", "/", "_")) or ":" in name:
        raise ValueError(
            "a graph node's name must not be empty, start with '^', '/' or '_', or hold ':'. "
            f"Got {name!r}. Use names such as 'net/0/linear'."
        )
    if name in seen:
        raise ValueError(f"graph nodes must have unique names. Got {name!r} twice. Number them.")
    for source in inputs:
        if source not in names:
            raise ValueError(
                f"a graph node's inputs must be names of nodes. Got {source!r} as input of "
                f"{name!r}. Add a node for it, for example with op='Placeholder'."
            )


def _hparams(tag: str, content: Any) -> Callable[[], Any]:
    metadata = _metadata("hparams", _bytes(content))
    summary = Summary(value=[Summary.Value(tag=tag, metadata=metadata)])
    return lambda: summary


def _metadata(plugin: str, content: bytes) -> Any:
    data = SummaryMetadata.PluginData(plugin_name=plugin, content=content)
    return SummaryMetadata(plugin_data=data)


def _bytes(message: Any) -> bytes:
    data: bytes = message.SerializeToString()
    return data
