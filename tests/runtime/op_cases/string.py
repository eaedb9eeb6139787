"""Cases of the string ops."""

from __future__ import annotations

import numpy as np

import dtf as tf
from dtf.wire import errors
from tests.runtime.op_cases import Case
from tests.runtime.op_cases.array import fails_with, ints, longs, strings

A_B = strings([b"a", b"b"])

CASES = [
    Case("StringJoin", [[A_B, strings(b"-"), strings([b"c", b"d"])]], expect=strings([b"a-c", b"b-d"])),
    Case("StringJoin", [[strings(b"a"), strings(b"b")]], {"separator": "/"}, strings(b"a/b"), name="scalars"),
    Case(
        "StringSplit",
        [strings([b"a bc", b"", b" d"]), strings(b" ")],
        expect=[longs([[0, 0], [0, 1], [2, 0]]), strings([b"a", b"bc", b"d"]), longs([3, 2])],
    ),
    Case(
        "StringSplit",
        [strings([b"ab"]), strings(b"")],
        expect=[longs([[0, 0], [0, 1]]), A_B, longs([1, 2])],
        name="into_characters",
    ),
    Case(
        "StringSplitV2",
        [strings([b"a<>b<>c"]), strings(b"<>")],
        {"maxsplit": 1},
        [longs([[0, 0], [0, 1]]), strings([b"a", b"b<>c"]), longs([1, 2])],
    ),
    Case(
        "ReduceJoin", [strings([[b"a", b"b"], [b"c", b"d"]]), ints([0])], {"separator": "+"}, strings([b"a+c", b"b+d"])
    ),
    Case(
        "ReduceJoin",
        [strings([[b"a", b"b"], [b"c", b"d"]]), ints([1, 0])],
        {"keep_dims": True},
        strings([[b"abcd"]]),
        name="order_of_axes",
    ),
    Case("StringLength", [strings([b"abc", b""])], expect=ints([3, 0])),
    Case("StringLength", [strings("\u00e4b".encode())], {"unit": "UTF8_CHAR"}, ints(2), name="characters"),
    Case("StringStrip", [strings([b" a \n"])], expect=strings([b"a"])),
    Case("StringLower", [strings([b"aB"])], expect=strings([b"ab"])),
    Case("StringUpper", [strings(["\u00e4B".encode()])], {"encoding": "utf-8"}, strings(["\u00c4B".encode()])),
    Case("Substr", [strings([b"hello", b"world"]), ints(1), ints(3)], expect=strings([b"ell", b"orl"])),
    Case(
        "Substr",
        [strings([b"hello", b"world"]), ints([-2, 0]), ints([9, 1])],
        expect=strings([b"lo", b"w"]),
        name="each_its_own",
    ),
    Case(
        "Substr",
        run=lambda: fails_with(
            errors.InvalidArgumentError, "pos 9 out of range", lambda at: tf.substr(["abc"], at, 1), np.int32(9)
        ),
        name="out_of_range",
    ),
    Case("RegexFullMatch", [strings([b"ab", b"abc"]), strings(b"a.")], expect=np.array([True, False])),
    Case("StaticRegexFullMatch", [strings([b"ab", b"abc"])], {"pattern": "a.*"}, np.array([True, True])),
    Case("RegexReplace", [strings([b"a1b2"]), strings(rb"(\d)"), strings(rb"<\1\0>")], expect=strings([b"a<11>b<22>"])),
    Case(
        "StaticRegexReplace",
        [strings([b"aa"])],
        {"pattern": "a", "rewrite": "b", "replace_global": False},
        strings([b"ba"]),
    ),
    Case("AsString", [np.array([1.5, -2.0])], expect=strings([b"1.500000", b"-2.000000"])),
    Case("AsString", [ints([7])], {"width": 3, "fill": "0"}, strings([b"007"]), name="filled"),
    Case("AsString", [np.array([True, False])], expect=strings([b"true", b"false"]), name="bool"),
    Case(
        "AsString", [np.array([0.25])], {"precision": 1, "scientific": True}, strings([b"2.5e-01"]), name="scientific"
    ),
    Case("StringToNumber", [strings([b"1.5", b"-2e3"])], expect=np.array([1.5, -2000.0], np.float32)),
    Case("StringToNumber", [strings([b"12"])], {"out_type": tf.int64}, longs([12]), name="int"),
    Case(
        "StringToNumber",
        run=lambda: fails_with(
            errors.InvalidArgumentError,
            "StringToNumberOp could not correctly convert string: x1",
            tf.string_to_number,
            strings([b"x1"]),
        ),
        name="no_number",
    ),
    Case("EncodeBase64", [strings([b"\xff\xfe?"])], expect=strings([b"__4_"])),
    Case("EncodeBase64", [strings([b"a"])], {"pad": True}, strings([b"YQ=="]), name="padded"),
    Case("DecodeBase64", [strings([b"YQ", b"__4_"])], expect=strings([b"a", b"\xff\xfe?"])),
    Case("DecodeRaw", [strings([b"\x01\x00\x02\x00"])], {"out_type": tf.int16}, np.array([[1, 2]], np.int16)),
    Case(
        "DecodeRaw",
        [strings(b"\x00\x01")],
        {"out_type": tf.int16, "little_endian": False},
        np.array([1], np.int16),
        name="big_endian",
    ),
    Case(
        "DecodeCSV",
        [strings([b'1,"a,b"', b",c"]), [ints([5]), strings([b""])]],
        expect=[ints([1, 5]), strings([b"a,b", b"c"])],
    ),
]
