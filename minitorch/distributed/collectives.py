"""Collectives: what all ranks of a group do together, with tensors or with objects.

Tensors of a GPU travel through the host. Results do not depend on timing: values are combined in
the order of ranks.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..autograd.mode import no_grad
from ..autograd.node import user_line
from ..errors import ArgumentError, describe
from ..ops.creation import from_numpy
from ..tensor import Tensor
from .group import Group, current

Arrays = Sequence[np.ndarray]


class ReduceOp:
    """How values of several ranks become one."""

    SUM = "sum"
    AVG = "avg"
    PRODUCT = "product"
    MIN = "min"
    MAX = "max"


_REDUCTIONS: dict[str, np.ufunc] = {
    "sum": np.add,
    "avg": np.add,
    "product": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
}


class Work:
    """A collective that was asked for with async_op=True; it is done already."""

    def wait(self, timeout: Any = None) -> bool:
        """True: nothing is left to wait for."""
        return True

    def is_completed(self) -> bool:
        """True."""
        return True


def combine(details: dict[str, Any], payloads: Sequence[bytes]) -> list[bytes]:
    """From what each rank gave to what each rank gets."""
    kind, n = details["kind"], len(payloads)
    root: Any = details.get("root")
    if kind == "reduce":
        whole = _reduced(details, payloads)
        return [whole if root in (None, rank) else b"" for rank in range(n)]
    if kind == "broadcast":
        return [payloads[root]] * n
    if kind == "scatter":
        size = len(payloads[root]) // n
        return [payloads[root][rank * size : (rank + 1) * size] for rank in range(n)]
    if kind == "reduce_scatter":
        whole = _reduced(details, payloads)
        size = len(whole) // n
        return [whole[rank * size : (rank + 1) * size] for rank in range(n)]
    joined = _joined(payloads)
    return [joined if root in (None, rank) else b"" for rank in range(n)]


def _reduced(details: dict[str, Any], payloads: Sequence[bytes]) -> bytes:
    dtype = np.dtype(details["dtype"])
    arrays = [np.frombuffer(payload, dtype) for payload in payloads]
    total = arrays[0].copy()
    for array in arrays[1:]:
        _REDUCTIONS[details["op"]](total, array, out=total)
    if details["op"] == "avg":
        total = (total / len(arrays)).astype(dtype)
    return total.tobytes()


def _joined(payloads: Sequence[bytes]) -> bytes:
    """Payloads of any lengths as one, with their lengths in front."""
    lengths = np.array([len(payload) for payload in payloads], np.int64)
    return lengths.tobytes() + b"".join(payloads)


def _parts(joined: bytes, n: int) -> list[bytes]:
    lengths = np.frombuffer(joined, np.int64, n)
    ends = np.cumsum(lengths) + 8 * n
    return [joined[end - length : end] for length, end in zip(lengths, ends, strict=True)]


# Tensors.


def all_reduce(
    tensor: Tensor, op: str = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Replaces `tensor` in every rank by the sum (or `op`) of those of all ranks.

    Args:
        tensor: The same shape and dtype in all ranks; written in place.
        op: One of ReduceOp.
        group: None: there is one group, of all processes.
        async_op: Return a Work.

    Raises:
        DistributedError: The ranks do not do the same; the text names the line of each.
    """
    _write(tensor, _tensors("all_reduce", "reduce", tensor, group, op=op))
    return Work() if async_op else None


def reduce(
    tensor: Tensor, dst: int = 0, op: str = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """As `all_reduce`, but only the tensor of rank `dst` changes."""
    answer = _tensors("reduce", "reduce", tensor, group, op=op, root=dst)
    if current("reduce").rank == dst:
        _write(tensor, answer)
    return Work() if async_op else None


def broadcast(
    tensor: Tensor, src: int = 0, group: Any = None, async_op: bool = False
) -> Work | None:
    """Replaces `tensor` in every rank by that of rank `src`."""
    _write(tensor, _tensors("broadcast", "broadcast", tensor, group, root=src))
    return Work() if async_op else None


def all_gather(
    tensor_list: list[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """Writes the tensors of all ranks into `tensor_list`, which has one for each rank."""
    member = current("all_gather")
    _check_list("all_gather", "tensor_list", tensor_list, member)
    answer = _tensors("all_gather", "gather", tensor, group)
    for target, part in zip(tensor_list, _parts(answer, member.world_size), strict=True):
        _write(target, part)
    return Work() if async_op else None


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """Writes the tensors of all ranks, one after the other, into `output_tensor`."""
    member = current("all_gather_into_tensor")
    wanted = member.world_size * input_tensor.numel()
    if output_tensor.numel() != wanted:
        raise ArgumentError(
            f"all_gather_into_tensor: output_tensor must hold {wanted} values, those of all ranks. "
            f"Got {describe(output_tensor)} for {describe(input_tensor)} of {member.world_size}."
        )
    answer = _tensors("all_gather_into_tensor", "gather", input_tensor, group)
    _write(output_tensor, b"".join(_parts(answer, member.world_size)))
    return Work() if async_op else None


def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int = 0,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Writes the tensors of all ranks into the `gather_list` of rank `dst`."""
    member = current("gather")
    if member.rank == dst:
        _check_list("gather", "gather_list", gather_list, member)
    answer = _tensors("gather", "gather", tensor, group, root=dst)
    if member.rank == dst:
        assert gather_list is not None
        for target, part in zip(gather_list, _parts(answer, member.world_size), strict=True):
            _write(target, part)
    return Work() if async_op else None


def scatter(
    tensor: Tensor,
    scatter_list: list[Tensor] | None = None,
    src: int = 0,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Writes into `tensor` of each rank its one of the `scatter_list` of rank `src`."""
    member = current("scatter")
    payload = b""
    if member.rank == src:
        _check_list("scatter", "scatter_list", scatter_list, member)
        assert scatter_list is not None
        payload = b"".join(_bytes(one) for one in scatter_list)
    _write(tensor, _tensors("scatter", "scatter", tensor, group, root=src, payload=payload))
    return Work() if async_op else None


def reduce_scatter(
    output: Tensor,
    input_list: list[Tensor],
    op: str = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Sums the lists of all ranks and writes into `output` of each rank its one of the sums."""
    _check_list("reduce_scatter", "input_list", input_list, current("reduce_scatter"))
    payload = b"".join(_bytes(one) for one in input_list)
    answer = _tensors("reduce_scatter", "reduce_scatter", output, group, op=op, payload=payload)
    _write(output, answer)
    return Work() if async_op else None


def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None) -> Work | None:
    """Waits until all ranks have come; without a group there is nobody to wait for."""
    from .group import is_initialized

    if is_initialized():
        _check_group("barrier", group)
        current("barrier").exchange("barrier", user_line(), details={"kind": "gather"})
    return Work() if async_op else None


# Objects.


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Puts the objects of all ranks, which pickle must know, into `object_list`."""
    member = current("all_gather_object")
    _check_list("all_gather_object", "object_list", object_list, member)
    answer = _objects("all_gather_object", "gather", obj, group)
    object_list[:] = map(pickle.loads, _parts(answer, member.world_size))


def gather_object(
    obj: Any, object_gather_list: list[Any] | None = None, dst: int = 0, group: Any = None
) -> None:
    """Puts the objects of all ranks into the `object_gather_list` of rank `dst`."""
    member = current("gather_object")
    if member.rank == dst:
        _check_list("gather_object", "object_gather_list", object_gather_list, member)
    answer = _objects("gather_object", "gather", obj, group, root=dst)
    if member.rank == dst:
        assert object_gather_list is not None
        object_gather_list[:] = map(pickle.loads, _parts(answer, member.world_size))


def broadcast_object_list(
    object_list: list[Any], src: int = 0, group: Any = None, device: Any = None
) -> None:
    """Replaces what is in `object_list` of every rank by what rank `src` has in it."""
    answer = _objects("broadcast_object_list", "broadcast", object_list, group, root=src)
    object_list[:] = pickle.loads(answer)


# What they share.


def _tensors(
    name: str,
    kind: str,
    tensor: Tensor,
    group: Any,
    *,
    op: str | None = None,
    root: int | None = None,
    payload: bytes | None = None,
) -> bytes:
    member = current(name)
    _check_group(name, group)
    _check_root(name, root, member)
    if not isinstance(tensor, Tensor):
        raise ArgumentError(f"{name}: a Tensor is needed. Got {describe(tensor)}.")
    if op is not None and op not in _REDUCTIONS:
        raise ArgumentError(f"{name}: op must be one of {[*_REDUCTIONS]}. Got {op!r}.")
    sent_by_all = root is None or kind in ("reduce", "gather")
    if payload is None:
        payload = _bytes(tensor) if sent_by_all or root == member.rank else b""
    options = [f"{key}={value}" for key, value in (("op", op), ("root", root)) if value is not None]
    call = " ".join([name, describe(tensor), *options])
    details = {"kind": kind, "op": op, "root": root, "dtype": tensor.dtype.numpy.name}
    return member.exchange(call, user_line(), payload, details)


def _objects(name: str, kind: str, obj: Any, group: Any, *, root: int | None = None) -> bytes:
    member = current(name)
    _check_group(name, group)
    _check_root(name, root, member)
    payload = pickle.dumps(obj) if kind != "broadcast" or root == member.rank else b""
    call = name if root is None else f"{name} root={root}"
    return member.exchange(call, user_line(), payload, {"kind": kind, "root": root})


def _bytes(tensor: Tensor) -> bytes:
    return np.ascontiguousarray(tensor.detach().cpu().numpy()).tobytes()


def _write(tensor: Tensor, data: bytes) -> None:
    array = np.frombuffer(data, tensor.dtype.numpy).reshape(tuple(tensor.shape))
    with no_grad():
        tensor.copy_(from_numpy(array))


def _check_list(name: str, argument: str, given: Any, member: Group) -> None:
    if not isinstance(given, list) or len(given) != member.world_size:
        got = f"{len(given)}" if isinstance(given, list) else type(given).__name__
        raise ArgumentError(
            f"{name}: {argument} must be a list with one entry for each of the "
            f"{member.world_size} ranks. Got {got}."
        )


def _check_root(name: str, root: int | None, member: Group) -> None:
    if root is not None and not (isinstance(root, int) and 0 <= root < member.world_size):
        raise ArgumentError(
            f"{name}: src or dst must be a rank from 0 to {member.world_size - 1}. Got {root!r}."
        )


def _check_group(name: str, group: Any) -> None:
    if group is not None:
        raise ArgumentError(
            f"{name}: there is one group, of all processes. Got group={group!r}. Leave it out."
        )
