"""Checkpoints, state files and records that either side writes are read by the other."""

from __future__ import annotations

import inspect
import json
import os
import shutil

import numpy as np
import pytest

import dtf as tf
from dtf.server import Server
from dtf.wire import checkpoint, index_table
from dtf.wire.varints import varint
from tests.interop import checkpoint_programs
from tests.interop.tensorflow_process import needs_tensorflow
from tests.ports import free_ports
from tests.wire import snappy

pytestmark = needs_tensorflow


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


@pytest.fixture(scope="module")
def theirs(tensorflow, tmp_path_factory):
    """Two checkpoints of all kinds of values that TensorFlow wrote: whole and sharded."""
    folder = tmp_path_factory.mktemp("theirs")
    return tensorflow.run(
        """
        from tests.interop import checkpoint_programs

        for name in ("whole", "sharded"):
            with tf.Graph().as_default():
                kept[name] = checkpoint_programs.save(tf, f"{sys.argv[1]}/{name}", sharded=name == "sharded")
        print(json.dumps([kept["whole"], kept["sharded"]]))
        """,
        str(folder),
    )


@pytest.mark.parametrize("sharded", [False, True])
def test_tensorflow_reads_and_restores_what_we_save(tensorflow, tmp_path, sharded):
    prefix = checkpoint_programs.save(tf, str(tmp_path / "model"), sharded)
    wrong = tensorflow.run(
        """
        from tests.interop import checkpoint_programs as programs

        print(json.dumps([programs.read_wrong(tf, sys.argv[1]), programs.restored_wrong(tf, sys.argv[1])]))
        """,
        prefix,
    )
    assert wrong == [[], []]


@pytest.mark.parametrize("number", [0, 1])
def test_we_read_and_restore_what_tensorflow_saves(theirs, number):
    assert checkpoint_programs.read_wrong(tf, theirs[number]) == []
    assert checkpoint_programs.restored_wrong(tf, theirs[number]) == []


# Variables over two ps tasks, one of each kind; saved by one client, spoilt, restored by the other.
MIXED = """
def build(tf):
    found = []
    for task in range(2):
        with tf.device(f"/job:ps/task:{task}"):
            found.append(tf.get_variable(f"v{task}", initializer=tf.constant([1.0 + task, 2.0])))
            found.append(tf.get_variable(f"s{task}", initializer=tf.constant(["a", "b" * task])))
    with tf.device(lambda op: "/job:ps/task:1" if "part_1" in op.name else "/job:ps/task:0"):
        found.extend(tf.get_variable("rows", initializer=tf.constant([[1.0], [2.0], [3.0]]),
                                     partitioner=tf.fixed_size_partitioner(2)))
    return found, tf.train.Saver(sharded=True), [tf.assign(v, tf.ones_like(v) if v.dtype.base_dtype != tf.string else v)
                                                 for v in found]

def save(tf, target, prefix):
    variables, saver, spoil = build(tf)
    with tf.Session(target) as session:
        session.run(tf.global_variables_initializer())
        path = saver.save(session, prefix)
        session.run(spoil)
        return path

def restore(tf, target, prefix):
    variables, saver, _ = build(tf)
    with tf.Session(target) as session:
        saver.restore(session, prefix)
        values = [value.tolist() for value in session.run(variables)]
        return [[v.decode() if isinstance(v, bytes) else v for v in value] for value in values]
"""


def test_a_sharded_checkpoint_is_made_and_restored_by_ps_tasks_of_both_kinds(tensorflow, tmp_path):
    first, second = free_ports(2)
    cluster = {"ps": [f"127.0.0.1:{first}", f"127.0.0.1:{second}"]}
    ours = Server(cluster, "ps", 1)
    wanted = [[1.0, 2.0], ["a", ""], [2.0, 2.0], ["a", "b"], [[1.0], [2.0]], [[3.0]]]
    names: dict = {}
    exec(MIXED, names)
    tensorflow.run(
        """
        kept["server"] = tf.train.Server(json.loads(sys.argv[1]), "ps", 0)
        exec(sys.argv[2], kept)
        """,
        str(cluster).replace("'", '"'),
        MIXED,
    )
    by_them = 'print(json.dumps(kept["{}"](tf, "grpc://" + sys.argv[1], sys.argv[2])))'
    try:
        path = names["save"](tf, ours.target, str(tmp_path / "ours"))
        assert tensorflow.run(by_them.format("restore"), cluster["ps"][0], path) == wanted
        path = tensorflow.run(by_them.format("save"), cluster["ps"][0], str(tmp_path / "theirs"))
        with tf.Graph().as_default():
            assert names["restore"](tf, ours.target, path) == wanted
        for name in ("ours", "theirs"):
            assert sorted(tmp_path.glob(f"{name}.*")) == sorted(
                tmp_path / f"{name}{end}" for end in (".data-00000-of-00002", ".data-00001-of-00002", ".index", ".meta")
            )
        assert not list(tmp_path.glob("*_temp*"))
    finally:
        ours.stop()


# -- indexes


def many_names(count):
    """Long names without a common beginning, whose index takes several blocks."""
    return {f"{number * 7919 % 65536:04x}/{number:0200}": number for number in range(count)}


def test_an_index_of_many_blocks_is_read_both_ways(tensorflow, tmp_path):
    names = many_names(3_000)
    with checkpoint.BundleWriter(str(tmp_path / "ours")) as writer:
        for name, number in names.items():
            writer.add(name, np.int32(number))
    found = tensorflow.run(
        """
        reader = tf.train.load_checkpoint(sys.argv[1])
        names = list(reader.get_variable_to_shape_map())
        numbers = [int(reader.get_tensor(name)) for name in names]
        with tf.Session() as session:
            session.run(tf.raw_ops.SaveV2(
                prefix=sys.argv[2], tensor_names=names, shape_and_slices=[""] * len(names),
                tensors=tf.unstack(tf.constant(numbers, tf.int32))))
        print(json.dumps(dict(zip(names, numbers))))
        """,
        writer.prefix,
        str(tmp_path / "theirs"),
    )
    assert found == names
    index = (tmp_path / "theirs.index").read_bytes()
    assert len(index) > 2 * index_table._BLOCK_SIZE
    assert index_table.write_table(index_table.read_table(index, "theirs")) == index
    reader = checkpoint.BundleReader(str(tmp_path / "theirs"))
    assert {name: int(reader.read(name)) for name in reader.keys()} == names  # noqa: SIM118


def test_a_compressed_index_is_read_as_tensorflow_reads_it(tensorflow, tmp_path, monkeypatch):
    def append_compressed(out, contents):
        compressed = snappy.compress(contents)
        handle = varint(len(out)) + varint(len(compressed))
        typed = compressed + b"\1"
        out += typed + index_table.masked_crc32c(typed).to_bytes(4, "little")
        return handle

    names = many_names(2_000)
    plain, packed = str(tmp_path / "plain"), str(tmp_path / "packed")
    for prefix in (plain, packed):
        if prefix == packed:
            monkeypatch.setattr(index_table, "_append_block", append_compressed)
        with checkpoint.BundleWriter(prefix) as writer:
            for name, number in names.items():
                writer.add(name, np.full(1, number))
    sizes = [os.path.getsize(checkpoint.index_file(prefix)) for prefix in (plain, packed)]
    assert sizes[1] < sizes[0]
    read = """
        reader = tf.train.load_checkpoint(sys.argv[1])
        print(json.dumps({name: int(reader.get_tensor(name)[0]) for name in reader.get_variable_to_shape_map()}))
        """
    assert tensorflow.run(read, packed) == names
    reader = tf.train.load_checkpoint(packed)
    assert {name: int(reader.get_tensor(name)[0]) for name in reader.get_variable_to_shape_map()} == names


def test_we_read_checkpoints_of_the_first_format(tensorflow, tmp_path):
    paths = tensorflow.run(
        """
        values = {"f": [[1.5, -2.0]], "scalar": np.int64(7), "strings": [b"a", b""], "flag": [True, False],
                  "complex": np.array([1 + 2j], np.complex64), "bytes": np.arange(3, dtype=np.uint8),
                  "half": np.array([0.5], np.float16), "same": np.full(100, 3.0)}
        for name, value in values.items():
            tf.get_variable(name, initializer=tf.constant(value))
        tf.get_variable("rows", initializer=tf.constant(np.arange(12.0).reshape(4, 3)),
                        partitioner=tf.fixed_size_partitioner(2))
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            savers = [tf.train.Saver(write_version=tf.train.SaverDef.V1, sharded=sharded) for sharded in (False, True)]
            print(json.dumps([saver.save(session, f"{sys.argv[1]}/v1-{number}", latest_filename=f"state{number}")
                              for number, saver in enumerate(savers)]))
        """,
        str(tmp_path),
    )
    variables = {
        "f": [[1.5, -2.0]], "scalar": 7, "strings": [b"a", b""], "flag": [True, False], "complex": [1 + 2j],
        "bytes": [0, 1, 2], "half": [0.5], "same": [3.0] * 100, "rows": np.arange(12.0).reshape(4, 3).tolist(),
    }  # fmt: skip
    for number, path in enumerate(paths):
        assert tf.train.checkpoint_exists(path)
        assert tf.train.latest_checkpoint(str(tmp_path), f"state{number}") == path
        reader = tf.train.load_checkpoint(path)
        assert {name: np.asarray(reader.get_tensor(name)).tolist() for name in variables} == variables
        assert sorted(reader.get_variable_to_shape_map()) == sorted(variables)
    assert paths[1].endswith("v1-1-?????-of-00001")
    f = tf.get_variable("f", [1, 2])
    rows = tf.get_variable("rows", [4, 3], tf.float64, partitioner=tf.fixed_size_partitioner(3))
    with tf.Session() as session:
        saver = tf.train.Saver()
        for path in paths:
            session.run(tf.global_variables_initializer())
            saver.restore(session, path)
            assert session.run(f).tolist() == variables["f"]
            assert session.run(tf.convert_to_tensor(rows)).tolist() == variables["rows"]
    tf.train.remove_checkpoint(paths[1], tf.train.SaverDef.V1)
    assert not list(tmp_path.glob("v1-1*"))


@pytest.mark.parametrize("sharded", [False, True])
def test_tensorflow_reads_checkpoints_of_the_first_format(tensorflow, tmp_path, sharded):
    tf.get_variable("f", initializer=tf.constant([[1.5, -2.0]]))
    tf.get_variable("strings", initializer=tf.constant([b"a", b""]), use_resource=True)
    rows = tf.constant(np.arange(12.0).reshape(4, 3))
    tf.get_variable("rows", initializer=rows, partitioner=tf.fixed_size_partitioner(2))
    saver = tf.train.Saver(write_version=tf.train.SaverDef.V1, sharded=sharded, max_to_keep=1)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        old = saver.save(session, str(tmp_path / "model"), global_step=1)
        path = saver.save(session, str(tmp_path / "model"), global_step=2)
    assert not tf.train.checkpoint_exists(old) and not os.path.exists(tmp_path / "model-1.meta")
    found = tensorflow.run(
        """
        path = tf.train.latest_checkpoint(sys.argv[1])
        saver = tf.train.import_meta_graph(sys.argv[1] + "/model-2.meta")
        with tf.Session() as session:
            saver.restore(session, path)
            parts = [v for v in tf.global_variables() if "rows" in v.name]
            values = session.run(["f:0", tf.concat(parts, 0)])
            again = saver.save(session, sys.argv[1] + "/again")
        print(json.dumps([path, again] + [value.tolist() for value in values]))
        """,
        str(tmp_path),
    )
    assert found[0] == path and found[2:] == [[[1.5, -2.0]], np.arange(12.0).reshape(4, 3).tolist()]
    for each in (path, found[1]):
        assert tf.train.load_checkpoint(each).get_tensor("strings").tolist() == [b"a", b""]


# -- damage

DATA = ".data-00000-of-00001"


def cut(path, size):
    os.truncate(path, os.path.getsize(path) + size if size < 0 else size)


def flip(path, position):
    with open(path, "r+b") as file:
        whole = bytearray(file.read())
        whole[position] ^= 1
        file.seek(0)
        file.write(whole)


DAMAGES = {
    "nothing": (lambda prefix: None, None),
    "index_gone": (lambda prefix: os.remove(f"{prefix}.index"), ".index"),
    "index_empty": (lambda prefix: cut(f"{prefix}.index", 0), ".index"),
    "index_short": (lambda prefix: cut(f"{prefix}.index", 60), ".index"),
    "index_end_gone": (lambda prefix: cut(f"{prefix}.index", -1), ".index"),
    "index_block": (lambda prefix: flip(f"{prefix}.index", 20), ".index"),
    "index_magic": (lambda prefix: flip(f"{prefix}.index", -3), ".index"),
    "index_folder": (lambda prefix: (os.remove(f"{prefix}.index"), os.mkdir(f"{prefix}.index")), ".index"),
    "data_gone": (lambda prefix: os.remove(prefix + DATA), DATA),
    "data_number": (lambda prefix: flip(prefix + DATA, 1), DATA),
    "data_lengths": (lambda prefix: flip(prefix + DATA, -4), DATA),
    "data_string": (lambda prefix: flip(prefix + DATA, -1), DATA),
    "data_end_gone": (lambda prefix: cut(prefix + DATA, -1), DATA),
}
OUTCOME = """
def outcome(tf, prefix):
    with tf.Graph().as_default(), tf.Session() as session:
        values = tf.raw_ops.RestoreV2(
            prefix=prefix, tensor_names=["number", "text"], shape_and_slices=["", ""], dtypes=[tf.float64, tf.string]
        ) if hasattr(tf, "raw_ops") else tf.restore_v2(prefix, ["number", "text"], ["", ""], [tf.float64, tf.string])
        try:
            session.run(values)
            return "read", ""
        except tf.errors.OpError as error:
            return type(error).__name__, error.message
"""


def test_a_damaged_checkpoint_gives_tensorflows_error_and_names_the_file(tensorflow, tmp_path):
    with checkpoint.BundleWriter(str(tmp_path / "whole")) as writer:
        writer.add("number", np.arange(3.0))
        writer.add("text", np.array([b"abc"], object))
    for name, (damage, _) in DAMAGES.items():
        for path in checkpoint.bundle_files(writer.prefix):
            shutil.copy(path, path.replace("whole", name))
        damage(str(tmp_path / name))
    theirs = tensorflow.run(
        OUTCOME + "print(json.dumps({name: outcome(tf, f'{sys.argv[1]}/{name}')[0] for name in sys.argv[2:]}))",
        str(tmp_path),
        *DAMAGES,
    )
    # A MonitoredSession takes OutOfRangeError for the end of the input: a data file that is cut short must not be that.
    assert theirs.pop("data_end_gone") == "OutOfRangeError"
    names: dict = {}
    exec(OUTCOME, names)
    ours = {name: names["outcome"](tf, str(tmp_path / name)) for name in DAMAGES}
    assert ours["data_end_gone"][0] == "DataLossError"
    assert {name: ours[name][0] for name in theirs} == theirs
    for name, (_, file) in DAMAGES.items():
        named = str(tmp_path / name) + (file if file and name != "index_gone" else "")
        assert file is None or named in ours[name][1], ours[name]


# -- which checkpoints there are


def train_and_forget(tf, folder, steps, recovered_from=None, **arguments):
    """Saves at each step, going on from another process's list of checkpoints."""
    with tf.Graph().as_default(), tf.Session() as session:
        tf.get_variable("v", initializer=1.0)
        session.run(tf.global_variables_initializer())
        saver = tf.train.Saver(max_to_keep=2, **arguments)
        if recovered_from is not None:
            saver.recover_last_checkpoints(tf.train.get_checkpoint_state(recovered_from).all_model_checkpoint_paths)
        for step in steps:
            saver.save(session, os.path.join(folder, "model"), global_step=step, write_meta_graph=False)
    with open(os.path.join(folder, "checkpoint")) as state:
        return state.read(), sorted(os.listdir(folder)), tf.train.latest_checkpoint(folder)


@pytest.mark.parametrize("relative", [False, True])
def test_each_goes_on_from_the_others_state_file(tensorflow, tmp_path, monkeypatch, relative):
    program = (
        "import os\n"
        + inspect.getsource(train_and_forget)
        + "os.chdir(sys.argv[1])\n"
        + "steps = json.loads(sys.argv[3])\n"
        + "relative = sys.argv[4] == 'True'\n"
        + "found = train_and_forget(tf, sys.argv[2], steps, sys.argv[2] if steps[0] else None,"
        + " save_relative_paths=relative)\n"
        + "print(json.dumps(found))"
    )
    outcomes = []
    for kinds in (("ours", "theirs"), ("theirs", "ours"), ("ours", "ours"), ("theirs", "theirs")):
        folder = tmp_path / "-".join(kinds)
        folder.mkdir()
        for steps, kind in zip(([0, 1, 2], [3]), kinds, strict=True):
            monkeypatch.chdir(tmp_path)
            where = folder.name if relative else str(folder)
            if kind == "ours":
                recovered = where if steps[0] else None
                found = train_and_forget(tf, where, steps, recovered, save_relative_paths=relative)
            else:
                found = tensorflow.run(program, str(tmp_path), where, str(steps), str(relative))
        outcomes.append([str(part).replace(folder.name, "FOLDER") for part in (found[0], list(found[1]), found[2])])
    assert all(outcome == outcomes[0] for outcome in outcomes), outcomes
    assert "model-2.index" in outcomes[0][1] and "model-1.index" not in outcomes[0][1]


# -- records


@pytest.mark.parametrize("compression", ["", "ZLIB", "GZIP"])
def test_records_are_read_both_ways(tensorflow, tmp_path, compression):
    records = [b"", b"one", b"\0" * 70_000, bytes(range(256))]
    ours, theirs = str(tmp_path / "ours"), str(tmp_path / "theirs")
    with tf.python_io.TFRecordWriter(ours, tf.python_io.TFRecordOptions(compression)) as writer:
        for record in records:
            writer.write(record)
    found = tensorflow.run(
        """
        options = tf.python_io.TFRecordOptions(sys.argv[3])
        records = list(tf.python_io.tf_record_iterator(sys.argv[1], options))
        with tf.python_io.TFRecordWriter(sys.argv[2], options) as writer:
            for record in records:
                writer.write(record)
        print(json.dumps([record.hex() for record in records]))
        """,
        ours,
        theirs,
        compression,
    )
    assert [bytes.fromhex(record) for record in found] == records
    assert list(tf.python_io.tf_record_iterator(theirs, tf.python_io.TFRecordOptions(compression))) == records
    if not compression:
        with open(ours, "rb") as mine, open(theirs, "rb") as other:
            assert mine.read() == other.read()


RECORDS_READ = """
def records_read(tf, path, compression):
    seen = []
    try:
        for record in tf.python_io.tf_record_iterator(path, tf.python_io.TFRecordOptions(compression)):
            seen.append(len(record))
    except tf.errors.OpError as error:
        return [seen, type(error).__name__]
    return [seen, "end"]
"""


def test_damaged_records_are_told_as_tensorflow_tells_them(tensorflow, tmp_path):
    files = []
    for compression in ("", "ZLIB", "GZIP"):
        options = tf.python_io.TFRecordOptions(compression, compression_level=9)
        with tf.python_io.TFRecordWriter(str(tmp_path / "source"), options) as writer:
            for size in (3, 500, 70_000):
                writer.write(np.random.RandomState(size).bytes(size))
        whole = (tmp_path / "source").read_bytes()
        damaged = {"whole": whole, "half": whole[: len(whole) // 2], "empty": b"", "text": b"no records are here"}
        damaged |= {f"cut{size}": whole[:-size] for size in (3, 20)}
        damaged["flipped"] = whole[:600] + bytes([whole[600] ^ 1]) + whole[601:]
        for name, data in damaged.items():
            files.append((str(tmp_path / f"{compression}{name}"), compression))
            (tmp_path / f"{compression}{name}").write_bytes(data)
    files.append((str(tmp_path / "nowhere"), ""))
    theirs = tensorflow.run(
        RECORDS_READ + "print(json.dumps([records_read(tf, *file) for file in json.loads(sys.argv[1])]))",
        json.dumps(files),
    )
    names: dict = {}
    exec(RECORDS_READ, names)
    ours = [names["records_read"](tf, *file) for file in files]
    assert ours == theirs, [row for row in zip(files, ours, theirs, strict=True) if row[1] != row[2]]
