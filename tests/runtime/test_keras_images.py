"""tf.keras for images: ImageDataGenerator, its order and changes, and ConvLSTM2D."""

from __future__ import annotations

import numpy as np
import pytest

import dtf as tf
from dtf.keras.preprocessing import affine, image

X = np.random.RandomState(1).randint(0, 255, (10, 6, 5, 3)).astype(np.float32)
Y = np.arange(10)
RAMP = np.arange(12, dtype=np.float32).reshape(3, 4, 1)


def first(x, **settings):
    np.random.seed(3)
    return next(image.ImageDataGenerator(**settings).flow(x, batch_size=len(x), shuffle=False, seed=5))


def test_batches_come_in_a_seeded_order_and_begin_again():
    batches = image.ImageDataGenerator().flow(X, Y, batch_size=4, seed=5)
    labels = [next(batches)[1].tolist() for _ in range(4)]
    assert labels == [[9, 5, 2, 4], [7, 1, 0, 8], [6, 3], [8, 6, 9, 0]]  # as Keras's
    assert len(batches) == 3 and batches[2][0].shape == (2, 6, 5, 3)
    np.testing.assert_array_equal(next(image.ImageDataGenerator().flow(X, shuffle=False, batch_size=10)), X)


def test_images_are_moved_with_their_edges_filled():
    moved = affine.transformed(RAMP, tx=1)[..., 0]
    assert moved.tolist() == [[1, 2, 3, 3], [5, 6, 7, 7], [9, 10, 11, 11]]
    assert affine.transformed(RAMP, ty=-1, fill_mode="constant", cval=-1)[..., 0][0].tolist() == [-1] * 4
    assert affine.transformed(RAMP, tx=1, fill_mode="wrap")[..., 0][0].tolist() == [1, 2, 0, 1]
    assert affine.transformed(RAMP, tx=2, fill_mode="reflect")[..., 0][0].tolist() == [2, 3, 3, 2]
    square = RAMP[:, :3]
    turned = affine.transformed(square, theta=90)[..., 0]
    np.testing.assert_allclose(turned, np.rot90(square[..., 0]), atol=1e-5)
    with pytest.raises(ValueError, match="fill_mode must be"):
        affine.transformed(RAMP, tx=1, fill_mode="mirror")


def test_values_are_rescaled_and_normalized():
    assert first(X, rescale=1 / 255.0).max() <= 1
    each = first(X, samplewise_std_normalization=True)
    np.testing.assert_allclose(each.reshape(10, -1).std(1), 1, rtol=1e-3)
    generator = image.ImageDataGenerator(featurewise_std_normalization=True)
    generator.fit(X)
    whole = next(generator.flow(X, batch_size=10))
    np.testing.assert_allclose(whole.mean((0, 1, 2)), 0, atol=1e-4)
    np.testing.assert_allclose(whole.std((0, 1, 2)), 1, rtol=1e-3)
    white = image.ImageDataGenerator(zca_whitening=True)
    white.fit(X)
    assert np.isfinite(next(white.flow(X))).all()


@pytest.mark.parametrize(
    "settings",
    [
        {"rotation_range": 40}, {"width_shift_range": 0.3, "height_shift_range": 2}, {"zoom_range": [0.5, 1.5]},
        {"shear_range": 30, "fill_mode": "wrap"}, {"channel_shift_range": 20.0}, {"brightness_range": (0.5, 1.5)},
        {"horizontal_flip": True, "vertical_flip": True}, {"width_shift_range": [-2, 1]},
    ],
)  # fmt: skip
def test_random_changes_differ_by_image_and_repeat_with_the_seed(settings):
    changed = first(X, **settings)
    assert changed.shape == X.shape and (changed != X).any() and np.isfinite(changed).all()
    np.testing.assert_array_equal(changed, first(X, **settings))


def test_a_part_of_the_data_is_for_validation():
    generator = image.ImageDataGenerator(validation_split=0.3)
    parts = {name: generator.flow(X, Y, shuffle=False, subset=name).n for name in ("training", "validation")}
    assert parts == {"training": 7, "validation": 3}
    with pytest.raises(ValueError, match="Invalid subset name"):
        generator.flow(X, Y, subset="test")
    with pytest.raises(ValueError, match="same length"):
        generator.flow(X, Y[1:])
    with pytest.raises(ValueError, match="rank 4"):
        generator.flow(X[0])
    with pytest.raises(ValueError, match="zoom_range"):
        image.ImageDataGenerator(zoom_range=[1, 2, 3])


def test_images_of_folders_are_classes(tmp_path, capsys):
    pytest.importorskip("PIL", reason="pillow is not installed")
    for name in ("cats", "dogs"):
        (tmp_path / name).mkdir()
        for number in range(3):
            image.save_img(str(tmp_path / name / f"{number}.png"), X[number])
    flow = image.ImageDataGenerator(rescale=1 / 255.0).flow_from_directory(
        str(tmp_path), target_size=(8, 7), batch_size=4, class_mode="categorical", seed=1
    )
    assert "Found 6 images belonging to 2 classes." in capsys.readouterr().out
    images, labels = next(flow)
    assert images.shape == (4, 8, 7, 3) and labels.shape == (4, 2) and flow.class_indices == {"cats": 0, "dogs": 1}
    gray = image.ImageDataGenerator().flow_from_directory(str(tmp_path), color_mode="grayscale", class_mode="binary")
    images, labels = next(gray)
    assert images.shape == (6, 256, 256, 1) and set(labels) == {0, 1}


def test_a_folder_without_images_gives_batches_without_images(tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    batches = image.ImageDataGenerator().flow_from_directory(str(tmp_path), target_size=(4, 4), class_mode=None)
    assert len(batches) == 0 and len(next(batches)) == 0
    assert "Found 0 images belonging to 1 classes." in capsys.readouterr().out


def test_a_model_trains_on_a_generator():
    with tf.Graph().as_default():
        flatten = tf.keras.layers.Flatten(input_shape=(6, 5, 3))
        model = tf.keras.models.Sequential([flatten, tf.keras.layers.Dense(1, kernel_initializer="zeros")])
        model.compile("sgd", "mse")
        batches = image.ImageDataGenerator(rescale=1 / 255.0).flow(X, Y, batch_size=5)
        losses = model.fit_generator(batches, steps_per_epoch=2, epochs=2, verbose=0).history["loss"]
        assert losses[1] < losses[0]


def test_an_lstm_of_one_pixel_is_an_lstm():
    x = np.random.RandomState(0).rand(2, 4, 1, 1, 3).astype(np.float32)
    with tf.Graph().as_default():
        layers = tf.keras.layers
        wide = tf.keras.models.Sequential([layers.ConvLSTM2D(5, 1, return_sequences=True, input_shape=(4, 1, 1, 3))])
        flat = tf.keras.models.Sequential([layers.LSTM(5, return_sequences=True, input_shape=(4, 3))])
        kernel, recurrent, bias = flat.get_weights()
        wide.set_weights([kernel[None, None], recurrent[None, None], bias])
        np.testing.assert_allclose(wide.predict(x)[:, :, 0, 0], flat.predict(x[:, :, 0, 0]), rtol=1e-4, atol=1e-6)
        assert bias[5:10].tolist() == [1] * 5
        with pytest.raises(ValueError, match="channels_last only"):
            layers.ConvLSTM2D(5, 1, data_format="channels_first")
