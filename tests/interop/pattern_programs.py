"""Regular expressions over texts, run under either library and compared by value."""

from __future__ import annotations

from typing import Any

PATTERNS = [
    b"", b"a", b"a*", b"(a*)*", b"(a+)+$", b"(a|aa)+$", b"a|b|", b"^a", b"a$", b"\\Aa", b"a\\z", b"a\\Z", b"(?m)^a$",
    b"(?s).+", b".", b".*", b".*?", b"\\C", b"\\d+", b"\\D", b"\\w+", b"\\W", b"\\s", b"\\b", b"\\B", b"[[:alpha:]]+",
    b"[^a-c]", b"[a-\\d]", b"[\\w-]+", b"\\pN", b"\\p{Ll}+", b"\\p{Lu}", b"\\PL", b"\\p{Greek}", b"\\p{Nope}",
    b"(?i)\xc3\x89", b"\xc3\xa9+", b"\xff", b"\\xff", b"\\x{e9}", b"\\Q.*\\E", b"(?i)A(?-i)b", b"(?P<one>a)(b)?",
    b"(?P<n>a)(?P<n>b)", b"(?:a)(b)", b"a{2}", b"a{1,}", b"a{,2}", b"a{2,1}", b"x{1001}", b"(x{100}){100}", b"a**",
    b"a++", b"*a", b"a)", b"(a", b"[a", b"(?=a)", b"(?<!a)b", b"(a)\\1", b"\\", b"a\\", b"\\q", b"a\x00b", b"(?U)a+",
    b"\\0", b"\\07", b"[]a]", b"[[:nope:]]", b"(?z)a", b"((((a))))", b"(a)(b)(c)?(d)?", b"\\.", b"[^\\n]+",
]  # fmt: skip

TEXTS = [
    b"", b"a", b"aaa", b"ab", b"xxabab", b"a\n", b"a\nb\na", b"aaa\nb", b"abc 123_4 Zeta", b"\xc3\xa9\xc3\x89x",
    b"\xce\xb1\xce\xa9", b"ab\xff", b"\xffx", b"\xc3", b"\xed\xa0\x80", b"a\x00b", b".*", b"-a-b", b"aaaaaaaaaaaab",
]  # fmt: skip

REWRITES = [b"-", b"", b"<\\0>", b"\\1", b"[\\1\\2]", b"\\9", b"\\\\", b"x\\", b"\\x", b"y\\q\\1z", b"\x00\xff"]


def outcomes(tf: Any) -> list[Any]:
    """The results for every pattern: matches, and what each rewrite makes; or the name of the error."""
    texts, pattern, rewrite = (tf.placeholder(tf.string, shape) for shape in ([None], [], []))
    full = tf.strings.regex_full_match(texts, pattern)
    every = tf.strings.regex_replace(texts, pattern, rewrite)
    first = tf.strings.regex_replace(texts, pattern, rewrite, replace_global=False)
    found: list[Any] = []
    with tf.Session() as session:
        for each in PATTERNS:
            feeds = {texts: TEXTS, pattern: each, rewrite: b""}
            try:
                row: list[Any] = [session.run(full, feeds).tolist()]
                for text in REWRITES:
                    feeds[rewrite] = text
                    row += [[made.decode("latin-1") for made in session.run(op, feeds)] for op in (every, first)]
            except (tf.errors.InvalidArgumentError, ValueError):  # TensorFlow's client cannot show some patterns
                row = ["InvalidArgumentError"]
            found.append(row)
    return found
