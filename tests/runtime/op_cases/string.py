"""Cases of the string ops."""

from __future__ import annotations

import gzip
import zlib

import numpy as np

import dtf as tf
from dtf.wire import errors
from tests.runtime.op_cases import RECORDED, Case
from tests.runtime.op_cases.array import fails_with, ints, longs, strings

# Every length class of the hashes, and what is around its bounds.
OF_MANY_LENGTHS = strings(
    [bytes((7 * i + size) % 251 for i in range(size)) for size in (0, 1, 3, 4, 7, 8, 9, 16, 17, 32, 33, 64, 65, 200)]
)
BAD_UTF8 = strings(
    [b"a\xffb\xc3", b"\xe2\x82", b"ok\x01\n\xc3\xa4", b"\xf0\x9f\x98\x80", b"\xed\xa0\x80", b"\xe2\x82a"]
)
WORDS = [strings([b"a", b"b", b"c", b"d", b"e"]), longs([0, 3, 3, 4, 5])]
BARS = {"separator": "|", "left_pad": "L", "right_pad": "R", "preserve_short_sequences": False}

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
    Case("StringToHashBucketFast", [OF_MANY_LENGTHS], {"num_buckets": 2**40}, RECORDED),
    Case("StringToHashBucket", [OF_MANY_LENGTHS], {"num_buckets": 2**40}, RECORDED),
    Case("StringToHashBucketStrong", [OF_MANY_LENGTHS], {"num_buckets": 2**40, "key": [-1, 2**40]}, RECORDED),
    Case("Fingerprint", [ints([[1, 2], [3, 4]]), strings(b"farmhash64")], expect=RECORDED),
    Case("Fingerprint", [strings([b"a", b"b"]), strings(b"farmhash64")], expect=RECORDED, name="strings"),
    Case("Fingerprint", [strings([[b"a", b"b"]]), strings(b"farmhash64")], expect=RECORDED, name="rows_of_strings"),
    Case(
        "StringFormat",
        [[np.arange(12).reshape(3, 4), np.float32(0.1), A_B, np.array([1e10, np.nan]), np.arange(8).reshape(2, 2, 2)]],
        {"template": "<{} {} {} {} {}>", "placeholder": "{}"},
        RECORDED,
    ),
    Case(
        "StringFormat",
        [[np.arange(20), np.float16(0.3), np.bool_(True)]],
        {"template": "%s%s%s", "summarize": 2},
        strings(b"[0 1 ... 18 19]0.3000488281"),
        name="shortened",
    ),
    Case("StringNGrams", WORDS, BARS | {"ngram_widths": [2, 3], "pad_width": 0}, RECORDED),
    Case("StringNGrams", WORDS, BARS | {"ngram_widths": [2, 3], "pad_width": -1}, RECORDED, name="padded"),
    Case(
        "StringNGrams",
        WORDS,
        BARS | {"ngram_widths": [2, 3], "pad_width": 0, "preserve_short_sequences": True},
        RECORDED,
        name="short_ones_kept",
    ),
    Case(
        "UnsortedSegmentJoin",
        [strings([[b"a", b"b"], [b"c", b"d"]]), ints([2, 2]), ints(3)],
        {"separator": "-"},
        strings([[b"", b""], [b"", b""], [b"a-c", b"b-d"]]),
    ),
    Case(
        "DecodeCompressed",
        [strings([zlib.compress(b"abc"), zlib.compress(b"")])],
        {"compression_type": "ZLIB"},
        strings([b"abc", b""]),
    ),
    Case("DecodeCompressed", [strings(gzip.compress(b"x"))], {"compression_type": "GZIP"}, strings(b"x"), name="gzip"),
    Case(
        "DecodePaddedRaw",
        [strings([b"abc", b"abcdef", b""]), ints(4)],
        {"out_type": tf.int16},
        np.array([[25185, 99], [25185, 25699], [0, 0]], np.int16),
    ),
    *(
        Case(
            "UnicodeTranscode",
            [BAD_UTF8],
            {"input_encoding": "UTF-8", "output_encoding": encoding, "errors": errors_},
            RECORDED,
            name=f"{encoding}-{errors_}",
        )
        for encoding in ("UTF-8", "UTF-16-BE", "UTF-32-BE")
        for errors_ in ("replace", "ignore")
    ),
    Case("UnicodeDecode", [BAD_UTF8], {"input_encoding": "UTF-8"}, RECORDED),
    Case("UnicodeDecodeWithOffsets", [BAD_UTF8], {"input_encoding": "UTF-8", "errors": "ignore"}, RECORDED),
    Case(
        "UnicodeEncode",
        [ints([65, 0x20AC, 0x110000, 0xD800, 66]), longs([0, 2, 5])],
        {"output_encoding": "UTF-8"},
        strings([b"A\xe2\x82\xac", b"\xef\xbf\xbd\xef\xbf\xbdB"]),
    ),
]
