"""tf.keras.preprocessing.image: batches of images with random changes, from arrays or from folders.

    generator = ImageDataGenerator(rotation_range=20, horizontal_flip=True, rescale=1.0 / 255)
    model.fit_generator(generator.flow(x, y, batch_size=32), steps_per_epoch=len(x) // 32, epochs=2)

Owns the order of batches and the random changes, drawn from numpy's global generator as Keras draws them. The geometry
is `affine`'s. Files of images need pillow.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/keras/preprocessing/image/ImageDataGenerator
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dtf.keras import utils
from dtf.keras.preprocessing.affine import transformed
from dtf.keras.preprocessing.image_files import array_to_img, img_to_array, load_img, save_img
from dtf.wire import filesystems, forks

__all__ = [
    "DirectoryIterator", "ImageDataGenerator", "Iterator", "NumpyArrayIterator", "array_to_img", "img_to_array",
    "load_img", "save_img",
]  # fmt: skip

_EXTENSIONS = (".png", ".jpg", ".jpeg", ".bmp", ".ppm", ".tif", ".tiff", ".gif")


class ImageDataGenerator:
    """Batches of images [rows, columns, channels] with random changes.

    Args:
      featurewise_center, featurewise_std_normalization: whether the mean and deviation of the data set, which `fit`
        finds, are taken out.
      samplewise_center, samplewise_std_normalization: the same for each image by itself.
      zca_whitening: whether channels and pixels are decorrelated, after `fit`; `zca_epsilon` is its least variance.
      rotation_range: degrees.
      width_shift_range, height_shift_range: parts of the size, pixels from 1 on, or a list of shifts to choose from.
      brightness_range: (least, greatest) factor.
      shear_range: degrees.
      zoom_range: a part z for [1 - z, 1 + z], or the two factors.
      channel_shift_range: added to each channel, up to this.
      fill_mode, cval: for points outside: "nearest", "reflect", "wrap", or "constant" with the value.
      horizontal_flip, vertical_flip: whether every second image, by chance, is flipped.
      rescale: a factor of all values.
      preprocessing_function: called with each image, before `rescale`.
      data_format: must be "channels_last" or None.
      validation_split: the part for `subset="validation"`.
      interpolation_order: 0: the nearest pixel; else between four pixels.
      dtype: of the batches; float32 if None.

    Raises:
      ValueError: a range of another kind, or a part that is not between 0 and 1.
    """

    def __init__(
        self, featurewise_center: bool = False, samplewise_center: bool = False,
        featurewise_std_normalization: bool = False, samplewise_std_normalization: bool = False,
        zca_whitening: bool = False, zca_epsilon: float = 1e-6, rotation_range: float = 0,
        width_shift_range: Any = 0.0, height_shift_range: Any = 0.0, brightness_range: Any = None,
        shear_range: float = 0.0, zoom_range: Any = 0.0, channel_shift_range: float = 0.0,
        fill_mode: str = "nearest", cval: float = 0.0, horizontal_flip: bool = False, vertical_flip: bool = False,
        rescale: float | None = None, preprocessing_function: Callable[[Any], Any] | None = None,
        data_format: str | None = None, validation_split: float = 0.0, interpolation_order: int = 1,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        if data_format == "channels_first":
            raise ValueError("ImageDataGenerator is supported for data_format channels_last only")
        if validation_split and not 0 < validation_split < 1:
            raise ValueError(f"`validation_split` must be strictly between 0 and 1.  Received arg: {validation_split}")
        if isinstance(zoom_range, int | float):
            zoom_range = [1 - zoom_range, 1 + zoom_range]
        if len(zoom_range) != 2:
            raise ValueError(
                f"`zoom_range` should be a float or a tuple or list of two floats. Received: {zoom_range}"
            )
        if brightness_range is not None and len(brightness_range) != 2:
            raise ValueError(
                f"`brightness_range should be tuple or list of two floats. Received: {brightness_range}"
            )
        self.featurewise_center = featurewise_center or featurewise_std_normalization or zca_whitening
        self.samplewise_center = samplewise_center or samplewise_std_normalization
        self.featurewise_std_normalization = featurewise_std_normalization
        self.samplewise_std_normalization = samplewise_std_normalization
        self.zca_whitening, self.zca_epsilon = zca_whitening, zca_epsilon
        self.rotation_range, self.shear_range, self.zoom_range = rotation_range, shear_range, zoom_range
        self.width_shift_range, self.height_shift_range = width_shift_range, height_shift_range
        self.brightness_range, self.channel_shift_range = brightness_range, channel_shift_range
        self.fill_mode, self.cval, self.interpolation_order = fill_mode, cval, interpolation_order
        self.horizontal_flip, self.vertical_flip = horizontal_flip, vertical_flip
        self.rescale, self.preprocessing_function = rescale, preprocessing_function
        self.data_format, self.dtype = "channels_last", dtype or "float32"
        self._validation_split = validation_split
        self.mean: Any = None
        self.std: Any = None
        self.principal_components: Any = None

    def flow(
        self, x: Any, y: Any = None, batch_size: int = 32, shuffle: bool = True, sample_weight: Any = None,
        seed: int | None = None, save_to_dir: str | None = None, save_prefix: str = "", save_format: str = "png",
        subset: str | None = None,
    ) -> NumpyArrayIterator:  # fmt: skip
        """Endless batches of images [n, rows, columns, channels], with labels and weights if they are given."""
        return NumpyArrayIterator(
            x, y, self, batch_size, shuffle, sample_weight, seed, save_to_dir=save_to_dir, save_prefix=save_prefix,
            save_format=save_format, subset=subset,
        )  # fmt: skip

    def flow_from_directory(
        self, directory: str, target_size: tuple[int, int] = (256, 256), color_mode: str = "rgb",
        classes: Sequence[str] | None = None, class_mode: str | None = "categorical", batch_size: int = 32,
        shuffle: bool = True, seed: int | None = None, save_to_dir: str | None = None, save_prefix: str = "",
        save_format: str = "png", follow_links: bool = False, subset: str | None = None,
        interpolation: str = "nearest",
    ) -> DirectoryIterator:  # fmt: skip
        """Endless batches of the images of a folder, with a folder of its own for each class."""
        return DirectoryIterator(
            directory, self, target_size, color_mode, classes, class_mode, batch_size, shuffle, seed,
            save_to_dir=save_to_dir, save_prefix=save_prefix, save_format=save_format, subset=subset,
            interpolation=interpolation,
        )  # fmt: skip

    def fit(self, x: Any, augment: bool = False, rounds: int = 1, seed: int | None = None) -> None:
        """Finds the mean, the deviation and the whitening of a data set [n, rows, columns, channels]."""
        x = np.array(x, dtype=self.dtype)
        if x.ndim != 4:
            raise ValueError(f"Input to `.fit()` should have rank 4. Got array with shape: {x.shape}")
        if seed is not None:
            np.random.seed(seed)
        if augment:
            x = np.stack([self.random_transform(image) for _ in range(rounds) for image in x]).astype(self.dtype)
        if self.featurewise_center:
            self.mean = np.mean(x, axis=(0, 1, 2)).reshape(1, 1, -1)
            x -= self.mean
        if self.featurewise_std_normalization:
            self.std = np.std(x, axis=(0, 1, 2)).reshape(1, 1, -1)
            x /= self.std + 1e-6
        if self.zca_whitening:
            flat = x.reshape(len(x), -1)
            u, s, _ = np.linalg.svd(flat.T @ flat / len(flat))
            self.principal_components = (u / np.sqrt(s + self.zca_epsilon)) @ u.T

    def standardize(self, x: Any) -> Any:
        """An image with the settled changes: the function, the factor, and normalization."""
        if self.preprocessing_function is not None:
            x = self.preprocessing_function(x)
        if self.rescale:
            x = x * self.rescale
        if self.samplewise_center:
            x = x - np.mean(x, keepdims=True)
        if self.samplewise_std_normalization:
            x = x / (np.std(x, keepdims=True) + 1e-6)
        if self.featurewise_center and self.mean is not None:
            x = x - self.mean
        if self.featurewise_std_normalization and self.std is not None:
            x = x / (self.std + 1e-6)
        if self.zca_whitening and self.principal_components is not None:
            x = (x.reshape(1, -1) @ self.principal_components).reshape(x.shape)
        return x

    def get_random_transform(self, img_shape: Sequence[int], seed: int | None = None) -> dict[str, Any]:
        """One set of random changes for images of a shape, as `apply_transform` takes it."""
        if seed is not None:
            np.random.seed(seed)
        theta = np.random.uniform(-self.rotation_range, self.rotation_range) if self.rotation_range else 0
        tx = _shift(self.height_shift_range, img_shape[0])
        ty = _shift(self.width_shift_range, img_shape[1])
        shear = np.random.uniform(-self.shear_range, self.shear_range) if self.shear_range else 0
        zooms = tuple(self.zoom_range) != (1, 1)
        zx, zy = np.random.uniform(self.zoom_range[0], self.zoom_range[1], 2) if zooms else (1, 1)
        flip_horizontal = (np.random.random() < 0.5) * self.horizontal_flip
        flip_vertical = (np.random.random() < 0.5) * self.vertical_flip
        channel = None
        if self.channel_shift_range != 0:
            channel = np.random.uniform(-self.channel_shift_range, self.channel_shift_range)
        brightness = None
        if self.brightness_range is not None:
            brightness = np.random.uniform(self.brightness_range[0], self.brightness_range[1])
        return {
            "theta": theta, "tx": tx, "ty": ty, "shear": shear, "zx": zx, "zy": zy,
            "flip_horizontal": flip_horizontal, "flip_vertical": flip_vertical, "channel_shift_intensity": channel,
            "brightness": brightness,
        }  # fmt: skip

    def apply_transform(self, x: Any, transform_parameters: Mapping[str, Any]) -> Any:
        """An image with the given changes, all with defaults: see `get_random_transform`."""
        get = transform_parameters.get
        x = transformed(
            x, get("theta", 0), get("tx", 0), get("ty", 0), get("shear", 0), get("zx", 1), get("zy", 1),
            self.fill_mode, self.cval, self.interpolation_order,
        )  # fmt: skip
        if get("channel_shift_intensity") is not None:
            x = np.clip(x + transform_parameters["channel_shift_intensity"], np.min(x), np.max(x))
        if get("flip_horizontal", False):
            x = x[:, ::-1]
        if get("flip_vertical", False):
            x = x[::-1]
        if get("brightness") is not None:
            x = _brightened(x, transform_parameters["brightness"])
        return x

    def random_transform(self, x: Any, seed: int | None = None) -> Any:
        """An image with random changes."""
        return self.apply_transform(x, self.get_random_transform(x.shape, seed))


class Iterator(utils.Sequence):
    """Batches by number, or one after another without an end.

    Args:
      n: the number of examples.
      seed: of the order; each batch then has a seed of its own.
    """

    def __init__(self, n: int, batch_size: int, shuffle: bool, seed: int | None) -> None:
        self.n, self.batch_size, self.shuffle, self.seed = n, batch_size, shuffle, seed
        self.batch_index = self.total_batches_seen = 0
        self.lock = threading.Lock()
        forks.renew_in_child(self, "lock")
        self.index_array: Any = None

    def __len__(self) -> int:
        return (self.n + self.batch_size - 1) // self.batch_size

    def __getitem__(self, index: int) -> Any:
        if index >= len(self):
            raise ValueError(f"Asked to retrieve element {index}, but the Sequence has length {len(self)}")
        if self.seed is not None:
            np.random.seed(self.seed + self.total_batches_seen)
        self.total_batches_seen += 1
        if self.index_array is None:
            self._set_order()
        return self._get_batches_of_transformed_samples(
            self.index_array[self.batch_size * index : self.batch_size * (index + 1)]
        )

    def __iter__(self) -> Iterator:
        return self

    def __next__(self) -> Any:
        with self.lock:
            if self.seed is not None:
                np.random.seed(self.seed + self.total_batches_seen)
            if self.batch_index == 0:
                self._set_order()
            start = self.batch_index * self.batch_size % max(1, self.n)
            self.batch_index = self.batch_index + 1 if self.n > start + self.batch_size else 0
            self.total_batches_seen += 1
            chosen = self.index_array[start : start + self.batch_size]
        return self._get_batches_of_transformed_samples(chosen)

    next = __next__

    def reset(self) -> None:
        """Begins again with the first batch."""
        self.batch_index = 0

    def on_epoch_end(self) -> None:
        """Another order."""
        self._set_order()

    def _set_order(self) -> None:
        self.index_array = np.random.permutation(self.n) if self.shuffle else np.arange(self.n)

    def _get_batches_of_transformed_samples(self, index_array: Any) -> Any:
        raise NotImplementedError


class _Images(Iterator):
    """Batches of images that a generator changes, written to a folder if one is given."""

    def __init__(
        self, image_data_generator: Any, n: int, batch_size: int, shuffle: bool, seed: int | None,
        save_to_dir: str | None, save_prefix: str, save_format: str,
    ) -> None:  # fmt: skip
        super().__init__(n, batch_size, shuffle, seed)
        self.image_data_generator = image_data_generator
        self.save_to_dir, self.save_prefix, self.save_format = save_to_dir, save_prefix, save_format

    def _changed(self, images: Any) -> Any:
        generator = self.image_data_generator
        batch = []
        for image in images:
            parameters = generator.get_random_transform(image.shape)
            changed = generator.apply_transform(np.asarray(image, generator.dtype), parameters)
            batch.append(generator.standardize(changed))
        for number, image in enumerate(batch if self.save_to_dir else ()):
            name = f"{self.save_prefix}_{self.total_batches_seen}_{number}.{self.save_format}"
            save_img(os.path.join(str(self.save_to_dir), name), image)
        return np.asarray(batch, dtype=generator.dtype)


class NumpyArrayIterator(_Images):
    """Batches of arrays: see `ImageDataGenerator.flow`."""

    def __init__(
        self, x: Any, y: Any, image_data_generator: Any, batch_size: int = 32, shuffle: bool = False,
        sample_weight: Any = None, seed: int | None = None, data_format: str | None = None,
        save_to_dir: str | None = None, save_prefix: str = "", save_format: str = "png", subset: str | None = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        x = np.asarray(x, dtype=dtype)
        if x.ndim != 4:
            raise ValueError(f"Input data in `NumpyArrayIterator` should have rank 4. It has shape {x.shape}")
        for name, given in (("y", y), ("sample_weight", sample_weight)):
            if given is not None and len(given) != len(x):
                raise ValueError(f"`x` and `{name}` should have the same length. Found: {len(x)}, {len(given)}")
        part = _part(len(x), image_data_generator._validation_split, subset)
        self.x = x[part]
        self.y = None if y is None else np.asarray(y)[part]
        self.sample_weight = None if sample_weight is None else np.asarray(sample_weight)[part]
        super().__init__(
            image_data_generator, len(self.x), batch_size, shuffle, seed, save_to_dir, save_prefix, save_format
        )

    def _get_batches_of_transformed_samples(self, index_array: Any) -> Any:
        images = self._changed(self.x[index_array])
        if self.y is None:
            return images
        weights = () if self.sample_weight is None else (self.sample_weight[index_array],)
        return (images, self.y[index_array], *weights)


class DirectoryIterator(_Images):
    """Batches of files: see `ImageDataGenerator.flow_from_directory`."""

    def __init__(
        self, directory: str, image_data_generator: Any, target_size: tuple[int, int] = (256, 256),
        color_mode: str = "rgb", classes: Sequence[str] | None = None, class_mode: str | None = "categorical",
        batch_size: int = 32, shuffle: bool = True, seed: int | None = None, data_format: str | None = None,
        save_to_dir: str | None = None, save_prefix: str = "", save_format: str = "png",
        follow_links: bool = False, subset: str | None = None, interpolation: str = "nearest", dtype: Any = None,
    ) -> None:  # fmt: skip
        if class_mode not in ("categorical", "binary", "sparse", "input", None):
            raise ValueError(f"Invalid class_mode: {class_mode}; it is categorical, binary, sparse, input or None")
        self.directory, self.target_size = directory, tuple(target_size)
        self.color_mode, self.class_mode, self.interpolation = color_mode, class_mode, interpolation
        folders = sorted(
            name for name in filesystems.listdir(directory) if filesystems.isdir(os.path.join(directory, name))
        )
        names = list(classes) if classes else folders
        self.class_indices = {name: index for index, name in enumerate(names)}
        self.num_classes = len(names)
        self.filenames: list[str] = []
        labels: list[int] = []
        for name in names:
            found = sorted(
                os.path.relpath(os.path.join(folder, file), directory)
                for folder, _, files in filesystems.walk(os.path.join(directory, name))
                for file in files
                if file.lower().endswith(_EXTENSIONS)
            )
            part = _part(len(found), image_data_generator._validation_split, subset)
            self.filenames += found[part]
            labels += [self.class_indices[name]] * len(found[part])
        self.classes = np.array(labels, dtype="int32")
        self.filepaths = [os.path.join(directory, name) for name in self.filenames]
        self.samples = len(self.filenames)
        print(f"Found {self.samples} images belonging to {self.num_classes} classes.")
        super().__init__(
            image_data_generator, self.samples, batch_size, shuffle, seed, save_to_dir, save_prefix, save_format
        )

    def _get_batches_of_transformed_samples(self, index_array: Any) -> Any:
        images = [
            img_to_array(load_img(self.filepaths[index], self.color_mode == "grayscale", self.color_mode,
                                  self.target_size, self.interpolation))
            for index in index_array
        ]  # fmt: skip
        batch = self._changed(images)
        if self.class_mode is None:
            return batch
        if self.class_mode == "input":
            return batch, batch.copy()
        labels = self.classes[index_array]
        if self.class_mode == "categorical":
            return batch, np.eye(self.num_classes, dtype=batch.dtype)[labels]
        return batch, labels.astype(batch.dtype if self.class_mode == "binary" else labels.dtype)


def _part(count: int, split: float, subset: str | None) -> slice:
    """The examples of a subset; validation has the first ones."""
    if subset is None:
        return slice(None)
    if subset not in ("training", "validation"):
        raise ValueError(f'Invalid subset name: {subset}; expected "training" or "validation".')
    end = int(count * split)
    return slice(0, end) if subset == "validation" else slice(end, count)


def _shift(given: Any, size: int) -> Any:
    """A shift of up to `given`: a part of the size, or one of a list or of the numbers below an integer."""
    if isinstance(given, float):
        shift = np.random.uniform(-given, given) if given else 0
    elif not np.any(given):
        return 0
    else:
        shift = np.random.choice(given) * np.random.choice([-1, 1])
    return shift * size if np.max(given) < 1 else shift


def _brightened(x: Any, factor: float) -> Any:
    """The image as bytes, from its least to its greatest value, times the factor."""
    least = np.min(x)
    span = np.max(x) - least
    scaled = (x - least) / span * 255 if span else x - least
    return np.clip(np.trunc(np.trunc(scaled) * factor), 0, 255).astype(np.float32)
