"""Programs about summaries that both runtimes run.

Every function takes `tf`, which is either runtime.
"""

import glob
import json

import numpy as np


def train(tf, folder):
    """Three steps of a training that writes every kind of event."""
    x = tf.placeholder(tf.float32, [None], name="x")
    pixels = np.arange(2 * 4 * 5 * 3, dtype=np.uint8).reshape(2, 4, 5, 3) * 2
    tf.summary.scalar("loss", tf.reduce_mean(x))
    tf.summary.histogram("values", x)
    tf.summary.image("picture", tf.constant(pixels), max_outputs=1)
    tf.summary.audio("sound", tf.constant(np.sin(np.arange(200.0)).reshape(2, 100, 1), tf.float32), 8000.0)
    tf.summary.text("words", tf.constant(["some", "words"]))
    tf.summary.tensor_summary("matrix", tf.constant([[1.0, 2.0], [3.0, 4.0]]))
    merged = tf.summary.merge_all()
    by_hand = tf.Summary()
    by_hand.value.add(tag="by_hand", simple_value=0.25)
    with tf.Session() as session, tf.summary.FileWriter(folder, session.graph) as writer:
        for step in range(3):
            metadata = tf.RunMetadata()
            options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
            summary = session.run(merged, {x: np.full(4, step)}, options=options, run_metadata=metadata)
            writer.add_summary(summary, step)
            writer.add_summary(by_hand, step)
            writer.add_run_metadata(metadata, f"step_{step}", step)
        writer.add_session_log(tf.SessionLog(status=tf.SessionLog.STOP), 3)


def told(tf, folder):
    """What the events of the one file in a folder tell, but times, graphs and measurements."""
    (path,) = glob.glob(f"{folder}/events.*")
    found = []
    for event in tf.train.summary_iterator(path):
        values = []
        for value in event.summary.value:
            kind = value.WhichOneof("value")
            image_or_sound = kind in ("image", "audio")
            described = value.tag if image_or_sound else str(value).replace("\n", " ")
            values.append([value.tag, kind, described])
        found.append([event.step, event.WhichOneof("what"), values, event.session_log.status])
    return found


def summaries(tf):
    """{name: what the summary op gives}: messages as text; pictures and sounds decoded by their numbers."""
    random = np.random.RandomState(3)
    histograms = {
        "normal": random.normal(size=1000).astype(np.float32),
        "wide": (random.normal(size=500) * 10.0 ** random.randint(-15, 22, 500)).astype(np.float64),
        "integers": random.randint(-100, 100, 300),
        "bytes": random.randint(0, 255, 50).astype(np.uint8),
        "halves": random.normal(size=50).astype(np.float16),
        "zeros": np.zeros(7, np.float32),
        "negative_zero": np.array([-0.0], np.float32),
        "limits": np.array([1e-12, -1e-12, 1.1e-12, 1e20, -1e20, 1e300, 1.0, -1.0]),
        "one": np.float32(3.0),
        "empty": np.zeros((0, 2), np.float32),
    }
    images = {
        "floats": random.uniform(0, 1, (2, 3, 4, 3)),
        "signed": random.normal(size=(1, 3, 4, 1)),
        "bad": np.where(random.uniform(size=(1, 4, 4, 3)) > 0.9, np.nan, random.uniform(0, 5, (1, 4, 4, 3))),
        "infinite": np.where(random.uniform(size=(1, 4, 4, 4)) > 0.9, np.inf, 0.5),
        "black": np.zeros((1, 2, 2, 1)),
        "all_bad": np.full((1, 2, 2, 3), np.nan),
        "tiny": np.full((1, 2, 2, 3), 1e-9),
        "four": random.uniform(0, 1, (4, 2, 2, 4)),
    }
    sounds = {"short": random.uniform(-1.2, 1.2, (4, 30, 2)), "flat": random.uniform(-1, 1, (1, 10))}
    made = {}
    with tf.Graph().as_default(), tf.Session() as session:
        for name, values in histograms.items():
            made[f"histogram/{name}"] = tf.summary.histogram(f"h/{name} (x)", tf.constant(values))
        for name, values in images.items():
            for dtype in (np.float32, np.float16, np.float64):
                made[f"image/{name}/{dtype.__name__}"] = tf.summary.image(name, tf.constant(values.astype(dtype)))
        for name, values in sounds.items():
            made[f"audio/{name}"] = tf.summary.audio(name, tf.constant(values.astype(np.float32)), 44100.0, 2)
        with tf.name_scope("scope"):
            made["scalar"] = tf.summary.scalar("a", tf.constant(1.5, tf.float64), family="family")
            made["bfloat"] = tf.summary.scalar("b", tf.constant(1.5, tf.bfloat16))
            made["integer"] = tf.summary.scalar("c", tf.constant(7, tf.int64))
        made["tensor"] = tf.summary.tensor_summary("t", tf.constant(["x"]), "described", display_name="shown")
        made["merged"] = tf.summary.merge([made["scalar"], made["integer"]])
        return {name: _described(tf, value) for name, value in session.run(made).items()}


def _described(tf, serialized):
    summary = tf.Summary.FromString(serialized)
    found = []
    for value in summary.value:
        if value.WhichOneof("value") == "image":
            pixels = _png_pixels(value.image.encoded_image_string)
            value.image.encoded_image_string = b""
            found.append(pixels)
        if value.WhichOneof("value") == "histo":
            # Sums depend on the order in which they are added, in their last digits.
            value.histo.sum = float(f"{value.histo.sum:.12g}")
            value.histo.sum_squares = float(f"{value.histo.sum_squares:.12g}")
        found.append(str(value))
    return json.loads(json.dumps(found))


def _png_pixels(data):
    """The bytes of an image's rows, unfiltered; only the filters that are in use."""
    import struct
    import zlib

    position, compressed, header = 8, b"", b""
    while position < len(data):
        (length,), kind = struct.unpack(">I", data[position : position + 4]), data[position + 4 : position + 8]
        body = data[position + 8 : position + 8 + length]
        header, compressed = (body if kind == b"IHDR" else header), compressed + (body if kind == b"IDAT" else b"")
        position += 12 + length
    width, height, _, colour = struct.unpack(">IIBB", header[:10])
    channels = {0: 1, 2: 3, 6: 4}[colour]
    raw = np.frombuffer(zlib.decompress(compressed), np.uint8).reshape(height, 1 + width * channels)
    above = np.zeros(width * channels, np.int64)
    rows = []
    for line in raw:
        row = line[1:].astype(np.int64)
        for i in range(len(row)):
            left = row[i - channels] if i >= channels else 0
            corner = above[i - channels] if i >= channels else 0
            up = above[i]
            estimate = left + up - corner
            nearest = min((left, up, corner), key=lambda known: abs(estimate - known))
            row[i] = (row[i] + [0, left, up, (left + up) // 2, nearest][line[0]]) & 255
        rows.append(row.tolist())
        above = row
    return [width, height, channels, rows]


HOW_FAR = """
def how_far(tf, path):
    seen = []
    try:
        for event in tf.train.summary_iterator(path):
            seen.append(event.step)
    except tf.errors.OpError as error:
        return [seen, type(error).__name__]
    return [seen, "end"]
"""
