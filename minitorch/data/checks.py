"""What a DataLoader checks before it reads anything."""

import random
import warnings
from typing import Any

import numpy as np

from ..errors import ArgumentError, DataError, describe
from ..random import Generator
from .arrays import is_array
from .dataset import IterableDataset, checked_len, length_or_none, stream_keywords
from .samplers import checked_count, checked_flag, seed_of

WORKER_TYPES = ("thread", "process")


def check_arguments(
    loader: Any, batch_size: Any, shuffle: Any, sampler: Any, batch_sampler: Any
) -> None:
    """Check each argument of a loader, and which of them exclude each other.

    Raises:
        ArgumentError: see the texts.
    """
    if batch_size is not None:
        checked_count("batch_size", batch_size)
    if shuffle is not None:
        checked_flag("shuffle", shuffle)
    checked_flag("drop_last", loader.drop_last)
    checked_flag("spread_last", loader.spread_last)
    seed_of(loader.generator)
    _check_order(loader, batch_size, shuffle, sampler, batch_sampler)
    _check_workers(loader)


def _check_order(
    loader: Any, batch_size: Any, shuffle: Any, sampler: Any, batch_sampler: Any
) -> None:
    if sampler is not None and shuffle:
        raise ArgumentError(
            "sampler and shuffle=True exclude each other, because a sampler is the order. "
            "Leave shuffle out, or use RandomSampler inside of your sampler."
        )
    if loader.drop_last and loader.spread_last:
        raise ArgumentError("drop_last and spread_last exclude each other. Choose one.")
    if batch_sampler is not None:
        others = {
            "batch_size": batch_size != 1,
            "shuffle": bool(shuffle),
            "sampler": sampler is not None,
            "drop_last": loader.drop_last,
            "spread_last": loader.spread_last,
        }
        if given := [name for name, is_given in others.items() if is_given]:
            raise ArgumentError(
                f"batch_sampler excludes {', '.join(given)}, because it gives whole batches. "
                "Leave them out."
            )
    if batch_size is None and (loader.drop_last or loader.spread_last):
        raise ArgumentError(
            "batch_size=None hands out samples one by one, so drop_last and spread_last have no "
            "meaning. Leave them out."
        )
    if isinstance(loader.dataset, IterableDataset):
        others = {
            "shuffle=True": bool(shuffle),
            "sampler": sampler is not None,
            "batch_sampler": batch_sampler is not None,
            "spread_last": loader.spread_last,
        }
        if given := [name for name, is_given in others.items() if is_given]:
            raise ArgumentError(
                f"{type(loader.dataset).__name__} is an IterableDataset, which has its own order, "
                f"so {', '.join(given)} cannot be used. Shuffle in its __iter__ (it may take rng)."
            )


def _check_workers(loader: Any) -> None:
    checked_count("num_workers", loader.num_workers, minimum=0)
    if loader.worker_type not in WORKER_TYPES:
        raise ArgumentError(
            f"worker_type must be one of {', '.join(map(repr, WORKER_TYPES))}. "
            f"Got {loader.worker_type!r}."
        )
    if not isinstance(loader.timeout, int | float) or not loader.timeout >= 0:
        raise ArgumentError(f"timeout must be seconds ≥ 0. Got {loader.timeout!r}.")
    if loader.prefetch_factor is not None:
        checked_count("prefetch_factor", loader.prefetch_factor)
    needs_workers = {
        "prefetch_factor": loader.prefetch_factor is not None,
        "persistent_workers": bool(loader.persistent_workers),
        "timeout": loader.timeout > 0,
    }
    if not loader.num_workers and (
        given := [name for name, is_on in needs_workers.items() if is_on]
    ):
        raise ArgumentError(
            f"{', '.join(given)} needs workers, but num_workers=0. Set num_workers ≥ 1, or leave "
            "it out."
        )
    context = loader.multiprocessing_context
    method = getattr(context, "get_start_method", lambda: context)()
    if method not in (None, "spawn"):
        raise ArgumentError(
            f"multiprocessing_context must be 'spawn'. Got {method!r}. "
            "Threads of the compiled kernels do not survive a fork."
        )
    checked_flag("in_order", loader.in_order)


def check_data(loader: Any) -> None:
    """Check that the dataset fits the loader.

    Raises:
        DataError: see the texts.
    """
    dataset, workers = loader.dataset, loader.num_workers
    if loader.collate_fn is not None and not callable(loader.collate_fn):
        raise ArgumentError(f"collate_fn must be a function. Got {loader.collate_fn!r}.")
    if isinstance(dataset, tuple) and dataset and all(map(is_array, dataset)):
        raise DataError(
            f"DataLoader: a tuple of arrays, {', '.join(map(describe, dataset))}, could mean "
            "columns or samples. Use TensorDataset(*data) for columns, list(data) for samples."
        )
    if workers and (shared := shared_generators(dataset)):
        raise DataError(
            f"DataLoader: {shared[0]} is a random generator, which num_workers={workers} would "
            "share or copy, so that augmentations repeat or depend on timing. Take the keyword rng "
            "in __getitem__(self, index, *, rng): the loader passes a generator for each sample."
        )
    if isinstance(dataset, IterableDataset):
        _check_stream(dataset, workers)
    elif not hasattr(dataset, "__getitem__"):
        raise DataError(
            f"DataLoader: a dataset needs __getitem__ and __len__, or must be an IterableDataset. "
            f"Got {type(dataset).__name__}. Wrap a generator in an IterableDataset."
        )
    check_length(loader)


def _check_stream(dataset: IterableDataset[Any], workers: int) -> None:
    sharded = "shard" in stream_keywords(dataset)
    if dataset.num_shards is not None:
        checked_count(f"{type(dataset).__name__}.num_shards", dataset.num_shards)
    if workers > 1 and not sharded:
        warnings.warn(
            f"DataLoader: num_workers={workers}, but {type(dataset).__name__}.__iter__ takes no "
            "shard, num_shards, so one worker reads the whole stream (each sample comes once). "
            "Define __iter__(self, *, shard, num_shards), or use num_workers=1.",
            stacklevel=4,
        )


def check_length(loader: Any) -> None:
    """Check that an epoch has at least one batch, where lengths are known.

    Raises:
        DataError: there would be none.
    """
    if isinstance(loader.dataset, IterableDataset):
        return
    order = loader.sampler if loader.batch_sampler is None else loader.batch_sampler
    if getattr(loader.sampler, "data_source", None) is loader.dataset:
        checked_len(loader.dataset)
    if length_or_none(order) != 0:
        return
    size = getattr(loader.batch_sampler, "batch_size", None)
    if samples := length_or_none(loader.sampler):
        raise DataError(
            f"DataLoader: drop_last=True with {samples} samples and batch_size={size} leaves no "
            "batch. Use a smaller batch_size, drop_last=False or spread_last=True."
        )
    raise DataError(
        f"DataLoader: the dataset is empty ({type(loader.dataset).__name__} gives 0 samples). "
        "Check its path or its filter."
    )


def shared_generators(dataset: Any, path: str = "dataset") -> list[str]:
    """The attributes of a dataset, and of datasets that it wraps, that are random generators."""
    kinds = (np.random.Generator, np.random.RandomState, random.Random, Generator)
    attributes = getattr(dataset, "__dict__", {})
    found = [f"{path}.{name}" for name, value in attributes.items() if isinstance(value, kinds)]
    for i, part in enumerate(attributes.get("parts", ())):
        found += shared_generators(part, f"{path}.parts[{i}]")
    return found
