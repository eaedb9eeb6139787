"""Every file that a program names goes through one seam: schemes are honoured, or refused with their name."""

from __future__ import annotations

import ast
import functools
import http.server
import os
import re
import stat
import sys
import threading
import uuid
from pathlib import Path

import pytest

import dtf as tf
from dtf.wire import errors, filesystems, fsspec_files

DTF = Path(tf.__file__).parent
UNKNOWN = "nosuch1://host/folder"


def saved(folder: str) -> str:
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.get_variable("v", initializer=[1.0, 2.0])
        words = tf.get_variable("words", initializer=["a", "bc"])
        session.run([v.initializer, words.initializer])
        return tf.train.Saver([v, words]).save(session, f"{folder}/m", global_step=3)


def restored(prefix: str) -> list[object]:
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.get_variable("v", shape=[2])
        words = tf.get_variable("words", initializer=["", ""])
        tf.train.Saver([v, words]).restore(session, prefix)
        return [session.run(v).tolist(), session.run(words).tolist()]


def ran(make: object) -> object:
    with tf.Graph().as_default(), tf.Session() as session:
        return session.run(make())  # type: ignore[operator]


def exported(folder: str) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.get_variable("v", initializer=5.0)
        session.run(v.initializer)
        builder = tf.saved_model.builder.SavedModelBuilder(folder)
        builder.add_meta_graph_and_variables(session, ["serve"])
        builder.save()


def loaded(folder: str) -> object:
    with tf.Graph().as_default(), tf.Session() as session:
        tf.saved_model.loader.load(session, ["serve"], folder)
        return session.run("v:0")


def trained(folder: str) -> int:
    with tf.Graph().as_default():
        step = tf.train.get_or_create_global_step()
        add = tf.assign_add(step, 1)
        with tf.train.MonitoredTrainingSession(checkpoint_dir=folder, save_summaries_steps=1) as session:
            return int(session.run(add))


def recorded(path: str) -> list[bytes]:
    with tf.python_io.TFRecordWriter(path) as writer:
        writer.write(b"abc")
    return list(tf.python_io.tf_record_iterator(path))


def works_in(folder: str) -> None:
    """All kinds of files, in a file system of that folder, which does not exist yet."""
    tf.gfile.MakeDirs(f"{folder}/deep/er")
    with tf.gfile.GFile(f"{folder}/a", "w") as file:
        file.write("hello\n")
    assert tf.gfile.GFile(f"{folder}/a").read() == "hello\n"
    assert tf.gfile.Exists(f"{folder}/a") and not tf.gfile.Exists(f"{folder}/b")
    assert tf.gfile.IsDirectory(f"{folder}/deep") and not tf.gfile.IsDirectory(f"{folder}/a")
    assert tf.gfile.Stat(f"{folder}/a").length == 6
    assert sorted(tf.gfile.ListDirectory(folder)) == ["a", "deep"]
    assert tf.gfile.Glob(f"{folder}/a*") == [f"{folder}/a"]
    tf.gfile.Copy(f"{folder}/a", f"{folder}/c")
    tf.gfile.Rename(f"{folder}/c", f"{folder}/e")
    assert [(top, sorted(below), sorted(files)) for top, below, files in tf.gfile.Walk(folder)][0] == (
        folder, ["deep"], ["a", "e"]
    )  # fmt: skip
    tf.gfile.Remove(f"{folder}/e")
    tf.gfile.DeleteRecursively(f"{folder}/deep")
    assert tf.gfile.ListDirectory(folder) == ["a"]
    with pytest.raises(errors.NotFoundError):
        tf.gfile.Remove(f"{folder}/e")

    prefix = saved(folder)
    assert prefix == f"{folder}/m-3"
    assert tf.train.latest_checkpoint(folder) == prefix
    assert tf.train.checkpoint_exists(prefix)
    assert restored(prefix) == [[1.0, 2.0], [b"a", b"bc"]]
    assert tf.train.list_variables(prefix) == [("v", [2]), ("words", [2])]
    with tf.Graph().as_default():
        tf.train.import_meta_graph(f"{prefix}.meta")

    assert ran(lambda: tf.read_file(f"{folder}/a")) == b"hello\n"
    assert ran(lambda: tf.matching_files(f"{folder}/a*")).tolist() == [f"{folder}/a".encode()]  # type: ignore[attr-defined]
    ran(lambda: tf.write_file(f"{folder}/made/w", b"1"))
    assert tf.gfile.Exists(f"{folder}/made/w")
    lines = ran(lambda: tf.data.make_one_shot_iterator(tf.data.TextLineDataset(f"{folder}/a")).get_next())
    assert lines == b"hello"
    assert recorded(f"{folder}/records") == [b"abc"]

    exported(f"{folder}/model")
    assert loaded(f"{folder}/model") == 5.0
    assert trained(f"{folder}/train") == 1
    assert tf.train.latest_checkpoint(f"{folder}/train") == f"{folder}/train/model.ckpt-1"
    assert trained(f"{folder}/train") == 2
    events = [path for path in tf.gfile.Glob(f"{folder}/train/events*")]
    assert sum(len(list(tf.train.summary_iterator(path))) for path in events) > 2


def test_a_file_url_must_name_local_files(tmp_path):
    works_in(f"file://{tmp_path}/x")
    assert (tmp_path / "x" / "m-3.index").is_file()


def test_a_pipe_or_device_must_be_written_to_and_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    tf.train.write_graph(tf.Graph(), str(tmp_path), "pipe")
    assert stat.S_ISFIFO(os.stat(tmp_path / "pipe").st_mode)
    assert b"versions" in os.read(reader, 10000)
    os.close(reader)
    assert os.listdir(tmp_path) == ["pipe"]


def test_what_fsspec_reaches_must_hold_all_kinds_of_files():
    pytest.importorskip("fsspec")
    works_in(f"memory://{uuid.uuid4().hex}/x")


def test_files_of_a_web_server_can_be_read(tmp_path):
    pytest.importorskip("fsspec")
    pytest.importorskip("aiohttp", reason="fsspec needs aiohttp for http://, and it is not installed")
    prefix = saved(str(tmp_path))
    with tf.python_io.TFRecordWriter(str(tmp_path / "r")) as writer:
        writer.write(b"one")
    handler = functools.partial(RangeHandler, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        assert restored(f"{url}/{os.path.basename(prefix)}") == restored(prefix)
        assert list(tf.python_io.tf_record_iterator(f"{url}/r")) == [b"one"]
        assert tf.gfile.Exists(f"{url}/r") and not tf.gfile.Exists(f"{url}/absent")
        server.shutdown()


class RangeHandler(http.server.SimpleHTTPRequestHandler):
    """Files of a folder, and parts of them, as object stores give them."""

    def do_GET(self):
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        path = Path(self.translate_path(self.path))
        if asked is None or not path.is_file():
            super().do_GET()
            return
        data = path.read_bytes()
        part = data[int(asked[1]) : int(asked[2]) + 1]
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {asked[1]}-{int(asked[1]) + len(part) - 1}/{len(data)}")
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        self.wfile.write(part)

    def end_headers(self):
        self.send_header("Accept-Ranges", "bytes")
        super().end_headers()

    def log_message(self, *arguments):
        pass


def test_paths_of_bytes_are_paths(tmp_path):
    folder = os.fsencode(tmp_path)
    with tf.Graph().as_default(), tf.Session() as session:
        tf.get_variable("v", initializer=[1.0, 2.0])
        session.run(tf.global_variables_initializer())
        saver = tf.train.Saver()
        prefix = saver.save(session, folder + b"/m")
        saver.restore(session, os.fsencode(prefix))
        assert tf.train.latest_checkpoint(folder) == prefix and tf.train.checkpoint_exists(os.fsencode(prefix))
        assert tf.train.load_variable(folder, "v").tolist() == [1, 2]
        tf.summary.FileWriter(folder + b"/events").close()
        builder = tf.saved_model.builder.SavedModelBuilder(folder + b"/model")
        builder.add_meta_graph_and_variables(session, ["serve"])
        builder.save()
        assert loaded_variable(folder + b"/model") == [1, 2]
    assert "model" in tf.gfile.ListDirectory(folder) and tf.gfile.Glob(folder + b"/even*")
    assert [folders for _, folders, _ in tf.gfile.Walk(folder)][0]


def loaded_variable(folder):
    with tf.Graph().as_default(), tf.Session() as session:
        tf.saved_model.loader.load(session, ["serve"], folder)
        return session.run("v:0").tolist()


def test_a_refused_scheme_names_what_to_install(monkeypatch):
    for name in ("fsspec", "fsspec.registry"):
        monkeypatch.setitem(sys.modules, name, None)
    fsspec_files.file_system.cache_clear()
    with pytest.raises(errors.UnimplementedError, match=r"'s3' not implemented .*pip install 'dtf\[fs\]'"):
        tf.gfile.Exists("s3://bucket/x")
    fsspec_files.file_system.cache_clear()


REFUSED = {
    "read": lambda: tf.gfile.GFile(f"{UNKNOWN}/a").read(),
    "write": lambda: tf.gfile.GFile(f"{UNKNOWN}/a", "w").write("x"),
    "Exists": lambda: tf.gfile.Exists(f"{UNKNOWN}/a"),
    "Stat": lambda: tf.gfile.Stat(f"{UNKNOWN}/a"),
    "MakeDirs": lambda: tf.gfile.MakeDirs(UNKNOWN),
    "MkDir": lambda: tf.gfile.MkDir(UNKNOWN),
    "Glob": lambda: tf.gfile.Glob(f"{UNKNOWN}/*"),
    "Copy": lambda: tf.gfile.Copy(f"{UNKNOWN}/a", "b"),
    "Rename": lambda: tf.gfile.Rename("a", f"{UNKNOWN}/b", overwrite=True),
    "Remove": lambda: tf.gfile.Remove(f"{UNKNOWN}/a"),
    "DeleteRecursively": lambda: tf.gfile.DeleteRecursively(UNKNOWN),
    "save": lambda: saved(UNKNOWN),
    "restore": lambda: restored(f"{UNKNOWN}/m-3"),
    "checkpoint_exists": lambda: tf.train.checkpoint_exists(f"{UNKNOWN}/m-3"),
    "import_meta_graph": lambda: tf.train.import_meta_graph(f"{UNKNOWN}/m-3.meta"),
    "ReadFile": lambda: ran(lambda: tf.read_file(f"{UNKNOWN}/a")),
    "WriteFile": lambda: ran(lambda: tf.write_file(f"{UNKNOWN}/a", b"1")),
    "MatchingFiles": lambda: ran(lambda: tf.matching_files(f"{UNKNOWN}/a*")),
    "TextLineDataset": lambda: ran(
        lambda: tf.data.make_one_shot_iterator(tf.data.TextLineDataset(f"{UNKNOWN}/a")).get_next()
    ),
    "records": lambda: recorded(f"{UNKNOWN}/r"),
    "FileWriter": lambda: tf.summary.FileWriter(f"{UNKNOWN}/events"),
    "SavedModelBuilder": lambda: exported(f"{UNKNOWN}/model"),
    "loader": lambda: loaded(f"{UNKNOWN}/model"),
    "write_graph": lambda: tf.train.write_graph(tf.Graph(), UNKNOWN, "g.pb"),
    "MonitoredTrainingSession": lambda: trained(UNKNOWN),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_unknown_scheme_must_be_refused_by_its_name(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").write_text("a")
    with pytest.raises(errors.UnimplementedError, match=r"scheme 'nosuch1' not implemented \(file: 'nosuch1:"):
        REFUSED[name]()
    assert [path.name for path in tmp_path.iterdir()] == ["a"], "no folder is made of a URL"


class Deaf:
    """A store that cannot be reached, whose library has errors of its own."""

    protocol = "deaf1"

    def __getattr__(self, name):
        def ask(*arguments, **options):
            raise RuntimeError("nothing listens there")

        return ask

    def _strip_protocol(self, path):
        return path


@pytest.mark.parametrize("name", [name for name in REFUSED if name != "Rename"])  # which asks no store
def test_a_store_that_gives_no_answer_must_be_an_error_and_not_an_empty_store(name, tmp_path, monkeypatch):
    pytest.importorskip("fsspec")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").write_text("a")
    found = fsspec_files.FsspecFiles(Deaf())
    monkeypatch.setattr(filesystems, "file_system", lambda scheme: found)
    with pytest.raises((errors.UnavailableError, errors.UnknownError), match="RuntimeError: nothing listens there"):
        REFUSED[name]()


def test_a_stored_file_must_be_uploaded_when_it_has_grown_and_at_its_end(monkeypatch):
    monkeypatch.setattr(fsspec_files, "_UPLOAD_SHARE", 1e-9)
    uploads = []
    with fsspec_files.StoredFile(lambda file: uploads.append(file.read()), b"old ") as file:
        file.flush()
        file.write(b"x" * 100)
        file.flush()
        file.write(b"y")
        file.flush()  # so little waits for the next upload
        assert uploads == [b"old ", b"old " + b"x" * 100]
    assert uploads[2:] == [b"old " + b"x" * 100 + b"y"]


@pytest.fixture
def bucket(monkeypatch):
    """The URL of a bucket of a server on this machine that speaks S3's protocol."""
    pytest.importorskip("s3fs", reason="s3fs is not installed")
    moto = pytest.importorskip("moto.server", reason="moto, a server that speaks S3's protocol, is not installed")
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    for name, value in {
        "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://{host}:{port}", "AWS_MAX_ATTEMPTS": "1", "NO_PROXY": "127.0.0.1",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    fsspec_files.file_system.cache_clear()
    tf.gfile.MakeDirs("s3://training")
    yield "s3://training"
    fsspec_files.file_system.cache_clear()
    server.stop()


@pytest.mark.filterwarnings("ignore")  # those libraries use what Python has deprecated
def test_a_bucket_must_hold_all_kinds_of_files(bucket):
    works_in(f"{bucket}/x")
    tf.gfile.MakeDirs(f"{bucket}/a/b")
    with pytest.raises(errors.AlreadyExistsError):
        tf.gfile.MkDir(f"{bucket}/a/b")
    tf.gfile.Rename(f"{bucket}/a", f"{bucket}/c")
    assert [(top, below) for top, below, _ in tf.gfile.Walk(f"{bucket}/c")] == [
        (f"{bucket}/c", ["b"]), (f"{bucket}/c/b", [])
    ]  # fmt: skip
    tf.gfile.DeleteRecursively(bucket + "/c")
    assert tf.gfile.ListDirectory(bucket) == ["x"]


def test_questions_that_tensorflow_answers_must_be_answered(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert tf.gfile.IsDirectory(UNKNOWN) is False
    assert list(tf.gfile.Walk(UNKNOWN)) == []
    assert tf.train.latest_checkpoint(UNKNOWN) is None
    with pytest.raises(errors.NotFoundError, match=f"Could not find directory {UNKNOWN}"):
        tf.gfile.ListDirectory(UNKNOWN)
    tf.gfile.MakeDirs("a-b://x")  # no scheme: a local folder, as in TensorFlow
    assert (tmp_path / "a-b:" / "x").is_dir()


@pytest.mark.parametrize(
    "path, folder",
    [("a/b", "a"), ("/a", "/"), ("a", ""), ("s3://b/k", "s3://b"), ("s3://b", "s3://"), ("file:///a/b", "file:///a")],
)
def test_the_folder_of_a_path_must_keep_its_scheme(path, folder):
    assert filesystems.dirname(path) == folder


OWN_FILES = {
    "wire/filesystems.py", "wire/limits.py", "wire/unfinished.py", "wire/credentials.py", "wire/opdef.py",
    "run/kernels/__init__.py", "testing.py", "test/test_case.py", "as_tensorflow/program.py", "check/__main__.py",
    "check/scan.py",
    "blas_environment.py",
}  # fmt: skip
"""Modules that read files of the system, of this package or of a command line, and none that a program names."""


def test_no_module_must_open_files_beside_the_seam():
    found = []
    for path in DTF.rglob("*.py"):
        name = path.relative_to(DTF).as_posix()
        if name in OWN_FILES or name.startswith(("wire/pb/", "run/lib/")):
            continue
        text = path.read_text(encoding="utf-8")
        if not AROUND.search(text):
            continue  # nearly all of them
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in BESIDE:
                found.append(f"{name}:{node.lineno}: {ast.unparse(node.func)}")
    assert not found


BESIDE = frozenset(
    "open os.makedirs os.mkdir os.replace os.rename os.remove os.unlink os.rmdir os.listdir os.scandir os.walk os.stat "
    "os.path.exists os.path.isdir os.path.isfile os.path.getsize os.path.getmtime shutil.rmtree shutil.copyfile "
    "shutil.move glob.glob glob.iglob".split()
)
AROUND = re.compile(rf"(?<![\w.])(?:{'|'.join(map(re.escape, sorted(BESIDE)))})\(")
