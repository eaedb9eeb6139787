"""What peers, graphs and files declare is checked against a named limit before memory is taken."""

from __future__ import annotations

import gzip
import io
import resource
import struct
import zlib
from pathlib import Path

import grpc
import numpy as np
import pytest

import dtf as tf
from dtf.rpc import message_options
from dtf.run.executor.executor import run_graph_def
from dtf.run.kernels import KernelNode, bind, counting
from dtf.server import Server
from dtf.wire import codec, errors, limits
from dtf.wire.cluster import ClusterSpec
from dtf.wire.events import read_records
from dtf.wire.index_table import read_table, write_table
from dtf.wire.pb import graph_pb2, tensor_pb2, worker_pb2
from tests.ports import free_ports

GIGABYTE = 1 << 30


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


@pytest.fixture(autouse=True)
def no_memory_taken():
    """Each of these takes little memory, whatever was declared."""
    before = peak_bytes()
    yield
    assert peak_bytes() - before < GIGABYTE // 2


# -- settings


def test_a_setting_must_be_a_number(monkeypatch):
    monkeypatch.setenv(limits.SESSIONS.variable, "3K")
    assert limits.SESSIONS.value == 3072
    monkeypatch.setenv(limits.SESSIONS.variable, "many")
    with pytest.raises(errors.InvalidArgumentError, match="DTF_MAX_SESSIONS must be a number .*'many'"):
        limits.SESSIONS.check(1, "sessions")


def test_the_tour_must_name_every_setting():
    tour = (Path(__file__).resolve().parents[2] / "runtime" / "concepts.md").read_text(encoding="utf-8")
    for limit in limits.ALL:
        assert limit.variable in tour


# -- constants


def declared(shape: list[int], **values: object) -> tensor_pb2.TensorProto:
    proto = tensor_pb2.TensorProto(dtype=1, **values)  # type: ignore[arg-type]
    for size in shape:
        proto.tensor_shape.dim.add(size=size)
    return proto


def constants(count: int, shape: list[int]) -> graph_pb2.GraphDef:
    graph_def = graph_pb2.GraphDef()
    for index in range(count):
        node = graph_def.node.add(name=f"c{index}", op="Const")
        node.attr["dtype"].type = 1
        node.attr["value"].tensor.CopyFrom(declared(shape, float_val=[2.0]))
    return graph_def


def test_a_repeated_constant_of_100_megabytes_must_work_and_take_none_of_them():
    value = codec.proto_to_array(declared([25 << 20], float_val=[2.0]))
    assert value.shape == (25 << 20,) and value[-1] == 2.0 and not value.flags.writeable
    assert run_graph_def(constants(1, [25 << 20]), ["c0:0"])[0].nbytes == 100 << 20


def test_a_repeated_string_must_take_no_memory_either():
    proto = declared([50 << 20], string_val=[b"x"])
    proto.dtype = 7
    value = codec.proto_to_array(proto)
    assert value.shape == (50 << 20,) and value[-1] == b"x"


@pytest.mark.parametrize("dtype, values", [(1, {"float_val": [1.0]}), (7, {"string_val": [b"x"]}), (7, {}), (9, {})])
def test_a_constant_that_stands_for_more_than_the_limit_must_be_refused(dtype, values):
    proto = declared([1 << 20, 1 << 14], **values)
    proto.dtype = dtype
    with pytest.raises(errors.ResourceExhaustedError, match="DTF_MAX_REPEATED_BYTES"):
        codec.proto_to_array(proto)


def test_the_limit_must_hold_for_all_constants_of_a_graph_together():
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(constants(6, [220 << 20]), name="")
        with tf.Session(graph=graph) as session, pytest.raises(errors.ResourceExhaustedError, match="constants"):
            session.run("c0:0")
    with pytest.raises(errors.ResourceExhaustedError, match="constants"):
        run_graph_def(constants(6, [220 << 20]), [f"c{index}:0" for index in range(6)])


@pytest.mark.parametrize("shape", [[1 << 40, 1 << 40], [0, 1 << 60], [-5], [1] * 200])
def test_an_impossible_shape_must_be_invalid(shape):
    with pytest.raises(errors.InvalidArgumentError):
        codec.proto_to_array(declared(shape))


# -- what ops make of shapes

LARGE = 1 << 44
MAKERS = {
    "fill": lambda: tf.fill([LARGE], 1.0),
    "zeros": lambda: tf.zeros([LARGE], tf.string),
    "range": lambda: tf.range(0, LARGE, 1),
    "float range": lambda: tf.range(0.0, 1e13, 1.0),
    "linspace": lambda: tf.linspace(0.0, 1.0, tf.placeholder_with_default(2**31 - 1, [])),
    "tile": lambda: tf.tile(tf.zeros([10]), [LARGE]),
    "broadcast": lambda: tf.broadcast_to(tf.placeholder_with_default(0.0, []), [LARGE]),
    "pad": lambda: tf.pad(tf.zeros([10]), [[LARGE, 0]]),
    "one_hot": lambda: tf.one_hot(tf.zeros([1 << 24], tf.int32), 1 << 24),
    "random": lambda: tf.random_uniform([LARGE]),
    "truncated": lambda: tf.truncated_normal([LARGE]),
    "scatter": lambda: tf.scatter_nd([[0]], [1.0], tf.constant([LARGE], tf.int64)),
    "segments": lambda: tf.unsorted_segment_sum([1.0], [0], tf.constant(LARGE, tf.int64)),
    "stitch": lambda: tf.dynamic_stitch([[2**31 - 2]], [tf.zeros([1, 1 << 16])]),
    "sparse": lambda: tf.sparse_tensor_to_dense(tf.SparseTensor([[0]], [1.0], [LARGE])),
    "diag": lambda: tf.diag(tf.zeros([1 << 22])),
    "resize": lambda: tf.image.resize_bilinear(tf.zeros([1, 2, 2, 3]), [1 << 22, 1 << 22]),
    "bincount": lambda: tf.raw_ops.Bincount(arr=[1], size=2**31 - 1, weights=tf.zeros([0])),
    "array": lambda: tf.TensorArray(tf.float32, 2**31 - 1).size(),
}


@pytest.mark.parametrize("name", MAKERS)
def test_an_op_must_not_make_a_tensor_larger_than_the_limit(name, monkeypatch):
    monkeypatch.setenv(limits.TENSOR_BYTES.variable, "256M")
    with tf.Graph().as_default(), tf.Session() as session:
        with pytest.raises(errors.ResourceExhaustedError):
            session.run(MAKERS[name]())
        assert session.run(tf.constant(3)) == 3


def test_an_op_must_not_make_a_tensor_for_which_there_is_no_memory():
    count = limits.machine_bytes() // 4
    with tf.Graph().as_default(), tf.Session() as session:
        for made in (tf.fill([count], 1.0), tf.zeros([count // 2], tf.string), tf.range(0, count * 2, 1)):
            with pytest.raises(errors.ResourceExhaustedError):
                session.run(made)


def test_a_tensor_limit_must_hold_below_the_free_memory(monkeypatch):
    monkeypatch.setenv(limits.TENSOR_BYTES.variable, "1M")
    with tf.Graph().as_default(), tf.Session() as session:
        assert session.run(tf.fill([1 << 18], 1.0)).nbytes == 1 << 20
        with pytest.raises(errors.ResourceExhaustedError, match=r"OOM .* shape\[262145\].*DTF_MAX_TENSOR_BYTES"):
            session.run(tf.fill([(1 << 18) + 1], 1.0))


def test_a_node_must_not_have_numbers_of_outputs_without_end():
    graph_def = graph_pb2.GraphDef()
    node = graph_def.node.add(name="u", op="Unpack")
    node.attr["num"].i = 1 << 40
    node.attr["T"].type = 1
    with tf.Graph().as_default(), pytest.raises((errors.InvalidArgumentError, ValueError)):
        tf.import_graph_def(graph_def, name="")


# -- files and strings


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(width: int, height: int, data: bytes) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def bmp(width: int, height: int) -> bytes:
    info = struct.pack("<IiiHHIIiiII", 40, width, height, 1, 24, 0, 0, 0, 0, 0, 0)
    return b"BM" + struct.pack("<IHHI", 54, 0, 0, 54) + info + bytes(10)


def gif(width: int, height: int) -> bytes:
    head = b"GIF89a" + struct.pack("<HHBBB", width, height, 0x80, 0, 0) + b"\0\0\0\xff\xff\xff"
    return head + b"\x2c" + struct.pack("<HHHHB", 0, 0, width, height, 0) + b"\x02\x02\x44\x01\x00\x3b"


def jpeg(width: int, height: int) -> bytes:
    pillow = pytest.importorskip("PIL.Image")
    out = io.BytesIO()
    pillow.new("L", (8, 8)).save(out, "JPEG")
    data = bytearray(out.getvalue())
    at = data.index(b"\xff\xc0") + 5
    data[at : at + 4] = struct.pack(">HH", height, width)
    return bytes(data)


def kernel_of(op: str, **attrs: object):
    return bind(KernelNode("decode", op, "", attrs, 1, {}))[1]


@pytest.mark.parametrize(
    "image",
    [
        png(60000, 60000, zlib.compress(bytes(1000))),
        png(10000, 10000, zlib.compress(bytes(1000))),
        png(20, 20, zlib.compress(bytes(1 << 28))),
        bmp(60000, 60000),
        gif(60000, 60000),
        jpeg(60000, 60000),
        jpeg(15000, 12000),
    ],
    ids=["png", "png of too little data", "png of too much data", "bmp", "gif", "jpeg", "jpeg that pillow warns of"],
)
def test_an_image_of_many_pixels_in_few_bytes_must_be_refused(image):
    decode = kernel_of("DecodeImage", channels=3, dtype=tf.uint8, expand_animations=True)
    if b"IDAT" in image and struct.unpack_from(">I", image, 16) == (20,):
        assert decode(np.array(image, object)).shape == (20, 20, 3)  # what follows the image is not even unpacked
        return
    with pytest.raises(errors.InvalidArgumentError):
        decode(np.array(image, object))


@pytest.mark.parametrize("kind", ["GZIP", "ZLIB"])
def test_a_compressed_string_must_not_stand_for_more_than_the_limit(kind, monkeypatch):
    monkeypatch.setenv(limits.DECOMPRESSED_BYTES.variable, "1M")
    pack = gzip.compress if kind == "GZIP" else zlib.compress
    unpack = kernel_of("DecodeCompressed", compression_type=kind)
    assert unpack(np.array([pack(bytes(1 << 20))], object))[0] == bytes(1 << 20)
    with pytest.raises(errors.ResourceExhaustedError, match="DTF_MAX_DECOMPRESSED_BYTES"):
        unpack(np.array([pack(bytes((1 << 20) + 1))], object))
    with pytest.raises(errors.DataLossError):
        unpack(np.array([b"no such data"], object))


def test_the_length_of_a_record_must_take_no_memory_that_the_file_does_not_have(tmp_path):
    from dtf.wire.crc import masked_crc32c

    path = tmp_path / "records"
    for length in (1 << 62, 1 << 40, 20 << 20):
        header = struct.pack("<Q", length)
        path.write_bytes(header + struct.pack("<I", masked_crc32c(header)) + b"short")
        with pytest.raises(errors.DataLossError, match="truncated record at 0"):
            list(read_records(str(path)))


def test_the_shards_that_an_index_declares_must_be_few(tmp_path):
    from dtf.wire.pb import tensor_bundle_pb2

    for shards in (2**31 - 1, -1):
        header = tensor_bundle_pb2.BundleHeaderProto(num_shards=shards)
        header.version.producer = 1
        (tmp_path / "m.index").write_bytes(write_table([(b"", header.SerializeToString())]))
        (tmp_path / "checkpoint").write_text('model_checkpoint_path: "m"')
        if shards < 0:
            continue
        assert tf.train.latest_checkpoint(str(tmp_path)) is None
        with pytest.raises(errors.DataLossError, match="DTF_MAX_CHECKPOINT_SHARDS"):
            tf.train.load_checkpoint(str(tmp_path / "m"))


def test_a_table_must_not_blow_up_its_keys(monkeypatch):
    from dtf.wire import index_table

    # Keys that each share a beginning of 100 kB with the one before: 400 MB out of 140 kB.
    key = b"k" * 100_000
    monkeypatch.setattr(index_table, "_RESTART_INTERVAL", 1 << 20)
    monkeypatch.setattr(index_table.os.path, "commonprefix", lambda keys: keys[0][: len(key)] if keys[0] else b"")
    table = write_table((key + struct.pack(">H", number), b"") for number in range(4000))
    assert len(table) < 400_000
    with pytest.raises(errors.DataLossError, match="too long"):
        for _ in read_table(table, "table"):
            pass


@pytest.mark.parametrize("attrs", [{"precision": 10**9}, {"width": 2**31 - 1, "fill": b"0"}])
def test_a_number_as_text_must_not_have_decimals_without_end(attrs):
    """Python formats under its lock: a text of a gigabyte stopped all threads for seconds."""
    with tf.Graph().as_default(), tf.Session() as session, pytest.raises(errors.InvalidArgumentError, match="at most"):
        session.run(tf.as_string(np.float64([1.5]), **attrs))


def test_many_values_must_be_counted_in_pieces_with_the_same_result(monkeypatch):
    """numpy counts under Python's lock: a large count would stop all threads."""
    monkeypatch.setattr(counting, "_AT_ONCE", 8)
    values = np.random.default_rng(1).integers(0, 20, 100)
    np.testing.assert_array_equal(counting.count_each(values, 20), np.bincount(values, minlength=20))
    weights = np.float32(np.arange(100))
    with tf.Graph().as_default(), tf.Session() as session:
        weighted = session.run(tf.bincount(np.int32(values), weights, minlength=20))
    np.testing.assert_allclose(weighted, np.bincount(values, weights, 20))


def test_large_sizes_must_not_wrap_round():
    with tf.Graph().as_default():
        for made in (tf.fill([LARGE], 1.0), tf.zeros([LARGE]), tf.tile(tf.zeros([1]), [LARGE]), tf.zeros([2, LARGE])):
            assert made.shape.as_list()[-1] == LARGE


# -- messages


def test_a_compressed_message_must_be_refused_by_a_server_or_bounded(monkeypatch):
    for limit, code in (("64G", grpc.StatusCode.UNIMPLEMENTED), ("1M", grpc.StatusCode.RESOURCE_EXHAUSTED)):
        monkeypatch.setenv(limits.MESSAGE_BYTES.variable, limit)
        (port,) = free_ports(1)
        server = Server(ClusterSpec({"worker": [f"127.0.0.1:{port}"]}), "worker", 0)
        try:
            with grpc.insecure_channel(f"127.0.0.1:{port}", options=message_options()) as channel:
                call = channel.unary_unary("/tensorflow.WorkerService/GetStatus")
                assert call(b"", timeout=60, wait_for_ready=True)
                with pytest.raises(grpc.RpcError) as refused:
                    call(bytes(32 << 20), timeout=60, compression=grpc.Compression.Gzip)
                assert refused.value.code() == code
                assert call(b"", timeout=60)
        finally:
            server.stop()


@pytest.mark.parametrize("method", ["Master/CreateSession", "Worker/CreateWorkerSession"])
@pytest.mark.parametrize("limit", [limits.SESSIONS, limits.SESSIONS_PER_PEER], ids=["task", "peer"])
def test_a_peer_must_not_open_sessions_without_end(limit, method, monkeypatch):
    monkeypatch.setenv(limit.variable, "3")
    service, name = method.split("/")
    server = Server.create_local_server()
    try:
        with grpc.insecure_channel(server.target.partition("://")[2]) as channel:
            call = channel.unary_unary(f"/tensorflow.{service}Service/{name}")
            for number in range(3):
                request = worker_pb2.CreateWorkerSessionRequest(session_handle=f"{number:x}")
                call(request.SerializeToString() if service == "Worker" else b"", timeout=60, wait_for_ready=True)
            with pytest.raises(grpc.RpcError) as refused:
                call(b"", timeout=60)
            assert refused.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
            assert limit.variable in (refused.value.details() or "")
    finally:
        server.stop()


def test_a_task_must_not_open_sessions_without_end(monkeypatch):
    monkeypatch.setenv(limits.SESSIONS.variable, "3")
    (port,) = free_ports(1)
    server = Server(ClusterSpec({"worker": [f"127.0.0.1:{port}"]}), "worker", 0)
    try:
        with tf.Graph().as_default():
            one = tf.constant(1)
            sessions = [tf.Session(server.target) for _ in range(3)]
            assert [session.run(one) for session in sessions] == [1, 1, 1]
            with pytest.raises(errors.ResourceExhaustedError, match="DTF_MAX_SESSIONS"):
                tf.Session(server.target).run(one)
            sessions[0].close()
            with tf.Session(server.target) as session:
                assert session.run(one) == 1
            for session in sessions[1:]:
                session.close()
    finally:
        server.stop()
