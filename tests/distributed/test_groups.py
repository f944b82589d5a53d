"""Processes that work together: collectives, what differing ranks are told, launching."""

from __future__ import annotations

import ast
from datetime import timedelta
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Listener
from pathlib import Path
from typing import Any

import pytest
import rank_programs as programs

import minitorch as mt
from minitorch import distributed as dist
from minitorch.distributed.hub import Hub, receive, send
from minitorch.errors import ArgumentError, DistributedError
from minitorch.trainer import Trainer

RULE = "every rank must enter the same collectives in the same order"


def test_collectives() -> None:
    dist.spawn(programs.collectives, nprocs=3)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (
            "other call",
            rf"{RULE}. Got rank 0 in all_reduce f32\[3\] op=sum at \S+rank_programs.py:\d+ in "
            r"wrong: dist.all_reduce\(t\); rank 1 in barrier at \S+rank_programs.py:\d+ in wrong",
        ),
        ("shapes", rf"{RULE}. Got rank 0 in all_reduce f32\[3\].*rank 1 in all_reduce f32\[4\]"),
        ("options", rf"{RULE}.*rank 0 in broadcast f32\[3\] root=0.*rank 1.*root=1"),
        (
            "ended",
            rf"{RULE}. Got rank 0 in all_reduce.*processes that have ended: rank 1 \(its last: "
            "init_process_group",
        ),
        ("killed", r"processes that have ended: rank 1[\s\S]*rank 1: ended with exit code 7"),
        ("raised", "rank 1:[^$]*ValueError: no such file"),
        ("late", r"rank 0 in barrier.*after 1 s still not there: rank 1"),
        ("first ended", "rank 0 lets the ranks meet and must end last"),
    ],
)
def test_ranks_that_differ_get_an_error_with_both_lines(
    kind: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("minitorch.distributed.launch.GRACE_SECONDS", 1.0)
    with pytest.raises(DistributedError, match=text):
        dist.spawn(programs.wrong, (kind,), nprocs=2)


def test_processes_can_be_joined_later() -> None:
    started = dist.spawn(programs.collectives, nprocs=2, join=False)
    assert started is not None
    assert len(started.pids()) == 2
    assert started.join(0) is False
    assert started.join() is True


class TestOneProcess:
    def test_a_group_of_one(self, tmp_path: Path) -> None:
        dist.init_process_group("gloo", f"file://{tmp_path}/meet", rank=0, world_size=1)
        try:
            assert (dist.get_rank(), dist.get_world_size(), dist.get_backend()) == (0, 1, "gloo")
            t = mt.ones(2)
            dist.all_reduce(t)
            assert t.tolist() == [1, 1]
            assert not (tmp_path / "meet").exists()
            with pytest.raises(DistributedError, match="belongs to one group"):
                dist.init_process_group()
            for call, text in {
                lambda: dist.all_reduce([1]): "a Tensor is needed",
                lambda: dist.all_reduce(t, "xor"): "op must be one of",
                lambda: dist.broadcast(t, 3): "must be a rank from 0 to 0. Got 3",
                lambda: dist.all_gather([], t): "one entry for each of the 1 ranks. Got 0",
                lambda: dist.barrier(group=1): "there is one group",
                lambda: dist.all_gather_into_tensor(mt.ones(3), t): "must hold 2 values",
            }.items():
                with pytest.raises(ArgumentError, match=text):
                    call()
        finally:
            dist.destroy_process_group()

    def test_the_environment_and_an_address(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name, value in {"RANK": "0", "WORLD_SIZE": "1", "MASTER_PORT": "45671"}.items():
            monkeypatch.setenv(name, value)
        dist.init_process_group()
        dist.destroy_process_group()
        dist.init_process_group(init_method="tcp://localhost:45672")
        dist.destroy_process_group()

    def test_without_a_group(self) -> None:
        assert dist.is_available()
        assert dist.is_gloo_available()
        assert not dist.is_initialized()
        assert not dist.is_nccl_available()
        assert (dist.get_rank(), dist.get_world_size()) == (0, 1)
        dist.barrier()
        dist.destroy_process_group()
        with pytest.raises(DistributedError, match="must form a group first"):
            dist.all_reduce(mt.ones(1))
        with pytest.raises(NotImplementedError, match="there is one group"):
            dist.new_group([0])

    @pytest.mark.parametrize(
        ("options", "text"),
        [
            ({"backend": "nccl"}, "backend must be 'gloo'"),
            ({"rank": 0}, "world_size is missing"),
            ({"rank": 2, "world_size": 2}, "rank must be below world_size=2. Got 2"),
            ({"rank": -2, "world_size": 2}, "rank must be ≥ 0. Got -2"),
            ({"rank": 0, "world_size": 0}, "world_size must be ≥ 1. Got 0"),
            ({"store": 1, "rank": 0, "world_size": 1}, "store and pg_options"),
            ({"init_method": "tcp://far:1", "rank": 0, "world_size": 1}, "on one machine"),
            ({"init_method": "env://", "rank": 0, "world_size": 1}, "MASTER_PORT"),
        ],
    )
    def test_wrong_arguments(
        self, options: dict[str, Any], text: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("RANK", "WORLD_SIZE", "MASTER_PORT", "MASTER_ADDR"):
            monkeypatch.delenv(name, raising=False)
        with pytest.raises(ArgumentError, match=text):
            dist.init_process_group(**options)

    def test_a_first_rank_that_does_not_come(self, tmp_path: Path) -> None:
        with pytest.raises(DistributedError, match=r"within 0.05 s. Rank 1 found no rank 0"):
            dist.init_process_group(
                init_method=f"file://{tmp_path}/x",
                rank=1,
                world_size=2,
                timeout=timedelta(seconds=0.05),
            )

    @pytest.mark.parametrize(
        ("options", "text"),
        [({"nprocs": 0}, "nprocs must be"), ({"start_method": "fork"}, "must be 'spawn'")],
    )
    def test_wrong_arguments_of_spawn(self, options: dict[str, Any], text: str) -> None:
        with pytest.raises(ArgumentError, match=text):
            dist.spawn(programs.collectives, **options)


class TestEvaluation:
    @pytest.mark.parametrize("stage", ["validate", "test"])
    def test_it_equals_one_process(self, tmp_path: Path, stage: str) -> None:
        alone = Trainer(enable_progress_bar=False)
        expected = getattr(alone, stage)(programs.Judge(), programs.judged(), verbose=False)[0]
        dist.spawn(programs.evaluate, (str(tmp_path), stage), nprocs=2)
        found = [ast.literal_eval((tmp_path / f"{rank}.txt").read_text()) for rank in range(2)]
        assert found[0][0] == found[1][0]
        assert found[0][0][0] == pytest.approx(expected, rel=1e-6)
        assert found[0][0][0]["samples"] == 21
        assert found[0][0][0]["accuracy"] == expected["accuracy"]
        assert [one[1:] for one in found] == [(1, False), (0, True)]

    @pytest.mark.parametrize(
        ("kind", "text"),
        [
            ("fit", "Trainer.fit: only validate and test work in several processes"),
            ("predict", "Trainer.predict: only validate and test"),
            ("by hand", r"log\('hand'\): what an epoch's end computes by hand"),
            ("late", r"log\('late'\): .* merged once.* Got one after that.*before Order.REPORT"),
            ("few", "each counts once. Got 1 for them"),
            ("sampler", "Got a DistributedSampler, which repeats some"),
            ("stream", "Got a Stream without a length"),
            ("loose", "Got one that is no attribute of the task"),
        ],
    )
    def test_what_is_refused(self, kind: str, text: str) -> None:
        with pytest.raises(DistributedError, match=text):
            dist.spawn(programs.refused, (kind,), nprocs=2)


def test_one_process_prepares_and_results_of_metrics_are_exact(tmp_path: Path) -> None:
    dist.spawn(programs.prepared, (str(tmp_path),), nprocs=2)


class TestHub:
    """Each waits at most five seconds: a hub that says nothing fails the test."""

    @staticmethod
    def start(world_size: int, seconds: float, combine: Any) -> Any:
        listener = Listener(authkey=b"key")
        hub = Hub(listener, world_size, seconds, combine)
        hub.start()
        return listener.address, hub

    @staticmethod
    def ask(address: Any, rank: int) -> Any:
        connection = Client(address, authkey=b"key")
        send(connection, {"rank": rank}, b"")
        send(connection, {"call": "barrier", "line": "a.py:1", "details": {}}, b"")
        return connection

    def answer(self, connection: Any) -> str:
        assert connection.poll(5), "the hub says nothing"
        return str(receive(connection)[0]["error"])

    def test_ranks_that_never_come_are_told_to_the_others(self) -> None:
        address, hub = self.start(3, 0.2, None)
        connection = self.ask(address, 1)
        with pytest.raises(AuthenticationError):
            Client(address, authkey=b"other")
        text = self.answer(connection)
        assert "all 3 ranks must come within 0.2 s. Got rank 1 and not rank 0, rank 2." in text
        connection.close()
        hub.join(5)
        assert not hub.is_alive()

    def test_failure_in_the_hub_is_told_to_all(self) -> None:
        def combine(*args: Any) -> Any:
            raise LookupError("no such")

        address, hub = self.start(2, 5.0, combine)
        connections = [self.ask(address, rank) for rank in range(2)]
        for connection in connections:
            assert "Got LookupError: no such. Start the group anew" in self.answer(connection)
            connection.close()
        hub.join(5)
        assert not hub.is_alive()
