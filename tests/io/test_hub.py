"""Downloads of weights, from a server on this machine or file URLs."""

import functools
import hashlib
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import minitorch as mt
from minitorch import hub, io
from minitorch.errors import ArgumentError, DataError


class Quiet(http.server.SimpleHTTPRequestHandler):
    requests: list[str] = []

    def do_GET(self) -> None:
        self.requests.append(self.path)
        if self.path == "/short":
            self.send_response(200)
            self.send_header("Content-Length", "100")
            self.end_headers()
            self.wfile.write(b"x")
            return
        super().do_GET()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "www").mkdir()
    Quiet.requests.clear()
    handler = functools.partial(Quiet, directory=str(tmp_path / "www"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "_chosen", None)
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "home"))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


def test_weights_are_got_once_and_checked(server: str, tmp_path: Path) -> None:
    io.save_file({"a": mt.ones(2)}, tmp_path / "www" / "a")
    digest = hashlib.sha256((tmp_path / "www" / "a").read_bytes()).hexdigest()
    name = f"net-{digest[:8]}.safetensors"
    (tmp_path / "www" / "a").rename(tmp_path / "www" / name)
    for _ in range(2):
        state = hub.load_state_dict_from_url(f"{server}/{name}?x=1", check_hash=True)
        assert state["a"].tolist() == [1, 1]
    assert Quiet.requests == [f"/{name}?x=1"]
    assert [path.name for path in (tmp_path / "home/hub/checkpoints").iterdir()] == [name]


def test_the_wrong_file_is_refused_and_not_kept(server: str, tmp_path: Path) -> None:
    (tmp_path / "www" / "net-0123456789.pth").write_bytes(b"x")
    with pytest.raises(DataError, match="could not be had: SHA-256 is .*, expected 0123456789"):
        hub.load_state_dict_from_url(f"{server}/net-0123456789.pth", check_hash=True)
    with pytest.raises(DataError, match="could not be had: HTTP Error 404"):
        hub.load_state_dict_from_url(f"{server}/none.pth")
    with pytest.raises(DataError, match="could not be had"):
        hub.load_state_dict_from_url(f"{server}/short")
    assert not list((tmp_path / "home/hub/checkpoints").iterdir())


def test_file_urls_names_and_folders(tmp_path: Path) -> None:
    mt.save({"a": mt.ones(2)}, tmp_path / "state")
    url = (tmp_path / "state").as_uri()
    state = hub.load_state_dict_from_url(url, tmp_path / "models", "cpu", file_name="b.pt")
    assert state["a"].tolist() == [1, 1]
    assert (tmp_path / "models" / "b.pt").is_file()
    hub.set_dir(tmp_path / "other")
    hub.load_state_dict_from_url(url)
    assert (tmp_path / "other/checkpoints/state").is_file()
    assert hub.get_dir() == str(tmp_path / "other")


def test_the_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TORCH_HOME")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert hub.get_dir() == "/cache/minitorch/hub"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert hub.get_dir().endswith(".cache/minitorch/hub")


def test_without_a_network_the_fix_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"127.0.0.1:1/a could not be had: .*Check the network, or put the file at"
    ):
        hub.download_url_to_file("http://127.0.0.1:1/a", tmp_path / "a")
    assert not list(tmp_path.iterdir())


def test_progress_is_shown_in_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a").write_bytes(b"x" * 100_000)
    monkeypatch.setattr(hub.sys.stderr, "isatty", lambda: True, raising=False)
    hub.download_url_to_file((tmp_path / "a").as_uri(), tmp_path / "b", progress=True)
    assert capsys.readouterr().err == "\rb: 0.1 of 0.1 MB\n"
    assert (tmp_path / "b").read_bytes() == b"x" * 100_000


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: hub.download_url_to_file("ftp://a/b", "b"), "must begin with http, https or file"),
        (lambda: hub.load_state_dict_from_url("http://a/"), "a file name is needed. Got ''"),
        (
            lambda: hub.load_state_dict_from_url("http://a/b", file_name="../b"),
            "a file name is needed",
        ),
        (
            lambda: hub.load_state_dict_from_url("http://a/b.pth", check_hash=True),
            "check_hash needs a name such as net-f37072fd.pth. Got 'b.pth'",
        ),
    ],
)
def test_wrong_uses_are_refused(call, text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        call()


def test_code_from_elsewhere_is_refused() -> None:
    with pytest.raises(NotImplementedError, match="no code from elsewhere is run"):
        hub.load("a/b", "c")
