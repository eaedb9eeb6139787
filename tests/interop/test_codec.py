"""Any array of any dtype must go to a TensorProto and back, in both directions between the two libraries.

The arrays are seeded random bits: of every dtype that both have on the wire, of many shapes, in any memory order. Both
libraries stand in one process, so that thousands of them cost seconds; the last test sends them through RecvTensor of
two servers.
"""

from __future__ import annotations

import itertools
import json

import numpy as np

import dtf
from dtf.server import Server
from tests.interop.random_arrays import bits, same
from tests.interop.tensorflow_process import needs_tensorflow, run, tensorflow_server
from tests.ports import free_ports

pytestmark = needs_tensorflow

DTYPES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32",
    "float64", "complex64", "complex128", "string", "float8_e5m2", "float8_e4m3fn",
]  # fmt: skip
SHAPES = [(), (0,), (1,), (2,), (7,), (3, 0, 2), (1, 1), (2, 3), (4, 1, 5), (2, 3, 2, 2), (1030,)]

BOTH_WAYS = """
sys.path.insert(0, "runtime")
from dtf.wire import codec
from tensorflow.core.framework import tensor_pb2
from tests.interop.random_arrays import bits, forms, same

dtypes, shapes, seed = json.loads(sys.argv[1])
random = np.random.RandomState(seed)
checked, wrong = 0, []


def field_of(proto):
    return next(field.name for field, _ in proto.ListFields() if field.name.endswith("_val"))


def check(what, is_same):
    global checked
    checked += 1
    if not is_same:
        wrong.append(f"{what} {dtype} {shape}")


for dtype in dtypes:
    for shape in map(tuple, shapes):
        array = bits(dtype, shape, random)
        for form in forms(array):
            # TensorFlow does not take every dtype in the other order of bytes.
            foreign = form.dtype.byteorder == ">"
            ours, theirs = codec.make_tensor_proto(form), tf.make_tensor_proto(array if foreign else form)
            text = theirs.SerializeToString(deterministic=True)
            check("the same bytes", ours.SerializeToString(deterministic=True) == text)
            sent = tensor_pb2.TensorProto.FromString(ours.SerializeToString())
            check("ours to them", same(tf.make_ndarray(sent), array))
            check("theirs to us", same(codec.make_ndarray(theirs), array))
            check("by hand to them", same(
                tf.make_ndarray(tensor_pb2.TensorProto.FromString(b"".join(codec.encode_tensor(form)))), array))
            check("theirs by hand", same(codec.decode_tensor(theirs.SerializeToString()), array))
            check("and back", same(codec.make_ndarray(codec.array_to_proto(form)), array))
        # Typed values instead of tensor_content, and of them only the first ones: the last stands for the rest.
        if array.size > 1 and array.size < 100:
            for kept in sorted({1, array.size // 2 or 1, array.size}):
                flat = array.ravel()
                repeated = np.array(flat)
                repeated[kept:] = flat[kept - 1]
                short = tensor_pb2.TensorProto(dtype=theirs.dtype, tensor_shape=theirs.tensor_shape)
                for value in flat[:kept]:
                    one = tf.make_tensor_proto(np.asarray(value, object) if dtype == "string" else np.asarray(value))
                    name = field_of(one)
                    if name == "float8_val":
                        short.float8_val += one.float8_val
                    else:
                        getattr(short, name).extend(getattr(one, name))
                wanted = repeated.reshape(shape)
                check(f"{kept} typed values", same(codec.proto_to_array(short), wanted))
                check(f"{kept} typed values by hand", same(codec.decode_tensor(short.SerializeToString()), wanted))
                if kept == 1:
                    one = flat[:1].reshape(())
                    filled, expected = codec.make_tensor_proto(one, shape=shape), tf.make_tensor_proto(one, shape=shape)
                    check("filled", filled.SerializeToString(deterministic=True)
                          == expected.SerializeToString(deterministic=True))

# TensorFlow's C++ reads what we make by hand, and we read what it writes.
graph = tf.Graph()
with graph.as_default(), tf.Session() as session:
    for dtype in (name for name in dtypes if not name.startswith("float8")):  # of which it has no such kernel
        kind = tf.as_dtype(dtype)
        text = tf.placeholder(tf.string, [])
        parsed = tf.parse_tensor(text, kind)
        value = tf.placeholder(kind)
        written = tf.serialize_tensor(value)
        for shape in map(tuple, shapes):
            array = bits(dtype, shape, random)
            made = b"".join(codec.encode_tensor(array))
            read = session.run(parsed, {text: made})
            check("by hand to C++", same(np.asarray(read, object) if dtype == "string" else read, array))
            check("C++ to us", same(codec.decode_tensor(session.run(written, {value: array})), array))
print(json.dumps([checked, wrong]))
"""


def test_any_array_goes_both_ways_between_the_two_libraries():
    checked, wrong = run(BOTH_WAYS, json.dumps([DTYPES, SHAPES, 20]))
    assert not wrong, "\n".join(wrong[:40])
    assert checked > 3000


def test_any_array_goes_both_ways_through_recv_tensor():
    random = np.random.RandomState(21)
    ours, theirs = (f"127.0.0.1:{port}" for port in free_ports(2))
    cluster = {"worker": [ours, theirs]}
    with tensorflow_server(cluster, "worker", 1):
        server = Server(cluster, "worker", 0)
        with dtf.Graph().as_default():
            fetches, feeds, arrays = [], {}, []
            for dtype, shape in itertools.product(DTYPES, SHAPES):
                array = bits(dtype, shape, random)
                with dtf.device("/job:worker/task:0"):
                    holder = dtf.placeholder(dtf.as_dtype(dtype), shape)
                    sent = dtf.identity(holder)
                with dtf.device("/job:worker/task:1"):
                    returned = dtf.identity(sent)
                with dtf.device("/job:worker/task:0"):
                    fetches.append(dtf.identity(returned))
                feeds[holder] = array
                arrays.append(array)
            with dtf.Session(server.target) as session:
                received = session.run(fetches, feeds)
        server.stop()
    for fetch, array, value in zip(fetches, arrays, received, strict=True):
        value = np.asarray(value, object) if array.dtype == object else value
        assert same(value, array), f"{fetch.dtype} {array.shape}"
