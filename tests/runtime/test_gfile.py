"""tf.gfile and tf.python_io: files by TensorFlow's names."""

from __future__ import annotations

import pytest

from dtf import gfile, python_io
from dtf.wire import errors


def test_text_and_bytes_are_written_and_read(tmp_path):
    path = str(tmp_path / "file")
    with gfile.GFile(path, "w") as file:
        file.write("één\n")
        file.write(b"two\n")
    with gfile.Open(path) as file:
        assert file.read() == "één\ntwo\n"
    with gfile.GFile(path, "rb") as file:
        assert file.readline() == "één\n".encode()
        assert file.tell() == 6
        assert file.read(2) == b"tw"
        file.seek(0)
        assert list(file) == ["één\n".encode(), b"two\n"]
        assert file.size() == 10
    with gfile.GFile(path, "a") as file:
        file.write("three")
        file.flush()
    assert gfile.GFile(path).readlines() == ["één\n", "two\n", "three"]


def test_a_file_opened_for_writing_exists_even_if_nothing_is_written(tmp_path):
    gfile.GFile(str(tmp_path / "empty"), "w").close()
    assert gfile.Exists(str(tmp_path / "empty"))


def test_modes_are_kept(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(errors.PermissionDeniedError, match="isn't open for writing"):
        gfile.GFile(str(tmp_path / "file")).write("y")
    with pytest.raises(errors.PermissionDeniedError, match="isn't open for reading"):
        gfile.GFile(str(tmp_path / "file"), "w").read()
    with pytest.raises(errors.InvalidArgumentError, match="mode"):
        gfile.GFile(str(tmp_path / "file"), "q")


def test_what_is_missing_is_named(tmp_path):
    missing = str(tmp_path / "missing")
    for action in (gfile.GFile(missing).read, *(lambda f=f: f(missing) for f in (gfile.Stat, gfile.Remove))):
        with pytest.raises(errors.NotFoundError, match="missing"):
            action()
    for function in (gfile.ListDirectory, gfile.DeleteRecursively):
        with pytest.raises(errors.NotFoundError):
            function(missing)


def test_folders_are_made_listed_walked_and_removed(tmp_path):
    folder = str(tmp_path / "a" / "b")
    gfile.MakeDirs(folder)
    gfile.MakeDirs(folder)
    with pytest.raises(errors.AlreadyExistsError):
        gfile.MkDir(folder)
    gfile.MkDir(f"{folder}/c")
    for name in ("2.txt", "1.txt"):
        gfile.GFile(f"{folder}/{name}", "w").close()
    assert gfile.IsDirectory(folder) and not gfile.IsDirectory(f"{folder}/1.txt")
    assert sorted(gfile.ListDirectory(folder)) == ["1.txt", "2.txt", "c"]
    assert gfile.Glob(f"{folder}/*.txt") == [f"{folder}/1.txt", f"{folder}/2.txt"]
    assert gfile.Glob([f"{folder}/2*", f"{folder}/1*"]) == [f"{folder}/2.txt", f"{folder}/1.txt"]
    whole = [str(tmp_path), str(tmp_path / "a"), folder, f"{folder}/c"]
    assert [top for top, _, _ in gfile.Walk(str(tmp_path))] == whole
    assert [top for top, _, _ in gfile.Walk(folder, in_order=False)] == [f"{folder}/c", folder]
    with pytest.raises(errors.FailedPreconditionError):
        gfile.Remove(str(tmp_path / "a"))
    gfile.DeleteRecursively(str(tmp_path / "a"))
    assert not gfile.Exists(folder)


def test_files_are_copied_and_renamed_but_not_over_others_unless_told(tmp_path):
    one, two = str(tmp_path / "one"), str(tmp_path / "two")
    for path in (one, two):
        with gfile.GFile(path, "w") as file:
            file.write(path)
    for function in (gfile.Copy, gfile.Rename):
        with pytest.raises(errors.AlreadyExistsError):
            function(one, two)
    gfile.Copy(one, two, overwrite=True)
    assert gfile.GFile(two).read() == one
    gfile.Rename(one, two, overwrite=True)
    assert not gfile.Exists(one)
    stat = gfile.Stat(two)
    assert (stat.length, stat.is_directory) == (len(one), False)
    assert stat.mtime_nsec > 0


@pytest.mark.parametrize("compression", [None, "", "GZIP", "ZLIB"])
def test_records_are_read_as_they_were_written(tmp_path, compression):
    path = str(tmp_path / "records")
    options = python_io.TFRecordOptions(compression)
    records = [b"", b"abc", b"x" * 10000]
    with python_io.TFRecordWriter(path, options) as writer:
        for record in records:
            writer.write(record)
            writer.flush()
    assert list(python_io.tf_record_iterator(path, options)) == records


def test_damaged_records_and_other_compressions_are_refused(tmp_path):
    path = str(tmp_path / "records")
    with python_io.TFRecordWriter(path) as writer:
        writer.write(b"abc")
    with pytest.raises(errors.DataLossError):
        list(python_io.tf_record_iterator(path, "GZIP"))
    with open(path, "r+b") as file:
        file.seek(13)
        file.write(b"X")
    with pytest.raises(errors.DataLossError, match="corrupted record at 0"):
        list(python_io.tf_record_iterator(path))
    with pytest.raises(errors.NotFoundError):
        list(python_io.tf_record_iterator(str(tmp_path / "missing")))
    with pytest.raises(ValueError, match="compression_type"):
        python_io.TFRecordOptions("LZ4")


def test_the_later_names_do_the_same(tmp_path):
    from dtf.io import gfile as later

    folder = later.join(str(tmp_path), "a", "b")
    later.makedirs(folder)
    with later.GFile(later.join(folder, "one"), "w") as file:
        file.write("1")
    later.copy(later.join(folder, "one"), later.join(folder, "two"))
    with pytest.raises(errors.AlreadyExistsError, match="two"):
        later.rename(later.join(folder, "one"), later.join(folder, "two"))
    later.rename(later.join(folder, "one"), later.join(folder, "two"), overwrite=True)
    assert later.listdir(folder) == ["two"] and later.stat(later.join(folder, "two")).length == 1
    assert later.glob(later.join(folder, "*")) == [later.join(folder, "two")]
    assert [names for _, _, names in later.walk(str(tmp_path))] == [[], [], ["two"]]
    failures = []
    assert list(later.walk(str(tmp_path / "none"), onerror=failures.append)) == []
    assert isinstance(failures[0], errors.NotFoundError)
    later.remove(later.join(folder, "two"))
    later.mkdir(later.join(folder, "c"))
    later.rmtree(str(tmp_path / "a"))
    assert not later.exists(folder) and not later.isdir(folder)


def test_the_namespace_io_finds_what_stands_elsewhere():
    import dtf as tf

    assert tf.io.PaddingFIFOQueue is tf.PaddingFIFOQueue
    assert tf.io.TFRecordWriter is python_io.TFRecordWriter
    assert tf.io.gfile.exists(__file__)
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        _ = tf.io.nothing_of_the_kind
