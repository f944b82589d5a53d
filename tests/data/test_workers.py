"""Workers: errors, waiting, early ends, and what they are told."""

import gc
import os
import signal
import subprocess
import sys
import threading
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from loader_samples import (
    BreaksWhenLoaded,
    Dying,
    Failing,
    FailingStrangely,
    FailingStream,
    Hanging,
    Noisy,
    Pid,
    Place,
    Plain,
    SelfSplitting,
    Sharded,
    Squares,
    Unpicklable,
    init_fails,
    lambdas,
    loader_threads,
    plain,
    stringy,
)

import minitorch as mt
from minitorch.data import DataLoader, TensorDataset, get_worker_info, processes
from minitorch.data.fetch import ReadTask, Recipe
from minitorch.errors import DataError

KINDS = ("thread", "process")


def processes_of(loader: DataLoader[Any]) -> list[Any]:
    pool: Any = loader._workers._kept
    return pool._processes


@pytest.mark.parametrize("kind", KINDS)
def test_workers_change_no_batch(kind: str) -> None:
    for make, options in (
        (lambda: Noisy(13), {"batch_size": 4, "shuffle": True}),
        (lambda: TensorDataset(np.arange(9.0), mt.arange(9)), {"batch_size": 2, "shuffle": True}),
    ):
        wanted = [plain(batch) for batch in DataLoader(make(), **options)]
        got = list(DataLoader(make(), num_workers=2, worker_type=kind, **options))
        assert [plain(batch) for batch in got] == wanted
        assert isinstance(got[0][0], mt.Tensor)
        got[0][0].add_(1)  # batches of processes are writable, too


def test_workers_are_told_who_they_are() -> None:
    assert get_worker_info() is None
    for epoch in range(2):
        loader = DataLoader(Place(8), 2, num_workers=2)
        loader.set_epoch(epoch)
        batches = [plain(batch) for batch in loader]
        assert [batch[1] for batch in batches] == [[0, 0], [1, 1], [0, 0], [1, 1]]
        assert {n for batch in batches for n in batch[2]} == {2}
        assert {n for batch in batches for n in batch[3]} == {epoch}
    assert get_worker_info() is None


def test_init_function_runs_once_per_worker() -> None:
    started: list[int] = []
    loader = DataLoader(Squares(8), 2, num_workers=3, worker_init_fn=started.append)
    list(loader)
    assert sorted(started) == [0, 1, 2]
    list(loader)
    assert len(started) == 6


def test_reading_ahead_is_bounded() -> None:
    read: list[int] = []

    class Recording(Squares):
        def __getitem__(self, index: int) -> Any:
            read.append(index)
            return index

    loader = DataLoader(Recording(100), 1, num_workers=2, prefetch_factor=3)
    run = iter(loader)
    assert not read
    next(run)
    run.close()  # type: ignore[attr-defined]
    assert 1 <= len(read) <= 7


# ---- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [0, 2])
def test_an_error_names_the_sample_and_keeps_its_type_and_traceback(workers: int) -> None:
    loader = DataLoader(Failing(9, 5, KeyError("lost")), 2, num_workers=workers)
    seen = []
    with pytest.raises(KeyError, match="lost") as caught:
        seen.extend(loader)
    assert plain(seen) == [[0, 1], [2, 3]]
    worker = " in worker 0" if workers else ""
    assert f"Raised while the DataLoader read index 5 of Failing{worker}." in caught.value.__notes__
    assert caught.traceback[-1].name == "__getitem__"
    assert loader.state_dict()["batch"] == 2


def test_an_error_of_a_process_brings_its_traceback_along() -> None:
    loader = DataLoader(Failing(9, 2, KeyError("lost")), 2, num_workers=1, worker_type="process")
    with pytest.raises(KeyError, match="lost") as caught:
        list(loader)
    first, second = caught.value.__notes__
    assert first == "Raised while the DataLoader read index 2 of Failing in worker 0."
    assert "Traceback of the worker process (pid" in second
    assert "raise self.error" in second


def test_an_error_that_does_not_survive_the_pipe_has_a_stand_in() -> None:
    loader = DataLoader(FailingStrangely(3), 1, num_workers=1, worker_type="process")
    with pytest.raises(RuntimeError, match="StrangeError: ab") as caught:
        list(loader)
    assert "index 0 of FailingStrangely" in caught.value.__notes__[0]


@pytest.mark.parametrize("workers", [0, 1])
def test_an_error_in_a_stream_names_the_item(workers: int) -> None:
    with pytest.raises(KeyError, match="torn tape") as caught:
        list(DataLoader(FailingStream(5), 2, num_workers=workers))
    assert "item 5 of shard 0 of FailingStream" in caught.value.__notes__[0]


@pytest.mark.parametrize("workers", [0, 1])
def test_ragged_samples_are_named_with_their_index(workers: int) -> None:
    class Ragged(Squares):
        def __getitem__(self, index: int) -> Any:
            return np.zeros(2 if index == 7 else 3)

    loader = DataLoader(Ragged(10), 3, num_workers=workers)
    with pytest.raises(
        DataError,
        match=r"f64\[3\] in sample 0 of the batch \(dataset index 6\) and f64\[2\] in sample 1 of "
        r"the batch \(dataset index 7\)",
    ):
        list(loader)


@pytest.mark.parametrize("kind", KINDS)
def test_a_failing_start_is_reported(kind: str) -> None:
    loader = DataLoader(
        Squares(4), num_workers=2, worker_init_fn=init_fails, worker_type=kind, timeout=60
    )
    with pytest.raises(LookupError, match="no licence for 0") as caught:
        list(loader)
    assert "Raised while worker 0 of the DataLoader started." in caught.value.__notes__


@pytest.mark.parametrize("workers", [0, 1])
def test_an_error_of_the_collate_function_names_the_samples(workers: int) -> None:
    loader = DataLoader(Squares(30), 10, collate_fn=lambda s: 1 / 0, num_workers=workers)
    with pytest.raises(ZeroDivisionError) as caught:
        list(loader)
    (note,) = caught.value.__notes__
    assert "joined indices 0, 1, 2, 3, 4, 5, 6, 7, … of Squares" in note


def test_system_exit_in_a_thread_reaches_the_consumer() -> None:
    with pytest.raises(SystemExit):
        list(DataLoader(Failing(3, 1, SystemExit(3)), num_workers=1))


NOT_PICKLABLE = [
    ({"dataset": Unpicklable(3)}, "the dataset's attribute 'transform' cannot be pickled"),
    ({"dataset": Squares(3), "collate_fn": lambda s: s}, "collate_fn cannot be pickled"),
    ({"dataset": Squares(3), "worker_init_fn": lambda s: s}, "worker_init_fn cannot be pickled"),
    ({"dataset": type("Local", (Squares,), {})(3)}, r"the dataset \(Local\) cannot be pickled"),
]


@pytest.mark.parametrize(("options", "text"), NOT_PICKLABLE)
def test_what_cannot_be_sent_to_a_process_is_named(options: Any, text: str) -> None:
    loader: Any = DataLoader(**options, num_workers=1, worker_type="process")
    with pytest.raises(DataError, match=text + ".*or use worker_type='thread'"):
        list(loader)


def test_troubles_of_processes() -> None:
    with pytest.raises(OSError, match="the file is not there") as caught:
        list(DataLoader(BreaksWhenLoaded(3), num_workers=1, worker_type="process"))
    assert "Raised while worker 0 of the DataLoader started." in caught.value.__notes__
    with pytest.raises(RuntimeError, match=r"worker process 0 \(pid \d+\) died with exit code -9"):
        list(DataLoader(Dying(3), num_workers=1, worker_type="process"))
    loader = DataLoader(Squares(3), num_workers=1, worker_type="process", collate_fn=lambdas)
    with pytest.raises(DataError, match="the batch cannot be pickled"):
        list(loader)


def test_a_worker_that_hangs_is_given_up_after_the_timeout() -> None:
    dataset = Hanging(4)
    dataset.release = threading.Event()
    loader = DataLoader(dataset, num_workers=1, timeout=0.05)
    run = iter(loader)
    assert next(run).tolist() == [0]
    threading.Timer(0.2, dataset.release.set).start()
    with pytest.raises(RuntimeError, match="worker 0 gave no batch within timeout=0.05 seconds"):
        next(run)


def test_a_process_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_GRACE_SECONDS", 0.05)
    pool = processes.ProcessPool(Recipe(Hanging(2), plain, True, None), 1)
    run = pool.begin()
    for index in (0, 1):
        pool.submit(0, ReadTask(run, index, 0, 0, [index], None))
    assert pool.receive(0, None) == [0]
    with pytest.raises(RuntimeError, match="worker 0 gave no batch within timeout=0.05 seconds"):
        pool.receive(0, 0.05)
    pool.close()
    assert not pool._processes[0].is_alive()
    assert not os.path.exists(pool._path)


def test_large_python_objects_are_announced_and_arrays_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(processes, "_LARGE_BYTES", 100_000)
    dataset = Squares(2)
    dataset.table = np.zeros(10**6)  # type: ignore[attr-defined]
    loader = DataLoader(dataset, num_workers=1, worker_type="process")
    assert len(list(loader)) == 2
    dataset.names = [str(i) for i in range(50_000)]  # type: ignore[attr-defined]
    with pytest.warns(UserWarning, match="Squares holds 0 MB of Python objects.*Pack long lists"):
        list(loader)


def test_a_dead_process_is_replaced_at_the_next_epoch() -> None:
    loader = DataLoader(Squares(4), 2, num_workers=1, worker_type="process")
    first = [plain(batch) for batch in loader]
    (process,) = processes_of(loader)
    process.kill()
    process.join()
    with pytest.raises(RuntimeError, match="died with exit code -9"):
        list(loader)
    assert [plain(batch) for batch in loader] == first


# ---- ends ----------------------------------------------------------------------------------------


def leave_with_an_error(loader: DataLoader[Any]) -> None:
    for _ in loader:
        raise ZeroDivisionError


def test_threads_end_with_their_loop_however_it_ends() -> None:
    loader = DataLoader(Squares(50), 2, num_workers=2)
    for _ in loader:
        assert len(loader_threads()) == 2
        break
    assert not loader_threads()
    run = iter(loader)
    next(run)
    del run
    assert not loader_threads()
    with pytest.raises(ZeroDivisionError):
        leave_with_an_error(loader)
    gc.collect()
    assert not loader_threads()
    iter(loader)
    assert not loader_threads()


def test_kept_threads_end_with_their_loader() -> None:
    loader = DataLoader(Squares(50), 2, num_workers=2, persistent_workers=True)
    for _ in range(3):
        for _ in loader:
            break
        assert len(loader_threads()) == 2
    assert [len(b[0]) for b in loader] == [2] * 25
    nested = [(plain(a), plain(b)) for a, b in zip(loader, loader, strict=True)]
    assert all(a == b for a, b in nested)
    assert len(loader_threads()) == 2
    del loader
    gc.collect()
    assert not loader_threads()


def test_kept_processes_serve_all_epochs_and_see_changes() -> None:
    dataset = Pid(4)
    loader = DataLoader(dataset, 2, num_workers=1, worker_type="process")
    first = {pid for batch in loader for pid in plain(batch)}
    for batch in loader:
        assert set(plain(batch)) == first
        break
    assert {pid for batch in loader for pid in plain(batch)} == first != {os.getpid()}
    dataset.note = "changed"  # type: ignore[attr-defined]
    second = {pid for batch in loader for pid in plain(batch)}
    assert first.isdisjoint(second)
    processes = processes_of(loader)
    path = loader._workers._kept._path  # type: ignore[union-attr]
    assert all(process.is_alive() for process in processes)
    assert os.path.exists(path)
    del loader
    gc.collect()
    assert not any(process.is_alive() for process in processes)
    assert not os.path.exists(path)


def test_the_batches_of_a_dropped_loop_are_freed() -> None:
    loader = DataLoader(np.zeros((8, 2)), 2, num_workers=1)
    run = iter(loader)
    batch = next(run)
    ghost = weakref.ref(batch)
    del batch, run
    gc.collect()
    assert ghost() is None


SCRIPT = """
import sys
sys.path[:0] = {path!r}
from loader_samples import Squares
from minitorch.data import DataLoader

if __name__ == "__main__":
    loader = DataLoader(Squares(10**6), 1, num_workers=2, worker_type={kind!r})
    for batch in loader:
        if batch[0].item() == 5:
            pool = loader._workers._kept
            print("started", *(p.pid for p in (pool._processes if pool else [])), flush=True)
        {action}
"""


@pytest.mark.parametrize("kind", KINDS)
def test_interrupt_ends_the_program_with_its_workers(kind: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(path=sys.path, kind=kind, action="pass"))
    program = subprocess.Popen(
        [sys.executable, script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert program.stdout is not None
    started, *workers = program.stdout.readline().split()
    assert started == "started"
    assert len(workers) == (2 if kind == "process" else 0)
    os.killpg(program.pid, signal.SIGINT)  # what a terminal does on Ctrl-C
    _, errors = program.communicate(timeout=60)
    assert program.returncode == -signal.SIGINT
    assert errors.count("KeyboardInterrupt") == 1
    assert errors.count("Traceback") == 1
    for worker in workers:
        with pytest.raises(ProcessLookupError):
            os.kill(int(worker), 0)


@pytest.mark.parametrize("kind", KINDS)
def test_the_program_can_end_inside_of_a_loop(kind: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        SCRIPT.format(path=sys.path, kind=kind, action="    sys.exit(3)").replace("pass", "")
    )
    result = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stderr) == (3, "")
    assert result.stdout.startswith("started")


def test_a_script_without_a_main_guard_is_told_so(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    text = SCRIPT.format(path=sys.path, kind="process", action="pass")
    script.write_text(text.replace('if __name__ == "__main__"', "if True"))
    result = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60)
    assert result.returncode == 1
    assert "put the program's entry under `if __name__ == '__main__':`" in result.stderr


# ---- streams -------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [Plain, SelfSplitting])
@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.filterwarnings("ignore:DataLoader. num_workers=3, but")
def test_a_stream_without_shards_comes_once(make: Any, workers: int) -> None:
    loader = DataLoader(make(10), 4, num_workers=workers)
    assert [batch.tolist() for batch in loader] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


@pytest.mark.parametrize("kind", KINDS)
def test_a_sharded_stream_comes_once_whatever_the_workers(kind: str) -> None:
    def read(workers: int, **options: Any) -> list[Any]:
        kinds = {"worker_type": kind} if workers else {}
        return plain(list(DataLoader(Sharded(17, **options), 2, num_workers=workers, **kinds)))

    assert sorted(sum(read(2), [])) == list(range(17))
    fixed = read(0, num_shards=5)
    assert read(2, num_shards=5) == fixed
    assert sorted(sum(fixed, [])) == list(range(17))
    assert fixed[:6] == [[0, 5], [1, 6], [2, 7], [3, 8], [4, 9], [10, 15]]


def test_an_idle_worker_is_announced() -> None:
    with pytest.warns(UserWarning, match="Plain.__iter__ takes no shard.*one worker reads"):
        DataLoader(Plain(4), num_workers=2)


def test_collate_function_of_the_user_in_workers() -> None:
    for kind in KINDS:
        loader = DataLoader(Squares(3), 2, num_workers=1, worker_type=kind, collate_fn=stringy)
        assert list(loader) == [["(0, 0)", "(1, 1)"], ["(2, 4)"]]


def test_large_messages_pass_both_ways() -> None:
    wide = np.arange(600_000, dtype=np.float64).reshape(200_000, 3)
    loader = DataLoader(wide, 100_000, shuffle=True, num_workers=2, worker_type="process")
    here = DataLoader(wide, 100_000, shuffle=True)
    for a, b in zip(loader, here, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())
