"""Progress from event files, as TensorBoard would read them."""

from __future__ import annotations

import struct
import threading
import uuid

import pytest

from dtfctl.logs.progress import ProgressReader, StoredProgress, follow
from dtfctl.wire.protobuf import varint


def field(number, wire, data):
    return bytes([number << 3 | wire]) + data


def text(number, data):
    return field(number, 2, varint(len(data)) + data)


def record(wall_time, step, **scalars):
    payload = field(1, 1, struct.pack("<d", wall_time)) + field(2, 0, varint(step))
    values = b"".join(
        text(1, text(1, tag.encode()) + field(2, 5, struct.pack("<f", value))) for tag, value in scalars.items()
    )
    payload += text(5, values) if values else b""
    return struct.pack("<QI", len(payload), 0) + payload + struct.pack("<I", 0)


@pytest.fixture
def events(tmp_path):
    return tmp_path / "events.out.tfevents.1.host"


def append(path, data):
    with open(path, "ab") as file:
        file.write(data)


def test_step_rate_and_loss_are_those_of_the_newest_event(tmp_path, events):
    reader = ProgressReader(tmp_path)
    assert reader.poll() is None
    append(events, record(10.0, 5, loss=2.5) + record(20.0, 105, **{"train/loss_1": 1.5}))
    assert str(reader.poll()) == "step 105, 10.0 steps/s, loss 1.5"
    append(events, record(21.0, 106, **{"global_step/sec": 33.0}))
    assert str(reader.poll()) == "step 106, 33.0 steps/s, loss 1.5"


def test_a_record_that_is_still_being_written_is_waited_for(tmp_path, events):
    reader = ProgressReader(tmp_path)
    whole = record(1.0, 7, loss=1.0)
    append(events, whole[:15])
    assert reader.poll() is None
    append(events, whole[15:])
    assert reader.poll().step == 7


def test_events_of_earlier_runs_are_not_progress(tmp_path, events):
    append(events, record(1.0, 99))
    reader = ProgressReader(tmp_path)
    assert reader.poll() is None
    append(events, record(2.0, 100))
    assert reader.poll().step == 100


def test_until_there_are_events_a_new_checkpoint_tells_the_step(tmp_path, events):
    (tmp_path / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-40"\n')
    reader = ProgressReader(tmp_path)
    assert reader.poll() is None
    state = 'model_checkpoint_path: "/save/model.ckpt-60"\nall_model_checkpoint_paths: "/save/model.ckpt-40"\n'
    (tmp_path / "checkpoint").write_text(state)
    assert str(reader.poll()) == "step 60"
    append(events, record(1.0, 70, loss=1.0))
    assert str(reader.poll()) == "step 70, loss 1"


@pytest.mark.parametrize("junk", [b"\xff" * 40, struct.pack("<QI", 3, 0) + b"\xff\xff\xff" + b"0000", b"{}" * 50])
def test_a_file_that_holds_something_else_does_no_harm(tmp_path, events, junk):
    reader = ProgressReader(tmp_path)
    append(events, junk)
    assert reader.poll() is None


def test_a_folder_that_is_not_there_yet_is_waited_for(tmp_path):
    reader = ProgressReader(tmp_path / "later")
    assert reader.poll() is None
    (tmp_path / "later").mkdir()
    append(tmp_path / "later" / "events.out.tfevents.2", record(1.0, 3))
    assert reader.poll().step == 3


def test_the_trend_is_that_of_medians_and_one_for_each_tag(tmp_path, events):
    reader = ProgressReader(tmp_path)
    losses = [3.0, 2.9, 90.0, 2.8, 2.7, 2.0, 1.9, 1.8, 1.7, 1.6, 40.0, 50.0, 60.0, 70.0, 80.0]
    for step, loss in enumerate(losses[:-1], 1):
        append(events, record(float(step), step, **{"eval/loss": 0.5, "loss": loss}))
    assert reader.poll().trend is None, "not yet enough"
    append(events, record(15.0, 15, loss=losses[-1]))
    trend = reader.poll().trend
    assert (trend.first, trend.now) == pytest.approx((2.9, 60.0))
    assert trend.best == pytest.approx(1.8)


def test_a_loss_that_is_no_number_has_no_trend(tmp_path, events):
    reader = ProgressReader(tmp_path)
    for step in range(1, 20):
        append(events, record(float(step), step, loss=1.0))
    append(events, record(20.0, 20, loss=float("nan")))
    assert reader.poll().trend is None


def test_the_progress_of_a_training_in_a_store_is_followed():
    fsspec = pytest.importorskip("fsspec")
    url = f"memory://{uuid.uuid4().hex}/training"
    store = fsspec.filesystem("memory")
    reader = follow(url)
    assert reader.wait(10) is None
    first = record(10.0, 5, loss=2.5)
    store.pipe_file(f"{url}/events.out.tfevents.1.host", first)
    store.pipe_file(f"{url}/checkpoint", b'model_checkpoint_path: "model.ckpt-5"\n')
    reader._next_at = 0
    assert str(reader.wait(10)) == "step 5, loss 2.5"
    assert reader.checkpoint == f"{url}/model.ckpt-5"
    store.pipe_file(f"{url}/events.out.tfevents.1.host", first + record(20.0, 105, loss=1.5))
    reader._next_at = 0
    assert str(reader.wait(10)) == "step 105, 10.0 steps/s, loss 1.5"


def test_nobody_waits_for_a_store_and_its_errors_end_nothing():
    answer = threading.Event()

    def slow(url):
        answer.wait(10)
        raise RuntimeError("no such bucket")

    reader = StoredProgress("s3://bucket/x", open_folder=slow)
    assert reader.poll() is None
    answer.set()
    assert reader.wait(10) is None and reader.checkpoint == ""


def test_a_store_whose_package_is_missing_is_named_once(caplog):
    def missing(url):
        raise ImportError("Install s3fs to access S3")

    reader = StoredProgress("s3://bucket/x", open_folder=missing)
    for _ in range(3):
        assert reader.wait(10) is None
    assert [line for line in caplog.messages if "s3fs" in line] == [
        "the progress in s3://bucket/x is not shown: Install s3fs to access S3 (pip install 'dtf[fs]')"
    ]
