"""A program of either runtime: functions of tf.nn, tf.losses and tf.train on the same inputs.

    python nn_functions.py dtf|tensorflow.compat.v1 values.npz

Writes the values of every expression of `EXPRESSIONS`, and the gradients of its sum for the floating inputs that it
uses; prints as JSON the names of the variables that each made.
"""

from __future__ import annotations

import importlib
import json
import sys
from types import SimpleNamespace

import numpy as np

RANDOM = np.random.RandomState(4)
INPUTS = {
    "matrix": RANDOM.uniform(-2, 2, (4, 5)),
    "other": RANDOM.uniform(0.1, 0.9, (4, 5)),
    "cube": RANDOM.uniform(-2, 2, (2, 4, 5)),
    "cube_labels": RANDOM.uniform(0, 1, (2, 4, 5)),
    "images": RANDOM.uniform(-1, 1, (2, 6, 5, 3)),
    "channels_first": RANDOM.uniform(-1, 1, (2, 3, 6, 5)),
    "filters": RANDOM.uniform(-1, 1, (3, 2, 3, 4)),
    "depth_filters": RANDOM.uniform(-1, 1, (3, 2, 3, 2)),
    "points": RANDOM.uniform(-1, 1, (1, 1, 6, 2)),
    "sequence": RANDOM.uniform(-1, 1, (2, 7, 3)),
    "sequence_filters": RANDOM.uniform(-1, 1, (3, 3, 4)),
    "column": RANDOM.uniform(0, 1, (4, 1)),
    "vector": RANDOM.uniform(-1, 1, 3),
    "positive": RANDOM.uniform(0.5, 1.5, 3),
    "table": RANDOM.uniform(-1, 1, (7, 3)),
    "pieces": RANDOM.uniform(-1, 1, (2, 4, 3)),
    "signal": RANDOM.uniform(-1, 1, (2, 50)),
    "photos": RANDOM.uniform(0, 1, (2, 37, 34, 3)),
    "prints": RANDOM.uniform(0, 1, (2, 37, 34, 3)),
}
CLASSES = np.array([0, 4, 2, 2])
GRID = np.array([[0, 4, 2, 2], [1, 1, 3, 0]])
HALF = [1, 2, 2, 1]


def ids(tf, weighted: bool = False):
    """Sparse ids (or their weights) of three examples, the last one empty."""
    indices = [[0, 0], [0, 2], [1, 1], [1, 2]]
    values = [0.5, 1.5, 2.0, 0.25] if weighted else np.array([3, 1, 3, 6])
    return tf.SparseTensor(indices, values, [2, 3])


def messy_ids(tf, rank: int, weighted: bool = False):
    """Sparse ids (or their weights) as they come: examples without any, negative ids, weights that are not positive."""
    places = [[0, 0], [0, 1], [1, 0], [3, 0], [3, 1], [3, 2]]
    values = [1.0, 2.0, 3.0, -1.0, 0.5, 2.0] if weighted else np.array([1, -1, -2, 6, 2, 3])
    if rank == 3:
        return tf.SparseTensor([[row // 2, row % 2, column] for row, column in places], values, [3, 2, 3])
    return tf.SparseTensor(places, values, [5, 3])


def regularized(tf, x):
    with tf.variable_scope("r", regularizer=lambda w: tf.nn.l2_loss(w) * 0.1):
        tf.get_variable("w", initializer=np.float32([1, 2, 3]))
    tf.losses.mean_squared_error(x.matrix, x.other)
    return [tf.losses.get_total_loss(), tf.losses.get_regularization_loss(), *tf.losses.get_losses()]


def custom_gradient(tf, x):
    """A function with another gradient, which uses what the function computed."""

    @tf.custom_gradient
    def function(one, other):
        e = tf.exp(one)
        return (e * other, e + other), lambda grad, more: (grad * e + 3.0, more * other)

    product, total = function(x.matrix, x.other)
    return [product * total + x.matrix]


REDUCTIONS = ("NONE", "SUM", "MEAN", "SUM_OVER_BATCH_SIZE", "SUM_BY_NONZERO_WEIGHTS")
DECAYS = {
    "exponential": lambda tf, s: tf.train.exponential_decay(0.5, s, 10, 0.9),
    "staircase": lambda tf, s: tf.train.exponential_decay(0.5, s, 10, 0.9, staircase=True),
    "natural_exp": lambda tf, s: tf.train.natural_exp_decay(0.5, s, 10, 0.9),
    "inverse_time": lambda tf, s: tf.train.inverse_time_decay(0.5, s, 10, 0.9),
    "piecewise": lambda tf, s: tf.train.piecewise_constant(s, [3, 20], [1.0, 0.5, 0.1]),
    "polynomial": lambda tf, s: tf.train.polynomial_decay(0.5, s, 12, 0.01, 2.0),
    "polynomial_cycle": lambda tf, s: tf.train.polynomial_decay(0.5, s, 12, 0.01, 2.0, cycle=True),
    "cosine": lambda tf, s: tf.train.cosine_decay(0.5, s, 12, 0.1),
    "cosine_restarts": lambda tf, s: tf.train.cosine_decay_restarts(0.5, s, 6, 2.0, 0.7, 0.1),
    "cosine_restarts_equal": lambda tf, s: tf.train.cosine_decay_restarts(0.5, s, 6, 1.0),
    "linear_cosine": lambda tf, s: tf.train.linear_cosine_decay(0.5, s, 12, 0.5, 0.1),
}

EXPRESSIONS = {
    "relu": lambda tf, x: tf.nn.relu(x.matrix),
    "relu6": lambda tf, x: tf.nn.relu6(x.matrix * 5.0),
    "crelu": lambda tf, x: tf.nn.crelu(x.matrix),
    "crelu_axis": lambda tf, x: tf.nn.crelu(x.matrix, axis=0),
    "leaky_relu": lambda tf, x: tf.nn.leaky_relu(x.matrix),
    "elu": lambda tf, x: tf.nn.elu(x.matrix),
    "selu": lambda tf, x: tf.nn.selu(x.matrix),
    "softplus": lambda tf, x: tf.nn.softplus(x.matrix),
    "softsign": lambda tf, x: tf.nn.softsign(x.matrix),
    "swish": lambda tf, x: tf.nn.swish(x.matrix),
    "sigmoid": lambda tf, x: tf.nn.sigmoid(x.matrix) + tf.nn.tanh(x.matrix),
    "softmax": lambda tf, x: tf.nn.softmax(x.cube) * x.cube,
    "softmax_axis": lambda tf, x: tf.nn.softmax(x.cube, axis=1) * x.cube,
    "log_softmax": lambda tf, x: tf.nn.log_softmax(x.cube, axis=0) * x.cube,
    "softmax_cross_entropy": lambda tf, x: tf.nn.softmax_cross_entropy_with_logits(labels=x.other, logits=x.matrix),
    "softmax_cross_entropy_v2": lambda tf, x: tf.nn.softmax_cross_entropy_with_logits_v2(x.other, x.matrix),
    "softmax_cross_entropy_cube": lambda tf, x: tf.nn.softmax_cross_entropy_with_logits_v2(x.cube_labels, x.cube),
    "softmax_cross_entropy_axis": lambda tf, x: tf.nn.softmax_cross_entropy_with_logits_v2(
        x.cube_labels, x.cube, axis=1
    ),
    "sparse_cross_entropy": lambda tf, x: tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=CLASSES, logits=x.matrix
    ),
    "sparse_cross_entropy_cube": lambda tf, x: tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=GRID, logits=x.cube
    ),
    "sigmoid_cross_entropy": lambda tf, x: tf.nn.sigmoid_cross_entropy_with_logits(labels=x.other, logits=x.matrix),
    "weighted_cross_entropy": lambda tf, x: tf.nn.weighted_cross_entropy_with_logits(x.other, x.matrix, 2.5),
    "log_poisson": lambda tf, x: tf.nn.log_poisson_loss(x.other * 3.0, x.matrix, compute_full_loss=True),
    "l2_loss": lambda tf, x: tf.nn.l2_loss(x.matrix),
    "l2_normalize": lambda tf, x: tf.nn.l2_normalize(x.matrix, 1) * x.other,
    "bias_add": lambda tf, x: tf.nn.bias_add(x.images, x.vector) * x.images,
    "bias_add_first": lambda tf, x: tf.nn.bias_add(x.channels_first, x.vector, data_format="NCHW") ** 2,
    "xw_plus_b": lambda tf, x: tf.nn.xw_plus_b(tf.transpose(x.table), x.table, x.vector) ** 2,
    "relu_layer": lambda tf, x: tf.nn.relu_layer(tf.transpose(x.table), x.table, x.vector),
    "moments": lambda tf, x: [each**2 for each in tf.nn.moments(x.images, [0, 1, 2])],
    "moments_kept": lambda tf, x: list(tf.nn.moments(x.cube, [1], keep_dims=True)),
    "weighted_moments": lambda tf, x: list(tf.nn.weighted_moments(x.matrix, [0], x.other)),
    "sufficient_statistics": lambda tf, x: list(
        tf.nn.normalize_moments(*tf.nn.sufficient_statistics(x.matrix, [0], shift=0.3))
    ),
    "batch_normalization": lambda tf, x: tf.nn.batch_normalization(
        x.images, *tf.nn.moments(x.images, [0, 1, 2]), x.vector, x.positive, 1e-3
    )
    * x.images,
    "fused_batch_norm": lambda tf, x: [
        each * (x.images if number == 0 else 0.0)
        for number, each in enumerate(tf.nn.fused_batch_norm(x.images, x.positive, x.vector))
    ],
    "fused_batch_norm_inference": lambda tf, x: tf.nn.fused_batch_norm(
        x.images, x.positive, x.vector, x.vector, x.positive, is_training=False
    )[0]
    * x.images,
    "fused_batch_norm_second": lambda tf, x: tf.gradients(
        tf.nn.fused_batch_norm(x.images, x.positive, x.vector)[0] * x.images**2, [x.images, x.positive]
    ),
    "lrn": lambda tf, x: tf.nn.lrn(x.images, 1, 1.2, 0.5, 0.7) * x.images,
    "zero_fraction": lambda tf, x: tf.nn.zero_fraction(tf.nn.relu(x.matrix)),
    "in_top_k": lambda tf, x: tf.nn.in_top_k(x.matrix, CLASSES, 2),
    "top_k": lambda tf, x: list(tf.nn.top_k(x.cube, 3)),
    "dropout_all": lambda tf, x: tf.nn.dropout(x.matrix, keep_prob=1.0),
    "conv2d": lambda tf, x: tf.nn.conv2d(x.images, x.filters, HALF, "SAME") ** 2,
    "conv2d_valid": lambda tf, x: tf.nn.conv2d(x.images, x.filters, [1] * 4, "VALID") ** 2,
    "conv2d_explicit": lambda tf, x: tf.nn.conv2d(x.images, x.filters, HALF, [[0, 0], [1, 2], [2, 0], [0, 0]]) ** 2,
    "conv2d_dilated": lambda tf, x: tf.nn.conv2d(x.images, x.filters, 1, "SAME", dilations=2),
    "atrous_conv2d": lambda tf, x: tf.nn.atrous_conv2d(x.images, x.filters, 2, "SAME") ** 2,
    "conv2d_transpose": lambda tf, x: tf.nn.conv2d_transpose(
        x.images, tf.transpose(x.filters, [0, 1, 3, 2]), [2, 12, 10, 4], HALF
    )
    ** 2,
    "conv1d": lambda tf, x: tf.nn.conv1d(x.sequence, x.sequence_filters, 2, "SAME") ** 2,
    "convolution": lambda tf, x: tf.nn.convolution(x.images, x.filters, "SAME", [2, 1]) ** 2,
    "depthwise": lambda tf, x: tf.nn.depthwise_conv2d(x.images, x.depth_filters, HALF, "SAME") ** 2,
    "separable": lambda tf, x: tf.nn.separable_conv2d(x.images, x.depth_filters, x.points, [1] * 4, "VALID") ** 2,
    "max_pool": lambda tf, x: tf.nn.max_pool(x.images, HALF, HALF, "SAME") ** 2,
    "max_pool_overlapping": lambda tf, x: tf.nn.max_pool(x.images, [1, 3, 3, 1], [1, 1, 2, 1], "VALID") ** 2,
    "avg_pool": lambda tf, x: tf.nn.avg_pool(x.images, [1, 3, 2, 1], HALF, "SAME") ** 2,
    "second_max_pool": lambda tf, x: tf.gradients(tf.nn.max_pool(x.images, HALF, HALF, "SAME") ** 3, x.images),
    "second_conv": lambda tf, x: tf.gradients(tf.nn.conv2d(x.images, x.filters, HALF, "SAME") ** 3, x.filters),
    "embedding": lambda tf, x: tf.nn.embedding_lookup(x.table, GRID) ** 2,
    "embedding_mod": lambda tf, x: tf.nn.embedding_lookup(tf.unstack(x.pieces), [[0, 5], [7, 2]]) ** 2,
    "embedding_div": lambda tf, x: tf.nn.embedding_lookup(
        [x.table[:3], x.table[3:5], x.table[5:]], [6, 0, 3, 4, 2], partition_strategy="div"
    )
    ** 2,
    "embedding_clipped": lambda tf, x: tf.nn.embedding_lookup(x.table, [1, 4, 1], max_norm=0.7),
    **{
        f"embedding_sparse_{combiner}_{weighted}": lambda tf, x, combiner=combiner, weighted=weighted: (
            tf.nn.embedding_lookup_sparse(x.table, ids(tf), ids(tf, True) if weighted else None, combiner=combiner) ** 2
        )
        for combiner in ("sum", "mean", "sqrtn")
        for weighted in (True, False)
    },
    **{
        f"embedding_safe_{combiner}_{weighted}_{default}_{rank}": (
            lambda tf, x, combiner=combiner, weighted=weighted, default=default, rank=rank: (
                tf.nn.safe_embedding_lookup_sparse(
                    [x.table[:4], x.table[4:]],
                    messy_ids(tf, rank),
                    messy_ids(tf, rank, True) if weighted else None,
                    combiner=combiner,
                    default_id=default,
                )
                ** 2
            )
        )
        for combiner in ("sum", "mean", "sqrtn")
        for weighted in (True, False)
        for default, rank in ((None, 2), (5, 3))
    },
    **{
        f"loss_{reduction}_{weights}": lambda tf, x, reduction=reduction, weights=weights: (
            tf.losses.mean_squared_error(
                x.other,
                x.matrix,
                x.column * tf.cast(x.column > 0.3, tf.float32) if weights == "column" else 2.0,
                reduction=getattr(tf.losses.Reduction, reduction),
            )
        )
        for reduction in REDUCTIONS
        for weights in ("column", "number")
    },
    "absolute_difference": lambda tf, x: tf.losses.absolute_difference(x.other, x.matrix),
    "cosine_distance": lambda tf, x: tf.losses.cosine_distance(x.other, x.matrix, axis=1),
    "hinge_loss": lambda tf, x: tf.losses.hinge_loss(tf.round(x.other), x.matrix),
    "huber_loss": lambda tf, x: tf.losses.huber_loss(x.other, x.matrix, delta=0.7),
    "log_loss": lambda tf, x: tf.losses.log_loss(tf.round(x.other), x.other),
    "pairwise": lambda tf, x: tf.losses.mean_pairwise_squared_error(x.other, x.matrix),
    "loss_sigmoid": lambda tf, x: tf.losses.sigmoid_cross_entropy(tf.round(x.other), x.matrix, label_smoothing=0.1),
    "loss_softmax": lambda tf, x: tf.losses.softmax_cross_entropy(
        tf.one_hot(CLASSES, 5), x.matrix, label_smoothing=0.1
    ),
    "loss_sparse_softmax": lambda tf, x: tf.losses.sparse_softmax_cross_entropy(CLASSES, x.matrix, x.column[:, 0]),
    **{
        f"weighted_{name}": lambda tf, x, loss=loss: loss(
            tf, x, weights=x.column * tf.cast(x.column > 0.3, tf.float32), reduction=tf.losses.Reduction.MEAN
        )
        for name, loss in {
            "absolute_difference": lambda tf, x, **given: tf.losses.absolute_difference(x.other, x.matrix, **given),
            "cosine_distance": lambda tf, x, **given: tf.losses.cosine_distance(x.other, x.matrix, 1, **given),
            "hinge": lambda tf, x, **given: tf.losses.hinge_loss(tf.round(x.other), x.matrix, **given),
            "huber": lambda tf, x, **given: tf.losses.huber_loss(x.other, x.matrix, **given),
            "log": lambda tf, x, **given: tf.losses.log_loss(tf.round(x.other), x.other, **given),
            "sigmoid": lambda tf, x, **given: tf.losses.sigmoid_cross_entropy(tf.round(x.other), x.matrix, **given),
            "softmax": lambda tf, x, weights, **given: tf.losses.softmax_cross_entropy(
                tf.one_hot(CLASSES, 5), x.matrix, weights[:, 0], **given
            ),
            "sparse": lambda tf, x, **given: tf.losses.sparse_softmax_cross_entropy(CLASSES, x.matrix, **given),
            "of_losses": lambda tf, x, **given: tf.losses.compute_weighted_loss(x.matrix**2, **given),
        }.items()
    },
    "weighted_pairwise": lambda tf, x: tf.losses.mean_pairwise_squared_error(
        x.other, x.matrix, x.column * tf.cast(x.column > 0.3, tf.float32)
    ),
    "space_to_depth": lambda tf, x: tf.nn.space_to_depth(x.images[:, :, :4], 2) ** 2,
    "silu": lambda tf, x: tf.nn.silu(x.matrix),
    "regularized": regularized,
    "custom_gradient": custom_gradient,
    "hessians": lambda tf, x: tf.hessians(
        tf.reduce_sum(tf.tanh(x.vector) * x.positive[::-1] ** 2), [x.vector, x.positive]
    ),
    "stft": lambda tf, x: tf.abs(tf.signal.stft(x.signal, 12, 5, pad_end=True)),
    "inverse_stft": lambda tf, x: tf.signal.inverse_stft(
        tf.signal.stft(x.signal, 12, 4), 12, 4, window_fn=tf.signal.inverse_stft_window_fn(4)
    ),
    "inverse_stft_plain": lambda tf, x: tf.signal.inverse_stft(tf.signal.stft(x.signal, 10, 3), 10, 3, 16),
    "overlap_and_add": lambda tf, x: tf.signal.overlap_and_add(x.cube, 2),
    **{
        f"window_{name}": lambda tf, x, name=name: [getattr(tf.signal, f"{name}_window")(n) for n in (1, 8, 12)]
        for name in ("hann", "hamming", "vorbis", "kaiser")
    },
    "window_derived": lambda tf, x: tf.signal.kaiser_bessel_derived_window(12, 4.0),
    **{
        f"dct_{kind}_{norm}": lambda tf, x, kind=kind, norm=norm: [
            tf.signal.dct(0.01 * x.signal, kind, norm=norm), tf.signal.idct(0.01 * x.signal, kind, norm=norm),
        ]
        for kind in (1, 2, 3, 4) for norm in (None, "ortho") if (kind, norm) != (1, "ortho")
    },
    "dct_cut": lambda tf, x: [tf.signal.dct(0.1 * x.signal, n=16), tf.signal.dct(x.signal, n=64)],
    "mdct": lambda tf, x: [tf.signal.mdct(x.signal, 8), tf.signal.mdct(x.signal, 16, pad_end=True, norm="ortho")],
    "inverse_mdct": lambda tf, x: [
        tf.signal.inverse_mdct(x.photos[0, ..., 0][:, :8]),
        tf.signal.inverse_mdct(x.photos[0, ..., 0][:, :8], norm="ortho"),
    ],
    "mel": lambda tf, x: tf.signal.linear_to_mel_weight_matrix(7, 33, 16000, 80.0, 7600.0),
    "mfcc": lambda tf, x: tf.signal.mfccs_from_log_mel_spectrograms(x.signal),
    "sort": lambda tf, x: [tf.sort(x.cube), tf.sort(x.cube, axis=1, direction="DESCENDING")],
    "sort_integers": lambda tf, x: [tf.sort(GRID), tf.argsort(GRID, direction="DESCENDING"), tf.argsort(GRID, 0)],
    "ssim": lambda tf, x: tf.image.ssim(x.photos, x.prints, 1.0),
    "ssim_multiscale": lambda tf, x: tf.image.ssim_multiscale(
        x.photos, x.photos * 0.9 + x.prints * 0.1, 1.0, (0.5, 0.3, 0.2), 5
    ),
    "psnr": lambda tf, x: tf.image.psnr(x.photos, x.prints, 1.0),
    "sobel_edges": lambda tf, x: tf.image.sobel_edges(x.images) ** 2,
    "image_gradients": lambda tf, x: list(tf.image.image_gradients(x.images)),
    "total_variation": lambda tf, x: tf.image.total_variation(x.images),
    **{
        f"decay_{name}": lambda tf, x, decay=decay: tf.stack([decay(tf, tf.constant(s)) for s in (0, 3, 11, 20, 47)])
        for name, decay in DECAYS.items()
    },
}
NO_GRADIENT = ("decay_", "in_top_k", "zero_fraction", "conv2d_dilated")


def averages(tf, zero_debias: bool):
    """The values of moving averages of a variable and a tensor over a few updates."""
    with tf.Graph().as_default() as graph:
        step = tf.train.create_global_step()
        variable = tf.get_variable("w", initializer=np.float32([1, 2, 3]))
        tensor = tf.multiply(tf.cast(step, tf.float32) + 1.0, [0.5, 0.25], name="product")
        average = tf.train.ExponentialMovingAverage(0.9, num_updates=step, zero_debias=zero_debias)
        update = average.apply([variable, tensor])
        move = tf.group(tf.assign_add(variable, [0.5, -1.0, 0.25]), tf.assign_add(step, 1))
        watched = [average.average(variable), average.average(tensor)]
        names = [average.average_name(variable), *(each.op.name for each in watched)]
        names += sorted(each.op.name for each in tf.global_variables()) + sorted(average.variables_to_restore())
        values = []
        with tf.Session(graph=graph) as session:
            session.run(tf.global_variables_initializer())
            for _ in range(5):
                session.run(move)
                session.run(update)
                values.append(np.concatenate(session.run(watched)))
    return np.stack(values), names


def evaluate(tf, name: str):
    """Returns (values of the expression and of its gradients, names of the variables it made)."""
    with tf.Graph().as_default() as graph:
        used = {key: tf.constant(value.astype(np.float32)) for key, value in INPUTS.items()}
        made = EXPRESSIONS[name](tf, SimpleNamespace(**used))
        outputs = [tf.convert_to_tensor(each) for each in (made if isinstance(made, list) else [made])]
        variables = tf.trainable_variables()
        floating = [output for output in outputs if output.dtype.is_floating]
        gradients = {}
        if floating and not name.startswith(NO_GRADIENT):
            # The cosine of a large sum would magnify how each runtime, on each machine, rounds that sum.
            weighted = [output * tf.cos(tf.cast(tf.reduce_mean(output), tf.float32)) for output in floating[:1]]
            targets = {**used, **{each.op.name: each for each in variables}}
            found = tf.gradients(weighted, list(targets.values()))
            gradients = {
                key: tf.convert_to_tensor(each) for key, each in zip(targets, found, strict=True) if each is not None
            }
        with tf.Session(graph=graph) as session:
            session.run(tf.global_variables_initializer())
            values = {str(number): value for number, value in enumerate(session.run(outputs))}
            values.update({f"grad {key}": value for key, value in session.run(gradients).items()})
        return values, sorted(each.op.name for each in tf.global_variables())


def main(runtime: str, path: str) -> None:
    tf = importlib.import_module(runtime)
    if runtime != "dtf":
        tf.disable_v2_behavior()
    arrays, names = {}, {}
    for name in EXPRESSIONS:
        values, names[name] = evaluate(tf, name)
        arrays.update({f"{name}|{key}": value for key, value in values.items()})
    for zero_debias in (False, True):
        arrays[f"averages {zero_debias}"], names[f"averages {zero_debias}"] = averages(tf, zero_debias)
    np.savez(path, **arrays)
    print(json.dumps(names))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
