"""Programs about checkpoints that both runtimes run: what one saves, the other reads and restores.

Every function takes `tf`, which is either runtime. The values are the same wherever they are made.
"""

import ml_dtypes
import numpy as np

NUMBERS = "float32 float64 float16 int8 int16 int32 int64 uint8 uint16 uint32 uint64 complex64 complex128 bool".split()
SHAPES = {"scalar": (), "empty": (0, 3), "vector": (5,), "cube": (2, 1, 3)}


def values():
    """{name: array}: every dtype in several shapes, and strings."""
    random = np.random.RandomState(1)
    made = {}
    for shape_name, shape in SHAPES.items():
        for dtype in NUMBERS:
            made[f"{dtype}/{shape_name}"] = np.asarray(random.uniform(-100, 100, shape)).astype("int64").astype(dtype)
        made[f"bfloat16/{shape_name}"] = np.asarray(random.uniform(-100, 100, shape), ml_dtypes.bfloat16)
    made["string/scalar"] = np.array(b"a\0b", object)
    made["string/empty"] = np.zeros((0,), object)
    made["string/matrix"] = np.array([[b"", b"x" * 100_000], ["\u00fc\u00df".encode(), b"\xff\0\n"]], object)
    made["extremes"] = np.array([np.nan, -np.inf, np.inf, -0.0, 5e-324])
    return made


WHOLE = np.arange(21, dtype=np.float32).reshape(7, 3)


def save(tf, prefix, sharded=False):
    """Saves `values`, alternately of resource and reference variables; WHOLE in one piece, in rows and in columns."""
    for number, (name, value) in enumerate(sorted(values().items())):
        tf.get_variable(name, initializer=tf.constant(value), use_resource=number % 2 == 0)
    tf.get_variable("whole", initializer=tf.constant(WHOLE))
    for name, partitioner, use_resource in (
        ("rows", tf.fixed_size_partitioner(3), False),
        ("columns", tf.fixed_size_partitioner(2, axis=1), True),
    ):
        tf.get_variable(name, initializer=tf.constant(WHOLE), partitioner=partitioner, use_resource=use_resource)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return tf.train.Saver(sharded=sharded).save(session, prefix, global_step=3)


def restored_wrong(tf, prefix):
    """Restores the checkpoint by other partitionings than it was saved with. Returns the names that came back wrong."""
    wanted = values()
    found = {
        name: tf.get_variable(name, initializer=tf.constant(_other(value)), use_resource=number % 3 == 0)
        for number, (name, value) in enumerate(sorted(wanted.items()))
    }
    for name, partitioner in (
        ("whole", tf.fixed_size_partitioner(4)),
        ("rows", tf.fixed_size_partitioner(2)),
        ("columns", None),
    ):
        wanted[name] = WHOLE
        found[name] = tf.convert_to_tensor(tf.get_variable(name, WHOLE.shape, partitioner=partitioner))
    with tf.Session() as session:
        tf.train.Saver().restore(session, prefix)
        return [name for name, value in session.run(found).items() if not same(value, wanted[name])]


def _other(value):
    """An array of the same type and shape with other values."""
    return np.full_like(value, b"other" if value.dtype == object else 1)


def read_wrong(tf, prefix):
    """The names of tensors that the reader of the checkpoint gives wrong."""
    reader = tf.train.load_checkpoint(prefix)
    wanted = {**values(), "whole": WHOLE, "rows": WHOLE, "columns": WHOLE}
    wrong = [name for name, value in wanted.items() if not same(reader.get_tensor(name), value)]
    shapes, dtypes = reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map()
    wrong += [name for name in set(shapes) ^ set(wanted)]
    wrong += [name for name, value in wanted.items() if shapes[name] != list(value.shape)]
    wrong += [name for name, value in wanted.items() if dtypes[name] != tf.constant(value).dtype]
    wrong += [name for name in wanted if not reader.has_tensor(name)]
    if tf.train.list_variables(prefix) != sorted((name, list(value.shape)) for name, value in wanted.items()):
        wrong.append("list_variables")
    if not same(tf.train.load_variable(prefix, "rows:0"), WHOLE):
        wrong.append("load_variable")
    return wrong


def same(found, wanted):
    """Whether two arrays are equal in every bit, dtype and shape."""
    found = np.asarray(found, object) if isinstance(found, bytes) else np.asarray(found)
    if found.dtype != wanted.dtype or found.shape != wanted.shape:
        return False
    return found.tolist() == wanted.tolist() if wanted.dtype == object else found.tobytes() == wanted.tobytes()
