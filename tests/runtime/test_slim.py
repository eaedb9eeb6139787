"""tf.contrib.slim and framework: scoped arguments, model variables, losses, training and evaluation."""

from __future__ import annotations

import numpy as np
import pytest

import dtf as tf
from dtf.contrib import framework, slim

random = np.random.RandomState(1)
X = random.uniform(-1, 1, (20, 8, 8, 3)).astype(np.float32)
Y = random.randint(0, 4, 20).astype(np.int32)


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        tf.set_random_seed(3)
        yield graph


def names(variables) -> list[str]:
    return [variable.op.name for variable in variables]


def network(inputs, is_training=True):
    params = {"is_training": is_training}
    both = [slim.conv2d, slim.fully_connected]
    with (
        slim.arg_scope(both, weights_regularizer=slim.l2_regularizer(0.1), outputs_collections="outputs"),
        slim.arg_scope([slim.conv2d], normalizer_fn=slim.batch_norm, normalizer_params=params),
    ):
        net = slim.repeat(inputs, 2, slim.conv2d, 4, [3, 3], scope="conv")
        net = slim.max_pool2d(net, [2, 2], scope="pool")
        return slim.fully_connected(slim.flatten(net), 4, activation_fn=None, scope="logits")


def test_scoped_arguments_reach_the_marked_functions_only():
    network(tf.constant(X))
    assert names(slim.get_model_variables("conv/conv_1")) == [
        f"conv/conv_1/{name}"
        for name in ("weights", "BatchNorm/beta", "BatchNorm/moving_mean", "BatchNorm/moving_variance")
    ]
    assert names(slim.get_variables_by_name("biases")) == ["logits/biases"]
    assert len(tf.losses.get_regularization_losses()) == 3
    outputs = slim.utils.convert_collection_to_dict("outputs")
    assert list(outputs) == ["conv/conv_1", "conv/conv_2", "logits"]
    assert slim.get_unique_variable("logits/weights").shape.as_list() == [64, 4]
    assert names(slim.get_variables_to_restore(exclude=["logits"])) == names(tf.global_variables())[:-2]


def test_inner_scopes_lie_over_outer_ones_and_a_scope_can_be_kept():
    @framework.add_arg_scope
    def function(a, b=1, c=2):
        return a, b, c

    with slim.arg_scope([function], b=10):
        with slim.arg_scope([function], c=20) as kept:
            assert function(0) == (0, 10, 20)
            assert function(0, b=5) == (0, 5, 20)
        assert function(0) == (0, 10, 2)
    assert function(0) == (0, 1, 2)
    with slim.arg_scope(kept):
        assert function(0) == (0, 10, 20)
    assert framework.arg_scoped_arguments(function) == ("b", "c")
    with pytest.raises(ValueError, match="not decorated"), slim.arg_scope([len], a=1):
        pass
    with pytest.raises(ValueError, match="kwargs must be empty"), slim.arg_scope(kept, b=1):
        pass
    with pytest.raises(TypeError, match="list_ops_or_scope"), slim.arg_scope(function, b=1):
        pass


def test_variables_take_collections_by_kind():
    slim.fully_connected(tf.constant(X[:, 0, 0]), 2, variables_collections={"weights": ["w"], "biases": ["b", "all"]})
    assert names(tf.get_collection("w")) == ["fully_connected/weights"]
    assert names(tf.get_collection("b")) == names(tf.get_collection("all")) == ["fully_connected/biases"]


def test_losses_take_predictions_first():
    logits = tf.constant([[1.0, 2.0], [3.0, 0.0]])
    labels = tf.one_hot([0, 1], 2)
    ours = [
        slim.losses.softmax_cross_entropy(logits, labels, label_smoothing=0.1),
        slim.losses.mean_squared_error(logits, labels, weights=2.0),
        slim.losses.log_loss(tf.sigmoid(logits), labels),
    ]
    theirs = [
        tf.losses.softmax_cross_entropy(labels, logits, label_smoothing=0.1),
        tf.losses.mean_squared_error(labels, logits, weights=2.0),
        tf.losses.log_loss(labels, tf.sigmoid(logits)),
    ]
    assert slim.losses.get_losses() == [*ours, *theirs]
    with tf.Session() as session:
        np.testing.assert_allclose(*session.run([ours, theirs]))
        np.testing.assert_allclose(session.run(slim.losses.hinge_loss(logits, labels)), [[0, 3], [4, 1]])


@pytest.mark.slow
def test_a_training_goes_on_where_it_stopped_and_is_evaluated(tmp_path):
    losses = []
    for steps in (2, 12):
        with tf.Graph().as_default():
            tf.set_random_seed(3)
            logits = network(tf.constant(X))
            slim.losses.sparse_softmax_cross_entropy(logits, Y)
            total = slim.losses.get_total_loss()
            tf.summary.scalar("loss", total)
            train_op = slim.learning.create_train_op(
                total, tf.train.MomentumOptimizer(0.05, 0.9), clip_gradient_norm=4.0, summarize_gradients=True,
                gradient_multipliers={"logits/biases": 2.0},
            )  # fmt: skip
            losses.append(slim.learning.train(train_op, str(tmp_path), number_of_steps=steps, log_every_n_steps=5))
    assert losses[1] < losses[0]
    assert tf.train.latest_checkpoint(str(tmp_path)).endswith("model.ckpt-12")
    with tf.Graph().as_default():
        logits = network(tf.constant(X), is_training=False)
        values, updates = slim.metrics.aggregate_metric_map(
            {
                "accuracy": slim.metrics.streaming_accuracy(tf.argmax(logits, 1), tf.to_int64(Y)),
                "mean": slim.metrics.streaming_mean(logits),
            }
        )
        found = slim.evaluation.evaluate_once(
            "", tf.train.latest_checkpoint(str(tmp_path)), str(tmp_path / "eval"), num_evals=2,
            eval_op=list(updates.values()), final_op=values,
        )  # fmt: skip
        assert 0 <= found["accuracy"] <= 1
        again = slim.evaluation.evaluation_loop(
            "", str(tmp_path), None, eval_op=list(updates.values()), final_op=values, max_number_of_evaluations=1,
            eval_interval_secs=0,
        )  # fmt: skip
        assert again == found


def test_weights_come_from_a_checkpoint_or_from_values(tmp_path):
    network(tf.constant(X))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        path = tf.train.Saver().save(session, str(tmp_path / "model"))
        before = session.run("logits/weights:0")
    with tf.Graph().as_default(), tf.Session() as session:
        network(tf.constant(X))
        session.run(tf.global_variables_initializer())
        slim.assign_from_checkpoint_fn(path, slim.get_model_variables())(session)
        np.testing.assert_array_equal(session.run("logits/weights:0"), before)
        slim.assign_from_values_fn({"logits/biases": [1, 2, 3, 4]})(session)
        np.testing.assert_array_equal(session.run("logits/biases:0"), [1, 2, 3, 4])
        extra = slim.variable("extra", [2])
        op, feeds = slim.assign_from_checkpoint(path, [extra, *slim.get_model_variables()], ignore_missing_vars=True)
        session.run(op, feeds)
        with pytest.raises(ValueError, match=r"missing variable \[extra\]"):
            slim.assign_from_checkpoint(path, [extra])


@pytest.mark.parametrize(
    ("make", "parameters"),
    [
        (lambda: slim.nets.vgg.vgg_a(tf.zeros([1, 224, 224, 3]), 10), 128_807_306),
        (lambda: slim.nets.alexnet.alexnet_v2(tf.zeros([1, 224, 224, 3]), 10), 46_247_882),
    ],
)
def test_networks_have_the_published_number_of_parameters(make, parameters):
    logits, end_points = make()
    assert logits.shape.as_list() == [1, 10]
    assert sum(variable.shape.num_elements() for variable in tf.trainable_variables()) == parameters
    assert list(end_points)[-1].endswith("/fc8")


@pytest.mark.parametrize("version", [1, 2])
def test_residual_networks_stride_or_dilate(version):
    module = getattr(slim.nets, f"resnet_v{version}")
    block = getattr(module, f"resnet_v{version}_block")
    blocks = [block("block1", 1, 2, 2), block("block2", 2, 2, 1)]
    with slim.arg_scope(slim.nets.resnet_utils.resnet_arg_scope()):
        function = getattr(module, f"resnet_v{version}")
        net, end_points = function(tf.constant(X), blocks, 5, global_pool=False, include_root_block=False, scope="r")
        wide, _ = function(
            tf.constant(X),
            blocks,
            5,
            global_pool=False,
            include_root_block=False,
            output_stride=1,
            reuse=True,
            scope="r",
        )
    assert net.shape.as_list() == [20, 4, 4, 5]
    assert wide.shape.as_list() == [20, 8, 8, 5]
    assert {"r/block1", "r/block2", "r/logits", "predictions"} <= set(end_points)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        np.testing.assert_allclose(session.run(end_points["predictions"]).sum(-1), 1, rtol=1e-5)


def test_records_become_examples_through_a_provider(tmp_path):
    path = str(tmp_path / "data.tfrecord")
    with tf.python_io.TFRecordWriter(path) as writer:
        for label, pixels in zip(Y[:6], X[:6], strict=True):
            feature = {
                "image/encoded": tf.train.Feature(bytes_list=tf.train.BytesList(value=[pixels.tobytes()])),
                "image/format": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"raw"])),
                "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
            }
            writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())
    decoder = slim.tfexample_decoder.TFExampleDecoder(
        {
            "image/encoded": tf.FixedLenFeature((), tf.string, ""),
            "image/format": tf.FixedLenFeature((), tf.string, "raw"),
            "label": tf.FixedLenFeature([1], tf.int64),
        },
        {
            "image": slim.tfexample_decoder.Image(shape=[8, 8, 3], dtype=tf.float32),
            "label": slim.tfexample_decoder.Tensor("label", shape=[]),
        },
    )
    data = slim.dataset.Dataset(path, tf.TFRecordReader, decoder, 6, {})
    provider = slim.dataset_data_provider.DatasetDataProvider(data, shuffle=False, num_epochs=1)
    image, label = provider.get(["image", "label"])
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        with slim.queues.QueueRunners(session):
            found = [session.run([image, label]) for _ in range(6)]
            with pytest.raises(tf.errors.OutOfRangeError):
                session.run(image)
    np.testing.assert_array_equal([each for _, each in found], Y[:6])
    np.testing.assert_array_equal(np.stack([each for each, _ in found]), X[:6])


def test_the_size_of_a_model_is_told(capsys):
    slim.fully_connected(tf.constant(X[:, 0, 0]), 2)
    assert slim.model_analyzer.analyze_vars(slim.get_model_variables(), print_info=True) == (8, 32)
    assert "fully_connected/weights:0 (float32_ref 3x2) [6, bytes: 24]" in capsys.readouterr().out


@pytest.mark.parametrize("pads", [False, True])
def test_a_prefetch_queue_gives_whole_batches_in_their_structure(pads):
    batches = {"image": tf.constant(X[:4]), "label": tf.constant(Y[:4])}
    queue = slim.prefetch_queue.prefetch_queue(batches, capacity=2, num_threads=1, dynamic_pad=pads)
    dequeued = queue.dequeue()
    with tf.Session() as session, slim.queues.QueueRunners(session):
        values = session.run(dequeued)
    assert values["image"].shape == (4, 8, 8, 3)
    np.testing.assert_array_equal(values["label"], Y[:4])


def test_handlers_of_boxes_functions_and_backups_make_items():
    decoder = slim.tfexample_decoder
    sides = {f"box/{name}": [value] for name, value in (("ymin", 0.1), ("xmin", 0.2), ("ymax", 0.3), ("xmax", 0.4))}
    example = tf.train.Example()
    for name, values in sides.items():
        example.features.feature[name].float_list.value.extend(values)
    example.features.feature["label"].int64_list.value.append(7)
    features = {name: tf.VarLenFeature(tf.float32) for name in [*sides, "none"]}
    features["label"] = tf.FixedLenFeature([], tf.int64)
    handlers = {
        "boxes": decoder.BoundingBox(prefix="box/"),
        "double": decoder.ItemHandlerCallback("label", lambda tensors: tensors["label"] * 2),
        "kept": decoder.BackupHandler(decoder.Tensor("none"), decoder.Tensor("box/ymin")),
    }
    items = decoder.TFExampleDecoder(features, handlers)
    made = dict(zip(items.list_items(), items.decode(example.SerializeToString()), strict=True))
    with tf.Session() as session:
        found = session.run(made)
    np.testing.assert_allclose(found["boxes"], [[0.1, 0.2, 0.3, 0.4]], rtol=1e-6)
    assert found["double"] == 14 and found["kept"] == pytest.approx([0.1])
    with pytest.raises(ValueError, match="expects 4 keys"):
        decoder.BoundingBox(["a"])


def test_inception_networks_have_their_endpoints_and_variables():
    from dtf.contrib.slim.nets import inception

    for make, size, count, multiplied in (
        (inception.inception_v1, 224, 230, {}),
        (inception.inception_v2, 224, 277, {"depth_multiplier": 0.25}),
        (inception.inception_v3, 299, 388, {"depth_multiplier": 0.25}),
    ):
        with tf.Graph().as_default(), slim.arg_scope(inception.inception_arg_scope()):
            logits, end_points = make(tf.zeros([2, size, size, 3]), 10, **multiplied)
            assert logits.shape.as_list() == end_points["Predictions"].shape.as_list() == [2, 10]
            assert ("AuxLogits" in end_points) == (make is inception.inception_v3)
            assert len(tf.global_variables()) == count
            with pytest.raises(ValueError, match="Unknown final endpoint"):
                getattr(inception, f"{make.__name__}_base")(tf.zeros([2, 99, 99, 3]), "Mixed_9z", scope="b")


def test_a_part_of_an_inception_network_runs():
    from dtf.contrib.slim.nets import inception

    images = tf.random_uniform([2, 32, 32, 3], seed=1)
    net, _ = inception.inception_v1_base(images, "Mixed_3b")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(net).shape == (2, 4, 4, 256)
