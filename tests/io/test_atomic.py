import errno
import itertools
import os
import signal
import stat
import subprocess
import sys
import threading

import numpy as np
import pytest

from minitorch import io
from minitorch.errors import CheckpointError
from minitorch.io import atomic

OLD, NEW = {"values": np.zeros(1000)}, {"values": np.ones(1000)}
POSIX = pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals and folders")


@pytest.fixture
def path(tmp_path):
    io.save_tree(tmp_path / "last.ckpt", OLD)
    return tmp_path / "last.ckpt"


def holds(path, tree):
    return np.array_equal(io.load_tree(path)["values"], tree["values"])


def names(path):
    return sorted(p.name for p in path.parent.iterdir())


class FullDisk:
    """A file that takes a number of writes and then reports a full disk."""

    def __init__(self, file, room, error):
        self.file, self.room, self.error = file, room, error

    def write(self, data):
        self.room -= 1
        if self.room < 0:
            raise self.error
        return self.file.write(data)

    def __getattr__(self, name):
        return getattr(self.file, name)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.file.close()


def full(monkeypatch, room, error):
    monkeypatch.setattr(
        atomic, "open", lambda *a, **k: FullDisk(open(*a, **k), room, error), raising=False
    )


def failing(name):
    def inject(monkeypatch, error):
        def fail(*args, **options):
            raise error

        if name == "open":
            monkeypatch.setattr(atomic, "open", fail, raising=False)
        else:
            monkeypatch.setattr(atomic.os, name, fail)

    return inject


STAGES = {
    "listdir": failing("listdir"),
    "open": failing("open"),
    "write the header": lambda m, e: full(m, 0, e),
    "write an array": lambda m, e: full(m, 1, e),
    "write the digest": lambda m, e: full(m, 2, e),
    "fsync": failing("fsync"),
    "replace": failing("replace"),
}


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()]
)
def test_a_failure_at_any_stage_leaves_the_previous_file(stage, error, path, monkeypatch):
    with monkeypatch.context() as patch:
        STAGES[stage](patch, error)
        if isinstance(error, OSError):
            expected = pytest.raises(
                CheckpointError, match=r"could not be written .*No space left.* A"
            )
        else:
            expected = pytest.raises(KeyboardInterrupt)
        with expected:
            io.save_tree(path, NEW)
    assert names(path) == ["last.ckpt"]
    assert holds(path, OLD)
    io.save_tree(path, NEW)
    assert holds(path, NEW)


def test_a_disk_that_gives_back_other_bytes_leaves_the_previous_file(path, monkeypatch):
    fsync = os.fsync

    def damage(number):
        fsync(number)
        if stat.S_ISREG(os.fstat(number).st_mode):
            os.pwrite(number, b"\0", os.fstat(number).st_size - 1)

    monkeypatch.setattr(atomic.os, "fsync", damage)
    with pytest.raises(CheckpointError, match=r"reading it gave other bytes.* unchanged. Check"):
        io.save_tree(path, NEW)
    assert names(path) == ["last.ckpt"]
    assert holds(path, OLD)


@POSIX
def test_a_folder_is_cleared_of_what_killed_processes_left(path, monkeypatch):
    monkeypatch.setattr(atomic.platform, "node", lambda: "ho.st")
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    gone = [f".last.ckpt.ho.st-{ended.pid}-0.tmp", f".other.ho.st-{ended.pid}-12.tmp"]
    kept = [f".last.ckpt.ho.st-{os.getpid()}-0.tmp", f".a.host-{ended.pid}-0.tmp", ".a.tmp"]
    for name in (*gone, *kept):
        (path.parent / name).write_bytes(b"")
    atomic.clear_folder(str(path.parent))
    assert names(path) == sorted(["last.ckpt", *kept])
    atomic.clear_folder(str(path.parent / "none"))


def test_a_failure_to_sync_the_folder_is_reported(path, monkeypatch):
    fsync = os.fsync

    def only_files(number):
        if stat.S_ISDIR(os.fstat(number).st_mode):
            raise OSError(code, "injected")
        fsync(number)

    monkeypatch.setattr(atomic.os, "fsync", only_files)
    code = errno.EINVAL
    io.save_tree(path, NEW)
    code = errno.EIO
    with pytest.raises(CheckpointError, match="is complete, but the folder could not be synced"):
        io.save_tree(path, NEW)
    assert names(path) == ["last.ckpt"]
    assert holds(path, NEW)


def test_the_order_is_write_fsync_rename_fsync_of_the_folder(path, monkeypatch):
    done = []
    fsync, replace = os.fsync, os.replace

    def log_fsync(number):
        kind = "folder" if stat.S_ISDIR(os.fstat(number).st_mode) else "file"
        done.append(f"fsync {kind} {os.fstat(number).st_size if kind == 'file' else ''}".strip())
        fsync(number)

    def log_replace(source, target):
        done.append("replace")
        replace(source, target)

    monkeypatch.setattr(atomic.os, "fsync", log_fsync)
    monkeypatch.setattr(atomic.os, "replace", log_replace)
    io.save_tree(path, NEW)
    assert done == [f"fsync file {path.stat().st_size}", "replace", "fsync folder"]


KILLED = """
import os, signal, sys
import numpy as np
from minitorch import io
from minitorch.io import atomic, container

calls = 0
def die(*args):
    global calls
    calls += 1
    if calls == int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*args)

owner = {"bytes_of": container}.get(sys.argv[2], atomic.os)
real = getattr(owner, sys.argv[2])
setattr(owner, sys.argv[2], die)
io.save_tree(sys.argv[1], {"values": np.ones(1000), "more": np.ones(10**6)})
"""


@POSIX
@pytest.mark.parametrize(
    ("call", "number", "kept"),
    [("bytes_of", 2, OLD), ("fsync", 1, OLD), ("replace", 1, OLD), ("fsync", 2, NEW)],
)
def test_a_killed_save_leaves_one_whole_file(call, number, kept, path):
    command = [sys.executable, "-c", KILLED, str(path), call, str(number)]
    assert subprocess.run(command).returncode == -signal.SIGKILL
    assert holds(path, kept)
    assert len(names(path)) == (2 if kept is OLD else 1)
    io.save_tree(path, NEW)
    assert names(path) == ["last.ckpt"]
    assert holds(path, NEW)


LIMITED = """
import resource, sys
import numpy as np
from minitorch import io
from minitorch.errors import CheckpointError

resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    io.save_tree(sys.argv[1], {"values": np.ones(10**6)})
except CheckpointError as error:
    print(error)
"""


@POSIX
def test_a_real_limit_on_the_size_is_reported(path):
    command = [sys.executable, "-c", LIMITED, str(path)]
    run = subprocess.run(command, capture_output=True, text=True)
    assert "could not be written" in run.stdout
    assert "File too large" in run.stdout
    assert names(path) == ["last.ckpt"]
    assert holds(path, OLD)


@POSIX
def test_only_left_overs_of_ended_processes_for_this_file_are_removed(path, monkeypatch):
    monkeypatch.setattr(atomic.platform, "node", lambda: "host")
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    gone = f".last.ckpt.host-{ended.pid}-0.tmp"
    kept = [
        f".last.ckpt.host-{os.getppid()}-0.tmp",
        f".last.ckpt.other-{ended.pid}-0.tmp",
        f".best.ckpt.host-{ended.pid}-0.tmp",
        ".last.ckpt.host-notes.tmp",
        f".last.ckpt.host-{10**30}-0.tmp",
    ]
    for name in (gone, *kept):
        (path.parent / name).write_bytes(b"")
    io.save_tree(path, NEW)
    assert names(path) == sorted(["last.ckpt", *kept])


@POSIX
def test_a_link_is_replaced_and_its_target_left_alone(path):
    link = path.parent / "best.ckpt"
    link.symlink_to(path.name)
    io.save_tree(link, NEW)
    assert not link.is_symlink()
    assert holds(path, OLD)
    assert holds(link, NEW)


@POSIX
def test_a_new_file_has_the_usual_permissions(path):
    plain = path.parent / "plain"
    plain.touch()
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(CheckpointError, match=r"none.x could not be written .* folder exists"):
        io.save_tree(tmp_path / "none" / "x", NEW)


def test_a_long_name_and_a_relative_path_work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    io.save_tree("x" * 255, NEW)
    assert holds(tmp_path / ("x" * 255), NEW)


def test_threads_that_write_one_path_leave_one_whole_file(path):
    trees = [{"values": np.full(20_000, i)} for i in range(4)]

    def work(tree):
        for _ in range(10):
            io.save_tree(path, tree)

    threads = [threading.Thread(target=work, args=(tree,)) for tree in trees]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        assert io.verify(path)
    assert names(path) == ["last.ckpt"]
    assert any(holds(path, tree) for tree in trees)


def test_temporary_names_are_not_used_twice():
    seen = [next(atomic._count) for _ in range(3)]
    assert all(b > a for a, b in itertools.pairwise(seen))
