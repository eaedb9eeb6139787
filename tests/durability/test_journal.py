"""The durable state of one task: what a restarted process finds, whenever the former one was killed.

The files are mapped and shared, so what a killed process leaves is what they hold at that moment. A test kills at every
line of the code that writes: it copies the folder there, and opens the copy.
"""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dtf.run.durability import durable_resources, durable_variable, journal, transaction_lock
from dtf.run.durability.durable_resources import DurableResources
from dtf.run.durability.once import StepName
from dtf.run.state import resources as resources_module
from dtf.run.state.resources import Variable
from dtf.wire import dtypes, errors

WRITERS = {module.__file__ for module in (durable_resources, durable_variable, transaction_lock)}


@pytest.fixture(autouse=True)
def small_files(monkeypatch):
    monkeypatch.setattr(journal, "_RECORDS_BYTES", 4096)
    monkeypatch.setattr(journal, "_UNDO_BYTES", 4096)


def variable(resources: DurableResources, name: str) -> Variable:
    return resources.lookup_or_create("", name, Variable, lambda: Variable(name, dtypes.float32, None))


def update(resources: DurableResources, number: int) -> None:
    """One transaction: a dense, a sparse and a small update, and their entry for step `number`."""
    attempt = resources.steps.begin("session", StepName(1, 0, number, 0).step_id)
    with resources.update_lock:
        variable(resources, "dense").update(np.add, np.ones(1100, np.float32))
        table = variable(resources, "table")
        with table.lock:
            rows = np.array([3, 1, 3])
            table.writable(rows)[[3, 1]] += 1
        variable(resources, "small").update(np.add, np.ones(3, np.float32))
        attempt.note("update", None, True)


def filled(folder: Path) -> DurableResources:
    resources = DurableResources(folder)
    with resources.update_lock:
        variable(resources, "dense").assign(np.zeros(1100, np.float32))
        variable(resources, "table").assign(np.zeros((550, 2), np.float32))
        variable(resources, "small").assign(np.zeros(3, np.float32))
    return resources


def found(folder: Path) -> tuple[set[float], bool]:
    """The values in a folder, and whether the step that made the last of them is in its slot."""
    resources = DurableResources(folder)
    try:
        values = [variable(resources, "dense").read(), variable(resources, "small").read()]
        table = variable(resources, "table").read()
        assert not table[[0, 2, *range(4, 550)]].any()
        every = {float(each) for value in [*values, table[[1, 3]]] for each in np.unique(value)}
        entry = resources.steps.entries.get(("session", 0))
        return every, entry is not None and float(entry.number) in every and "update" in entry.results
    finally:
        resources.close()


def test_a_restarted_task_finds_every_variable_and_the_steps_that_have_run(tmp_path):
    resources = filled(tmp_path / "state")
    for number in (1, 2, 3):
        update(resources, number)
    lineage = resources.lineage
    resources.close()
    assert found(tmp_path / "state") == ({3.0}, True)
    again = DurableResources(tmp_path / "state")
    assert (again.lineage, again.generation) == (lineage, 3)
    again.close()


def test_a_task_that_is_killed_at_any_line_must_have_all_of_a_transaction_or_nothing(tmp_path):
    resources = filled(tmp_path / "state")
    update(resources, 1)
    writers = {"update", "writable", "release", "_end", "settle"}
    copies: list[Path] = []

    def at_line(frame, event, _):
        file, name = frame.f_code.co_filename, frame.f_code.co_name
        if file != journal.__file__ and not (file in WRITERS and name in writers):
            return None
        copies.append(tmp_path / f"copy-{len(copies)}")
        shutil.copytree(tmp_path / "state", copies[-1])
        return at_line

    sys.settrace(at_line)
    try:
        update(resources, 2)
    finally:
        sys.settrace(None)
    resources.close()
    seen = []
    for copy in copies:
        values, has_run = found(copy)
        assert len(values) == 1, f"half a transaction: {values}"
        assert has_run, "the entry of the step is not that of the values"
        seen.append(values.pop())
    assert seen == sorted(seen)
    assert set(seen) == {1.0, 2.0}
    assert len(seen) > 50


def test_a_record_that_is_torn_at_any_byte_counts_as_a_whole_or_not_at_all(tmp_path):
    """As a host leaves it that has not written all of the memory to a disk."""
    folder = tmp_path / "state"
    resources = filled(folder)
    for number in (1, 2):
        update(resources, number)
    begin, file = resources.journal._at, f"records.{resources.journal._records_number}"
    update(resources, 3)
    end = resources.journal._at
    assert file == f"records.{resources.journal._records_number}"
    copy = tmp_path / "copy"
    whole = 0
    for cut in [*range(begin, begin + 32, 3), *range(begin + 32, end, 29), end]:
        shutil.copytree(folder, copy)
        with open(copy / file, "r+b") as torn:
            torn.seek(cut)
            torn.write(bytes(end - cut))
        values, is_named = found(copy)
        assert is_named
        assert values in ({2.0}, {3.0}), f"{values} of a record that is torn at byte {cut - begin}"
        whole += values == {3.0}
        shutil.rmtree(copy)
    assert whole >= 1
    resources.close()


def test_a_task_that_is_killed_while_its_records_are_compacted_must_lose_nothing(tmp_path):
    resources = filled(tmp_path / "state")
    update(resources, 1)
    copies: list[Path] = []

    def at_line(frame, event, _):
        if frame.f_code.co_filename != journal.__file__:
            return None
        copies.append(tmp_path / f"copy-{len(copies)}")
        shutil.copytree(tmp_path / "state", copies[-1])
        return at_line

    sys.settrace(at_line)
    try:
        with resources.update_lock:
            resources.journal.begin_anew(resources._everything())
    finally:
        sys.settrace(None)
    update(resources, 2)
    resources.close()
    assert {tuple(found(copy)[0]) for copy in copies} == {(1.0,)}
    assert found(tmp_path / "state") == ({2.0}, True)


@pytest.mark.parametrize("failing", ["_mapped", "replace"])
def test_records_that_cannot_be_compacted_go_on_and_lose_nothing(tmp_path, monkeypatch, failing):
    resources = filled(tmp_path / "state")
    former = resources.journal._records_number

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    mapped = journal.Journal._mapped

    def without_room(self, path, size):
        if path.name.startswith("records.") and path.name != f"records.{former}":
            full()
        return mapped(self, path, size)

    with monkeypatch.context() as patched:
        if failing == "replace":
            patched.setattr(Path, "replace", full)
        else:
            patched.setattr(journal.Journal, "_mapped", without_room)
        for number in range(1, 20):
            update(resources, number)
        assert resources.journal._records_number == former
        shutil.copytree(tmp_path / "state", tmp_path / "copy")
    assert found(tmp_path / "copy") == ({19.0}, True)
    for number in range(20, 40):
        update(resources, number)
    assert resources.journal._records_number > former
    resources.close()
    assert found(tmp_path / "state") == ({39.0}, True)


def test_a_forked_process_does_not_keep_the_folder_of_its_parent(tmp_path):
    resources = filled(tmp_path / "state")
    may_end, end = os.pipe()
    child = os.fork()
    if not child:
        os.close(end)
        os.read(may_end, 1)
        os._exit(0)
    os.close(may_end)
    try:
        resources.close()
        DurableResources(tmp_path / "state").close()
    finally:
        os.close(end)
        os.waitpid(child, 0)


def test_old_rows_of_a_former_file_of_records_must_not_be_put_back(tmp_path):
    resources = filled(tmp_path / "state")
    for number in range(1, 60):  # several compactions
        update(resources, number)
    shutil.copytree(tmp_path / "state", tmp_path / "copy")
    resources.close()
    assert found(tmp_path / "copy") == ({59.0}, True)


def test_a_folder_that_everybody_may_write_into_is_refused(tmp_path):
    folder = tmp_path / "state"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(errors.FailedPreconditionError, match="state for durable state belongs to user .* mode 777"):
        DurableResources(folder)


def test_a_value_that_a_reader_holds_must_not_change(tmp_path):
    resources = filled(tmp_path / "state")
    before = [variable(resources, name).read() for name in ("dense", "table", "small")]
    parts = [value[1:] for value in before]
    for number in range(1, 5):
        update(resources, number)
    assert not any(value.any() for value in [*before, *parts])
    held = variable(resources, "dense").read()[:5]
    for number in range(5, 9):
        update(resources, number)
    assert set(held) == {4.0}
    resources.close()
    assert found(tmp_path / "state") == ({8.0}, True)


def test_a_sparse_update_waits_until_a_save_that_begins_has_dropped_the_value(tmp_path, monkeypatch):
    class Save:
        is_young = True
        released = 0

        def before_update(self, array, rows):
            assert rows is not None

        def before_release(self, array):
            self.released += 1

    resources = filled(tmp_path / "state")
    table, save = variable(resources, "table"), Save()
    update(resources, 1)
    block = table.block
    table.watch(save)
    held = [table.read()]
    monkeypatch.setattr(resources_module.time, "sleep", lambda _: held.clear())
    update(resources, 2)
    monkeypatch.undo()
    assert (table.block is block, save.released, save.is_young) == (True, 0, False)
    assert table.rows_touched == 6
    resources.close()
    assert found(tmp_path / "state") == ({2.0}, True)


def test_blocks_must_be_used_again_and_not_pile_up(tmp_path):
    resources = filled(tmp_path / "state")
    for number in range(1, 30):
        update(resources, number)
    assert len(list((tmp_path / "state").glob("block.*"))) <= 4
    resources.cleanup()
    assert not list((tmp_path / "state").glob("block.*"))
    resources.close()
    again = DurableResources(tmp_path / "state")
    assert again.lookup("", "dense", Variable) is None
    again.close()


def test_a_change_outside_of_a_transaction_is_refused(tmp_path):
    resources = filled(tmp_path / "state")
    with pytest.raises(errors.InternalError, match="outside of a transaction"):
        variable(resources, "dense").assign(np.zeros(1100, np.float32))
    resources.close()


def test_a_second_process_must_not_have_the_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "_OWNER_WAIT_S", 0.0)
    resources = filled(tmp_path / "state")
    with pytest.raises(errors.FailedPreconditionError, match="belongs to another process"):
        DurableResources(tmp_path / "state")
    resources.close()


def test_a_full_disk_stops_updates_in_words_and_loses_nothing(tmp_path, monkeypatch):
    resources = filled(tmp_path / "state")
    update(resources, 1)

    def full(*_):
        raise OSError(28, "No space left on device")

    held = variable(resources, "dense").read()
    also_held = [held]
    for number in (2, 3):  # all spare blocks are read now
        update(resources, number)
        also_held.append(variable(resources, "dense").read())
    monkeypatch.setattr(journal.os, "posix_fallocate", full)
    with pytest.raises(errors.ResourceExhaustedError, match=r"free memory there, or set durability_folder"):
        update(resources, 4)
    monkeypatch.undo()
    shutil.copytree(tmp_path / "state", tmp_path / "copy")
    resources.close()
    assert found(tmp_path / "copy")[0] == {3.0}


def test_a_slot_refuses_steps_that_it_has_left_and_attempts_that_are_not_the_newest(tmp_path):
    steps = DurableResources(tmp_path / "state").steps
    first = steps.begin("s", StepName(1, 0, 7, 0).step_id)
    second = steps.begin("s", StepName(1, 0, 7, 1).step_id)
    with pytest.raises(errors.AbortedError, match="later attempt"):
        first.results()
    assert second.results() == {}
    with pytest.raises(errors.AbortedError, match="later attempt"):
        steps.begin("s", StepName(1, 0, 7, 0).step_id)
    steps.begin("s", StepName(1, 0, 8, 0).step_id)
    with pytest.raises(errors.AbortedError, match="is over"):
        steps.begin("s", StepName(1, 0, 7, 2).step_id)
    steps.begin("s", StepName(1, 1, 7, 0).step_id)


def test_a_step_id_bears_the_identity_of_its_step():
    for name in (StepName(5, 3, 9, 2), StepName((1 << 20) - 1, 255, (1 << 25) - 1, 1023)):
        assert StepName.of(name.step_id) == name
        assert name.step_id < 1 << 63


def test_the_numbers_of_a_slot_may_wrap_around(tmp_path):
    steps = DurableResources(tmp_path / "state").steps
    last = (1 << 25) - 1
    steps.begin("s", StepName(1, 0, last, 0).step_id)
    steps.begin("s", StepName(1, 0, last + 1, 0).step_id)
    with pytest.raises(errors.AbortedError, match="is over"):
        steps.begin("s", StepName(1, 0, last, 1).step_id)
    assert steps.begin("s", StepName(1, 0, 1, 0).step_id).results() == {}


def test_a_killed_process_releases_its_folder(tmp_path):
    program = (
        "import sys, pathlib; from dtf.run.durability.durable_resources import DurableResources\n"
        "DurableResources(pathlib.Path(sys.argv[1])); print('ready', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "state")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"ready\n"
        process.kill()
    DurableResources(tmp_path / "state").close()
