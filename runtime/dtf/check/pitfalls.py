"""Names and syntax removed from Python 3 and numpy 2, and their substitutes. Owns the tables only."""

from __future__ import annotations

import re

__all__ = ["ARGUMENTS", "ATTRIBUTES", "BUILTINS", "METHODS", "MODULES", "NUMPY", "old_statements"]

BUILTINS = {
    "xrange": "range",
    "unicode": "str",
    "basestring": "str",
    "long": "int",
    "raw_input": "input",
    "unichr": "chr",
    "reduce": "functools.reduce",
    "file": "open",
    "cmp": "(a > b) - (a < b)",
    "execfile": "exec(open(path).read())",
    "reload": "importlib.reload",
    "izip": "zip",
    "imap": "map",
}

METHODS = {
    "iteritems": "items()",
    "itervalues": "values()",
    "iterkeys": "keys()",
    "has_key": "the operator in",
    "viewitems": "items()",
}
"""Methods of dictionaries."""

MODULES = {
    "cPickle": "pickle",
    "Queue": "queue",
    "urllib2": "urllib.request",
    "urlparse": "urllib.parse",
    "ConfigParser": "configparser",
    "StringIO": "io",
    "cStringIO": "io",
    "commands": "subprocess",
    "Tkinter": "tkinter",
    "HTMLParser": "html.parser",
    "thread": "threading",
    "__builtin__": "builtins",
    "copy_reg": "copyreg",
    "SocketServer": "socketserver",
    "BaseHTTPServer": "http.server",
    "sets": "the built-in set",
    "imp": "importlib",
    "distutils": "packaging.version for versions, setuptools for the rest",
}

ATTRIBUTES = {
    "itertools.izip": "zip",
    "itertools.imap": "map",
    "itertools.ifilter": "filter",
    "itertools.izip_longest": "itertools.zip_longest",
    "sys.maxint": "sys.maxsize",
    "string.letters": "string.ascii_letters",
    "string.lowercase": "string.ascii_lowercase",
    "string.uppercase": "string.ascii_uppercase",
    "string.maketrans": "str.maketrans",
    "string.join": "the method join of the separator",
    "os.getcwdu": "os.getcwd",
    "time.clock": "time.perf_counter",
    "inspect.getargspec": "inspect.getfullargspec",
    "scipy.misc.imread": "imageio.imread",
    "scipy.misc.imsave": "imageio.imwrite",
    "scipy.misc.imresize": "PIL.Image.resize",
    "scipy.misc.toimage": "PIL.Image.fromarray",
    "scipy.misc.logsumexp": "scipy.special.logsumexp",
    "collections.Mapping": "collections.abc.Mapping",
    "collections.MutableMapping": "collections.abc.MutableMapping",
    "collections.Iterable": "collections.abc.Iterable",
    "collections.Sequence": "collections.abc.Sequence",
    "collections.Callable": "collections.abc.Callable",
    "collections.Hashable": "collections.abc.Hashable",
    "urllib.urlretrieve": "urllib.request.urlretrieve",
    "urllib.urlopen": "urllib.request.urlopen",
    "urllib.urlencode": "urllib.parse.urlencode",
    "platform.linux_distribution": "platform.freedesktop_os_release",
    "base64.encodestring": "base64.encodebytes",
    "base64.decodestring": "base64.decodebytes",
}

NUMPY = {
    "bool8": "bool_",
    "bool": "bool_",
    "int": "int64, or the built-in int",
    "long": "int64, or the built-in int",
    "float": "float64, or the built-in float",
    "complex": "complex128",
    "object": "object_, or the built-in object",
    "str": "str_",
    "unicode": "str_",
    "typeDict": "sctypeDict",
    "float_": "float64",
    "complex_": "complex128",
    "int0": "intp",
    "uint0": "uintp",
    "string_": "bytes_",
    "unicode_": "str_",
    "NaN": "nan",
    "NAN": "nan",
    "Inf": "inf",
    "Infinity": "inf",
    "infty": "inf",
    "PINF": "inf",
    "NINF": "-inf",
    "product": "prod",
    "cumproduct": "cumprod",
    "alltrue": "all",
    "sometrue": "any",
    "asscalar": "ndarray.item",
    "row_stack": "vstack",
    "in1d": "isin",
    "trapz": "trapezoid",
    "asfarray": "asarray(x, dtype=float)",
    "cast": "asarray(x, dtype)",
    "rank": "ndim",
    "mat": "asmatrix",
    "msort": "sort(x, axis=0)",
    "find_common_type": "result_type",
    "round_": "round",
    "float128": "longdouble",
}
"""Names that numpy 2 does not have. A name that the installed numpy has is not reported."""

ARGUMENTS = {
    ("reshape", "newshape"): "shape",
    ("asarray", "copy"): "copy, with another meaning: np.array",
}
"""(function of numpy, argument) -> the argument's name now."""

_STATEMENTS = (
    (re.compile(r"^\s*print\s+[^\s(=.,\[]"), "print is a function: print(...)"),
    (re.compile(r"^\s*print\s*>>"), "print is a function: print(..., file=...)"),
    (re.compile(r"^\s*print\s*(#.*)?$"), "print is a function: print()"),
    (
        re.compile(r"^\s*except\s+[\w.()]+\s*(,\s*[\w.]+\)?)*\s*,\s*\w+\s*:"),
        "exceptions are named with as: except E as e:",
    ),
    (re.compile(r"^\s*raise\s+[\w.]+\s*,"), "exceptions are called: raise E(...)"),
    (re.compile(r"^\s*exec\s+[^(\s]"), "exec is a function: exec(...)"),
    (re.compile(r"<>"), "the operator is !="),
    (re.compile(r"(?<![\w.\"'])0[0-7]+(?![\w.\"'])"), "octal numbers begin with 0o"),
    (re.compile(r"(?<![\w.])\d+[lL]\b"), "integer literals have no suffix L"),
    (re.compile(r"\b[uU][rR][\"']"), "texts begin with r, not with ur"),
    (re.compile(r"`[^`]+`"), "backquotes are repr(...)"),
    (re.compile(r"^\s*def\s+\w+\(.*\(\s*\w+\s*,"), "arguments cannot be tuples"),
)


def old_statements(source: str) -> list[tuple[int, str]]:
    """(line, substitute) for Python 2 statements in a source that does not parse."""
    found = []
    for number, line in enumerate(source.splitlines(), 1):
        if line.lstrip().startswith("#"):
            continue
        for pattern, advice in _STATEMENTS:
            if pattern.search(line):
                found.append((number, advice))
                break
    return found
