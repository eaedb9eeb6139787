"""Saves that training does not wait for: snapshots of variables, and the files that are written from them."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import dtf as tf
from dtf.run.kernels import saving
from dtf.run.state import resources
from dtf.run.state.resources import ResourceManager, Variable
from dtf.run.state.snapshots import PIECE_BYTES, Budget, VariableSnapshot, is_large
from dtf.run.threads.cancellation import CancellationManager
from dtf.wire import dtypes, errors
from dtf.wire.checkpoint import BundleReader, BundleWriter
from dtf.wire.crc import crc32c, joined_crc32c

ROWS, WIDTH = 40_003, 16


def variable_of(array) -> Variable:
    variable = Variable("v", dtypes.as_dtype(array.dtype))
    variable.assign(array)
    return variable


def table(rows: int = ROWS, width: int = WIDTH, dtype=np.float32) -> np.ndarray:
    return np.arange(rows * width).reshape(rows, width).astype(dtype)


def rest_of(snapshot: VariableSnapshot) -> np.ndarray:
    out = np.zeros(snapshot.nbytes, np.uint8)
    while (piece := snapshot.take()) is not None:
        out[piece[0] : piece[0] + len(piece[1])] = piece[1]
    return out


def update_rows(variable: Variable, rows) -> None:
    with variable.lock:
        variable.writable(np.asarray(rows))[np.asarray(rows)] += 1


CHANGES = {
    "rows": lambda variable: update_rows(variable, [0, 5, ROWS - 1, 5, 20_000]),
    "all rows in place": lambda variable: variable.update(np.add, np.ones_like(variable.look(np.copy))),
    "some part of it": lambda variable: variable.writable().__setitem__((slice(7), 3), -1),
    "another value": lambda variable: variable.assign(np.zeros_like(variable.look(np.copy))),
    "rows, then all": lambda variable: (update_rows(variable, [1, ROWS - 2]), variable.writable().fill(3)),
    "rows, then another value": lambda variable: (
        update_rows(variable, [1, ROWS - 2]), variable.assign(np.zeros_like(variable.look(np.copy))),
    ),
    "cleared": lambda variable: variable.clear(),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))
@pytest.mark.parametrize("read_before", [0, 1])
@pytest.mark.parametrize("budget", [0, 1 << 30], ids=["no room", "room"])
def test_a_snapshot_has_the_values_of_its_moment(change, read_before, budget):
    variable = variable_of(table())
    snapshot = VariableSnapshot(variable, Budget(budget))
    found = np.zeros(snapshot.nbytes, np.uint8)
    for _ in range(read_before):
        start, piece = snapshot.take()
        found[start : start + len(piece)] = piece
    change(variable)
    read = read_before * PIECE_BYTES
    found[read:] = rest_of(snapshot)[read:]
    assert np.array_equal(found.view(np.float32).reshape(ROWS, WIDTH), table())


@pytest.mark.parametrize("width", [1, 3, 16, 300, 20_000])
def test_rows_of_any_width_are_kept(width):
    rows = max(8, 200_000 // width)
    variable = variable_of(table(rows, width, np.float64))
    snapshot = VariableSnapshot(variable, Budget(1 << 30))
    for row in (0, rows // 2, rows - 1):
        update_rows(variable, [row])
    assert np.array_equal(rest_of(snapshot).view(np.float64).reshape(rows, width), table(rows, width, np.float64))
    assert variable.read()[0, 0] == 1


def test_an_update_of_rows_copies_only_these():
    variable = variable_of(table())
    budget = Budget(1 << 30)
    snapshot = VariableSnapshot(variable, budget)
    before = variable.look(lambda array: array.__array_interface__["data"][0])
    update_rows(variable, range(100))
    assert variable.look(lambda array: array.__array_interface__["data"][0]) == before
    assert budget._used < 200 * WIDTH * 4
    snapshot.close()
    assert budget._used == 0


def test_an_update_beyond_the_budget_writes_the_rest_first():
    variable = variable_of(table())
    found = []

    def overflow(snapshot: VariableSnapshot) -> bool:
        found.append(rest_of(snapshot))
        return True

    budget = Budget(1000)
    VariableSnapshot(variable, budget, overflow)
    update_rows(variable, range(0, ROWS, 7))
    assert np.array_equal(found[0].view(np.float32).reshape(ROWS, WIDTH), table())
    assert budget._used == 0
    assert variable.read()[0, 0] == 1


def test_an_update_waits_until_the_save_has_dropped_the_value_it_read(monkeypatch):
    monkeypatch.setattr(resources, "_SETTLE_S", 60.0)
    variable = variable_of(table())
    held = [variable.read()]
    budget = Budget(0)
    snapshot = VariableSnapshot(variable, budget)
    before = held[0].__array_interface__["data"][0]
    monkeypatch.setattr(resources.time, "sleep", lambda _: held.clear())
    update_rows(variable, [0])
    assert not snapshot.is_young
    assert variable.look(lambda array: array.__array_interface__["data"][0]) == before


def test_small_values_strings_and_columns_are_held_instead():
    assert is_large(table())
    for array in (np.zeros(10), np.zeros(10_000, object), np.asfortranarray(table()), np.float32(3)):
        assert not is_large(array)


@pytest.mark.parametrize("lengths", [(0, 0), (1, 0), (0, 5), (1000, 1), (3, 100_000)])
def test_checksums_of_pieces_join(lengths):
    random = np.random.RandomState(1)
    first, second = (random.bytes(length) for length in lengths)
    assert joined_crc32c(crc32c(first), crc32c(second), len(second)) == crc32c(first + second)


def test_pieces_in_any_order_make_the_bundle_that_one_piece_makes(tmp_path):
    data = table().reshape(-1).view(np.uint8)
    with BundleWriter(str(tmp_path / "a")) as writer:
        place = writer.reserve("t", np.dtype(np.float32), [ROWS, WIDTH])
        writer.add("small", np.arange(3))
        for start in (500_000, 0, 1_000_000):
            place.write(start, data[start : start + 500_000 if start < 1_000_000 else None])
        place.finish()
    reader = BundleReader(str(tmp_path / "a"))
    assert np.array_equal(reader.read("t"), table())
    assert reader.read("small").tolist() == [0, 1, 2]


class Cluster:
    """One session, with a table that another step updates while a save stands still."""

    def __init__(self, monkeypatch, folder) -> None:
        self.table = tf.get_variable("table", initializer=tf.constant(table()), use_resource=True)
        self.reference = tf.get_variable("reference", initializer=tf.constant(table()), use_resource=False)
        ones = tf.ones([2, WIDTH])
        self.update = tf.group(
            tf.scatter_add(self.reference, [0, ROWS - 1], ones),
            self.table.scatter_add(tf.IndexedSlices(ones, tf.constant([0, ROWS - 1]))),
        )
        self.dense = tf.group(tf.assign_add(self.reference, tf.ones_like(self.reference)), self.table.assign_add(
            tf.ones_like(self.table)))  # fmt: skip
        self.saver = tf.train.Saver()
        self.session = tf.Session()
        self.session.run(tf.global_variables_initializer())
        self.session.run(self.update)
        self.before = self.session.run([self.table, self.reference])
        self.prefix = str(folder / "model")
        self.has_begun, self.may_go_on = threading.Event(), threading.Event()
        original = saving._Save._write_pieces

        def write_pieces(*arguments):
            self.has_begun.set()
            assert self.may_go_on.wait(60)
            original(*arguments)

        monkeypatch.setattr(saving._Save, "_write_pieces", write_pieces)

    def save_during(self, action) -> None:
        thread = threading.Thread(target=self._save)
        thread.start()
        assert self.has_begun.wait(60)
        try:
            action()
        finally:
            self.may_go_on.set()
            thread.join()

    def _save(self) -> None:
        self.error = None
        try:
            self.saver.save(self.session, self.prefix, write_meta_graph=False)
        except errors.OpError as error:
            self.error = error


@pytest.fixture
def cluster(monkeypatch, tmp_path):
    with tf.Graph().as_default():
        made = Cluster(monkeypatch, tmp_path)
        with made.session:
            yield made


@pytest.mark.parametrize("kind", ["update", "dense"])
def test_steps_go_on_while_a_save_waits_for_the_disk_and_are_not_in_it(cluster, kind):
    step = getattr(cluster, kind)
    cluster.save_during(lambda: [cluster.session.run(step) for _ in range(3)])
    assert cluster.error is None
    reader = BundleReader(cluster.prefix)
    for name, before in zip(("table", "reference"), cluster.before, strict=True):
        assert np.array_equal(reader.read(name), before)
    assert np.array_equal(cluster.session.run(cluster.table)[0], cluster.before[0][0] + 3)


@pytest.mark.parametrize("kind", ["update", "dense"])
def test_steps_that_find_no_room_write_the_rest_themselves(cluster, kind, monkeypatch):
    monkeypatch.setattr(saving, "_KEPT_BYTES_MIN", 0)
    monkeypatch.setattr(saving, "_KEPT_PART", 0)
    step = getattr(cluster, kind)
    cluster.save_during(lambda: [cluster.session.run(step) for _ in range(3)])
    reader = BundleReader(cluster.prefix)
    for name, before in zip(("table", "reference"), cluster.before, strict=True):
        assert np.array_equal(reader.read(name), before)


def test_a_full_disk_met_by_an_update_fails_the_save_alone(cluster, monkeypatch, tmp_path):
    monkeypatch.setattr(saving, "_KEPT_BYTES_MIN", 0)
    monkeypatch.setattr(saving, "_KEPT_PART", 0)

    def full(*_):
        raise errors.ResourceExhaustedError.of("model; No space left on device")

    monkeypatch.setattr(saving.PieceWriter, "write", full)
    cluster.save_during(lambda: cluster.session.run(cluster.dense))
    assert isinstance(cluster.error, errors.ResourceExhaustedError)
    assert "No space left on device" in str(cluster.error)
    assert list(tmp_path.iterdir()) == []


def test_a_save_that_is_cancelled_leaves_nothing(tmp_path):
    cancellation, answers = CancellationManager(), []
    arguments = (str(tmp_path / "model"), ["t"], [""], [table()], ResourceManager(), cancellation)
    cancellation.start_cancel()
    saving._Save(*arguments).run(lambda value=None, error=None: answers.append(error))
    assert isinstance(answers[0], errors.CancelledError)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("names", "specs"), [(["a"], ["", ""]), (["a", "b"], [""]), ([["a", "b"]], ["", ""])])
def test_a_save_whose_names_do_not_fit_its_tensors_is_refused(tmp_path, names, specs):
    with tf.Graph().as_default(), tf.Session() as session:
        variables = [tf.get_variable(name, initializer=tf.constant(table()), use_resource=False) for name in "ab"]
        save = tf.raw_ops.SaveV2(
            prefix=str(tmp_path / "model"), tensor_names=names, shape_and_slices=specs, tensors=variables
        )
        session.run(tf.global_variables_initializer())
        with pytest.raises(errors.InvalidArgumentError, match="must be a vector of 2 texts, one a tensor"):
            session.run(save)


def test_a_save_that_cannot_begin_watches_no_variable(tmp_path, monkeypatch):
    manager, array = ResourceManager(), table()
    variable = manager.lookup_or_create("localhost", "v", Variable, lambda: variable_of(array))
    held = variable.read()
    tensors = [held, np.array(["no array of numbers"], object)]
    source = saving._Save._source

    def failing(self, name, *arguments):
        if name == "b":
            raise MemoryError
        return source(self, name, *arguments)

    monkeypatch.setattr(saving._Save, "_source", failing)
    with pytest.raises(MemoryError):
        saving._Save(str(tmp_path / "m"), ["a", "b"], ["", ""], tensors, manager, CancellationManager())
    assert variable.watchers == ()


def test_a_restored_variable_is_updated_in_place(tmp_path):
    with tf.Graph().as_default(), tf.Session() as session:
        variable = tf.get_variable("table", initializer=tf.constant(table()), use_resource=True)
        saver = tf.train.Saver()
        session.run(variable.initializer)
        path = saver.save(session, str(tmp_path / "model"), write_meta_graph=False)
    assert BundleReader(path).read("table").flags.owndata
    assert BundleReader(path).read_slice("table", [(1, 2), (0, -1)]).shape == (2, WIDTH)
