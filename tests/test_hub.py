"""Downloads: where files go, checksums, progress, errors that leave nothing behind; models of a directory."""

import hashlib
import http.server
import os
import threading
import urllib.error
import zipfile
from pathlib import Path

import pytest

import rushlight as torch
from rushlight import hub


@pytest.fixture(autouse=True)
def own_directory(tmp_path, monkeypatch):
    monkeypatch.setattr(hub, "_hub_dir", None)
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def checkpoint(tmp_path):
    """A checkpoint whose name has the first digits of its checksum."""
    path = tmp_path / "weights.pth"
    torch.save({"w": torch.tensor([1.0, 2.0])}, path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return path.rename(tmp_path / f"weights-{digest[:8]}.pth")


def files(folder):
    return sorted(str(p.relative_to(folder)) for p in Path(folder).rglob("*") if p.is_file())


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"TORCH_HOME": "/a"}, "/a/hub"),
        ({"TORCH_HOME": "~/a"}, "{home}/a/hub"),
        ({"XDG_CACHE_HOME": "/b"}, "/b/torch/hub"),
        ({}, "{home}/.cache/torch/hub"),
    ],
)
def test_directory_is_pytorchs(environment, expected, monkeypatch):
    for name in ("TORCH_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert hub.get_dir() == expected.format(home=os.path.expanduser("~"))


def test_set_dir(tmp_path):
    hub.set_dir(tmp_path / "x")
    assert hub.get_dir() == str(tmp_path / "x")
    hub.set_dir("~/x")
    assert hub.get_dir() == os.path.expanduser("~/x")


def test_download_goes_to_the_cache_once(checkpoint, capsys):
    url = checkpoint.as_uri()
    assert hub.load_state_dict_from_url(url, check_hash=True)["w"].tolist() == [1.0, 2.0]
    path = os.path.join(hub.get_dir(), "checkpoints", checkpoint.name)
    assert capsys.readouterr().err.startswith(f'Downloading: "{url}" to {path}\n')
    assert Path(path).read_bytes() == checkpoint.read_bytes()
    checkpoint.unlink()
    assert hub.load_state_dict_from_url(url, check_hash=True)["w"].tolist() == [1.0, 2.0]
    assert capsys.readouterr().err == ""


def test_directory_and_name_may_be_given(checkpoint, tmp_path):
    hub.load_state_dict_from_url(
        checkpoint.as_uri() + "#part", model_dir=str(tmp_path / "m"), file_name="n.pth", progress=False
    )
    assert files(tmp_path / "m") == ["n.pth"]


def test_wrong_checksum_leaves_nothing(checkpoint, tmp_path):
    wrong = checkpoint.rename(checkpoint.with_name("weights-00000000.pth"))
    digest = hashlib.sha256(wrong.read_bytes()).hexdigest()
    with pytest.raises(RuntimeError) as info:
        hub.load_state_dict_from_url(wrong.as_uri(), check_hash=True)
    assert str(info.value) == f'invalid hash value (expected "00000000", got "{digest}")'
    assert files(hub.get_dir()) == []
    with pytest.raises(RuntimeError, match="invalid hash value"):
        hub.download_url_to_file(wrong.as_uri(), str(tmp_path / "out"), hash_prefix="123")
    assert not (tmp_path / "out").exists()
    assert hub.load_state_dict_from_url(wrong.as_uri())["w"].tolist() == [1.0, 2.0]  # not asked to compare


def test_failed_download_keeps_the_old_file(checkpoint, tmp_path):
    target = tmp_path / "target"
    target.write_bytes(b"old")
    with pytest.raises(RuntimeError, match="invalid hash value"):
        hub.download_url_to_file(checkpoint.as_uri(), str(target), hash_prefix="123", progress=False)
    assert target.read_bytes() == b"old"
    assert files(tmp_path) == sorted([checkpoint.name, "target"])


def test_progress_is_shown(checkpoint, tmp_path, capsys):
    pytest.importorskip("tqdm", reason="without tqdm there is no bar")
    hub.download_url_to_file(checkpoint.as_uri(), str(tmp_path / "a"))
    assert "100%" in capsys.readouterr().err
    hub.download_url_to_file(checkpoint.as_uri(), str(tmp_path / "b"), progress=False)
    assert capsys.readouterr().err == ""


def test_zipped_checkpoint(checkpoint, tmp_path):
    archive = tmp_path / "zipped.pth"
    with zipfile.ZipFile(archive, "w") as file:
        file.write(checkpoint, "inner.pth")
    assert hub.load_state_dict_from_url(archive.as_uri())["w"].tolist() == [1.0, 2.0]


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        assert self.headers["User-Agent"] == "torch.hub"
        if self.path == "/short.pth":
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b"x" * 300)
        else:
            self.send_error(404, "Not here")

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


def test_error_of_the_server(server):
    with pytest.raises(urllib.error.HTTPError, match="404"):
        hub.load_state_dict_from_url(f"{server}/weights.pth")
    assert files(hub.get_dir()) == []


def test_connection_that_ends_early(server):
    with pytest.raises(urllib.error.URLError, match="the connection ended after 300 of 1000 bytes"):
        hub.load_state_dict_from_url(f"{server}/short.pth", progress=False)
    assert files(hub.get_dir()) == []


def test_no_network_says_where_to_put_the_file(server):
    path = os.path.join(hub.get_dir(), "checkpoints", "weights.pth")
    url = "http://127.0.0.1:1/weights.pth"
    with pytest.raises(urllib.error.URLError) as info:
        hub.load_state_dict_from_url(url)
    assert f"{url} could not be downloaded. Without a network, put that file at {path}" in str(info.value)


def test_local_models(tmp_path):
    (tmp_path / "helper_of_hubconf.py").write_text("factor = 2\n")
    (tmp_path / "hubconf.py").write_text(
        "dependencies = ['numpy']\nfrom helper_of_hubconf import factor\n\n\n"
        "def double(a, b=1):\n    return factor * a + b\n"
    )
    assert hub.load(str(tmp_path), "double", 3, source="local", b=5, trust_repo=True) == 11
    with pytest.raises(RuntimeError, match="Cannot find callable triple in hubconf"):
        hub.load(str(tmp_path), "triple", source="local")
    (tmp_path / "hubconf.py").write_text("dependencies = ['no_such_package_here']\n")
    with pytest.raises(RuntimeError, match="Missing dependencies: no_such_package_here"):
        hub.load(str(tmp_path), "double", source="local")
    with pytest.raises(FileNotFoundError, match=r"hubconf\.py"):
        hub.load(str(tmp_path / "nowhere"), "double", source="local")


def test_refused_sources():
    with pytest.raises(NotImplementedError, match="clone pytorch/vision and pass the directory with source='local'"):
        hub.load("pytorch/vision", "resnet18")
    with pytest.raises(ValueError, match='Unknown source: "disk"'):
        hub.load("x", "y", source="disk")
