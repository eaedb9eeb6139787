"""Records and event files: framing, damage, a writer that was killed."""

from __future__ import annotations

import os

import pytest

from dtf.wire import errors
from dtf.wire.events import EventsWriter, read_events, read_records, record_bytes
from dtf.wire.pb import event_pb2


def test_events_come_back_in_order_after_the_version(tmp_path):
    writer = EventsWriter(str(tmp_path / "logs"), clock=lambda: 1234567.5)
    writer.write(event_pb2.Event(step=7))
    writer.close()
    assert "events.out.tfevents.0001234567." in writer.path
    events = list(read_events(writer.path))
    assert [event.step for event in events] == [0, 7]
    assert events[0].file_version == "brain.Event:2" and events[0].wall_time == 1234567.5


def test_two_writers_of_one_second_get_two_files(tmp_path):
    first, second = (EventsWriter(str(tmp_path), clock=lambda: 1.0) for _ in range(2))
    first.close()
    second.close()
    assert first.path != second.path


def test_a_cut_end_is_passed_over_or_named(tmp_path):
    path = str(tmp_path / "r")
    whole = record_bytes(b"one") + record_bytes(b"two")
    for size in range(len(record_bytes(b"one")) + 1, len(whole)):
        with open(path, "wb") as file:
            file.write(whole[:size])
        assert list(read_records(path, allow_cut_end=True)) == [b"one"]
        with pytest.raises(errors.DataLossError, match="truncated record at 19"):
            list(read_records(path))


@pytest.mark.parametrize("position", [0, 9, 13, 17])
def test_a_flipped_byte_is_data_loss(tmp_path, position):
    path = str(tmp_path / "r")
    data = bytearray(record_bytes(b"one"))
    data[position] ^= 1
    with open(path, "wb") as file:
        file.write(data)
    with pytest.raises(errors.DataLossError, match="corrupted record at 0"):
        list(read_records(path))


def test_a_missing_file_and_a_folder_that_cannot_be_made_are_named(tmp_path):
    with pytest.raises(errors.NotFoundError, match="nowhere"):
        list(read_records(str(tmp_path / "nowhere")))
    (tmp_path / "file").write_text("")
    with pytest.raises(errors.FailedPreconditionError, match="file"):
        EventsWriter(str(tmp_path / "file" / "logs"))
    with pytest.raises(errors.AlreadyExistsError, match="file"):
        EventsWriter(str(tmp_path / "file"))
    assert os.listdir(tmp_path) == ["file"]


def test_a_full_disk_is_named_at_the_start(tmp_path, monkeypatch):
    def open_on_a_full_disk(base, suffix):
        os.symlink("/dev/full", base)
        return base, open(base, "wb")

    monkeypatch.setattr("dtf.wire.events._open_new", open_on_a_full_disk)
    with pytest.raises(errors.ResourceExhaustedError, match="logs; No space left on device"):
        EventsWriter(str(tmp_path / "logs"))
    assert os.listdir(tmp_path / "logs") == []
