"""The tree of errors: codes, classes, what is printed, what survives pickling."""

from __future__ import annotations

import pickle
from types import SimpleNamespace

import pytest

from dtf.wire import errors

CODES = {
    "CancelledError": 1,
    "UnknownError": 2,
    "InvalidArgumentError": 3,
    "DeadlineExceededError": 4,
    "NotFoundError": 5,
    "AlreadyExistsError": 6,
    "PermissionDeniedError": 7,
    "ResourceExhaustedError": 8,
    "FailedPreconditionError": 9,
    "AbortedError": 10,
    "OutOfRangeError": 11,
    "UnimplementedError": 12,
    "InternalError": 13,
    "UnavailableError": 14,
    "DataLossError": 15,
    "UnauthenticatedError": 16,
}


@pytest.mark.parametrize(("name", "code"), CODES.items())
def test_each_class_has_its_code_and_each_code_its_class(name, code):
    error = errors.error_from_code(code, "words", "node", None)
    assert type(error) is getattr(errors, name) and isinstance(error, errors.OpError)
    assert (error.error_code, error.message, error.node_def, error.op) == (code, "words", "node", None)
    assert error.derived is False and str(error) == "words"
    assert errors.exception_type_from_error_code(code) is type(error)
    assert errors.error_code_from_exception_type(type(error)) == code
    assert getattr(errors, errors.code_name(code)) == code
    assert name in errors.__all__ and errors.code_name(code) in errors.__all__


def test_an_unassigned_code_keeps_its_number():
    error = errors.error_from_code(99, "words")
    assert type(error) is errors.UnknownError and error.code == 99
    assert errors.code_name(99) == "99"


def test_the_text_names_the_line_that_made_the_op():
    op = SimpleNamespace(name="loss", traceback=[("trainer.py", 7, "main", "loss = ...")])
    text = str(errors.InvalidArgumentError(None, op, "bad"))
    assert text == "bad\n\nOriginal stack trace for 'loss':\n  File \"trainer.py\", line 7, in main"


def test_an_error_crosses_a_process_boundary_without_its_op():
    error = errors.AbortedError(None, object(), "gone")
    error.derived = True
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), copy.message, copy.derived, copy.op) == (errors.AbortedError, "gone", True, None)
