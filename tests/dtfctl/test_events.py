"""The event files as series: scalars with their steps, restarts, decimation; histograms and images."""

from __future__ import annotations

import json
import math
import os
import struct

import pytest

from dtfctl.logs import events
from dtfctl.logs.events import EventReader, Series
from dtfctl.logs.samples import SAMPLES_KEPT, Histogram, Image, Samples, picture_size
from tests.dtfctl.test_progress import append, field, record, text


def double(number, value):
    return field(number, 1, struct.pack("<d", value))


def event(step, value):
    payload = double(1, 10.0) + field(2, 0, bytes([step])) + text(5, text(1, value))
    return struct.pack("<QI", len(payload), 0) + payload + struct.pack("<I", 0)


def png(width, height):
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height)


def test_each_folder_is_a_run_and_each_tag_a_series(tmp_path):
    (tmp_path / "worker-1").mkdir()
    append(tmp_path / "events.out.tfevents.1.h", record(10.0, 5, loss=2.5) + record(11.0, 6, loss=1.5, lr=0.5))
    append(tmp_path / "worker-1" / "events.out.tfevents.1.h", record(10.0, 5, staleness=1.0))
    reader = EventReader(tmp_path)
    reader.poll()
    assert {run: sorted(tags) for run, tags in reader.scalars.items()} == {
        ".": ["loss", "lr"],
        "worker-1": ["staleness"],
    }
    assert reader.scalars["."]["loss"].points() == ([5, 6], [10.0, 11.0], [2.5, 1.5])
    append(tmp_path / "events.out.tfevents.1.h", record(12.0, 7, loss=1.0))
    reader.poll()
    assert reader.scalars["."]["loss"].points()[0] == [5, 6, 7]


def test_steps_that_a_restarted_training_repeats_replace_the_former_ones():
    series = Series()
    for step in (1, 2, 3, 4, 2, 3):
        series.add(step, float(len(series.steps)), float(step))
    assert series.points()[0] == [1, 2, 3]


def test_fewer_points_keep_peaks_ends_and_what_is_no_number():
    series = Series()
    for step in range(10_000):
        value = 100.0 if step == 5_003 else math.nan if step == 7_777 else math.sin(step)
        series.add(step, float(step), value)
    steps, _, values = series.points(200)
    assert len(steps) < 320 and steps[0] == 0 and steps[-1] == 9_999
    assert 100.0 in values and any(math.isnan(value) for value in values)
    near, _, _ = series.points(200, 5_000, 5_100)
    assert near == list(range(4_999, 5_101))


def test_a_long_series_is_thinned_and_keeps_its_end(monkeypatch):
    monkeypatch.setattr("dtfctl.logs.events.POINTS_MAX", 100)
    series = Series()
    for step in range(1_000):
        series.add(step, 0.0, 0.0)
    assert len(series.steps) <= 100 and series.steps[-1] == 999


def test_histograms_and_images_are_kept_the_newest_ones(tmp_path):
    limits = struct.pack("<2d", 1.0, 2.0)
    counts = struct.pack("<2d", 1.0, 2.0)
    histogram = double(1, 0.5) + double(2, 2.0) + double(3, 3.0) + text(6, limits) + text(7, counts)
    image = field(1, 0, b"\x09") + field(2, 0, b"\x09") + text(4, png(3, 2))
    path = tmp_path / "events.out.tfevents.1.h"
    for step in range(1, 31):
        append(path, event(step, text(1, b"weights") + text(5, histogram)))
        append(path, event(step, text(1, b"digit") + text(4, image)))
    reader = EventReader(tmp_path)
    reader.poll()
    kept = reader.samples.histograms["."]["weights"]
    assert (len(kept), kept[-1].step, kept[-1].limits, kept[-1].counts) == (24, 30, (1.0, 2.0), (1.0, 2.0))
    newest = reader.samples.images["."]["digit"][-1]
    assert (newest.step, newest.width, newest.height, newest.data) == (30, 3, 2, png(3, 2))


def test_a_scalar_of_tensorflow_2_is_a_tensor(tmp_path):
    tensor = field(1, 0, b"\x01") + text(2, b"") + text(4, struct.pack("<f", 0.25))
    append(tmp_path / "events.out.tfevents.1.h", event(3, text(1, b"epoch_loss") + text(8, tensor)))
    reader = EventReader(tmp_path)
    reader.poll()
    assert reader.scalars["."]["epoch_loss"].points()[2] == [0.25]


def test_a_damaged_event_costs_only_itself(tmp_path):
    path = tmp_path / "events.out.tfevents.1.h"
    append(path, struct.pack("<QI", 3, 0) + b"\xff\xff\xff" + struct.pack("<I", 0) + record(1.0, 2, loss=1.0))
    reader = EventReader(tmp_path)
    reader.poll()
    assert reader.scalars["."]["loss"].points()[0] == [2]


def test_checkpoints_are_those_whose_index_is_there(tmp_path):
    for name in ("model.ckpt-5.index", "model.ckpt-100.index", "model.ckpt-7.meta"):
        (tmp_path / name).touch()
    assert [step for step, _ in EventReader(tmp_path).checkpoints()] == [5, 100]


@pytest.mark.parametrize(
    "data, size",
    [
        (png(640, 480), (640, 480)),
        (b"GIF89a" + struct.pack("<HH", 5, 7), (5, 7)),
        (b"\xff\xd8\xff\xe0\x00\x04ab\xff\xff\xc2\x00\x11\x08" + struct.pack(">HH", 7, 5) + bytes(9), (5, 7)),
        (b"\xff\xd8\xff\xe0\x00\x00" * 9, None),
        (b"\xff\xd8" + b"\xff" * 999, None),
        (png(1, 1)[:20], None),
        (b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>", None),
        (b"", None),
    ],
)
def test_the_size_of_a_picture_is_that_of_its_header(data, size):
    assert picture_size(data) == size


def test_all_samples_together_stay_within_their_limit_and_each_tag_within_its_own():
    samples = Samples(bytes_max=100_000)
    for step in range(200):
        samples.add_image(".", "large", Image(step, 0.0, 1, 1, bytes(20_000)))
        samples.add_histogram("r", "small", Histogram(step, 0.0, 0.0, 1.0, 1.0, (1.0,), (1.0,)))
    assert len(samples.histograms["r"]["small"]) == SAMPLES_KEPT
    large = samples.images["."]["large"]
    assert 1 <= len(large) <= 4 and large[-1].step == 199
    for number in range(200):
        samples.add_image(".", f"tag {number}", Image(0, 0.0, 1, 1, bytes(20_000)))
    kept = [image for tags in samples.images.values() for images in tags.values() for image in images]
    assert sum(image.bytes for image in kept) <= 100_000


@pytest.mark.parametrize(
    "value",
    [
        text(1, b"image") + text(4, text(4, b"<svg onload=alert(1)>")),
        text(1, b"image") + text(4, text(4, png(60_000, 60_000))),
        text(1, b"image") + text(4, text(4, png(0, 5))),
        text(1, b"histogram") + text(5, text(6, bytes(8 * 5_000)) + text(7, bytes(8 * 5_000))),
    ],
)
def test_pictures_and_histograms_that_nobody_can_look_at_are_left_out(tmp_path, value):
    append(tmp_path / "events.out.tfevents.1.h", event(1, value))
    reader = EventReader(tmp_path)
    reader.poll()
    assert reader.samples.images == {} and reader.samples.histograms == {}


@pytest.mark.parametrize("at", [math.nan, math.inf, -1.0, 1e300])
def test_a_time_that_is_no_time_is_the_beginning_of_all_times(tmp_path, at):
    append(tmp_path / "events.out.tfevents.1.h", record(at, 2, loss=1.0))
    reader = EventReader(tmp_path)
    reader.poll()
    assert reader.scalars["."]["loss"].points() == ([2], [0.0], [1.0])


def test_the_name_of_a_run_is_text_whatever_its_folder_is_called(tmp_path):
    folder = os.fsencode(tmp_path) + b"/\xff\xfe"
    os.mkdir(folder)
    append(tmp_path / "events.out.tfevents.1.h", record(1.0, 2, loss=1.0))
    os.rename(tmp_path / "events.out.tfevents.1.h", folder + b"/events.out.tfevents.1.h")
    reader = EventReader(tmp_path)
    reader.poll()
    assert json.dumps(list(reader.scalars), ensure_ascii=False).encode() == '["\ufffd\ufffd"]'.encode()


def test_more_series_have_fewer_points_each_and_a_flood_of_tags_costs_no_more(tmp_path, monkeypatch):
    monkeypatch.setattr(events, "SERIES_MAX", 10)
    monkeypatch.setattr(events, "POINTS_IN_ALL", 10)
    for step in range(1, 1_100):
        append(tmp_path / "events.out.tfevents.1.h", record(1.0, step, **{f"tag{n}": 1.0 for n in range(12)}))
    reader = EventReader(tmp_path)
    reader.poll()
    kept = reader.scalars["."]
    assert len(kept) == 10 and all(len(series.steps) <= 1_000 for series in kept.values())
