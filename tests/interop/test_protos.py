"""Our messages must be TensorFlow's: every field's number, name, type and label, and every enum value."""

from __future__ import annotations

import importlib

import numpy as np
from google.protobuf import descriptor_pb2

from dtf.wire import codec
from tests.interop.tensorflow_process import ROOT, needs_tensorflow, run

pytestmark = needs_tensorflow

# Fields that we leave out (their numbers are reserved): object graphs, of TensorFlow 2 only.
LEFT_OUT = {"MetaGraphDef.object_graph_def", "TensorInfo.CompositeTensor.type_spec"}
# Messages that TensorFlow's wheel has in C++ only; its library holds their descriptors.
IN_THE_LIBRARY = ("tensorflow/core/protobuf/master.proto", "tensorflow/core/protobuf/worker.proto")
# A name that TensorFlow gives to an error without having a message for it, and settings that only dtf has: their
# numbers are far from TensorFlow's, which skips what it does not know.
OURS_ALONE = {
    "distributed_runtime.DerivedStatus",
    "ConfigProto.Experimental.durability",
    "ConfigProto.Experimental.durability_folder",
    "ConfigProto.Experimental.durability_place",
    "ConfigProto.Experimental.durability_places",
}

DUMP = """
import glob, importlib, mmap, os
from google.protobuf import descriptor_pb2

root = os.path.dirname(tf.__file__.replace("/_api/v2/compat/v1", ""))
root = root[: root.index("/site-packages/")] + "/site-packages"
files = {}
for pattern in ("tensorflow/core", "tensorflow/python/training", "tensorflow/tsl", "xla/tsl", "tensorflow"):
    for path in glob.glob(f"{root}/{pattern}/**/*_pb2.py", recursive=True):
        try:
            module = importlib.import_module(os.path.relpath(path, root)[:-3].replace("/", "."))
        except Exception:
            continue
        file = descriptor_pb2.FileDescriptorProto()
        module.DESCRIPTOR.CopyToProto(file)
        files[file.name] = file


def embedded(blob, name):
    '''The descriptor that generated C++ code holds: fields in ascending order, as long as they parse.'''
    start = blob.find(b"\\x0a" + bytes([len(name)]) + name.encode())
    best = None
    while start >= 0:
        at, last = start, 0
        while blob[at] & 7 == 2 and 0 < blob[at] >> 3 <= 12 and blob[at] >> 3 >= last:
            last, length, shift, at_value = blob[at] >> 3, 0, 0, at + 1
            while True:
                byte = blob[at_value]
                length, shift, at_value = length | (byte & 127) << shift, shift + 7, at_value + 1
                if byte < 128:
                    break
            try:
                descriptor_pb2.FileDescriptorProto.FromString(blob[start : at_value + length])
            except Exception:
                break
            at = at_value + length
        file = descriptor_pb2.FileDescriptorProto.FromString(blob[start:at])
        if best is None or len(file.message_type) > len(best.message_type):
            best = file
        start = blob.find(b"\\x0a" + bytes([len(name)]) + name.encode(), start + 1)
    return best


for library in glob.glob(f"{root}/tensorflow/libtensorflow_*.so*"):
    with open(library, "rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as blob:
        for name in sys.argv[1:]:
            found = embedded(blob, name)
            if found is not None:
                files[name] = found
print(json.dumps({name: file.SerializeToString().hex() for name, file in files.items()}))
"""


def facts(file, package):
    """{name: what it is} of all messages, fields and enum values of a file, names without the package."""
    found = {}

    def add_enum(prefix, enum):
        for value in enum.value:
            found[f"{prefix}{enum.name}.{value.name}"] = value.number

    def add_message(prefix, message):
        name = prefix + message.name
        found[name] = "message"
        oneofs = {}
        for field in message.field:
            type_name = field.type_name.removeprefix(f".{package}.")
            oneof = message.oneof_decl[field.oneof_index].name if field.HasField("oneof_index") else ""
            oneofs[field.name] = "" if oneof == f"_{field.name}" else oneof
            found[f"{name}.{field.name}"] = [field.number, field.type, field.label, type_name, oneofs[field.name]]
        for nested in message.nested_type:
            add_message(f"{name}.", nested)
        for enum in message.enum_type:
            add_enum(f"{name}.", enum)

    prefix = file.package.removeprefix(package).removeprefix(".")
    prefix = f"{prefix}." if prefix else ""
    for message in file.message_type:
        add_message(prefix, message)
    for enum in file.enum_type:
        add_enum(prefix, enum)
    return found


def test_our_messages_are_tensorflows():
    dumped = run(DUMP, *IN_THE_LIBRARY)
    assert set(IN_THE_LIBRARY) <= set(dumped)
    theirs = {}
    for text in dumped.values():
        file = descriptor_pb2.FileDescriptorProto.FromString(bytes.fromhex(text))
        if file.package.split(".")[0] == "tensorflow":
            theirs |= facts(file, "tensorflow")
    checked = 0
    for path in sorted((ROOT / "protos" / "dtf").glob("*.proto")):
        if path.stem == "push":  # only dtf tasks speak it
            continue
        file = descriptor_pb2.FileDescriptorProto()
        importlib.import_module(f"dtf.wire.pb.{path.stem}_pb2").DESCRIPTOR.CopyToProto(file)
        ours = {name: fact for name, fact in facts(file, "dtf").items() if name not in OURS_ALONE}
        assert ours == {name: theirs.get(name) for name in ours}, path.name
        messages = [name for name, fact in ours.items() if fact == "message"]
        expected = {name for name in theirs if any(name.rsplit(".", 1)[0] == message for message in messages)}
        fields = {name for name in expected if isinstance(theirs[name], list)}
        assert fields - set(ours) <= LEFT_OUT, path.name
        checked += len(ours)
    assert checked > 900


def test_both_fit_into_one_process_in_either_order():
    for order in (["dtf.wire.pb.worker_pb2", "tensorflow"], ["tensorflow", "dtf.wire.pb.worker_pb2"]):
        program = f"""
            import subprocess
            code = "import sys; sys.path.insert(0, 'runtime'); import {order[0]}, {order[1]}, dtf.wire.codec"
            print(json.dumps(subprocess.run([sys.executable, "-c", code]).returncode))
        """
        assert run(program) == 0, order


def test_tensorflow_and_we_write_and_read_the_same_tensors():
    program = """
        from tensorflow.core.framework import tensor_pb2
        out = []
        for name in ["float32", "float64", "float16", "bfloat16", "int32", "uint8", "int8", "int16", "uint16", "int64",
                     "uint32", "uint64", "bool", "complex64", "complex128"]:
            array = (np.arange(6) % 5).reshape(2, 3).astype(tf.as_dtype(name).as_numpy_dtype)
            for proto in (tf.make_tensor_proto(array), tf.make_tensor_proto(array[0, 1], shape=[4])):
                out.append([proto.SerializeToString().hex(), tf.make_ndarray(proto).tobytes().hex(), str(proto)])
        print(json.dumps(out))
    """
    for data, elements, text in run(program):
        array = codec.decode_tensor(bytes.fromhex(data))
        assert array.tobytes().hex() == elements
        if array.ndim == 2:
            assert str(codec.make_tensor_proto(array)) == text
        else:
            assert str(codec.make_tensor_proto(array.flat[0], shape=[4])) == text
    ours = codec.make_tensor_proto(np.array([[b"a\0", b""]], object)).SerializeToString().hex()
    theirs = "print(json.dumps(tf.make_tensor_proto(np.array([[b'a\\0', b'']], object)).SerializeToString().hex()))"
    assert ours == run(theirs)
