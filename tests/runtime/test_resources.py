"""Variables with copy-on-write, and the containers that share them."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from dtf.run.state.resources import ResourceHandle, ResourceManager, Variable, unaliased
from dtf.wire import dtypes, errors


def variable_of(array) -> Variable:
    variable = Variable("v", dtypes.as_dtype(array.dtype))
    variable.assign(array)
    return variable


def address(variable: Variable) -> int:
    return variable.read().__array_interface__["data"][0]


def test_an_uninitialized_variable_says_its_name():
    with pytest.raises(errors.FailedPreconditionError, match="Attempting to use uninitialized value layer/w"):
        Variable("layer/w", dtypes.float32, (2,)).read()


def test_the_shape_is_the_declared_one_until_there_is_a_value():
    variable = Variable("v", dtypes.float32, (None, 2))
    assert variable.shape == (None, 2)
    variable.assign(np.zeros((3, 2), np.float32))
    assert variable.shape == (3, 2)


def test_a_buffer_that_nobody_shares_is_updated_in_place():
    variable = variable_of(np.zeros(1000))
    before = address(variable)
    variable.update(np.add, np.ones(1000))
    with variable.lock:
        variable.writable()[:] += 1
    assert address(variable) == before
    assert variable.read().tolist() == [2.0] * 1000


@pytest.mark.parametrize("change", ["update", "writable"])
@pytest.mark.parametrize(
    "hold",
    [
        lambda array: array,
        lambda array: array[10:20],
        lambda array: array.reshape(10, 100)[0],
        lambda array: memoryview(array),
        lambda array: np.frombuffer(memoryview(array).cast("B"), array.dtype),
    ],
    ids=["array", "view", "view of a view", "memoryview", "foreign array"],
)
def test_what_a_reader_holds_never_changes(hold, change):
    variable = variable_of(np.zeros(1000))
    held = hold(variable.read())
    if change == "update":
        variable.update(np.add, np.ones(1000))
    else:
        with variable.lock:
            variable.writable()[:] = 1
    assert not np.asarray(held).any()
    assert variable.read().all()


def test_once_the_reader_is_gone_updates_are_in_place_again():
    variable = variable_of(np.zeros(10))
    held = variable.read()
    variable.update(np.add, 1.0)
    copied = address(variable)
    del held
    variable.update(np.add, 1.0)
    assert address(variable) == copied


def test_an_array_that_is_a_view_is_copied_before_it_is_written():
    owner = np.zeros(10)
    variable = variable_of(owner[:5])
    variable.update(np.add, 1.0)
    assert not owner.any()


def test_a_read_only_array_is_copied_before_it_is_written():
    array = np.zeros(3)
    array.flags.writeable = False
    variable = variable_of(array)
    with variable.lock:
        variable.writable()[0] = 1
    assert variable.read().tolist() == [1, 0, 0]


def test_two_variables_with_one_array_do_not_see_each_other():
    array = np.zeros(3)
    first, second = variable_of(array), variable_of(array)
    del array
    first.update(np.add, 1.0)
    assert second.read().tolist() == [0, 0, 0]
    second.update(np.add, 2.0)
    assert first.read().tolist() == [1, 1, 1]


def test_scalars_of_numpy_are_values_too():
    variable = variable_of(np.int64(4))
    variable.update(np.add, np.int64(1))
    assert variable.read() == 5
    with variable.lock:
        variable.writable()[()] = 7
    assert variable.read() == 7


def test_an_update_with_its_own_value_is_right():
    variable = variable_of(np.ones(4))
    variable.update(np.add, variable.read())
    assert variable.read().tolist() == [2.0] * 4


def test_readers_in_other_threads_never_see_a_half_made_update():
    variable = variable_of(np.zeros(20_000))
    stop = threading.Event()
    torn: list[np.ndarray] = []

    def read() -> None:
        while not stop.is_set():
            array = variable.read()
            first = float(array[0])
            if array.min() != first or array.max() != first or float(array[0]) != first:
                torn.append(array)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for _ in range(300):
        variable.update(np.add, 1.0)
    stop.set()
    for reader in readers:
        reader.join()
    assert not torn
    assert variable.read()[0] == 300


def test_updates_of_several_threads_all_count():
    variable = variable_of(np.zeros(100))

    def add() -> None:
        for _ in range(200):
            variable.update(np.add, 1.0)

    threads = [threading.Thread(target=add) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert variable.read().tolist() == [600.0] * 100


def test_what_leaves_the_runtime_is_copied_only_if_somebody_else_has_it():
    variable = variable_of(np.zeros(3))
    values = [variable.read(), np.ones(3), np.float32(2)]
    own = id(values[1])
    taken = [unaliased(values, index) for index in range(3)]
    taken[0][:] = 9
    assert variable.read().tolist() == [0, 0, 0]
    assert id(taken[1]) == own
    assert taken[2] == 2


def test_an_object_of_a_name_is_made_once():
    manager = ResourceManager()
    first = manager.lookup_or_create("", "v", Variable, lambda: Variable("v", dtypes.float32))
    assert manager.lookup_or_create("localhost", "v", Variable, lambda: Variable("w", dtypes.float32)) is first
    assert manager.lookup("other", "v", Variable) is None
    with pytest.raises(errors.AlreadyExistsError, match="localhost/v"):
        manager.create("", "v", Variable, first)


def test_a_handle_of_what_is_gone_is_not_found():
    manager = ResourceManager()
    variable = manager.lookup_or_create("box", "v", Variable, lambda: Variable("v", dtypes.float32))
    handle = ResourceHandle("/device:CPU:0", "box", "v", "Var")
    assert manager.get(handle, Variable) is variable
    manager.delete_named("box", "v")
    with pytest.raises(errors.NotFoundError, match="Resource box/v/Variable does not exist"):
        manager.get(handle, Variable)


class Closable:
    def __init__(self) -> None:
        self.is_closed = False

    def close(self) -> None:
        self.is_closed = True


def test_cleaning_a_container_closes_what_it_holds_and_spares_the_others():
    manager = ResourceManager()
    inside = manager.lookup_or_create("box", "a", Closable, Closable)
    outside = manager.lookup_or_create("", "a", Closable, Closable)
    manager.cleanup(["box"])
    assert (inside.is_closed, outside.is_closed) == (True, False)
    manager.cleanup()
    assert outside.is_closed
