"""Comparisons of protobuf messages in tests."""

from __future__ import annotations

import unittest
from typing import Any

from google.protobuf import text_format
from google.protobuf.message import Message

__all__ = ["assert_same_message"]

_DECIMALS = 6


def assert_same_message(case: unittest.TestCase, expected: Any, actual: Any, msg: str | None) -> None:
    """Fails the test if the messages differ; floats are rounded to six decimals.

    Args:
      expected: a message of the same type, or its text.
    """
    if isinstance(expected, str | bytes):
        expected = text_format.Merge(expected, type(actual)())
    if type(expected) is not type(actual):
        case.fail(f"Can't compare protos of type {type(expected)} and {type(actual)}.")
    case.assertMultiLineEqual(str(_rounded(expected)), str(_rounded(actual)), msg)


def _rounded(message: Any) -> Any:
    copy = type(message)()
    copy.CopyFrom(message)
    _round(copy)
    return copy


def _round(message: Any) -> None:
    for field, value in message.ListFields():
        is_repeated = field.is_repeated if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED
        if field.cpp_type in (field.CPPTYPE_FLOAT, field.CPPTYPE_DOUBLE):
            if is_repeated:
                value[:] = [round(each, _DECIMALS) for each in value]
            else:
                setattr(message, field.name, round(value, _DECIMALS))
        elif field.cpp_type == field.CPPTYPE_MESSAGE:
            if not is_repeated:
                _round(value)
            elif not (field.message_type.has_options and field.message_type.GetOptions().map_entry):
                for each in value:
                    _round(each)
            else:
                for each in value.values():
                    if isinstance(each, Message):
                        _round(each)
