"""Programs about meta graphs that both runtimes run: what one exports, the other imports and trains on.

Every function takes `tf`, which is either runtime.
"""

X = [[1.0, 2.0], [2.0, 1.0]]
FEED = {"x:0": X, "t:0": [[1.0], [2.0]]}


def model(tf):
    """A model with variables of each kind, an optimizer with slots, averages, a queue runner and collections."""
    with tf.device("/cpu:0"):
        x = tf.placeholder(tf.float32, [None, 2], name="x")
        t = tf.placeholder(tf.float32, [None, 1], name="t")
    w = tf.get_variable("w", initializer=tf.constant([[1.0], [2.0]]))
    b = tf.get_variable("b", initializer=tf.constant([0.5]), use_resource=True)
    frozen = tf.get_variable("frozen", initializer=tf.constant(1.0), trainable=False, use_resource=True)
    tf.get_local_variable("local", initializer=tf.constant(3.0))
    partitioner = tf.fixed_size_partitioner(2)
    parts = tf.get_variable("parts", initializer=tf.constant([[1.0], [2.0], [3.0]]), partitioner=partitioner)
    step = tf.train.get_or_create_global_step()
    y = tf.add(tf.matmul(x, w), b * frozen + tf.reduce_sum(tf.convert_to_tensor(parts)), name="y")
    loss = tf.reduce_mean(tf.square(y - t), name="loss")
    train = tf.train.AdamOptimizer(0.1).minimize(loss, global_step=step, name="train")
    with tf.control_dependencies([train]):
        train = tf.group(tf.train.ExponentialMovingAverage(0.9).apply([w]), name="train_and_average")
    queue = tf.FIFOQueue(10, [tf.float32], shapes=[[]], name="queue")
    tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(1.0)] * 2))
    tf.identity(queue.dequeue(), name="dequeued")
    tf.summary.scalar("loss_of_step", loss)
    for key, value in (
        (tf.GraphKeys.TRAIN_OP, train), ("outputs", y), ("counts", 3), ("rates", 0.25), ("words", "hello"),
    ):  # fmt: skip
        tf.add_to_collection(key, value)
    saver = tf.train.Saver(sharded=True, max_to_keep=7, keep_checkpoint_every_n_hours=3.0)
    tf.add_to_collection(tf.GraphKeys.SAVERS, saver)
    return saver


def losses(tf, session, steps):
    """The losses of some steps of training the model."""
    found = []
    for _ in range(steps):
        session.run(tf.get_collection(tf.GraphKeys.TRAIN_OP)[0], FEED)
        found.append(float(session.run("loss:0", FEED)))
    return found


def begin(tf, prefix):
    """Trains three steps, saves, trains three more. Returns the checkpoint and the losses after it."""
    saver = model(tf)
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        losses(tf, session, 3)
        return saver.save(session, prefix, tf.train.get_global_step()), losses(tf, session, 3)


def go_on(tf, prefix, again, suffix=".meta"):
    """Trains on from a checkpoint and its meta graph alone. Returns the losses, and what else the graph tells."""
    saver = tf.train.import_meta_graph(prefix + suffix)
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        saver.restore(session, prefix)
        found = {"losses": losses(tf, session, 3)}
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coord)
        found["dequeued"] = float(session.run("dequeued:0"))
        coord.request_stop()
        coord.join(threads)
        found["local"] = float(session.run(tf.local_variables()[0]))
        found["again"] = saver.save(session, again, global_step=tf.train.get_global_step())
        summary = tf.Summary.FromString(session.run(tf.summary.merge_all(), FEED))
        found["summary"] = [value.tag for value in summary.value]
    kinds = ("GLOBAL_VARIABLES", "TRAINABLE_VARIABLES", "LOCAL_VARIABLES", "MOVING_AVERAGE_VARIABLES", "GLOBAL_STEP")
    for kind in kinds:
        found[kind] = [
            [v.name, v.shape.as_list(), v.dtype.name] for v in tf.get_collection(getattr(tf.GraphKeys, kind))
        ]
    found["same"] = all(any(v is w for w in tf.global_variables()) for v in tf.trainable_variables())
    found["slices"] = [v._get_save_slice_info().spec for v in tf.global_variables() if v.name.startswith("parts/part_")]
    found["values"] = [tf.get_collection(key)[0] for key in ("counts", "rates")]
    found["words"] = tf.get_collection("words")[0].decode()
    found["outputs"] = tf.get_collection("outputs")[0].name
    found["savers"] = [type(each).__name__ for each in tf.get_collection(tf.GraphKeys.SAVERS)]
    found["saver"] = str(saver.as_saver_def())
    return found


def imported_twice(tf, prefix):
    """Two copies of the graph in scopes of their own, without devices; each restored, and exported again alone."""
    found = {}
    savers = [tf.train.import_meta_graph(prefix + ".meta", clear_devices=True, import_scope=s) for s in ("one", "two")]
    with tf.Session() as session:
        for scope, saver in zip(("one", "two"), savers, strict=True):
            saver.restore(session, prefix)
            found[scope] = session.run(f"{scope}/y:0", {f"{scope}/x:0": X}).tolist()
    found["devices"] = sorted({op.device for op in tf.get_default_graph().get_operations()})
    found["variables"] = [v.name for v in tf.global_variables()]
    exported = tf.train.export_meta_graph(export_scope="two", clear_devices=True)
    found["nodes"] = sorted(n.name for n in exported.graph_def.node if n.name in ("x", "w", "y", "loss", "one/x"))
    definitions = [type(tf.global_variables()[0].to_proto()).FromString(each)
                   for each in exported.collection_def["variables"].bytes_list.value]  # fmt: skip
    found["exported"] = [[d.variable_name, d.snapshot_name, d.save_slice_info_def.full_name] for d in definitions]
    with tf.Graph().as_default(), tf.Session() as session:
        tf.train.import_meta_graph(exported)
        variables = tf.global_variables()
        session.run(tf.global_variables_initializer())
        found["imported"] = [len(variables), session.run("y:0", {"x:0": X}).tolist()]
    return found


def told(message):
    """What a MetaGraphDef tells beside its nodes."""
    kinds = {key: value.WhichOneof("kind") for key, value in message.collection_def.items()}
    kinds.pop("cond_context", None)  # where either's functions use a cond is its own affair
    return {
        "collections": {
            key: [kind, len(getattr(message.collection_def[key], kind).value)] for key, kind in sorted(kinds.items())
        },
        "saver": [
            message.saver_def.filename_tensor_name,
            message.saver_def.restore_op_name,
            message.saver_def.max_to_keep,
            message.saver_def.sharded,
            message.saver_def.keep_checkpoint_every_n_hours,
            message.saver_def.version,
        ],
        "stripped": message.meta_info_def.stripped_default_attrs,
        "all_ops": {n.op for n in message.graph_def.node}
        <= {o.name for o in message.meta_info_def.stripped_op_list.op},
        "versions": bool(message.meta_info_def.tensorflow_version and message.graph_def.versions.producer),
    }
