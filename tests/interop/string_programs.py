"""Scalar strings that end in NULs, from every place that strings come from, and what the next operation makes of them.

`outcomes(tf, folder)` uses TensorFlow's names only, so that both runtimes can give theirs. The values of a name are
what `consumed` makes of the string; `expected` has the same without any runtime.
"""

from __future__ import annotations

import base64
import os
from typing import Any

import numpy as np

NULS = b"ab\0\0"
ONLY_NULS = b"\0\0"


def consumed(tf: Any, value: Any) -> list[Any]:
    """What operations make of a scalar string; one that lost its NULs shows in each."""
    return [
        tf.strings.length(value),
        tf.decode_raw(value, tf.uint8),
        tf.strings.substr(value, 0, tf.strings.length(value)),
        tf.encode_base64(value),
        tf.strings.join([value, value], "|"),
        tf.strings.reduce_join(tf.stack([value, value]), 0),
        tf.equal(value, tf.constant(NULS)),
        tf.strings.regex_full_match(value, r"(?s).*\x00\x00"),
        tf.io.serialize_tensor(value),
        tf.identity(value),
    ]


def expected_of(value: bytes) -> list[Any]:
    """What `consumed` has to come to."""
    return plain([
        len(value), list(value), value, base64.urlsafe_b64encode(value).rstrip(b"="), value + b"|" + value, value * 2,
        value == NULS, value.endswith(b"\0\0"), b"\x08\x07\x12\x00\x42" + bytes([len(value)]) + value, value,
    ])  # fmt: skip


def plain(value: Any) -> Any:
    """A fetched value as JSON has it: strings in hexadecimal digits, arrays as lists."""
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, (np.ndarray, np.generic)) and not isinstance(value, bytes):
        return plain(value.tolist())
    return bytes(value).hex() if isinstance(value, bytes) else value


def example() -> bytes:
    """A tf.train.Example with the feature "a": NULS."""
    return bytes([10, 15, 10, 13, 10, 1, 97, 18, 8, 10, 6, 10, 4]) + NULS


def producers(tf: Any) -> dict[str, Any]:
    """Scalar strings of operations that keep no state, by name; each is NULS."""
    string = tf.constant(NULS)
    vector, matrix = tf.constant([b"x\0", NULS]), tf.constant([[b"x\0"], [NULS]])
    features = {"a": tf.FixedLenFeature([], tf.string), "b": tf.FixedLenFeature([], tf.string, default_value=NULS)}
    parsed = tf.parse_single_example(example(), features)
    contexts, _ = tf.parse_single_sequence_example(example(), features)
    taken, forgotten = tf.constant(True), tf.constant(False)
    switched = tf.raw_ops.Switch(data=string, pred=taken)
    sparse = tf.SparseTensor([[1]], [NULS], [3])
    found = tf.unique(vector)

    def encoded(codes):
        return tf.raw_ops.UnicodeEncode(
            input_values=codes, input_splits=tf.constant([0, 4], tf.int64), output_encoding="UTF-8"
        )[0]

    first, second = tf.dynamic_partition(vector, [0, 1], 2)
    return {
        "constant": string,
        "constant_of_array": tf.constant(np.array(NULS, object)),
        "constant_of_text": tf.constant("ab\0\0"),
        "identity": tf.identity(string),
        "element": vector[1],
        "element_from_the_end": vector[-1],
        "element_by_tensor": vector[tf.constant(1)],
        "matrix_element": matrix[1, 0],
        "gather": tf.gather(vector, 1),
        "gather_nd": tf.gather_nd(matrix, [1, 0]),
        "unstack": tf.unstack(vector)[1],
        "squeeze": tf.squeeze(vector[1:]),
        "reshape": tf.reshape(matrix[1:], []),
        "slice": tf.reshape(tf.slice(vector, [1], [1]), []),
        "split": tf.squeeze(tf.split(vector, 2)[1]),
        "concat": tf.concat([vector, vector], 0)[3],
        "stack": tf.stack([string, string])[1],
        "tile": tf.tile(vector, [2])[3],
        "reverse": tf.reverse(vector, [0])[0],
        "transpose": tf.transpose(matrix)[0, 1],
        "fill": tf.fill([], string),
        "fill_vector": tf.fill([2], string)[1],
        "broadcast": tf.broadcast_to(string, []),
        "expand": tf.expand_dims(string, 0)[0],
        "where": tf.where(taken, string, tf.constant(b"")),
        "where_of_elements": tf.where([True, False], [b"", b""], vector)[1],
        "one_hot": tf.one_hot(0, 1, on_value=string, off_value=b"")[0],
        "pad": tf.pad(vector, [[1, 1]], constant_values=NULS)[0],
        "boolean_mask": tf.boolean_mask(vector, [False, True])[0],
        "partition": second[0],
        "dynamic_stitch": tf.dynamic_stitch([[1], [0]], [[NULS], [b""]])[1],
        "stitch_of_scalars": tf.dynamic_stitch([0, 1], [string, first[0]])[0],
        "unique": found.y[1],
        "scatter": tf.scatter_nd([[1]], [NULS], [2])[1],
        "shuffle": tf.random_shuffle([NULS, NULS])[1],
        "switch": switched.output_true,
        "merge": tf.raw_ops.Merge(inputs=[switched.output_false, switched.output_true]).output,
        "cond": tf.cond(taken, lambda: tf.identity(string), lambda: tf.constant(b"")),
        "cond_else": tf.cond(forgotten, lambda: tf.constant(b""), lambda: vector[1]),
        "case": tf.case([(forgotten, lambda: tf.constant(b""))], default=lambda: vector[1]),
        "while": tf.while_loop(lambda i, _: i < 2, lambda i, s: (i + 1, tf.gather(vector, 1)), [0, b""])[1],
        "while_joined": tf.while_loop(lambda i, _: i < 2, lambda i, s: (i + 1, s + b"\0"), [0, b"ab"])[1],
        "map_fn": tf.map_fn(lambda each: each + b"", vector)[1],
        "foldl": tf.foldl(lambda kept, each: each, vector, b""),
        "scan": tf.scan(lambda kept, each: each, vector, b"")[1],
        "add": tf.constant(b"ab") + tf.constant(ONLY_NULS),
        "join": tf.strings.join([b"ab", b"\0", b"\0"]),
        "reduce_join": tf.strings.reduce_join([b"ab\0", b"\0"]),
        "reduce_join_axis": tf.strings.reduce_join([b"ab\0", b"\0"], 0),
        "substr": tf.strings.substr(b"xab\0\0y", 1, 4),
        "substr_of_element": tf.strings.substr(vector, 0, 2)[1] + ONLY_NULS,
        "decode_base64": tf.decode_base64(base64.urlsafe_b64encode(NULS)),
        "strip": tf.strings.strip(b"  " + NULS),
        "lower": tf.strings.lower(b"AB\0\0"),
        "upper": tf.strings.lower(tf.strings.upper(NULS)),
        "regex_replace": tf.strings.regex_replace(b"xb\0\0", "x", "a"),
        "regex_replace_static": tf.strings.regex_replace(b"ab..", r"\.", "\0"),
        "split_words": tf.string_split([b"x " + NULS]).values[1],
        "split_v2": tf.strings.split([b"x," + NULS], ",").values[1],
        "unicode_encode": encoded(tf.constant([97, 98, 0, 0])),
        "unicode_transcode": tf.strings.unicode_transcode(NULS, "UTF-8", "UTF-8"),
        "as_string": tf.strings.as_string(string),
        "decode_csv": tf.decode_csv(b"1," + NULS, [[1], [b""]])[1],
        "decode_csv_default": tf.decode_csv(b"1,", [[1], [NULS]])[1],
        "serialized": tf.io.parse_tensor(tf.io.serialize_tensor(string), tf.string),
        "parse_single_example": parsed["a"],
        "parse_single_example_default": parsed["b"],
        "parse_example": tf.parse_example([example()], features)["a"][0],
        "parse_single_sequence_example": contexts["a"],
        "parse_single_sequence_example_default": contexts["b"],
        "decode_raw_and_back": encoded(tf.cast(tf.decode_raw(string, tf.uint8), tf.int32)),
        "sparse_to_dense": tf.sparse.to_dense(sparse, default_value=b"")[1],
        "sparse_default": tf.sparse.to_dense(sparse, default_value=NULS)[0],
        "sparse_fill": tf.sparse.fill_empty_rows(tf.SparseTensor([[1, 0]], [b""], [2, 1]), NULS)[0].values[0],
        "list": tf.raw_ops.TensorListGetItem(
            input_handle=tf.raw_ops.TensorListFromTensor(tensor=vector, element_shape=tf.constant([], tf.int32)),
            index=1, element_shape=tf.constant([], tf.int32), element_dtype=tf.string,
        ),
        "list_stacked": tf.raw_ops.TensorListStack(
            input_handle=tf.raw_ops.TensorListFromTensor(tensor=vector, element_shape=tf.constant([], tf.int32)),
            element_shape=tf.constant([], tf.int32), element_dtype=tf.string,
        )[1],
        "array": tf.TensorArray(tf.string, 2, clear_after_read=False).unstack(vector).read(1),
        "array_written": tf.TensorArray(tf.string, 1).write(0, string).read(0),
        "array_stacked": tf.TensorArray(tf.string, 1).write(0, string).stack()[0],
        "array_concat": tf.TensorArray(tf.string, 1, infer_shape=False).write(0, vector).concat()[1],
        "py_func": tf.py_func(lambda value: value, [string], tf.string),
        "py_func_bytes": tf.py_func(lambda: NULS, [], tf.string),
        "py_func_text": tf.py_func(lambda: "ab\0\0", [], tf.string),
        "py_func_array": tf.py_func(lambda: np.array(NULS, object), [], tf.string),
        "py_func_list": tf.py_func(lambda: [NULS], [], [tf.string])[0],
        "py_func_vector": tf.py_func(lambda value: value, [vector], tf.string)[1],
        "py_func_length": tf.gather(vector, tf.py_func(lambda value: np.int64(len(value) == 4), [string], tf.int64)),
    }  # fmt: skip


def stateful(tf: Any, folder: str) -> tuple[dict[str, Any], list[Any]]:
    """Scalar strings of operations that keep state, by name, each NULS; and what must run first, in order."""
    string, vector = tf.constant(NULS), tf.constant([b"x\0", NULS])
    first: list[Any] = []
    values: dict[str, Any] = {}
    for name, use_resource in (("ref_variable", False), ("resource_variable", True)):
        variable = tf.get_variable(name, initializer=tf.constant(NULS), use_resource=use_resource)
        rows = tf.get_variable(f"{name}_rows", initializer=tf.constant([b"", b""]), use_resource=use_resource)
        values[name], values[f"{name}_row"] = variable.read_value(), rows[1]
        values[f"{name}_gathered"] = tf.gather(rows, 1)
        assigned = tf.get_variable(f"{name}_assigned", initializer=tf.constant(b""), use_resource=use_resource)
        values[f"{name}_assigned"] = assigned.read_value()
        first.append([tf.assign(assigned, string), tf.assign(rows, vector)])
    first.insert(0, tf.global_variables_initializer())
    for kind, queue in {
        "fifo": tf.FIFOQueue(10, [tf.string], [[]]),
        "fifo_unknown": tf.FIFOQueue(10, [tf.string]),
        "random": tf.RandomShuffleQueue(10, 0, [tf.string], [[]]),
        "padding": tf.PaddingFIFOQueue(10, [tf.string], [[]]),
        "priority": tf.PriorityQueue(10, [tf.string], [[]]),
    }.items():
        put = [tf.constant(1, tf.int64), string] if kind == "priority" else [string]
        many = [tf.constant([1, 1], tf.int64), tf.stack([string, string])] if kind == "priority" else [[NULS, NULS]]
        first += [queue.enqueue(put), queue.enqueue_many(many)]
        got = queue.dequeue()
        values[f"{kind}_queue"] = got[1] if kind == "priority" else got
        if kind != "fifo_unknown":
            got = queue.dequeue_many(1)
            values[f"{kind}_queue_many"] = (got[1] if kind == "priority" else got)[0]
    padded = tf.PaddingFIFOQueue(10, [tf.string], [[None]])
    first.append(padded.enqueue([vector]))
    values["padded_row"] = padded.dequeue()[1]
    staging = tf.raw_ops.Stage(values=[string], shared_name="s")
    first.append(staging)
    values["staging"] = tf.raw_ops.Unstage(dtypes=[tf.string], shared_name="s")[0]
    first.append(tf.raw_ops.MapStage(key=tf.constant(1, tf.int64), indices=[0], values=[string], dtypes=[tf.string],
                                     shared_name="m"))  # fmt: skip
    values["map_staging"] = tf.raw_ops.MapUnstage(key=tf.constant(1, tf.int64), indices=[0], dtypes=[tf.string],
                                                  shared_name="m")[0]  # fmt: skip
    stack = tf.raw_ops.StackV2(max_size=-1, elem_type=tf.string)
    with tf.control_dependencies([tf.raw_ops.StackPushV2(handle=stack, elem=string)]):
        values["stack_pop"] = tf.raw_ops.StackPopV2(handle=stack, elem_type=tf.string)
    table = tf.raw_ops.MutableHashTableV2(key_dtype=tf.int64, value_dtype=tf.string, shared_name="t")
    one, two = tf.constant(1, tf.int64), tf.constant(2, tf.int64)
    first.append(tf.raw_ops.LookupTableInsertV2(table_handle=table, keys=[one], values=[string]))
    values["table"] = tf.raw_ops.LookupTableFindV2(table_handle=table, keys=one, default_value=b"")
    values["table_default"] = tf.raw_ops.LookupTableFindV2(table_handle=table, keys=two, default_value=string)
    values["table_export"] = tf.raw_ops.LookupTableExportV2(table_handle=table, Tkeys=tf.int64, Tvalues=tf.string)[1][0]
    keys = tf.raw_ops.MutableHashTableV2(key_dtype=tf.string, value_dtype=tf.int64, shared_name="k")
    first.append(tf.raw_ops.LookupTableInsertV2(table_handle=keys, keys=vector, values=tf.constant([0, 1], tf.int64)))
    values["table_key"] = tf.gather(vector, tf.raw_ops.LookupTableFindV2(
        table_handle=keys, keys=string, default_value=tf.constant(0, tf.int64)))  # fmt: skip
    by_number = tf.raw_ops.MutableHashTableOfTensorsV2(key_dtype=tf.int64, value_dtype=tf.string, value_shape=[2],
                                                       shared_name="v")  # fmt: skip
    first.append(tf.raw_ops.LookupTableInsertV2(table_handle=by_number, keys=tf.constant([1], tf.int64),
                                                values=[vector]))  # fmt: skip
    values["table_of_rows"] = tf.raw_ops.LookupTableFindV2(
        table_handle=by_number, keys=tf.constant(1, tf.int64), default_value=[b"", b""]
    )[1]
    path = os.path.join(folder, "whole")
    first.append(tf.write_file(path, string))
    values["read_file"] = tf.read_file(path)
    prefix = os.path.join(folder, "raw")
    first.append(tf.raw_ops.SaveV2(prefix=prefix, tensor_names=["s", "v"], shape_and_slices=["", ""],
                                   tensors=[string, vector]))  # fmt: skip
    restored = tf.raw_ops.RestoreV2(prefix=prefix, tensor_names=["s", "v"], shape_and_slices=["", ""],
                                    dtypes=[tf.string, tf.string])  # fmt: skip
    values["restored"], values["restored_row"] = restored[0], restored[1][1]
    return values, first


def datasets(tf: Any, folder: str) -> dict[str, Any]:
    """Datasets whose only element is the scalar string NULS, by name."""
    data = tf.data.Dataset
    records, lines = os.path.join(folder, "records"), os.path.join(folder, "lines")
    with tf.python_io.TFRecordWriter(records) as writer:
        writer.write(NULS)
    with open(lines, "wb") as file:
        file.write(NULS)
    slices, captured = data.from_tensor_slices([NULS]), tf.constant(NULS)

    def generated():
        yield NULS

    def parsed(text):
        return tf.parse_single_example(text, {"a": tf.FixedLenFeature([], tf.string)})["a"]

    return {
        "tensors": data.from_tensors(NULS),
        "slices": slices,
        "slices_of_rows": data.from_tensor_slices([[NULS]]).map(lambda row: row[0]),
        "generator": data.from_generator(generated, tf.string, []),
        "records": tf.data.TFRecordDataset(records),
        "lines": tf.data.TextLineDataset(lines),
        "fixed": tf.data.FixedLengthRecordDataset(lines, 4),
        "map": slices.map(lambda text: text),
        "map_substr": slices.map(lambda text: tf.strings.substr(text, 0, 4)),
        "map_joined": data.from_tensors(b"ab").map(lambda text: text + ONLY_NULS),
        "map_parallel": slices.map(lambda text: tf.identity(text), num_parallel_calls=2),
        "map_parsed": data.from_tensors(example()).map(parsed),
        "map_py_func": slices.map(lambda text: tf.py_func(lambda value: value, [text], tf.string)),
        "captured": data.range(1).map(lambda _: captured),
        "flat_map": slices.flat_map(data.from_tensors),
        "interleave": slices.interleave(data.from_tensors, 1),
        "filter": slices.filter(lambda text: tf.equal(text, NULS)),
        "batch": slices.batch(1).map(lambda rows: rows[0]),
        "batches_apart": slices.batch(1).apply(tf.data.experimental.unbatch()),
        "padded_batch": slices.padded_batch(1, []).map(lambda rows: rows[0]),
        "padding": data.from_tensors([b"x"]).padded_batch(1, [2], padding_values=NULS).map(lambda rows: rows[0, 1]),
        "shuffle": slices.shuffle(2),
        "repeat": slices.repeat(1),
        "cache": slices.cache(),
        "cache_file": slices.cache(os.path.join(folder, "cache")),
        "prefetch": slices.prefetch(1),
        "zip": data.zip((slices, slices)).map(lambda one, other: other),
        "concatenate": slices.concatenate(slices).skip(1),
        "window": slices.window(1).flat_map(lambda rows: rows),
        "reduce": data.from_tensors(0).map(lambda _: slices.reduce(tf.constant(b""), lambda state, text: text)),
    }


def feeds() -> dict[str, Any]:
    """Values for a placeholder of scalar strings; those of numpy's own byte strings have lost their NULs before."""
    return {
        "bytes": NULS,
        "text": "ab\0\0",
        "array": np.array(NULS),
        "array_of_objects": np.array(NULS, object),
        "array_of_text": np.array("ab\0\0"),
        "text_object": np.array("ab\0\0", object),
        "numpy_bytes": np.bytes_(NULS),
        "element": np.array([NULS], object)[0],
    }


def fed_rows() -> dict[str, Any]:
    """Values for a placeholder of a vector with one string."""
    return {
        "list": [NULS],
        "tuple": ("ab\0\0",),
        "array_of_objects": np.array([NULS], object),
        "array": np.array([NULS]),
        "list_of_numpy_bytes": [np.bytes_(NULS)],
    }


LOST = frozenset({"feeds/array", "feeds/array_of_text", "rows/array", "py_func/array", "py_func/array_of_text"})
"""Arrays of numpy's own strings have no NULs at their ends; nobody can tell."""

LOST_IN_TENSORFLOW = frozenset({"py_func_text", "py_func/text"})
"""Text that a function returns is such an array in TensorFlow. Here it stays what it is."""


def expected(name: str) -> list[Any]:
    """What `outcomes` has to give under `name`."""
    return expected_of(NULS.rstrip(b"\0") if name in LOST else NULS)


def outcomes(tf: Any, folder: str) -> dict[str, Any]:
    """All of the above, run: {name: what `consumed` gives}, as JSON has it."""
    found: dict[str, Any] = {}
    with tf.Graph().as_default(), tf.Session() as session:
        values = producers(tf)
        results = session.run([consumed(tf, value) for value in values.values()])
        found.update(zip(values, results, strict=True))
    with tf.Graph().as_default(), tf.Session() as session:
        values, first = stateful(tf, folder)
        values = {name: value for name, value in values.items() if value.dtype == tf.string}
        read = [consumed(tf, value) for value in values.values()]
        for each in first:
            session.run(each)
        found.update(zip(values, session.run(read), strict=True))
    with tf.Graph().as_default(), tf.Session() as session:
        nexts = {}
        for name, dataset in datasets(tf, folder).items():
            nexts[f"dataset/{name}"] = tf.data.make_one_shot_iterator(dataset).get_next()
        found.update(zip(nexts, session.run([consumed(tf, value) for value in nexts.values()]), strict=True))
    with tf.Graph().as_default(), tf.Session() as session:
        scalar, rows = tf.placeholder(tf.string, []), tf.placeholder(tf.string, [1])
        of_scalar, of_rows = consumed(tf, scalar), consumed(tf, rows[0])
        for name, value in feeds().items():
            found[f"feeds/{name}"] = session.run(of_scalar, {scalar: value})
        for name, value in fed_rows().items():
            found[f"rows/{name}"] = session.run(of_rows, {rows: value})
        for name, value in feeds().items():
            found[f"py_func/{name}"] = session.run(consumed(tf, tf.py_func(lambda v=value: v, [], tf.string)))
    found.update(saved(tf, folder))
    return {name: plain(value) for name, value in found.items()}


def saved(tf: Any, folder: str) -> dict[str, Any]:
    """Variables of strings, saved by one session and restored by another."""
    found = {}
    for version in (1, 2):
        prefix = os.path.join(folder, f"saver{version}")
        for start in (NULS, b""):
            with tf.Graph().as_default(), tf.Session() as session:
                one = tf.get_variable("one", initializer=tf.constant(start))
                many = tf.get_variable("many", initializer=tf.constant([start, start]), use_resource=True)
                saver = tf.train.Saver([many] if version == 1 else None, write_version=version)
                session.run(tf.global_variables_initializer())
                if start:
                    saver.save(session, prefix)
                    continue
                saver.restore(session, prefix)
                read = {f"saver{version}_row": many[1]} | ({} if version == 1 else {"saver2": one.read_value()})
                found.update(zip(read, session.run([consumed(tf, value) for value in read.values()]), strict=True))
    return found
