"""Device names: reading, writing, merging."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from dtf.wire.device import DeviceSpec, canonical_name, merge_device, merge_devices, task_name, task_of


@pytest.mark.parametrize(
    ("name", "canonical"),
    [
        ("", ""),
        ("/job:ps/task:0/cpu:0", "/job:ps/task:0/device:CPU:0"),
        ("/device:CPU:0", "/device:CPU:0"),
        ("/device:cpu:0", "/device:CPU:0"),
        ("cpu:0", "/device:CPU:0"),
        ("/cpu", "/device:CPU:*"),
        ("/gpu:*", "/device:GPU:*"),
        ("/task:1/job:w", "/job:w/task:1"),
        ("/job:a/job:b", "/job:b"),
        ("/job:ps/replica:0/task:1/device:XLA_CPU:2", "/job:ps/replica:0/task:1/device:XLA_CPU:2"),
    ],
)
def test_names_are_read_and_written_in_the_long_form(name, canonical):
    spec = DeviceSpec.from_string(name)
    assert canonical_name(name) == canonical_name(spec) == spec.to_string() == str(spec) == canonical
    assert DeviceSpec.from_string(canonical) == spec == DeviceSpec().parse_from_string(name)
    assert hash(DeviceSpec.from_string(canonical)) == hash(spec)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("/foo:1", "Unknown attribute 'foo'"),
        ("/device:CPU", "Unknown attribute 'device'"),
        ("/cpu:0/gpu:1", "Multiple device types"),
        ("/task:a", "'a' is not a number"),
        ("/cpu:x", "'x' is not a number"),
    ],
)
def test_what_is_no_name_raises(name, words):
    with pytest.raises(ValueError, match=words):
        DeviceSpec.from_string(name)


@pytest.mark.parametrize(
    ("outer", "inner", "merged"),
    [
        ("/job:ps/cpu:0", "/job:w/gpu:1", "/job:w/device:GPU:1"),
        ("/job:ps/cpu:0", "/gpu:*", "/job:ps/device:GPU:0"),
        ("/gpu:1", "/device:CPU:*", "/device:CPU:1"),
        ("/job:ps/task:3", "", "/job:ps/task:3"),
        ("", "/cpu:0", "/device:CPU:0"),
    ],
)
def test_merging_prefers_the_inner_name(outer, inner, merged):
    assert merge_devices(outer, inner) == merged
    spec = DeviceSpec.from_string(outer)
    assert spec.make_merged_spec(DeviceSpec.from_string(inner)).to_string() == merged
    spec.merge_from(DeviceSpec.from_string(inner))
    assert spec.to_string() == merged
    assert merge_device(outer)(SimpleNamespace(device=inner)) == merged


def test_parts():
    spec = DeviceSpec(job="ps", task=1, device_type="gpu")
    assert (spec.job, spec.replica, spec.task, spec.device_type, spec.device_index) == ("ps", None, 1, "GPU", None)
    assert spec.replace(task=2).to_string() == "/job:ps/task:2/device:GPU:*"
    assert DeviceSpec(job="ps").covers(spec) and not spec.covers(DeviceSpec(job="ps"))
    assert canonical_name(None) == "" and merge_device(None)(SimpleNamespace(device="/cpu:0")) == "/device:CPU:0"


def test_tasks_of_devices():
    assert task_of("/job:ps/replica:0/task:1/device:CPU:0") == task_name("ps", 1) == "/job:ps/replica:0/task:1"
    assert task_of("/device:CPU:0") == ""
