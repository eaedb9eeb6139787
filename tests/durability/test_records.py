"""A record by a template says the same as one that is written word by word."""

import numpy as np
import pytest

from dtf.run.durability.durable_resources import DurableResources
from dtf.run.durability.records import UpdateRecords, packed_record, say_steps, say_value, unpacked_record
from dtf.run.state.resources import Variable
from dtf.wire import dtypes

STEP = ("a session % with \0 in it", 3)
SHAPES = {"in the record": (5,), "in a block": (2000,), "another block": (40, 50)}


def _variable(resources, name, shape):
    return resources.lookup_or_create("", name, Variable, lambda: Variable(name, dtypes.float32, shape))


@pytest.fixture
def variables(tmp_path):
    resources = DurableResources(tmp_path / "folder")
    made = [_variable(resources, name, shape) for name, shape in SHAPES.items()]
    with resources.update_lock:
        for each in made:
            each.assign(np.ones(each.declared_shape, np.float32))
    yield resources, made
    resources.close()


def _word_by_word(changed, ran):
    words, values = {}, []
    for each in changed:
        say_value(each, words, values, False)
    say_steps(ran, words, values)
    return packed_record(words, values)


def _ran(number, **results):
    return [(STEP, number, name, value) for name, value in results.items()]


def test_the_same_words_come_out_for_each_kind_of_value_and_each_number(variables):
    resources, (held, block, other) = variables
    records = UpdateRecords()
    for number in (1, 9, 10, 12345):
        with resources.update_lock:
            block.update(np.add, np.ones(2000, np.float32))
            held.update(np.add, np.ones(5, np.float32))
            other.writable(np.array([3]))[3] += 1  # saved rows: the record names no block
            for changed in ([held], [block, held], [held, block, other], [other]):
                for ran in ([], _ran(number, a=None), _ran(number, a=None, b=np.float32(number)), _ran(number, b=held)):
                    assert records.text(changed, ran) == _word_by_word(changed, ran)


def test_another_shape_or_dtype_of_a_block_is_said(variables):
    resources, (_, block, _) = variables
    records = UpdateRecords()
    for array in (np.ones(3000, np.float32), np.ones((60, 50), np.float32), np.ones(3000, np.int64)):
        with resources.update_lock:
            block.assign(array)
            assert records.text([block], []) == _word_by_word([block], [])


def test_what_is_more_than_an_update_of_known_variables_has_no_template(variables):
    resources, (held, block, _) = variables
    records = UpdateRecords()
    with resources.update_lock:
        block.clear()
        assert records.text([block], []) is None
        new = _variable(resources, "new", (2,))
        new.assign(np.ones(2, np.float32))
        assert records.text([new], []) is None
        two_steps = [*_ran(1, a=None), *_ran(2, a=None)]
        assert records.text([held], two_steps) is None
        assert records.text([held], _ran(1, a=(np.ones(1), np.ones(1)))) is None


def test_a_name_that_looks_like_the_place_of_a_number_has_no_template(variables):
    _, (held, _, _) = variables
    ran = [(("s", 0), 5, "\0", None)]
    assert UpdateRecords().text([held], ran) is None


def test_a_record_gives_back_its_words_and_values():
    text = packed_record({"i": [[7, 0]]}, [np.arange(3.0)])
    words, (value,) = unpacked_record(text)
    assert words == {"i": [[7, 0]]} and value.tolist() == [0.0, 1.0, 2.0] and value.flags.owndata
