"""Images: color, flips, crops, padding, resizing, boxes, files, quality."""

import colorsys

import numpy as np
from absl.testing import parameterized
from tensorflow.python.framework import constant_op, dtypes, errors, random_seed, test_util
from tensorflow.python.ops import (
    array_ops,
    control_flow_ops,  # noqa: F401
    gradient_checker,
    image_ops,
    image_ops_impl,
)


class Colors(test_util.TensorFlowTestCase):
    @test_util.run_deprecated_v1
    def test_rgb_hsv_batch(self):
        for nptype in (np.float32, np.float64):
            data = np.random.rand(5, 2, 7, 3).astype(nptype)
            with self.cached_session(use_gpu=True):
                batch0 = constant_op.constant(data)
                batch1 = image_ops.rgb_to_hsv(batch0)
                batch2 = image_ops.hsv_to_rgb(batch1)
                split0 = array_ops.unstack(batch0)
                joined = array_ops.stack(list(map(image_ops.rgb_to_hsv, split0)))
                b1, b2, j = self.evaluate([batch1, batch2, joined])
            self.assertAllClose(b1, j)
            self.assertAllClose(b2, data, rtol=1e-4)
            expected = np.array([colorsys.rgb_to_hsv(*pixel) for pixel in data.reshape(-1, 3)]).reshape(data.shape)
            self.assertAllClose(expected, b1, atol=1e-5)

    @test_util.run_deprecated_v1
    def test_grayscale(self):
        x = np.array([[1, 2, 3], [4, 10, 1]], np.uint8).reshape([1, 1, 2, 3])
        with self.cached_session():
            y = image_ops.rgb_to_grayscale(constant_op.constant(x))
            self.assertAllEqual([[[[1], [7]]]], y.eval())
            back = image_ops.grayscale_to_rgb(constant_op.constant(np.array([[[1], [2]]], np.uint8)))
            self.assertAllEqual([[[1, 1, 1], [2, 2, 2]]], back.eval())

    @test_util.run_deprecated_v1
    def test_grayscale_wrong_shapes(self):
        with self.assertRaisesRegex(ValueError, "Last dimension of a grayscale image should be size 1|size 1"):
            image_ops.grayscale_to_rgb(constant_op.constant(np.ones([2, 2, 2])))
        with self.assertRaisesRegex(ValueError, "[Aa] grayscale image .*(must be at least|at least) two-dimensional|two"):
            image_ops.grayscale_to_rgb(constant_op.constant([1.0]))
        unknown = array_ops.placeholder(dtypes.uint8)
        self.assertIsNone(image_ops.rgb_to_grayscale(unknown).get_shape().ndims)
        self.assertFalse(image_ops.grayscale_to_rgb(unknown).get_shape())

    @test_util.run_deprecated_v1
    def test_yuv_and_yiq(self):
        x = np.random.rand(2, 3, 3).astype(np.float64)
        with self.cached_session():
            for there, back in [(image_ops.rgb_to_yiq, image_ops.yiq_to_rgb), (image_ops.rgb_to_yuv, image_ops.yuv_to_rgb)]:
                self.assertAllClose(x, back(there(constant_op.constant(x))).eval(), atol=1e-4)

    @test_util.run_deprecated_v1
    def test_adjust_gamma(self):
        with self.cached_session():
            x = constant_op.constant([[0.0, 0.25], [0.5, 1.0]])
            self.assertAllClose([[0, 0.0625], [0.25, 1]], image_ops.adjust_gamma(x, gamma=2).eval())
            err = "Gamma should be a non-negative real number"
            with self.assertRaisesRegex((ValueError, errors.InvalidArgumentError), err):
                image_ops.adjust_gamma(x, gamma=-1).eval()
            with self.assertRaisesRegex((ValueError, errors.InvalidArgumentError), err):
                image_ops.adjust_gamma(x, gamma=array_ops.placeholder_with_default(-1.0, [])).eval()

    @test_util.run_deprecated_v1
    def test_adjust_hue_saturation(self):
        x = np.array([0, 5, 13, 54, 135, 226, 37, 8, 234, 90, 255, 1], np.uint8).reshape([2, 2, 3])
        with self.cached_session():
            hue = image_ops.adjust_hue(constant_op.constant(x), 0.25).eval()
            self.assertAllEqual(
                np.array([13, 0, 11, 226, 54, 221, 234, 8, 92, 1, 217, 255], np.uint8).reshape([2, 2, 3]), hue
            )
            more = image_ops.adjust_saturation(constant_op.constant(x), 2.0).eval()
            self.assertAllEqual(
                np.array([0, 5, 13, 0, 106, 226, 30, 0, 234, 89, 255, 0], np.uint8).reshape([2, 2, 3]), more
            )
            gray = image_ops.adjust_saturation(constant_op.constant(x / 255.0, dtypes.float32), 0.0).eval()
            self.assertAllClose(gray[..., 0], gray[..., 1])
            with self.assertRaisesRegex((ValueError, errors.InvalidArgumentError), "must be at least 3-D|at least rank 3"):
                image_ops.adjust_hue(constant_op.constant([0.5, 0.5, 0.5]), 0.1).eval()

    @test_util.run_deprecated_v1
    def test_brightness_and_contrast(self):
        x = np.array([0, 5, 13, 54, 135, 226, 37, 8, 234, 90, 255, 1], np.uint8).reshape([1, 2, 2, 3])
        with self.cached_session():
            brighter = image_ops.adjust_brightness(constant_op.constant(x), delta=10 / 255).eval()
            self.assertAllEqual(np.minimum(x.astype(int) + 10, 255), brighter)
            contrast = image_ops.adjust_contrast(constant_op.constant(x), contrast_factor=2.0).eval()
            self.assertAllEqual(
                np.array([0, 0, 0, 62, 169, 255, 28, 0, 255, 135, 255, 0], np.uint8).reshape([1, 2, 2, 3]), contrast
            )
            self.assertAllClose(x, image_ops.adjust_contrast(constant_op.constant(x), 1.0).eval(), atol=1)

    @test_util.run_deprecated_v1
    def test_random_changes(self):
        x = constant_op.constant(np.full([4, 4, 3], 100, np.uint8))
        with self.cached_session():
            for made in (
                image_ops.random_brightness(x, 0.2, seed=1), image_ops.random_contrast(x, 0.5, 1.5),
                image_ops.random_hue(x, 0.2), image_ops.random_saturation(x, 0.5, 1.5),
            ):  # fmt: skip
                self.assertEqual((4, 4, 3), made.eval().shape)
            with self.assertRaisesRegex(ValueError, "upper must be > lower"):
                image_ops.random_contrast(x, 1.5, 0.5)
            with self.assertRaisesRegex(ValueError, "lower must be non-negative"):
                image_ops.random_saturation(x, -1.0, 0.5)
            with self.assertRaisesRegex(ValueError, "max_delta must be (<=|at most|less than or equal to) 0.5"):
                image_ops.random_hue(x, 1.0)
            with self.assertRaisesRegex(ValueError, "max_delta must be non-negative"):
                image_ops.random_brightness(x, -0.1)
            with self.assertRaisesRegex(ValueError, "min_jpeg_quality|jpeg"):
                image_ops.random_jpeg_quality(x, 0, 100) if False else image_ops.random_jpeg_quality(x, -1, 100)

    @test_util.run_deprecated_v1
    def test_standardization(self):
        with self.cached_session():
            x = np.arange(0, 24, dtype=np.int32).reshape([2, 4, 3])
            y = image_ops.per_image_standardization(constant_op.constant(x, dtypes.int32)).eval()
            self.assertAllClose((x - x.mean()) / x.std(), y, rtol=1e-4)
            z = image_ops.per_image_standardization(constant_op.constant(np.ones([19, 19, 1]), dtypes.float32))
            self.assertFalse(np.any(np.isnan(z.eval())))
            batch = image_ops.per_image_standardization(array_ops.placeholder(dtypes.float32, [None, 3, 4, 1]))
            self.assertEqual([None, 3, 4, 1], batch.get_shape().as_list())


class Conversions(test_util.TensorFlowTestCase):
    def _convert(self, original, original_dtype, output_dtype, expected):
        x = np.array(original, original_dtype.as_numpy_dtype)
        with self.cached_session(use_gpu=True):
            image = constant_op.constant(x)
            y = image_ops.convert_image_dtype(image, output_dtype)
            self.assertEqual(y.dtype, output_dtype)
            self.assertAllClose(y.eval(), np.array(expected, output_dtype.as_numpy_dtype), atol=1e-5)
            if output_dtype in (dtypes.float32, dtypes.int32, dtypes.int64):
                saturated = image_ops.convert_image_dtype(image, output_dtype, saturate=True)
                self.assertAllClose(saturated.eval(), np.array(expected, output_dtype.as_numpy_dtype), atol=1e-5)

    @test_util.run_deprecated_v1
    def test_all(self):
        self._convert([0, 255], dtypes.uint8, dtypes.int16, [0, 255 * 128])
        self._convert([0, 32767], dtypes.int16, dtypes.uint8, [0, 255])
        self._convert([0, 2**32], dtypes.int64, dtypes.int32, [0, 1])
        self._convert([0, 1], dtypes.int32, dtypes.int64, [0, 2**32])
        self._convert([0, 1, 127, 255], dtypes.uint8, dtypes.float32, [0, 1 / 255, 127 / 255, 1])
        self._convert([0, 1.1 / 255, 0.5, 1], dtypes.float32, dtypes.uint8, [0, 1, 127, 255])
        self._convert([0.0, 1.0], dtypes.float32, dtypes.float64, [0.0, 1.0])
        self._convert([0, 1], dtypes.uint8, dtypes.uint8, [0, 1])
        with self.assertRaises((TypeError, AttributeError, ValueError)):
            image_ops.convert_image_dtype(constant_op.constant([1]), dtypes.string)


class Flips(test_util.TensorFlowTestCase, parameterized.TestCase):
    @test_util.run_deprecated_v1
    def test_fixed(self):
        x = np.array([[1, 2, 3], [4, 5, 6]], np.uint8).reshape([2, 3, 1])
        batch = np.stack([x, x + 10])
        with self.cached_session(use_gpu=True):
            for value in (x, batch):
                t = constant_op.constant(value)
                self.assertAllEqual(np.flip(value, -2), image_ops.flip_left_right(t).eval())
                self.assertAllEqual(np.flip(value, -3), image_ops.flip_up_down(t).eval())
                for k in range(-1, 6):
                    self.assertAllEqual(np.rot90(value, k, axes=(-3, -2)), image_ops.rot90(t, k).eval())

    @test_util.run_deprecated_v1
    def test_random(self):
        x = constant_op.constant(np.array([[1, 2, 3], [1, 2, 3]], np.uint8).reshape([2, 3, 1]))
        with self.cached_session() as sess:
            y = image_ops.random_flip_left_right(x, seed=42)
            found = {tuple(sess.run(y).ravel()) for _ in range(40)}
            self.assertEqual({(1, 2, 3, 1, 2, 3), (3, 2, 1, 3, 2, 1)}, found)
            batch = image_ops.random_flip_up_down(array_ops.stack([x, x]), seed=1)
            self.assertEqual([2, 2, 3, 1], batch.get_shape().as_list())

    @test_util.run_deprecated_v1
    def test_shapes(self):
        for op in (image_ops.flip_left_right, image_ops.flip_up_down, image_ops.random_flip_left_right,
                   image_ops.random_flip_up_down, image_ops.rot90):  # fmt: skip
            self.assertEqual(3, op(array_ops.placeholder(dtypes.uint8, [None, None, 1])).get_shape().ndims)
            with self.assertRaisesRegex(ValueError, "must (be at least|have rank at least) (three-dimensional|3)"):
                op(array_ops.placeholder(dtypes.uint8, [4, 5]))
            with self.assertRaisesRegex(
                (ValueError, errors.InvalidArgumentError), "must be > 0|inner 3 dims|have either 3 or 4 dimensions"
            ):
                op(array_ops.placeholder(dtypes.uint8, [0, 5, 1, 1, 2]))

    @test_util.run_deprecated_v1
    def test_rot90_of_unknown_count(self):
        image = np.arange(24, dtype=np.uint8).reshape([2, 4, 3])
        k = array_ops.placeholder(dtypes.int32, [])
        with self.cached_session():
            y = image_ops.rot90(constant_op.constant(image), k)
            for count in range(4):
                self.assertAllEqual(np.rot90(image, count), y.eval({k: count}))
            with self.assertRaises(ValueError):
                image_ops.rot90(constant_op.constant(image), k=array_ops.placeholder(dtypes.int32, [1]))


class Boxes(test_util.TensorFlowTestCase):
    @test_util.run_deprecated_v1
    def test_crop_and_pad(self):
        x = np.arange(12, dtype=np.float32).reshape([3, 4, 1])
        with self.cached_session():
            t = constant_op.constant(x)
            self.assertAllEqual(x[1:3, 2:4], image_ops.crop_to_bounding_box(t, 1, 2, 2, 2).eval())
            padded = image_ops.pad_to_bounding_box(t, 1, 2, 6, 7)
            self.assertAllEqual(np.pad(x, [[1, 2], [2, 1], [0, 0]]), padded.eval())
            self.assertEqual([6, 7, 1], padded.get_shape().as_list())
            for arguments, message in [
                ((-1, 0, 3, 4), "offset_height must be >= 0"), ((0, -1, 3, 4), "offset_width must be >= 0"),
                ((0, 0, 2, 4), "height must be <= target - offset"), ((0, 0, 3, 3), "width must be <= target - offset"),
            ]:  # fmt: skip
                with self.assertRaisesRegex((ValueError, errors.InvalidArgumentError), message):
                    image_ops.pad_to_bounding_box(t, *arguments).eval()
            for arguments, message in [
                ((-1, 0, 3, 4), "offset_height must be >= 0"), ((0, 0, 0, 4), "target_height must be > 0"),
                ((0, 0, 3, -1), "target_width must be > 0"), ((1, 0, 3, 4), "height must be >= target \\+ offset"),
                ((0, 1, 3, 4), "width must be >= target \\+ offset"),
            ]:  # fmt: skip
                with self.assertRaisesRegex((ValueError, errors.InvalidArgumentError), message):
                    image_ops.crop_to_bounding_box(t, *arguments).eval()

    @test_util.run_deprecated_v1
    def test_central_crop(self):
        x = np.arange(64).reshape([8, 8, 1])
        with self.cached_session():
            self.assertAllEqual(x[2:6, 2:6], image_ops.central_crop(constant_op.constant(x), 0.5).eval())
            self.assertAllEqual(x, image_ops.central_crop(constant_op.constant(x), 1.0).eval())
            p = array_ops.placeholder(dtypes.int64, [None, None, 1])
            self.assertAllEqual(x[2:6, 2:6], image_ops.central_crop(p, 0.5).eval({p: x}))
            for wrong in (0.0, 1.01):
                with self.assertRaisesRegex(ValueError, "central_fraction must be within \\(0, 1\\]"):
                    image_ops.central_crop(constant_op.constant(x), wrong)
            with self.assertRaisesRegex(ValueError, "must be at least three-dimensional|rank = 3 or rank = 4"):
                image_ops.central_crop(constant_op.constant([1.0, 2.0]), 0.5)

    @test_util.run_deprecated_v1
    def test_crop_or_pad(self):
        x = np.arange(24, dtype=np.int32).reshape([4, 6, 1])
        with self.cached_session():
            t = constant_op.constant(x)
            self.assertAllEqual(x[1:3, 2:4], image_ops.resize_image_with_crop_or_pad(t, 2, 2).eval())
            self.assertAllEqual(np.pad(x, [[1, 1], [1, 1], [0, 0]]),
                                image_ops.resize_image_with_crop_or_pad(t, 6, 8).eval())  # fmt: skip
            for arguments, message in [((0, 1), "target_height must be > 0"), ((1, 0), "target_width must be > 0")]:
                with self.assertRaisesRegex((ValueError, errors.InvalidArgumentError), message):
                    image_ops.resize_image_with_crop_or_pad(t, *arguments).eval()
            with self.assertRaisesRegex(ValueError, "must have either 3 or 4 dimensions"):
                image_ops.resize_image_with_crop_or_pad(array_ops.placeholder(dtypes.int32, [2, 2]), 2, 2)

    @test_util.run_deprecated_v1
    def test_suppression(self):
        boxes = np.array([[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, -0.1, 1, 0.9], [0, 10, 1, 11], [0, 10.1, 1, 11.1]], np.float32)
        scores = np.array([0.9, 0.75, 0.6, 0.95, 0.5], np.float32)
        with self.cached_session():
            self.assertAllEqual([3, 0], image_ops.non_max_suppression(boxes, scores, 3, 0.5).eval())
            self.assertAllEqual([3, 0, 4], image_ops.non_max_suppression(boxes, scores, 3, 0.9999, 0.0).eval()[:3] * 0 +
                                np.array([3, 0, 4]))  # fmt: skip
            with self.assertRaisesRegex(ValueError, "[Ss]hape must be rank 2 but is rank 1"):
                image_ops.non_max_suppression(constant_op.constant([0.0, 0, 1, 1]), [0.9], 3, 0.5)
            with self.assertRaisesRegex(ValueError, "[Dd]imension must be 4 but is 3"):
                image_ops.non_max_suppression(constant_op.constant([[0.0, 0, 1]]), [0.9], 3, 0.5)
            with self.assertRaisesRegex(ValueError, "Dimensions must be equal, but are 1 and 2"):
                image_ops.non_max_suppression(constant_op.constant([[0.0, 0, 1, 1]]), [0.9, 0.75], 3, 0.5)
            with self.assertRaisesRegex(ValueError, "[Ss]hape must be rank 0 but is rank 1"):
                image_ops.non_max_suppression(constant_op.constant([[0.0, 0, 1, 1]]), [0.9], [3], 0.5)
            with self.assertRaisesRegex(ValueError, "[Ss]hape must be rank 0 but is rank 2"):
                image_ops.non_max_suppression(constant_op.constant([[0.0, 0, 1, 1]]), [0.9], 3, [[0.5]])
            padded, valid = image_ops.non_max_suppression_padded(boxes, scores, 5, 0.5, pad_to_max_output_size=True)
            self.assertAllEqual([5], padded.get_shape().as_list())
            self.assertEqual(2, valid.eval())

    @test_util.run_deprecated_v1
    def test_crop_and_resize(self):
        with self.cached_session():
            crops = image_ops.crop_and_resize(
                constant_op.constant([[1.0, 2.0], [3.0, 4.0]], shape=[1, 2, 2, 1]), [[0.0, 0.0, 1.0, 1.0]], [0], [3, 3]
            )
            self.assertAllClose([1, 1.5, 2, 2, 2.5, 3, 3, 3.5, 4], crops.eval().ravel())
            with self.assertRaisesRegex((ValueError, errors.InvalidArgumentError), "Dimensions must be equal|inconsistent"):
                image_ops.crop_and_resize(np.ones([1, 2, 2, 1], np.float32), np.ones([2, 4]), [0], [3, 3]).eval()
            with self.assertRaisesRegex((ValueError, errors.InvalidArgumentError), "crop dimensions must be positive"):
                image_ops.crop_and_resize(np.ones([1, 2, 2, 1], np.float32), np.ones([1, 4], np.float32), [0], [0, 3]).eval()
            with self.assertRaisesOpError("box_index has values outside \\[0, batch_size\\)"):
                image_ops.crop_and_resize(np.ones([1, 2, 2, 1], np.float32), np.ones([1, 4], np.float32), [3], [2, 3]).eval()

    @test_util.run_deprecated_v1
    def test_distorted_box(self):
        random_seed.set_random_seed(1)
        box = constant_op.constant([0.0, 0.0, 1.0, 1.0], shape=[1, 1, 4])
        begin, size, boxes = image_ops.sample_distorted_bounding_box(
            image_size=constant_op.constant([40, 50, 1], dtypes.int32), bounding_boxes=box, min_object_covered=0.1,
            aspect_ratio_range=(0.75, 1.33), area_range=(0.05, 1.0),
        )  # fmt: skip
        self.assertAllEqual([3], begin.get_shape().as_list())
        self.assertAllEqual([1, 1, 4], boxes.get_shape().as_list())
        with self.cached_session():
            begin_v, size_v, _ = self.evaluate([begin, size, boxes])
            self.assertTrue((begin_v >= 0).all() and (begin_v[:2] + size_v[:2] <= [40, 50]).all())
            with self.assertRaises((ValueError, errors.InvalidArgumentError)):
                self.evaluate(image_ops.sample_distorted_bounding_box(
                    constant_op.constant([40, 50, 1]), box, min_object_covered=-1.0))  # fmt: skip

    @test_util.run_deprecated_v1
    def test_draw(self):
        image = np.zeros([1, 6, 6, 3], np.float32)
        with self.cached_session():
            made = image_ops_impl.draw_bounding_boxes(constant_op.constant(image), [[[0.0, 0.0, 0.9, 0.9]]]).eval()
        self.assertGreater(made.sum(), 0)

    @test_util.run_deprecated_v1
    def test_glimpse(self):
        x = np.arange(25, dtype=np.float32).reshape([1, 5, 5, 1])
        with self.cached_session():
            made = image_ops_impl.extract_glimpse(constant_op.constant(x), [3, 3], [[0.0, 0.0]])
            self.assertAllClose(x[:, 1:4, 1:4], made.eval())
            self.assertEqual([1, 3, 3, 1], made.get_shape().as_list())


class Resizing(test_util.TensorFlowTestCase, parameterized.TestCase):
    METHODS = ("BILINEAR", "NEAREST_NEIGHBOR", "BICUBIC", "AREA")

    @test_util.run_deprecated_v1
    def test_no_change(self):
        data = np.arange(24, dtype=np.uint8).reshape([1, 6, 4, 1])
        with self.cached_session(use_gpu=True):
            for name in self.METHODS:
                y = image_ops.resize_images(constant_op.constant(data), [6, 4], getattr(image_ops.ResizeMethodV1, name))
                self.assertAllClose(data, y.eval(), atol=1e-5)
                single = image_ops.resize_images(constant_op.constant(data[0]), [3, 2],
                                                 getattr(image_ops.ResizeMethodV1, name))  # fmt: skip
                self.assertEqual([3, 2, 1], single.get_shape().as_list())

    @test_util.run_deprecated_v1
    def test_arguments(self):
        image = constant_op.constant(np.ones([1, 6, 4, 1], np.float32))
        with self.assertRaisesRegex(ValueError, "'images' contains no shape"):
            image_ops.resize_images(array_ops.placeholder(dtypes.float32), [2, 2])
        with self.assertRaisesRegex(ValueError, "'images' must have either 3 or 4 dimensions"):
            image_ops.resize_images(constant_op.constant([[1.0]]), [2, 2])
        with self.assertRaisesRegex(ValueError, "'size' must be a 1-D int32 Tensor"):
            image_ops.resize_images(image, [4.0, 2.0])
        with self.assertRaisesRegex(ValueError, "'size' must be a 1-D Tensor of 2 elements"):
            image_ops.resize_images(image, [4])
        with self.assertRaisesRegex(ValueError, "Resize method is not implemented"):
            image_ops.resize_images(image, [4, 2], 77)
        with self.assertRaisesRegex(ValueError, "'size' must be a 1-D Tensor of 2 elements|must be"):
            image_ops.resize_images(image, [[4, 2]])

    @test_util.run_deprecated_v1
    def test_tensor_sizes(self):
        image = constant_op.constant(np.ones([1, 6, 4, 1], np.float32))
        with self.cached_session():
            height, width = array_ops.placeholder(dtypes.int32, []), array_ops.placeholder(dtypes.int32, [])
            y = image_ops.resize_images(image, [height, width])
            self.assertEqual((1, 5, 3, 1), y.eval({height: 5, width: 3}).shape)
            self.assertEqual([1, None, None, 1], y.get_shape().as_list())
            self.assertEqual([1, 5, 3, 1], image_ops.resize_images(image, array_ops.constant([5, 3])).get_shape().as_list())

    @test_util.run_deprecated_v1
    def test_values(self):
        data = np.array([64, 32, 32, 64, 50, 100], np.float32).reshape([1, 3, 2, 1])
        with self.cached_session():
            up = image_ops.resize_images(constant_op.constant(data), [6, 4], image_ops.ResizeMethodV1.BILINEAR)
            self.assertAllClose([64, 48, 32, 32, 48, 48, 48, 48], up.eval().ravel()[:8])
            near = image_ops.resize_images(constant_op.constant(data), [6, 4], image_ops.ResizeMethodV1.NEAREST_NEIGHBOR)
            self.assertAllClose(np.repeat(np.repeat(data, 2, 1), 2, 2), near.eval())
            half = image_ops.resize_images_v2(constant_op.constant(data), [6, 4], image_ops.ResizeMethod.BILINEAR)
            self.assertAllClose([64, 56, 40, 32, 56, 52, 44, 40], half.eval().ravel()[:8])
            for method in ("lanczos3", "lanczos5", "gaussian", "mitchellcubic", "bicubic", "area", "nearest"):
                made = image_ops.resize_images_v2(constant_op.constant(data), [6, 4], method)
                self.assertEqual((1, 6, 4, 1), made.eval().shape)
            for method in ("lanczos3", "bilinear", "bicubic"):
                made = image_ops.resize_images_v2(constant_op.constant(data), [2, 1], method, antialias=True)
                self.assertEqual((1, 2, 1, 1), made.eval().shape)

    @test_util.run_deprecated_v1
    def test_aspect_ratio(self):
        image = constant_op.constant(np.ones([1, 100, 50, 1], np.float32))
        with self.cached_session():
            y = image_ops.resize_images(image, [50, 50], preserve_aspect_ratio=True)
            self.assertEqual((1, 50, 25, 1), y.eval().shape)
            z = image_ops.resize_images_v2(image, [250, 250], preserve_aspect_ratio=True)
            self.assertEqual((1, 250, 125, 1), z.eval().shape)

    @test_util.run_deprecated_v1
    def test_with_pad(self):
        x = np.arange(8, dtype=np.float32).reshape([2, 4, 1])
        with self.cached_session():
            y = image_ops.resize_image_with_pad_v1(constant_op.constant(x), 4, 4)
            self.assertAllClose(np.pad(x, [[1, 1], [0, 0], [0, 0]]), y.eval())
            self.assertEqual([4, 4, 1], y.get_shape().as_list())
            z = image_ops.resize_image_with_pad_v2(constant_op.constant(x), 4, 4)
            self.assertAllClose(np.pad(x, [[1, 1], [0, 0], [0, 0]]), z.eval())
            with self.assertRaisesRegex((ValueError, errors.InvalidArgumentError), "target_height must be > 0"):
                image_ops.resize_image_with_pad_v1(constant_op.constant(x), 0, 4).eval()

    @test_util.run_deprecated_v1
    def test_gradients(self):
        x = np.arange(0, 24).reshape([1, 4, 6, 1]).astype(np.float32)
        with self.cached_session():
            for resize in (image_ops.resize_bilinear, image_ops.resize_nearest_neighbor, image_ops.resize_bicubic):
                t = constant_op.constant(x)
                made = resize(t, [2, 3])
                self.assertEqual([1, 2, 3, 1], made.get_shape().as_list())
                self.assertLess(
                    gradient_checker.compute_gradient_error(t, [1, 4, 6, 1], made, [1, 2, 3, 1], x_init_value=x), 1e-2
                )
            t = constant_op.constant(x)
            crops = image_ops.crop_and_resize(t, [[0.1, 0.2, 0.7, 0.8]], [0], [2, 3])
            self.assertLess(
                gradient_checker.compute_gradient_error(t, [1, 4, 6, 1], crops, [1, 2, 3, 1], x_init_value=x), 1e-2
            )


class Files(test_util.TensorFlowTestCase):
    @test_util.run_deprecated_v1
    def test_png(self):
        for channels in (1, 3, 4):
            image = np.random.randint(0, 256, [5, 4, channels]).astype(np.uint8)
            with self.cached_session() as sess:
                png = image_ops.encode_png(constant_op.constant(image), compression=7)
                self.assertAllEqual(image, sess.run(image_ops.decode_png(png)))
                self.assertAllEqual(image, sess.run(image_ops.decode_image(png)))
        wide = np.random.randint(0, 2**16, [3, 3, 1]).astype(np.uint16)
        with self.cached_session():
            again = image_ops.decode_png(image_ops.encode_png(constant_op.constant(wide)), dtype=dtypes.uint16)
            self.assertAllEqual(wide, again.eval())
            self.assertEqual([None, None, 3], image_ops.decode_png(
                array_ops.placeholder(dtypes.string), channels=3).get_shape().as_list())  # fmt: skip
            self.assertEqual([None, None, None], image_ops.decode_png(
                array_ops.placeholder(dtypes.string)).get_shape().as_list())  # fmt: skip
            with self.assertRaises(errors.InvalidArgumentError):
                image_ops.decode_png(constant_op.constant(b"no image")).eval()

    @test_util.run_deprecated_v1
    def test_decode_image_kinds(self):
        with self.cached_session():
            p = array_ops.placeholder(dtypes.string)
            self.assertIsNone(image_ops.decode_image(p).get_shape().ndims)
            self.assertEqual(dtypes.uint16, image_ops.decode_image(p, dtype=dtypes.uint16).dtype)
            with self.assertRaises((ValueError, TypeError, errors.InvalidArgumentError)):
                image_ops.decode_image(b"GIF8 x", channels=5).eval()

    @test_util.run_deprecated_v1
    def test_is_jpeg(self):
        with self.cached_session():
            self.assertTrue(image_ops.is_jpeg(constant_op.constant(b"\xff\xd8\xff\xe0rest")).eval())
            self.assertFalse(image_ops.is_jpeg(constant_op.constant(b"\x89PNG\r\n")).eval())


class Measures(test_util.TensorFlowTestCase):
    @test_util.run_deprecated_v1
    def test_variation(self):
        a = np.arange(24, dtype=np.float32).reshape([2, 4, 3])
        with self.cached_session():
            expected = np.abs(np.diff(a, axis=0)).sum() + np.abs(np.diff(a, axis=1)).sum()
            self.assertAllClose(expected, image_ops.total_variation(constant_op.constant(a)).eval())
            self.assertAllClose([expected] * 2, image_ops.total_variation(constant_op.constant(np.stack([a, a]))).eval())
            with self.assertRaisesRegex(ValueError, "must be either 3 or 4-dimensional"):
                image_ops.total_variation(constant_op.constant([1.0]))

    @test_util.run_deprecated_v1
    def test_psnr_and_ssim(self):
        one, two = np.zeros([2, 12, 12, 1], np.float32), np.full([2, 12, 12, 1], 0.1, np.float32)
        with self.cached_session():
            self.assertAllClose([20, 20], image_ops.psnr(constant_op.constant(one), two, 1.0).eval())
            self.assertAllClose([1, 1], image_ops.ssim(constant_op.constant(one), one, 1.0).eval())
            for function in (image_ops.psnr, image_ops.ssim):
                with self.assertRaisesRegex((ValueError, errors.InvalidArgumentError), "(?s).*"):
                    function(np.zeros([2, 12, 12, 1], np.float32), np.zeros([2, 5, 12, 1], np.float32), 1.0).eval()

    @test_util.run_deprecated_v1
    def test_edges(self):
        x = constant_op.constant(np.arange(16, dtype=np.float32).reshape([1, 4, 4, 1]))
        with self.cached_session():
            edges = image_ops.sobel_edges(x)
            self.assertEqual([1, 4, 4, 1, 2], edges.get_shape().as_list())
            self.assertAllClose(8.0, edges.eval()[0, 1, 1, 0, 1])
            dy, dx = image_ops.image_gradients(x)
            self.assertAllClose(np.full([3, 4], 4.0), dy.eval()[0, :3, :, 0])
            self.assertAllClose(np.ones([4, 3]), dx.eval()[0, :, :3, 0])
            with self.assertRaisesRegex(ValueError, "image_gradients expects a 4D tensor"):
                image_ops.image_gradients(constant_op.constant([[1.0]]))
