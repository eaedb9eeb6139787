"""The store under damage, and between two processes."""

from __future__ import annotations

import sqlite3

import pytest

from dtfctl.errors import StoreError
from dtfctl.storage.store import Store
from dtfctl.values.run import Run
from dtfctl.values.task import Exit, TaskStatus
from tests.dtfctl.fakes import plan_of


def a_run(**changes):
    values = dict(number=1, token="t", boot="b", plan=plan_of(), environment={"A": "b"}, addresses={}, started_at=5.0)
    return Run(**{**values, **changes})


STATUSES = [
    TaskStatus("ps:0", "running", 1, pid=5, failures=(1.0, 2.0)),
    TaskStatus("worker:0", "exited", 2, exit=Exit(3.0, signal=9)),
    TaskStatus("worker:1"),
]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.sqlite"


def filled(path):
    store = Store(path)
    store.begin(a_run(), STATUSES)
    store.close()


def test_what_was_saved_is_what_is_loaded(path):
    store = Store(path)
    assert store.load() is None
    store.begin(a_run(), reversed(STATUSES))
    store.save(a_run(outcome="stopped", strays=((1, "h", "c"),)), STATUSES[:1])
    run, statuses = store.load()
    store.close()
    assert run == a_run(outcome="stopped", strays=((1, "h", "c"),))
    assert list(statuses.values()) == STATUSES


def test_nothing_new_is_not_written_again(path):
    store, run = Store(path), a_run()
    store.begin(run, STATUSES)
    other = sqlite3.connect(path)

    def version():
        return other.execute("PRAGMA data_version").fetchone()

    before = version()
    store.save(run, ())
    assert version() == before
    store.save(run, [TaskStatus("worker:1", "starting", 1)])
    assert version() != before
    other.close()
    store.close()


def test_a_reader_sees_what_the_writer_has_committed(path):
    writer, reader = Store(path), Store(path)
    writer.begin(a_run(), STATUSES)
    assert reader.load()[0].number == 1
    writer.save(a_run(number=2), STATUSES, [writer.happening("ps:0", "start", "why not")])
    assert reader.load()[0].number == 2
    assert [item.what for item in reader.history(2)] == ["start"]
    writer.close()
    reader.close()


def test_a_new_run_forgets_the_tasks_of_the_former_one(path):
    filled(path)
    store = Store(path)
    store.begin(a_run(number=2, plan=plan_of("program: x\njobs: {a: 1}")), [TaskStatus("a:0")])
    assert list(store.load()[1]) == ["a:0"]
    store.close()


def test_the_file_is_private(path):
    filled(path)
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("damage", ["no database", "cut short", "other version", "no json", "other keys"])
def test_a_damaged_file_is_refused_in_words_that_say_what_to_do(path, damage):
    filled(path)
    if damage == "no database":
        path.write_bytes(b"x" * 5000)
    elif damage == "cut short":
        path.write_bytes(path.read_bytes()[:2000])
    else:
        database = sqlite3.connect(path)
        database.execute(
            {
                "other version": "PRAGMA user_version = 99",
                "no json": "UPDATE run SET document = '{'",
                "other keys": "UPDATE run SET document = '{}'",
            }[damage]
        )
        database.commit()
        database.close()
    with pytest.raises(StoreError, match="dtfctl down .* --purge"):
        store = Store(path)
        try:
            store.load()
        finally:
            store.close()


def test_a_file_damaged_at_any_place_never_gives_a_traceback(path):
    filled(path)
    whole = path.read_bytes()
    for position in range(0, len(whole), 997):
        damaged = bytearray(whole)
        damaged[position] ^= 0xFF
        path.write_bytes(damaged)
        try:
            store = Store(path)
        except StoreError:
            continue
        try:
            loaded = store.load()
            assert loaded is None or loaded[0].number
        except StoreError:
            pass
        finally:
            store.close()
