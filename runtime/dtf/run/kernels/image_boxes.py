"""Kernels that choose boxes: non-maximum suppression, and random crops that keep enough of an object.

Boxes are [y1, x1, y2, x2], their corners in any order. What is drawn for a crop is TensorFlow's for the same seeds.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence

import numpy as np

from dtf.run.executor.step import StepContext
from dtf.run.kernels import Function, KernelNode, kernel
from dtf.run.kernels.arguments import invalid, room, scalar
from dtf.run.kernels.random import seeded_draws
from dtf.run.lib.philox import word_source
from dtf.run.value_types import Array

_Overlaps = Callable[[int, "Array | list[int]"], np.ndarray]
"""overlaps(box, others): how much of each other the box covers."""


def _checked_boxes(boxes: np.ndarray, scores: np.ndarray) -> np.ndarray:
    if boxes.ndim != 2 or boxes.shape[1] != 4:
        raise invalid(f"boxes must have 4 columns, got shape {list(boxes.shape)}")
    if scores.shape != boxes.shape[:1]:
        raise invalid(f"scores has incompatible shape {list(scores.shape)} with {len(boxes)} boxes")
    return boxes.astype(np.float32)


def _checked_count(count: Array) -> int:
    if int(count) < 0:
        raise invalid(f"max_output_size must be non-negative, got {int(count)}")
    return int(count)


def _checked_threshold(threshold: Array | float) -> float:
    scalar(np.asarray(threshold), "iou_threshold")
    if not 0 <= float(threshold) <= 1:
        raise invalid("iou_threshold must be in [0, 1]")
    return float(threshold)


def _intersection_over_union(boxes: np.ndarray) -> _Overlaps:
    low = np.minimum(boxes[:, :2], boxes[:, 2:])
    high = np.maximum(boxes[:, :2], boxes[:, 2:])
    areas = np.prod(high - low, 1)

    def overlaps(box: int, others: Array | list[int]) -> np.ndarray:
        sides = np.minimum(high[box], high[others]) - np.maximum(low[box], low[others])
        shared = np.prod(np.maximum(sides, 0), -1)
        positive = (areas[box] > 0) & (areas[others] > 0)
        return np.where(positive, shared / np.where(positive, areas[box] + areas[others] - shared, 1), 0)

    return overlaps


def _suppress(overlaps: _Overlaps, scores: np.ndarray, count: int, threshold: float, least: float) -> list[int]:
    """The boxes of the highest scores (above `least`) that overlap no better one by more than the threshold."""
    order = np.argsort(-scores.astype(np.float64), kind="stable")
    order = order[scores[order] > least]
    chosen: list[int] = []
    while order.size and len(chosen) < count:
        best, rest = int(order[0]), order[1:]
        chosen.append(best)
        order = rest[~(overlaps(best, rest) > threshold)]
    return chosen


def _suppress_softly(
    overlaps: _Overlaps, scores: np.ndarray, count: int, sigma: float, least: float
) -> tuple[list[int], list[float]]:
    """Scores decay with the overlap instead (Bodla et al., "Soft-NMS", 2017); boxes are taken by what is left."""
    heap = [(-float(score), box, 0) for box, score in enumerate(scores.tolist()) if score > least]
    heapq.heapify(heap)
    chosen: list[int] = []
    kept: list[float] = []
    while heap and len(chosen) < count:
        negative, box, since = heapq.heappop(heap)
        score = np.float32(-negative)
        original = score
        for other in reversed(chosen[since:]):
            overlap = np.float32(overlaps(box, [other])[0])
            score = score * np.exp(np.float32(-0.5 / sigma) * overlap * overlap)
            if score <= least:
                break
        if score == original:
            chosen.append(box)
            kept.append(float(score))
        elif score > least:
            heapq.heappush(heap, (-float(score), box, len(chosen)))
    return chosen, kept


@kernel("NonMaxSuppression")
def _(node: KernelNode) -> Function:
    threshold = _checked_threshold(node.attr("iou_threshold"))
    return lambda boxes, scores, count: _plain(boxes, scores, count, threshold)


@kernel("NonMaxSuppressionV2", "NonMaxSuppressionV3")
def _(node: KernelNode) -> Function:
    return _plain


def _plain(
    boxes: Array, scores: Array, count: Array, threshold: Array | float, least: Array | float = -np.inf
) -> np.ndarray:
    overlaps = _intersection_over_union(_checked_boxes(boxes, scores))
    chosen = _suppress(overlaps, scores, _checked_count(count), _checked_threshold(threshold), float(least))
    return np.array(chosen, np.int32)


@kernel("NonMaxSuppressionV4")
def _(node: KernelNode) -> Function:
    padded = node.attr("pad_to_max_output_size")

    def suppress(
        boxes: np.ndarray, scores: np.ndarray, count: np.ndarray, threshold: np.ndarray, least: np.ndarray
    ) -> tuple[np.ndarray, ...]:
        chosen = _plain(boxes, scores, count, threshold, least)
        return _padded(chosen, int(count)) if padded else chosen, np.int32(chosen.size)

    return suppress


@kernel("NonMaxSuppressionV5")
def _(node: KernelNode) -> Function:
    padded = node.attr("pad_to_max_output_size")

    def suppress(
        boxes: np.ndarray,
        scores: np.ndarray,
        count: np.ndarray,
        threshold: np.ndarray,
        least: np.ndarray,
        sigma: np.ndarray,
    ) -> tuple[np.ndarray, ...]:
        overlaps, most = _intersection_over_union(_checked_boxes(boxes, scores)), _checked_count(count)
        _checked_threshold(threshold)
        if float(sigma) < 0:
            raise invalid("soft_nms_sigma_val must be >= 0")
        if float(sigma) > 0:
            chosen, kept = _suppress_softly(overlaps, scores, most, float(sigma), float(least))
        else:
            chosen = _suppress(overlaps, scores, most, _checked_threshold(threshold), float(least))
            kept = scores[chosen].tolist() if chosen else []
        indices, values = np.array(chosen, np.int32), np.array(kept, scores.dtype)
        number = np.int32(len(chosen))
        if padded:
            indices, values = _padded(indices, most), _padded(values, most)
        return indices, values, number

    return suppress


def _padded(values: np.ndarray, count: int) -> np.ndarray:
    room((count,), values.dtype)
    return np.concatenate([values, np.zeros(count - values.size, values.dtype)])


@kernel("NonMaxSuppressionWithOverlaps")
def _(node: KernelNode) -> Function:
    def suppress(
        overlaps: np.ndarray, scores: np.ndarray, count: np.ndarray, threshold: np.ndarray, least: np.ndarray
    ) -> np.ndarray:
        if overlaps.ndim != 2 or overlaps.shape[0] != overlaps.shape[1] or scores.shape != overlaps.shape[:1]:
            raise invalid(f"overlaps must be square and fit scores, got shape {list(overlaps.shape)}")
        chosen = _suppress(
            lambda box, others: overlaps[box, others], scores, _checked_count(count), float(threshold), float(least)
        )
        return np.array(chosen, np.int32)

    return suppress


@kernel("CombinedNonMaxSuppression")
def _(node: KernelNode) -> Function:
    per_class, clipped = node.attr("pad_per_class"), node.attr("clip_boxes")

    def suppress(
        boxes: np.ndarray,
        scores: np.ndarray,
        count: np.ndarray,
        total: np.ndarray,
        threshold: np.ndarray,
        least: np.ndarray,
    ) -> tuple[np.ndarray, ...]:
        if boxes.ndim != 4 or boxes.shape[3] != 4 or scores.ndim != 3 or boxes.shape[2] not in (1, scores.shape[2]):
            raise invalid(f"boxes must be [batch, boxes, 1 or classes, 4], got {list(boxes.shape)}")
        if int(count) <= 0 or int(total) <= 0:
            raise invalid(f"max_size_per_class and max_total_size must be positive, got {int(count)} and {int(total)}")
        batch, classes, most = len(boxes), scores.shape[2], int(count)
        size = min(int(total), most * classes) if per_class else int(total)
        out = np.zeros(room((batch, size, 4), np.float32), np.float32), np.zeros((batch, size), np.float32)
        found_classes, numbers = np.zeros((batch, size), np.float32), np.zeros(batch, np.int32)
        for image in range(batch):
            found = []
            for group in range(classes):
                of_group = boxes[image, :, group if boxes.shape[2] > 1 else 0]
                overlaps = _intersection_over_union(of_group.astype(np.float32))
                values = scores[image, :, group]
                for box in _suppress(overlaps, values, most, _checked_threshold(threshold), float(least)):
                    found.append((-float(values[box]), group, of_group[box]))
            found.sort(key=lambda each: each[0])
            numbers[image] = min(len(found), size)
            for at, (negative, group, box) in enumerate(found[:size]):
                out[0][image, at] = np.clip(box, 0, 1) if clipped else box
                out[1][image, at] = -negative
                found_classes[image, at] = group
        return *out, found_classes, numbers

    return suppress


# -- random crops


@kernel("SampleDistortedBoundingBox", stateful=True)
def _(node: KernelNode) -> Function:
    sample = _crop_sampler(node)
    covered = node.attr("min_object_covered")
    return lambda step, image_size, boxes: sample(step, image_size, boxes, covered)


@kernel("SampleDistortedBoundingBoxV2", stateful=True)
def _(node: KernelNode) -> Function:
    return _crop_sampler(node)


def _crop_sampler(node: KernelNode) -> Function:
    ratios, areas = list(node.attr("aspect_ratio_range")), list(node.attr("area_range"))
    attempts, whole = node.attr("max_attempts"), node.attr("use_image_if_no_bounding_boxes")
    seeds = node.attr("seed"), node.attr("seed2")
    if attempts <= 0 or len(ratios) != 2 or len(areas) != 2 or min(ratios) <= 0 or min(areas) <= 0 or max(areas) > 1:
        raise invalid(f"Cannot sample with {attempts} attempts, aspect ratios {ratios} and areas {areas}")

    def sample(
        step: StepContext, image_size: np.ndarray, boxes: np.ndarray, covered: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if image_size.shape != (3,):
            raise invalid(f"image_size must contain 3 elements, got shape {list(image_size.shape)}")
        if boxes.ndim != 3 or boxes.shape[2] != 4:
            raise invalid(f"bounding boxes must be [batch, boxes, 4], got {list(boxes.shape)}")
        if not float(covered) >= 0:
            raise invalid(f"Min object covered must be non-negative: {float(covered)}")
        height, width = int(image_size[0]), int(image_size[1])
        if min(height, width) <= 0 or max(height, width) >= np.iinfo(np.int32).max:
            raise invalid(f"image height and width must be positive int32 numbers, got {height} and {width}")
        flat = boxes.reshape(-1, 4)
        if not len(flat):
            if not whole:
                raise invalid("No bounding boxes provided as input. One must enable use_image_if_no_bounding_boxes.")
            flat = np.array([[0, 0, 1, 1]], np.float32)
        if (flat < 0).any() or (flat > 1).any() or (flat[:, :2] > flat[:, 2:]).any():
            raise invalid("All bounding box coordinates must be in [0.0, 1.0], the first not above the last")
        objects = (flat * np.array([height, width, height, width], np.float32)).astype(np.int64).tolist()
        draws = step.session.node_state(node.name, lambda: seeded_draws(*seeds))
        word = word_source(draws.key, draws.reserve(attempts))
        crop = 0, 0, height, width
        for _ in range(attempts):
            ratio = np.float32((word() & 0x7FFFFF) / 2**23) * np.float32(ratios[1] - ratios[0]) + np.float32(ratios[0])
            tried = _random_crop(word, height, width, float(ratio), areas)
            if tried is not None and any(_covers(tried, each, float(covered)) for each in objects):
                crop = tried
                break
        top, left, bottom, right = crop
        dtype = image_size.dtype
        box = np.array([[[top / height, left / width, bottom / height, right / width]]], np.float32)
        return np.array([top, left, 0], dtype), np.array([bottom - top, right - left, -1]).astype(dtype), box

    return sample


def _random_crop(
    word: Callable[[], int], height: int, width: int, ratio: float, areas: list[float]
) -> tuple[int, int, int, int] | None:
    """A crop of this aspect ratio (width by height), or None where none of these areas fits."""
    least, most = (area * width * height for area in areas)
    tall, tallest = round(math.sqrt(least / ratio)), round(math.sqrt(most / ratio))
    if round(tallest * ratio) > width:
        tallest = int((width + 0.5 - 1e-7) / ratio)
    tallest = min(tallest, height)
    tall = min(tall, tallest)
    if tall < tallest:
        tall += _below(word, tallest - tall + 1)
    wide = round(tall * ratio)
    if wide * tall < least:
        tall += 1
        wide = round(tall * ratio)
    if wide * tall > most:
        tall -= 1
        wide = round(tall * ratio)
    if not least <= wide * tall <= most or not 0 < wide <= width or not 0 < tall <= height:
        return None
    top = _below(word, height - tall) if tall < height else 0
    left = _below(word, width - wide) if wide < width else 0
    return top, left, top + tall, left + wide


def _below(word: Callable[[], int], limit: int) -> int:
    return word() % limit


def _covers(crop: Sequence[int], box: Array, least: float) -> bool:
    """Whether the crop has at least this share of the box."""
    if least == 0:
        return True
    area = (box[2] - box[0]) * (box[3] - box[1])
    sides = (min(crop[2 + axis], box[2 + axis]) - max(crop[axis], box[axis]) for axis in range(2))
    shared = math.prod(max(side, 0) for side in sides)
    return area > 0 and shared >= least * area
