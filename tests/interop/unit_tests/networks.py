"""Networks: activations, normalization, losses, metrics, ctc, recurrent cells, pooling, convolutions, samplers."""

import numpy as np
from absl.testing import parameterized
from tensorflow.python.framework import (
    constant_op,
    dtypes,
    errors,
    errors_impl,
    ops,
    sparse_tensor,
    test_util,
)
from tensorflow.python.ops import (
    array_ops,
    candidate_sampling_ops,
    confusion_matrix,
    ctc_ops,
    embedding_ops,
    gen_nn_ops,
    gradient_checker,
    gradients_impl,
    init_ops,
    math_ops,
    metrics,
    nn,
    nn_grad,  # noqa: F401
    nn_impl,
    nn_ops,
    partitioned_variables,
    rnn,
    rnn_cell_impl,
    variable_scope,
    variables,
)
from tensorflow.python.ops.losses import losses, util
from tensorflow.python.platform import test


class Activations(test_util.TensorFlowTestCase):
    @test_util.run_deprecated_v1
    def test_softmax_axes(self):
        x = np.random.randn(2, 3, 4).astype(np.float32)
        with self.cached_session(use_gpu=True):
            for axis in (-1, 0, 1, 2):
                shifted = np.exp(x - x.max(axis, keepdims=True))
                self.assertAllClose(shifted / shifted.sum(axis, keepdims=True), nn_ops.softmax(x, axis=axis).eval())
                self.assertAllClose(
                    np.log(shifted / shifted.sum(axis, keepdims=True)), nn_ops.log_softmax(x, axis).eval(), atol=1e-5
                )
            with self.assertRaises((errors_impl.InvalidArgumentError, ValueError)):
                nn_ops.softmax([1.0, 2.0, 3.0, 4.0], axis=1).eval()
            self.assertAllClose(np.zeros([0, 3]), nn_ops.softmax(np.zeros([0, 3], np.float32)).eval())

    @test_util.run_deprecated_v1
    def test_gradients(self):
        values = np.array([[-0.9, -0.7, -0.5], [0.1, 0.4, 0.9]], np.float32)
        with self.cached_session():
            for function in (nn_ops.relu, nn_ops.elu, nn_ops.selu, nn_ops.softplus, nn_ops.softsign, nn_ops.relu6,
                             nn_ops.leaky_relu, nn.sigmoid, nn.tanh, nn_ops.log_softmax):  # fmt: skip
                x = constant_op.constant(values, name="x")
                y = function(x)
                err = gradient_checker.compute_gradient_error(x, [2, 3], y, [2, 3], x_init_value=values)
                self.assertLess(err, 1e-3)
                if function is nn_ops.softsign:
                    continue  # its second derivative is missing in TensorFlow
                twice = gradients_impl.gradients(gradients_impl.gradients(y, x)[0], x)[0]
                if twice is not None:
                    self.assertEqual((2, 3), twice.eval().shape)

    @test_util.run_deprecated_v1
    def test_types(self):
        with self.cached_session():
            for dtype in (np.int32, np.int64, np.uint8, np.float16, np.float64):
                self.assertAllEqual([0, 3], nn_ops.relu(np.array([0, 3], dtype)).eval())
            self.assertAllClose([-0.2, 0.5], nn_ops.leaky_relu(np.array([-1.0, 0.5], np.float32)).eval())
            self.assertAllClose([[-1, 2, 1, -2]][0], nn_ops.crelu(np.array([-1.0, 2.0], np.float32)).eval() * 0 + [-1, 2, 1, -2])
            self.assertAllClose([0, 2, 1, 0], nn_ops.crelu(np.array([-1.0, 2.0], np.float32)).eval())

    @test_util.run_deprecated_v1
    def test_normalizing(self):
        x = np.random.randn(5, 4).astype(np.float32)
        with self.cached_session():
            self.assertAllClose(x / np.linalg.norm(x, axis=1, keepdims=True), nn_impl.l2_normalize(x, 1).eval())
            self.assertAllClose(
                x / np.sqrt((x**2).sum()), nn_impl.l2_normalize(constant_op.constant(x), [0, 1]).eval(), atol=1e-5
            )
            self.assertAllClose((x**2).sum() / 2, nn_ops.l2_loss(x).eval(), rtol=1e-5)
            with self.assertRaises((TypeError, ValueError)):
                nn_ops.l2_loss(constant_op.constant([1, 2]))
            self.assertAllClose(0.25, nn_impl.zero_fraction(np.array([0.0, 1, 2, 3], np.float32)).eval())
            sums = nn_ops.bias_add(np.ones([2, 3, 4], np.float32), np.arange(4, dtype=np.float32))
            self.assertAllClose(np.ones([2, 3, 4]) + np.arange(4), sums.eval())
            with self.assertRaises(ValueError):
                nn_ops.bias_add([1.0], [1.0, 2.0])

    @test_util.run_deprecated_v1
    def test_dropout(self):
        t = constant_op.constant(1.0, shape=[40, 30], dtype=dtypes.float32)
        with self.cached_session():
            for rate in (0.1, 0.5, 0.8):
                value = nn_ops.dropout_v2(t, rate=rate).eval()
                self.assertAllClose([0.0, 1 / (1 - rate)], np.unique(value))
            shared = nn_ops.dropout(t, rate=0.5, noise_shape=[40, 1]).eval()
            self.assertTrue(all(len(set(row)) == 1 for row in shared))
            for wrong in (-1.0, 1.1):
                with self.assertRaises(ValueError):
                    nn_ops.dropout(t, rate=wrong)
            with self.assertRaises(ValueError):
                nn_ops.dropout(t, rate=0.5, noise_shape=[40, 10])
            with self.assertRaises((ValueError, TypeError)):
                nn_ops.dropout(constant_op.constant([1, 2]), rate=0.5)
            with self.assertRaises(ValueError):
                nn_ops.dropout(t, keep_prob=0.5, rate=0.4)
            same = [nn_ops.dropout(t, rate=0.5, seed=3).eval() for _ in range(1)]
            self.assertEqual((40, 30), same[0].shape)


class Statistics(test_util.TensorFlowTestCase):
    @test_util.run_deprecated_v1
    def test_moments(self):
        x = np.random.randn(3, 4, 5).astype(np.float32)
        with self.cached_session():
            for axes, keep in (([0], False), ([0, 1], True), ([-1], False), ([0, 1, 2], False)):
                mean, variance = nn_impl.moments(constant_op.constant(x), axes, keep_dims=keep)
                self.assertAllClose(x.mean(tuple(axes), keepdims=keep), mean.eval(), atol=1e-5)
                self.assertAllClose(x.var(tuple(axes), keepdims=keep), variance.eval(), atol=1e-5)
            weights = np.random.rand(3, 4, 5).astype(np.float32)
            mean, variance = nn_impl.weighted_moments(constant_op.constant(x), [0], weights)
            expected = (x * weights).sum(0) / weights.sum(0)
            self.assertAllClose(expected, mean.eval(), atol=1e-5)
            self.assertAllClose((weights * (x - expected) ** 2).sum(0) / weights.sum(0), variance.eval(), atol=1e-4)
            count, total, squares, shift = nn_impl.sufficient_statistics(constant_op.constant(x), [0])
            self.assertEqual(3, count.eval())
            self.assertIsNone(shift)
            mean, variance = nn_impl.normalize_moments(count, total, squares, shift)
            self.assertAllClose(x.mean(0), mean.eval(), atol=1e-5)
            self.assertAllClose(x.var(0), variance.eval(), atol=1e-4)

    @test_util.run_deprecated_v1
    def test_batch_normalization(self):
        x = np.random.rand(3, 5, 4, 2).astype(np.float32)
        m, v = x.mean((0, 1, 2)), x.var((0, 1, 2))
        beta, gamma = np.array([0.1, 0.2], np.float32), np.array([1.5, 0.5], np.float32)
        expected = (x - m) / np.sqrt(v + 0.001) * gamma + beta
        with self.cached_session():
            self.assertAllClose(expected, nn_impl.batch_normalization(x, m, v, beta, gamma, 0.001).eval(), atol=1e-5)
            self.assertAllClose(
                expected, nn_impl.batch_norm_with_global_normalization(x, m, v, beta, gamma, 0.001, True).eval(), atol=1e-5
            )
            self.assertAllClose(
                (x - m) / np.sqrt(v + 0.001) + beta,
                nn_impl.batch_norm_with_global_normalization_v2(x, m, v, beta, gamma, 0.001, False).eval(), atol=1e-5,
            )  # fmt: skip
            y, mean, variance = nn_impl.fused_batch_norm(x, gamma, beta, epsilon=0.001, is_training=True)
            self.assertAllClose(expected, y.eval(), atol=1e-4)
            self.assertAllClose(m, mean.eval(), atol=1e-5)
            self.assertAllClose(v * 60 / 59, variance.eval(), atol=1e-5)
            fixed, _, _ = nn_impl.fused_batch_norm(x, gamma, beta, mean=m, variance=v, epsilon=0.001, is_training=False)
            self.assertAllClose(expected, fixed.eval(), atol=1e-4)
            with self.assertRaises(ValueError):
                nn_impl.fused_batch_norm(x, gamma, beta, is_training=False)

    @test_util.run_deprecated_v1
    def test_fused_gradients(self):
        x = np.random.rand(2, 3, 3, 2).astype(np.float32)
        with self.cached_session():
            t = constant_op.constant(x)
            y, _, _ = nn_impl.fused_batch_norm(t, np.float32([1.0, 2.0]), np.float32([0.0, 1.0]), is_training=True)
            error = gradient_checker.compute_gradient_error(t, [2, 3, 3, 2], y, [2, 3, 3, 2], x_init_value=x)
            self.assertLess(error, 1e-2)

    @test_util.run_deprecated_v1
    def test_compound(self):
        x, w = np.random.rand(4, 3).astype(np.float32), np.random.rand(3, 2).astype(np.float32)
        b = np.float32([0.5, -10])
        with self.cached_session():
            self.assertAllClose(np.maximum(x @ w + b, 0), nn_impl.relu_layer(x, w, b).eval(), rtol=1e-5)
            self.assertAllClose(x @ w + b, nn_ops.xw_plus_b(x, w, b).eval(), rtol=1e-5)
            poisson = nn_impl.log_poisson_loss(np.float32([1, 2]), np.float32([0.5, 0.1]))
            self.assertAllClose(np.exp([0.5, 0.1]) - np.array([1, 2]) * [0.5, 0.1], poisson.eval())
            full = nn_impl.log_poisson_loss(np.float32([1, 2]), np.float32([0.5, 0.1]), compute_full_loss=True)
            self.assertEqual((2,), full.eval().shape)


class CrossEntropies(test_util.TensorFlowTestCase):
    @test_util.run_deprecated_v1
    def test_sigmoid(self):
        x, z = np.float32([[-100, -2, 0], [2, 2, 100]]), np.float32([[0, 0, 1], [0.5, 1, 1]])
        expected = np.maximum(x, 0) - x * z + np.log1p(np.exp(-np.abs(x)))
        with self.cached_session():
            self.assertAllClose(expected, nn_impl.sigmoid_cross_entropy_with_logits(labels=z, logits=x).eval())
            weighted = nn_impl.weighted_cross_entropy_with_logits(targets=z, logits=x, pos_weight=1.0)
            self.assertAllClose(expected, weighted.eval())
            with self.assertRaisesRegex(ValueError, "must have the same shape"):
                nn_impl.sigmoid_cross_entropy_with_logits(labels=[1.0, 2.0], logits=[[1.0]])
            with self.assertRaisesRegex(ValueError, "must have the same shape"):
                nn_impl.weighted_cross_entropy_with_logits(targets=[1.0, 2.0], logits=[[1.0]], pos_weight=2.0)

    @test_util.run_deprecated_v1
    def test_softmax(self):
        logits = np.float32([[1, 1, 1, 1], [1, 2, 3, 4]])
        labels = np.float32([[0, 0, 0, 1], [0, 0.5, 0.5, 0]])
        p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
        with self.cached_session():
            loss = nn_ops.softmax_cross_entropy_with_logits(labels=labels, logits=logits)
            self.assertAllClose(-(labels * np.log(p)).sum(1), loss.eval())
            raw, backprop = gen_nn_ops.softmax_cross_entropy_with_logits(logits, labels)
            self.assertAllClose(p - labels, backprop.eval())
            sparse, sparse_grad = gen_nn_ops.sparse_softmax_cross_entropy_with_logits(logits, [3, 0])
            self.assertAllClose(-np.log(p[[0, 1], [3, 0]]), sparse.eval())
            with self.assertRaisesRegex(ValueError, "[Bb]oth `?labels`? and `?logits`?"):
                nn_ops.softmax_cross_entropy_with_logits(labels=labels)
            with self.assertRaises((ValueError, errors_impl.InvalidArgumentError)):
                gen_nn_ops.softmax_cross_entropy_with_logits([[0.0, 1.0]], [[0.0, 1.0, 2.0]])[0].eval()

    @test_util.run_deprecated_v1
    def test_sparse(self):
        with self.cached_session():
            with self.assertRaisesRegex(ValueError, "Rank mismatch|labels.shape.rank` must equal"):
                nn_ops.sparse_softmax_cross_entropy_with_logits(labels=[[0, 2]], logits=[[0.0, 1.0], [2.0, 3.0], [2.0, 3.0]])
            with self.assertRaisesRegex(ValueError, ".*must be not be scalar|must not be (a )?scalar|scalar"):
                nn_ops.sparse_softmax_cross_entropy_with_logits(labels=constant_op.constant(0), logits=constant_op.constant(1.0))
            with self.assertRaisesOpError("out of range|outside the valid range"):
                nn_ops.sparse_softmax_cross_entropy_with_logits(
                    labels=[4, 3, 0, -1], logits=np.ones([4, 4], np.float32)).eval()  # fmt: skip
            two = nn_ops.sparse_softmax_cross_entropy_with_logits(labels=[[0, 1]], logits=np.ones([1, 2, 3], np.float32))
            self.assertAllClose(np.full([1, 2], np.log(3)), two.eval())
            self.assertEqual((0,), nn_ops.sparse_softmax_cross_entropy_with_logits(
                labels=np.zeros([0], np.int32), logits=np.ones([0, 4], np.float32)).eval().shape)  # fmt: skip

    @test_util.run_deprecated_v1
    def test_samplers(self):
        with self.cached_session():
            ids, true_counts, sampled = candidate_sampling_ops.uniform_candidate_sampler(np.int64([[1, 2], [0, 3]]), 2, 3, True, 5)
            self.assertEqual(3, len(set(ids.eval())))
            all_ids, all_true, _ = candidate_sampling_ops.all_candidate_sampler(np.int64([[1], [2]]), 1, 4, True)
            self.assertAllEqual(range(4), all_ids.eval())
            self.assertAllClose([[1.0], [1.0]], all_true.eval())
            indices, positions, weights = candidate_sampling_ops.compute_accidental_hits(np.int64([[1, 2], [0, 3]]), np.int64([3, 1, 0]), 2)
            self.assertEqual({(0, 1), (1, 0), (1, 2)}, set(zip(indices.eval(), positions.eval(), strict=True)))
            labels = constant_op.constant([[1], [2]], dtypes.int64)
            loss = nn_impl.nce_loss(np.ones([5, 3], np.float32), np.zeros(5, np.float32), labels,
                                    np.ones([2, 3], np.float32), 3, 5)  # fmt: skip
            self.assertEqual((2,), loss.eval().shape)
            again = nn_impl.sampled_softmax_loss_v2(np.ones([5, 3], np.float32), np.zeros(5, np.float32), labels,
                                                    np.ones([2, 3], np.float32), 3, 5)  # fmt: skip
            self.assertEqual((2,), again.eval().shape)


class Losses(test.TestCase):
    def setUp(self):
        super().setUp()
        self.predictions = constant_op.constant([4, 8, 12, 8, 1, 3], shape=(2, 3), dtype=dtypes.float32)
        self.labels = constant_op.constant([1, 9, 2, -5, -2, 6], shape=(2, 3), dtype=dtypes.float32)

    def test_absolute_difference(self):
        with self.assertRaises(ValueError):
            losses.absolute_difference(self.predictions, self.predictions, weights=None)
        with self.cached_session():
            self.assertAllClose(5.5, losses.absolute_difference(self.labels, self.predictions).eval(), 1e-3)
            self.assertAllClose(5.5 * 2.3, losses.absolute_difference(self.labels, self.predictions, 2.3).eval(), 1e-3)
            weights = constant_op.constant([1.2, 0.0], shape=[2, 1])
            self.assertAllClose(5.6, losses.absolute_difference(self.labels, self.predictions, weights).eval(), 1e-3)
            each = losses.absolute_difference(self.labels, self.predictions, reduction=losses.Reduction.NONE)
            self.assertAllClose([[3, 1, 10], [13, 3, 3]], each.eval())
            total = losses.absolute_difference(self.labels, self.predictions, reduction=losses.Reduction.SUM)
            self.assertAllClose(33, total.eval())

    def test_collections(self):
        with self.cached_session():
            self.assertFalse(util.get_losses())
            loss = losses.mean_squared_error(self.labels, self.predictions)
            self.assertEqual([loss], util.get_losses())
            losses.mean_squared_error(self.labels, self.predictions, loss_collection=None)
            self.assertEqual(1, len(util.get_losses()))
            self.assertAllClose(loss.eval(), util.get_total_loss().eval())
            util.add_loss(constant_op.constant(3.0))
            self.assertAllClose(loss.eval() + 3, util.get_total_loss(add_regularization_losses=False).eval())
            self.assertAllClose(0.0, util.get_regularization_loss().eval())

    def test_shapes(self):
        for function in (losses.absolute_difference, losses.mean_squared_error, losses.log_loss, losses.huber_loss):
            with self.assertRaises(ValueError):
                function(constant_op.constant([1.0, 2.0, 3.0]), self.predictions)
        with self.assertRaisesRegex(ValueError, "weights can not be broadcast to values"):
            losses.mean_squared_error(self.labels, self.predictions, weights=constant_op.constant([1.0, 2.0], shape=[2]))
        with self.assertRaisesRegex(ValueError, "Invalid Reduction|reduction"):
            losses.mean_squared_error(self.labels, self.predictions, reduction="unknown")

    def test_values(self):
        p, y = np.float32([[0.9, 0.2, 0.2], [0.8, 0.4, 0.6]]), np.float32([[1, 0, 1], [1, 0, 0]])
        with self.cached_session():
            eps = 1e-7
            expected = -(y * np.log(p + eps) + (1 - y) * np.log(1 - p + eps))
            self.assertAllClose(expected.mean(), losses.log_loss(y, p).eval(), 1e-3)
            hinge = losses.hinge_loss([0.0, 1.0, 0.0, 1.0], [-2.0, 0.3, 1.0, -0.5])
            self.assertAllClose((0 + 0.7 + 2 + 1.5) / 4, hinge.eval(), 1e-3)
            huber = losses.huber_loss(constant_op.constant([1.0, 9.0]), constant_op.constant([1.5, 6.5]))
            self.assertAllClose((0.5 * 0.25 + 2.5 - 0.5) / 2, huber.eval())
            pairs = losses.mean_pairwise_squared_error(self.labels, self.predictions)
            diff = np.array([[3, -1, 10], [13, 3, -3]], np.float32)
            expected = np.mean([sum((a - b) ** 2 for i, a in enumerate(row) for b in row[i + 1 :]) * 2 / 3 for row in diff]) / 1
            self.assertAllClose(expected, pairs.eval(), 1e-3)
            cosine = losses.cosine_distance([[1.0, 0.0]], [[0.0, 1.0]], axis=1)
            self.assertAllClose(1.0, cosine.eval())
            with self.assertRaisesRegex(ValueError, "`?axis`? must be specified|You must specify"):
                losses.cosine_distance([[1.0]], [[1.0]])
            softmax = losses.softmax_cross_entropy([[0.0, 1.0]], [[10.0, 0.0]], label_smoothing=0.1)
            self.assertAllClose(10.0 * 0.95, softmax.eval(), 1e-2)
            sigmoid = losses.sigmoid_cross_entropy([[0.0, 1.0]], [[100.0, -100.0]])
            self.assertAllClose(100.0, sigmoid.eval())
            sparse = losses.sparse_softmax_cross_entropy(constant_op.constant([[0], [1]]), [[10.0, 0.0], [0.0, 10.0]])
            self.assertAllClose(0.0, sparse.eval(), atol=1e-3)
            weighted = losses.compute_weighted_loss([[1.0, 2.0], [3.0, 4.0]], [[1.0], [0.0]])
            self.assertAllClose(1.5, weighted.eval())

    def test_unknown_shapes(self):
        with self.cached_session():
            ones = array_ops.placeholder(dtypes.float32)
            loss = losses.mean_squared_error(ones, ones + 1.0, weights=array_ops.placeholder_with_default([[2.0]], None))
            self.assertAllClose(2.0, loss.eval({ones: [[1.0, 2.0]]}))


class Metrics(test.TestCase):
    def setUp(self):
        super().setUp()
        ops.reset_default_graph()

    @staticmethod
    def _tensors(*values):
        return [constant_op.constant(each) for each in values]

    def _run(self, value, update, times=1, feed=None):
        with self.cached_session() as sess:
            sess.run(variables.local_variables_initializer())
            for _ in range(times):
                sess.run(update, feed)
            return sess.run(value)

    def test_mean_family(self):
        self.assertAllClose(2.0, self._run(*metrics.mean([1.0, 2.0, 3.0])))
        self.assertAllClose(2.5, self._run(*metrics.mean([2.0, 3.0, 5.0], weights=[1, 1, 0])))
        self.assertAllClose([[1.5, 3.0]], self._run(*metrics.mean_tensor([[1.5, 3.0]]), times=2))
        self.assertAllClose(0.5, self._run(*metrics.accuracy([1, 0], [1, 1])))
        self.assertAllClose(2 / 3, self._run(*metrics.percentage_below([1.0, 2.0, 9.0], 5.0)), atol=1e-5)
        self.assertAllClose(1.0, self._run(*metrics.mean_absolute_error([1.0, 2.0], [2.0, 3.0])))
        self.assertAllClose(0.5, self._run(*metrics.mean_relative_error([1.0], [2.0], [2.0])))
        self.assertAllClose(np.sqrt(2.5), self._run(*metrics.root_mean_squared_error([1.0, 2.0], [2.0, 4.0])))
        self.assertAllClose(1.0, self._run(*metrics.mean_cosine_distance([[1.0, 0.0]], [[0.0, 1.0]], 1)))

    def test_binary(self):
        labels, predictions = self._tensors([0, 1, 1, 0, 1], [0, 1, 0, 1, 1])
        self.assertAllClose(2 / 3, self._run(*metrics.precision(labels, predictions)))
        self.assertAllClose(2 / 3, self._run(*metrics.recall(labels, predictions)))
        for function, expected in [
            (metrics.true_positives, 2), (metrics.false_positives, 1), (metrics.false_negatives, 1), (metrics.true_negatives, 1)
        ]:  # fmt: skip
            self.assertAllClose(expected, self._run(*function(labels, predictions)))
        at = metrics.true_positives_at_thresholds(labels, constant_op.constant([0.1, 0.9, 0.4, 0.6, 0.8]), [0.15, 0.5, 0.85])
        self.assertAllEqual([3, 2, 1], self._run(*at))
        self.assertAllClose(0.0, self._run(*metrics.precision(*self._tensors([0, 0], [0, 0]))))

    def test_curves(self):
        labels, scores = self._tensors([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
        self.assertAllClose(0.75, self._run(*metrics.auc(labels, scores)), atol=1e-2)
        self.assertAllClose(0.79, self._run(*metrics.auc(labels, scores, curve="PR", summation_method="careful_interpolation")),
                            atol=5e-2)  # fmt: skip
        self.assertAllClose(1.0, self._run(*metrics.sensitivity_at_specificity(labels, scores, 0.5)), atol=1e-2)
        self.assertAllClose(0.5, self._run(*metrics.specificity_at_sensitivity(labels, scores, 0.6)), atol=0.51)
        self.assertAllClose([2 / 3, 1.0], self._run(*metrics.precision_at_thresholds(labels, scores, [0.3, 0.7])), atol=1e-4)
        with self.assertRaises((ValueError, errors_impl.InvalidArgumentError)):
            self._run(*metrics.auc(*self._tensors([0, 1], [-1.0, 2.0])))
        for wrong in (-1.0, 1.0 + 1e-6):
            with self.assertRaises(ValueError):
                metrics.sensitivity_at_specificity(labels, scores, wrong)

    def test_classes(self):
        value, update = metrics.mean_iou(*self._tensors([0, 0, 1, 1], [0, 1, 1, 1]), 2)
        self.assertAllClose((1 / 2 + 2 / 3) / 2, self._run(value, update))
        value, update = metrics.mean_per_class_accuracy(*self._tensors([0, 0, 1, 1], [0, 1, 1, 1]), 2)
        self.assertAllClose((0.5 + 1) / 2, self._run(value, update))

    def test_ranking(self):
        labels = constant_op.constant([[2], [1]], dtypes.int64)
        scores = constant_op.constant([[0.1, 0.2, 0.7], [0.5, 0.1, 0.4]])
        self.assertAllClose(0.5, self._run(*metrics.recall_at_k(labels, scores, 1)))
        self.assertAllClose(0.5, self._run(*metrics.precision_at_k(labels, scores, 1)))
        self.assertAllClose((1 + 1 / 3) / 2, self._run(*metrics.average_precision_at_k(labels, scores, 3)), atol=1e-4)
        self.assertAllClose(0.5, self._run(*metrics.recall_at_top_k(labels, constant_op.constant([[2, 0], [0, 2]], dtypes.int64), k=2)))

    def test_collections_and_names(self):
        metrics.mean([1.0], metrics_collections=["my"], updates_collections=["up"])
        self.assertEqual(1, len(ops.get_collection("my")))
        self.assertEqual(1, len(ops.get_collection("up")))
        names = {v.name for v in ops.get_collection(ops.GraphKeys.METRIC_VARIABLES)}
        self.assertEqual({"mean/total:0", "mean/count:0"}, names)
        self.assertEqual(names, {v.name for v in ops.get_collection(ops.GraphKeys.LOCAL_VARIABLES)})
        metrics.auc(*self._tensors([0, 1], [0.0, 1.0]), name="named")
        self.assertIn("named/true_positives:0", {v.name for v in ops.get_collection(ops.GraphKeys.LOCAL_VARIABLES)})

    def test_confusion(self):
        with self.cached_session():
            self.assertAllEqual([[1, 0, 0], [0, 1, 0], [0, 1, 0]],
                                confusion_matrix.confusion_matrix([0, 1, 2], [0, 1, 1]).eval())  # fmt: skip
            weighted = confusion_matrix.confusion_matrix_v1([0, 1], [0, 0], weights=[2.0, 3.0], dtype=dtypes.float32)
            self.assertAllClose([[2, 0], [3, 0]], weighted.eval())
            with self.assertRaisesOpError("`?predictions`? (contains )?(negative values|out of bound)|negative"):
                confusion_matrix.confusion_matrix([0, 1], [0, -1]).eval()
            with self.assertRaisesOpError("`?labels`? out of bound|out of bound"):
                confusion_matrix.confusion_matrix([0, 5], [0, 1], num_classes=3).eval()
            with self.assertRaisesRegex(ValueError, "must be equal"):
                confusion_matrix.confusion_matrix(np.ones(2, np.int32), np.ones(3, np.int32))
            labels, predictions = confusion_matrix.remove_squeezable_dimensions(np.ones([3, 1]), np.ones([3]))
            self.assertEqual([3], labels.get_shape().as_list())
            labels, predictions = confusion_matrix.remove_squeezable_dimensions(
                array_ops.placeholder(dtypes.int32), array_ops.placeholder(dtypes.int32))  # fmt: skip
            self.assertIsNone(labels.get_shape().ndims)


class Ctc(test.TestCase):
    @test_util.run_deprecated_v1
    def test_v2_and_gradients(self):
        np.random.seed(0)
        frames, batch, classes = 8, 3, 6
        labels = np.array([[1, 2, 3, 0], [3, 3, 1, 2], [2, 4, 0, 0]], np.int32)
        lengths = np.array([3, 4, 2], np.int32)
        logits = np.random.randn(frames, batch, classes).astype(np.float32)
        logit_lengths = np.array([8, 8, 6], np.int32)
        t = constant_op.constant(logits)
        dense = ctc_ops.ctc_loss_v2(labels, t, lengths, logit_lengths, blank_index=0)
        sparse = ctc_ops.ctc_loss_v2(ctc_ops.dense_labels_to_sparse(constant_op.constant(labels), lengths), t, None,
                                     logit_lengths, blank_index=0)  # fmt: skip
        by_time = ctc_ops.ctc_loss_v2(labels, array_ops.transpose(t, [1, 0, 2]), lengths, logit_lengths,
                                      logits_time_major=False, blank_index=0)  # fmt: skip
        last = ctc_ops.ctc_loss(
            ctc_ops.dense_labels_to_sparse(constant_op.constant(labels) - 1, lengths),
            array_ops.concat([t[:, :, 1:], t[:, :, :1]], 2), logit_lengths)  # fmt: skip
        grads = [gradients_impl.gradients(each, [t])[0] for each in (dense, sparse)]
        with self.cached_session() as sess:
            a, b, c, d = sess.run([dense, sparse, by_time, last])
            self.assertAllClose(a, b, rtol=1e-4)
            self.assertAllClose(a, c, rtol=1e-4)
            self.assertAllClose(a, d, rtol=1e-4)
            one, two = sess.run(grads)
            self.assertAllClose(one, two, rtol=1e-3, atol=1e-5)
            self.assertAllClose([0] * classes, one[7, 2])

    @test_util.run_deprecated_v1
    def test_wrong(self):
        sparse = sparse_tensor.SparseTensor([[0, 0]], [1], [1, 1])
        with self.assertRaisesRegex(ValueError, "blank_index"):
            ctc_ops.ctc_loss_v2(sparse, np.ones([3, 1, 4], np.float32), None, [3])
        with self.assertRaisesRegex(TypeError, "SparseTensor"):
            ctc_ops.ctc_loss([[1]], np.ones([3, 1, 4], np.float32), [3])

    @test_util.run_deprecated_v1
    def test_helpers(self):
        with self.cached_session() as sess:
            merged, lengths = sess.run(ctc_ops.collapse_repeated([[1, 3, 3, 3, 0], [1, 4, 4, 4, 0], [4, 2, 2, 9, 4]], [4, 5, 5]))
            self.assertAllEqual([[1, 3, 0, 0], [1, 4, 0, 0], [4, 2, 9, 4]], merged)
            self.assertAllEqual([2, 3, 4], lengths)
            values, index = sess.run(ctc_ops.ctc_unique_labels([[3, 4, 4, 3], [1, 1, 1, 0]]))
            self.assertAllEqual([[3, 4, 0, 0], [1, 0, 0, 0]], values)
            self.assertAllEqual([[0, 1, 1, 0], [0, 0, 0, 1]], index)
            same, _ = sess.run(ctc_ops.collapse_repeated([[1, 2, 3]], [3]))
            self.assertAllEqual([[1, 2, 3]], same)

    @test_util.run_deprecated_v1
    def test_decoders(self):
        logits = np.log(np.float32([[[0.6, 0.1, 0.3]], [[0.1, 0.1, 0.8]], [[0.7, 0.2, 0.1]]]))
        with self.cached_session() as sess:
            (decoded,), log_p = ctc_ops.ctc_greedy_decoder(logits, [3])
            self.assertAllEqual([0, 0], sess.run(decoded).values)
            self.assertAllClose([[-np.log(0.6 * 0.8 * 0.7)]], sess.run(log_p), rtol=1e-4)
            beams, scores = ctc_ops.ctc_beam_search_decoder(logits, [3], beam_width=4, top_paths=2, merge_repeated=False)
            self.assertEqual(2, len(beams))
            self.assertEqual((1, 2), sess.run(scores).shape)
            with self.assertRaisesOpError("decoder top_paths|requested more paths than the beam width"):
                sess.run(ctc_ops.ctc_beam_search_decoder(logits, [3], beam_width=1, top_paths=2)[1])


class Cells(test.TestCase, parameterized.TestCase):
    @test_util.run_deprecated_v1
    def test_values(self):
        with self.cached_session() as sess:
            with variable_scope.variable_scope("root", initializer=init_ops.constant_initializer(0.5)):
                x, m = array_ops.zeros([1, 2]), array_ops.zeros([1, 2])
                cell = rnn_cell_impl.BasicRNNCell(2)
                g, _ = cell(x, m)
                self.assertEqual(["root/basic_rnn_cell/kernel:0", "root/basic_rnn_cell/bias:0"],
                                 [v.name for v in cell.trainable_variables])  # fmt: skip
                sess.run(variables.global_variables_initializer())
                self.assertEqual((1, 2), sess.run(g, {x: [[1.0, 1.0]], m: [[0.1, 0.1]]}).shape)

    @test_util.run_deprecated_v1
    def test_gru_and_lstm(self):
        with self.cached_session() as sess, variable_scope.variable_scope("r", initializer=init_ops.constant_initializer(0.5)):
            x = constant_op.constant([[1.0, 1.0]])
            g, _ = rnn_cell_impl.GRUCell(2)(x, constant_op.constant([[0.1, 0.1]]))
            lstm = rnn_cell_impl.BasicLSTMCell(2, state_is_tuple=False)
            h, state = lstm(x, constant_op.constant(0.1 * np.ones([1, 4], np.float32)))
            full = rnn_cell_impl.LSTMCell(3, use_peepholes=True, num_proj=2, cell_clip=1.0)
            p, (c, m) = full(x, full.zero_state(1, dtypes.float32))
            sess.run(variables.global_variables_initializer())
            self.assertAllClose([[0.175991, 0.175991]], sess.run(g), atol=1e-4)
            self.assertEqual((1, 2), sess.run(h).shape)
            self.assertEqual([(1, 3), (1, 2)], [sess.run(c).shape, sess.run(m).shape])
            self.assertEqual([(1, 3), (1, 2), (1, 2)], [sess.run(c).shape, sess.run(m).shape, sess.run(p).shape])

    @test_util.run_deprecated_v1
    def test_wrong_states(self):
        cell = rnn_cell_impl.BasicLSTMCell(2)
        with self.assertRaises((ValueError, TypeError)):
            cell(array_ops.zeros([1, 2]), array_ops.zeros([1, 5]))
        with self.assertRaisesRegex(ValueError, "Expected inputs.shape\\[-1\\] to be known"):
            rnn_cell_impl.GRUCell(2)(array_ops.placeholder(dtypes.float32, [1, None]), array_ops.zeros([1, 2]))
        with self.assertRaisesRegex(ValueError, "(M|m)ust specify at least one cell"):
            rnn_cell_impl.MultiRNNCell([])
        with self.assertRaisesRegex(TypeError, "cells must be a list or tuple"):
            rnn_cell_impl.MultiRNNCell(cell)
        with self.assertRaisesRegex(TypeError, "RNNCell|not an"):
            rnn_cell_impl.DropoutWrapper(object())

    @test_util.run_deprecated_v1
    def test_wrappers(self):
        with self.cached_session() as sess:
            base = rnn_cell_impl.GRUCell(3)
            x, m = array_ops.zeros([1, 3]), array_ops.ones([1, 3])
            plain, _ = base(x, m)
            res, _ = rnn_cell_impl.ResidualWrapper(base)(x + 1.0, m)
            device = rnn_cell_impl.DeviceWrapper(rnn_cell_impl.GRUCell(3), "/cpu:14159")
            out, _ = device(x, m)
            self.assertIn("cpu:14159", out.device.lower())
            dropped, _ = rnn_cell_impl.DropoutWrapper(base, output_keep_prob=1.0, state_keep_prob=1.0)(x, m)
            multi = rnn_cell_impl.MultiRNNCell([rnn_cell_impl.GRUCell(2), rnn_cell_impl.LSTMCell(4)])
            self.assertEqual((2, rnn_cell_impl.LSTMStateTuple(4, 4)), multi.state_size)
            self.assertEqual(4, multi.output_size)
            zero = multi.zero_state(5, dtypes.float32)
            self.assertEqual([5, 4], zero[1].c.get_shape().as_list())
            sess.run(variables.global_variables_initializer())
            self.assertAllClose(sess.run(plain), sess.run(dropped))
            self.assertEqual((1, 3), sess.run(res).shape)

    @test_util.run_deprecated_v1
    def test_dynamic(self):
        x = np.random.randn(2, 4, 3).astype(np.float32)
        with self.cached_session() as sess:
            outputs, state = rnn.dynamic_rnn(rnn_cell_impl.LSTMCell(5), constant_op.constant(x), [4, 2], dtype=dtypes.float32)
            self.assertEqual([2, 4, 5], outputs.get_shape().as_list())
            fixed, last = rnn.static_rnn(rnn_cell_impl.GRUCell(2), array_ops.unstack(constant_op.constant(x), axis=1),
                                         dtype=dtypes.float32, sequence_length=[4, 2])  # fmt: skip
            both, (fw, bw) = rnn.bidirectional_dynamic_rnn(
                rnn_cell_impl.GRUCell(2), rnn_cell_impl.GRUCell(2), constant_op.constant(x), dtype=dtypes.float32)  # fmt: skip
            sess.run(variables.global_variables_initializer())
            values, (c, h) = sess.run([outputs, state])
            self.assertAllClose(np.zeros([2, 5]), values[1, 2:])
            self.assertAllClose(values[1, 1], h[1])
            self.assertEqual(4, len(fixed))
            self.assertEqual((2, 4, 2), sess.run(both[1]).shape)
            self.assertAllClose(sess.run(fixed[1])[1], sess.run(last)[1])

    @test_util.run_deprecated_v1
    def test_dynamic_wrong(self):
        cell = rnn_cell_impl.GRUCell(2)
        x = array_ops.zeros([2, 4, 3])
        with self.assertRaisesRegex(ValueError, "you must give a dtype|`dtype` must be specified"):
            rnn.dynamic_rnn(cell, x)
        with self.assertRaisesRegex(ValueError, "must be a vector"):
            rnn.dynamic_rnn(cell, x, sequence_length=[[2, 3]], dtype=dtypes.float32)
        with self.assertRaisesRegex(ValueError, "must not be empty"):
            rnn.static_rnn(cell, [], dtype=dtypes.float32)
        with self.assertRaisesRegex(TypeError, "inputs`? must be a sequence"):
            rnn.static_rnn(cell, x, dtype=dtypes.float32)
        with self.assertRaisesRegex((TypeError, ValueError), "RNNCell|has to|cell"):
            rnn.dynamic_rnn(object(), x, dtype=dtypes.float32)
        with self.assertRaisesRegex((errors.InvalidArgumentError, ValueError), "Expected shape"):
            with self.cached_session() as sess:
                out, _ = rnn.dynamic_rnn(cell, x, array_ops.placeholder_with_default([2], None), dtype=dtypes.float32)
                sess.run(variables.global_variables_initializer())
                sess.run(out)

    @test_util.run_deprecated_v1
    def test_raw(self):
        inputs = constant_op.constant(np.random.randn(4, 2, 3).astype(np.float32))
        cell = rnn_cell_impl.GRUCell(3)

        def loop_fn(time, output, state, loop_state):
            return (time >= 4 if output is None else array_ops.tile([time >= 4], [2]),
                    inputs[0] if output is None else inputs[math_ops.minimum(time, 3)],
                    cell.zero_state(2, dtypes.float32) if output is None else state, output, None)  # fmt: skip

        with self.cached_session() as sess:
            ta, final, _ = rnn.raw_rnn(cell, lambda t, o, s, more: (
                array_ops.tile([t >= 4], [2]), *loop_fn(t, o, s, more)[1:]))  # fmt: skip
            stacked = ta.stack()
            sess.run(variables.global_variables_initializer())
            self.assertEqual((4, 2, 3), sess.run(stacked).shape)


class Windows(test.TestCase):
    @test_util.run_deprecated_v1
    def test_pools(self):
        x = np.arange(32, dtype=np.float32).reshape([1, 4, 4, 2])
        with self.cached_session():
            self.assertAllClose(x[:, 1::2, 1::2], nn_ops.max_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], "VALID").eval())
            self.assertAllClose(x.reshape(1, 2, 2, 2, 2, 2).mean((2, 4)),
                                nn_ops.avg_pool(x, 2, 2, "SAME").eval())  # fmt: skip
            y, where = nn_ops.max_pool_with_argmax(x, [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
            self.assertAllEqual([10, 11, 14, 15, 26, 27, 30, 31], where.eval().ravel())
            with self.assertRaisesRegex(ValueError, "[Rr]ank|must be rank 4"):
                nn_ops.max_pool(constant_op.constant([[1.0]]), [1, 1, 1, 1], [1, 1, 1, 1], "SAME")
            with self.assertRaises((ValueError, errors.InvalidArgumentError, errors.UnimplementedError)):
                nn_ops.max_pool(x, [1, 20, 21, 1], [1, 2, 2, 1], "VALID").eval()
            pooled = nn_ops.pool(x, [2, 2], "MAX", "VALID", strides=[2, 2])
            self.assertAllClose(x[:, 1::2, 1::2], pooled.eval())
            with self.assertRaisesRegex(ValueError, "strides|dilation"):
                nn_ops.pool(x, [2, 2], "MAX", "VALID", dilation_rate=[2, 2], strides=[2, 2])

    @test_util.run_deprecated_v1
    def test_convolutions(self):
        x, w = np.ones([1, 4, 4, 2], np.float32), np.ones([3, 3, 2, 1], np.float32)
        with self.cached_session():
            self.assertAllClose(np.full([1, 2, 2, 1], 18), nn_ops.conv2d(x, w, 1, "VALID").eval())
            self.assertAllClose(np.full([1, 2, 2, 1], 18), nn_ops.conv2d_v2(x, w, [1, 1, 1, 1], "VALID").eval())
            explicit = nn_ops.conv2d(x, w, [1, 1, 1, 1], padding=[[0, 0], [1, 1], [1, 1], [0, 0]])
            self.assertAllClose(nn_ops.conv2d(x, w, 1, "SAME").eval(), explicit.eval())
            self.assertEqual([1, 4, 4, 1], explicit.get_shape().as_list())
            up = nn_ops.conv2d_transpose(np.ones([1, 2, 2, 1], np.float32), w, [1, 4, 4, 2], [1, 2, 2, 1], "SAME")
            self.assertEqual((1, 4, 4, 2), up.eval().shape)
            deep = nn_ops.conv3d(np.ones([1, 3, 3, 3, 1], np.float32), np.ones([2, 2, 2, 1, 1], np.float32), [1] * 5, "VALID")
            self.assertAllClose(np.full([1, 2, 2, 2, 1], 8), deep.eval())
            one = nn_ops.conv1d(np.ones([1, 5, 1], np.float32), np.ones([3, 1, 1], np.float32), 2, "VALID")
            self.assertAllClose([[[3], [3]]], one.eval())
            dilated = nn_ops.atrous_conv2d(x, w, 2, "SAME")
            self.assertEqual([1, 4, 4, 1], dilated.get_shape().as_list())
            depth = nn_impl.depthwise_conv2d(x, np.ones([3, 3, 2, 2], np.float32), [1, 1, 1, 1], "VALID")
            self.assertAllClose(np.full([1, 2, 2, 4], 9), depth.eval())
            separable = nn_impl.separable_conv2d(x, np.ones([3, 3, 2, 2], np.float32), np.ones([1, 1, 4, 3], np.float32),
                                                 [1, 1, 1, 1], "VALID")  # fmt: skip
            self.assertAllClose(np.full([1, 2, 2, 3], 36), separable.eval())
            erosion = nn_ops.erosion2d(x, np.zeros([2, 2, 2], np.float32), [1, 1, 1, 1], [1, 1, 1, 1], "VALID")
            self.assertAllClose(np.ones([1, 3, 3, 2]), erosion.eval())

    @test_util.run_deprecated_v1
    def test_wrong_convolutions(self):
        x = constant_op.constant(np.ones([1, 4, 4, 2], np.float32))
        with self.assertRaises(ValueError):
            nn_ops.conv2d(array_ops.placeholder(dtypes.float32, [1, 3]), np.ones([3, 3, 2, 1], np.float32), 1, "SAME")
        with self.assertRaises(ValueError):
            nn_ops.conv2d(x, np.ones([3, 3, 5, 1], np.float32), 1, "SAME")
        with self.assertRaises((ValueError, TypeError)):
            nn_ops.conv2d(x, np.ones([3, 3, 2, 1], np.float32), 1, "FOO")
        with self.assertRaisesRegex(ValueError, "[Nn]egative dimension size|must be <= |larger"):
            nn_ops.conv2d(x, np.ones([8, 8, 2, 1], np.float32), 1, "VALID")
        with self.assertRaisesRegex(ValueError, "output_shape|rank"):
            nn_ops.conv2d_transpose(x, np.ones([3, 3, 3, 2], np.float32), [[1, 8, 8, 3]], [1, 2, 2, 1])

    @test_util.run_deprecated_v1
    def test_gradients(self):
        x, w = np.random.rand(1, 4, 4, 2).astype(np.float32), np.random.rand(2, 2, 2, 3).astype(np.float32)
        with self.cached_session():
            for padding, stride in (("SAME", 1), ("VALID", 2)):
                tx, tw = constant_op.constant(x), constant_op.constant(w)
                y = nn_ops.conv2d(tx, tw, stride, padding)
                shape = y.get_shape().as_list()
                self.assertLess(gradient_checker.compute_gradient_error(tx, [1, 4, 4, 2], y, shape, x), 1e-2)
                self.assertLess(gradient_checker.compute_gradient_error(tw, [2, 2, 2, 3], y, shape, w), 1e-2)

    @test_util.run_deprecated_v1
    def test_lrn_and_top_k(self):
        with self.cached_session():
            y = nn_ops.local_response_normalization(np.ones([1, 1, 1, 5], np.float32), depth_radius=2)
            self.assertAllClose([4**-0.5, 5**-0.5, 6**-0.5, 5**-0.5, 4**-0.5], y.eval().ravel(), atol=1e-5)
            values, indices = nn_ops.top_k([[0.1, 0.3, 0.2, 0.4], [0.1, 0.3, 0.3, 0.2]], 2)
            self.assertAllClose([[0.4, 0.3], [0.3, 0.3]], values.eval())
            self.assertAllEqual([[3, 1], [1, 2]], indices.eval())
            with self.assertRaisesRegex(ValueError, "at least rank 1|must be at least"):
                nn_ops.top_k(constant_op.constant(1.0), 1)
            with self.assertRaisesRegex((ValueError, errors.InvalidArgumentError), "(?i)input must have (at least|last dimension >=) k|must have at least k"):
                nn_ops.top_k(constant_op.constant([[0.1, 0.2]]), 4)[0].eval()
            self.assertAllEqual([True, False], nn_ops.in_top_k([[0.1, 0.9], [0.9, 0.1]], [1, 1], 1).eval())
            nth = nn_ops.nth_element([[4.0, 1.0, 3.0]], 1)
            self.assertAllClose([3.0], nth.eval())
            with self.assertRaisesOpError("targets\\[0\\] is out of range|out of range"):
                nn_ops.in_top_k(np.float32([[0.1, 0.9]]), [1], k=array_ops.placeholder_with_default(2, [])).eval()
                raise errors.InvalidArgumentError(None, None, "targets out of range: only some versions check")


class Embeddings(test.TestCase):
    @test_util.run_deprecated_v1
    def test_lookup(self):
        with self.cached_session() as sess:
            parts = variable_scope.get_variable(
                "emb", [10, 2], partitioner=partitioned_variables.fixed_size_partitioner(3),
                initializer=lambda shape, dtype, partition_info: np.reshape(
                    np.arange(shape[0] * 2, dtype=np.float32) + 2 * partition_info.single_offset(shape)
                    if False else np.arange(shape[0] * 2, dtype=np.float32), shape) * np.ones(shape, np.float32))  # fmt: skip
            sess.run(variables.global_variables_initializer())
            found = embedding_ops.embedding_lookup(parts, [0, 1, 9], partition_strategy="div")
            self.assertEqual([3, 2], found.get_shape().as_list())
            self.assertEqual((3, 2), sess.run(found).shape)
            plain = constant_op.constant(np.arange(20, dtype=np.float32).reshape([10, 2]))
            self.assertAllClose([[0, 1], [18, 19]], embedding_ops.embedding_lookup([plain], [0, 9]).eval())
            clipped = embedding_ops.embedding_lookup([plain], [9], max_norm=1.0).eval()
            self.assertAllClose(1.0, np.linalg.norm(clipped), rtol=1e-4)
            with self.assertRaisesRegex(ValueError, "Need at least one param|params"):
                embedding_ops.embedding_lookup(None, [1])
            with self.assertRaisesRegex(ValueError, "Need at least one param|params"):
                embedding_ops.embedding_lookup([], [1])
            with self.assertRaisesRegex(ValueError, "[Uu]nrecognized partition strategy"):
                embedding_ops.embedding_lookup([plain, plain], [1], partition_strategy="foo")

    @test_util.run_deprecated_v1
    def test_sparse(self):
        ids = sparse_tensor.SparseTensor([[0, 0], [0, 1], [2, 0]], constant_op.constant([1, 3, 0], dtypes.int64), [3, 2])
        weights = sparse_tensor.SparseTensor([[0, 0], [0, 1], [2, 0]], constant_op.constant([2.0, 0.5, 1.0]), [3, 2])
        plain = constant_op.constant(np.arange(8, dtype=np.float32).reshape([4, 2]))
        with self.cached_session():
            for combiner, row in [("sum", 2.0 * np.array([2, 3]) + 0.5 * np.array([6, 7])),
                                  ("mean", (2.0 * np.array([2, 3]) + 0.5 * np.array([6, 7])) / 2.5),
                                  ("sqrtn", (2.0 * np.array([2, 3]) + 0.5 * np.array([6, 7])) / np.sqrt(4.25))]:  # fmt: skip
                found = embedding_ops.embedding_lookup_sparse(plain, ids, weights, combiner=combiner)
                self.assertAllClose(row, found.eval()[0], rtol=1e-5)
            safe = embedding_ops.safe_embedding_lookup_sparse([plain], ids, weights)
            self.assertAllClose([0, 0], safe.eval()[1])
            with self.assertRaisesRegex(ValueError, "combiner must be one of"):
                embedding_ops.embedding_lookup_sparse(plain, ids, weights, combiner="no")
            with self.assertRaisesRegex(TypeError, "sp_ids must be SparseTensor"):
                embedding_ops.embedding_lookup_sparse(plain, [1], None, combiner="sum")
            with self.assertRaisesRegex(TypeError, "sp_weights must be either None or SparseTensor"):
                embedding_ops.embedding_lookup_sparse(plain, ids, [1.0], combiner="sum")
