"""What a program's text defines and reads: its flags, environment variables, `sys.argv`, literal clusters. Pure; by the
syntax tree, nothing of the program is run.

Owns how such definitions are written: DEFINE_* functions under any name, argparse, click, functions of the program
around them, and loops over literal names.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass
class Definitions:
    """What one program, or several files of it, defines and reads.

    Attributes:
      flags: {the flag's name with underscores: the word that gives it, such as --ps-hosts}.
      numbers: the flags among them whose values are numbers.
      positionals: the names of positional arguments, in order.
      argv: {index in sys.argv: the name of the variable that takes it}.
      variables: environment variables that are read.
      texts: all string constants.
      names: all names and attributes.
      imports: the modules that are imported, with their dots.
      clusters: literal {job: addresses} of ClusterSpec calls.
    """

    flags: dict[str, str] = field(default_factory=dict)
    numbers: set[str] = field(default_factory=set)
    positionals: list[str] = field(default_factory=list)
    argv: dict[int, str] = field(default_factory=dict)
    variables: list[str] = field(default_factory=list)
    texts: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    imports: list[str] = field(default_factory=list)
    clusters: list[dict[str, list[str]]] = field(default_factory=list)


def definitions_of(*sources: str) -> Definitions:
    """What the text of a program, and of further files of it, defines and reads.

    Raises:
      SyntaxError: a text is not Python's.
    """
    found = Definitions()
    for source in sources:
        _Reader(ast.parse(source), found).read()
    return found


class _Reader:
    """Reads one file into Definitions."""

    def __init__(self, tree: ast.Module, found: Definitions) -> None:
        self._tree, self._found = tree, found
        self._nodes = list(ast.walk(tree))
        self._functions = {
            node.name: node for node in self._nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        }
        self._values = {
            target.id: node.value
            for node in self._nodes
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }

    def read(self) -> None:
        found = self._found
        for node in self._nodes:
            if isinstance(node, ast.Call):
                self._read_call(node)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.texts.add(node.value)
            elif isinstance(node, ast.Import):
                found.imports += [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                found.imports += self._imported(node)
            elif isinstance(node, ast.Attribute):
                found.names.add(node.attr)
            elif isinstance(node, ast.Name):
                found.names.add(node.id)
            elif isinstance(node, ast.Assign):
                self._read_argv(node)
            elif isinstance(node, ast.Compare):
                self._read_comparison(node)
            elif isinstance(node, ast.Subscript) and _dotted(node.value).endswith("environ"):
                found.variables += _texts(node.slice)

    def _imported(self, node: ast.ImportFrom) -> list[str]:
        module = node.module or ""
        return [module, *(f"{module}.{alias.name}".lstrip(".") for alias in node.names)]

    def _read_call(self, call: ast.Call) -> None:
        function = self._resolved(call.func)
        if function.endswith(("environ.get", "os.getenv")) and call.args:
            self._found.variables += _texts(call.args[0])
        elif function.rpartition(".")[2] in ("ClusterSpec", "ServerDef"):
            self._read_cluster(call)
        kind = function.rpartition(".")[2]
        given = [*call.args, *(each.value for each in call.keywords if each.arg in ("name", "flag_name"))]
        if kind.startswith("DEFINE_"):
            for name in self._names_of(given[0], call) if given else ():
                self._add_flag(name, f"--{name}", kind in ("DEFINE_integer", "DEFINE_float"))
        elif kind in ("add_argument", "option", "argument") and given:
            takes = [each.value for each in call.keywords if each.arg == "type"]
            is_number = any(_dotted(each) in ("int", "float") for each in takes)
            words = [word for each in given for word in self._names_of(each, call)]
            flags = sorted((word for word in words if word.startswith("-")), key=lambda word: not word.startswith("--"))
            for word in flags:
                if len(word.lstrip("-")) > 1:
                    self._add_flag(word.lstrip("-"), word, is_number)
            if words and not flags and kind != "option":
                self._found.positionals += words[:1]

    def _resolved(self, function: ast.expr) -> str:
        """The dotted name of a called function; a variable of the file stands for what it was set to."""
        if isinstance(function, ast.Name) and isinstance(self._values.get(function.id), ast.Attribute):
            return _dotted(self._values[function.id])
        return _dotted(function)

    def _names_of(self, node: ast.expr, call: ast.Call) -> list[str]:
        """The texts that an argument can be: a constant, what a loop or the calls of its function give it."""
        texts = _texts(node)
        if texts or not isinstance(node, ast.Name):
            return texts
        for function in self._functions.values():
            parameters = [each.arg for each in function.args.args]
            if node.id in parameters and any(each is call for each in ast.walk(function)):
                return list(self._given(function.name, parameters, node.id))
        return [text for loop in self._nodes if isinstance(loop, ast.For) for text in _looped(loop, node.id)]

    def _given(self, function: str, parameters: list[str], wanted: str) -> Iterator[str]:
        """The texts that calls of a function give to a parameter."""
        for node in self._nodes:
            if not isinstance(node, ast.Call) or _dotted(node.func).rpartition(".")[2] != function:
                continue
            offset = 1 if parameters[:1] in (["self"], ["cls"]) else 0
            position = parameters.index(wanted) - offset
            if position < len(node.args):
                yield from _texts(node.args[position])
            for keyword in node.keywords:
                if keyword.arg == wanted:
                    yield from _texts(keyword.value)

    def _add_flag(self, name: str, word: str, is_number: bool) -> None:
        plain = name.replace("-", "_")
        self._found.flags.setdefault(plain, word)
        if is_number:
            self._found.numbers.add(plain)

    def _read_argv(self, node: ast.Assign) -> None:
        target = node.targets[0]
        if isinstance(target, ast.Name):
            index = _argv_index(node.value)
            if index is not None:
                self._found.argv.setdefault(index, target.id)
        elif isinstance(target, ast.Tuple | ast.List):
            names = [each.id if isinstance(each, ast.Name) else "" for each in target.elts]
            start = _argv_start(node.value)
            if start is not None:
                for index, name in enumerate(names, start):
                    self._found.argv.setdefault(index, name)
            elif isinstance(node.value, ast.Tuple | ast.List):
                for name, value in zip(names, node.value.elts, strict=False):
                    index = _argv_index(value)
                    if index is not None:
                        self._found.argv.setdefault(index, name)

    def _read_comparison(self, node: ast.Compare) -> None:
        """`sys.argv[1] == "ps"` reads the job."""
        index = _argv_index(node.left)
        texts = {text for each in node.comparators for text in _texts(each)}
        if index is not None and texts & {"ps", "worker", "chief", "master"}:
            self._found.argv[index] = "job_name"

    def _read_cluster(self, call: ast.Call) -> None:
        value = self._value(call.args[0]) if call.args else None
        if not isinstance(value, ast.Dict):
            return
        jobs: dict[str, list[str]] = {}
        for key, listed in zip(value.keys, value.values, strict=True):
            addresses = self._value(listed)
            names = _texts(key) if key is not None else []
            if not names or not isinstance(addresses, ast.List | ast.Tuple):
                return
            texts = [text for each in addresses.elts for text in _texts(self._value(each))]
            if len(texts) != len(addresses.elts):
                return
            jobs[names[0]] = texts
        self._found.clusters.append(jobs)

    def _value(self, node: ast.expr) -> ast.expr:
        return self._values.get(node.id, node) if isinstance(node, ast.Name) else node


def _looped(loop: ast.For, name: str) -> Iterator[str]:
    """The texts that a loop over literal elements gives to a variable."""
    targets = loop.target.elts if isinstance(loop.target, ast.Tuple) else [loop.target]
    position = next((at for at, each in enumerate(targets) if isinstance(each, ast.Name) and each.id == name), None)
    if position is None:
        return
    if isinstance(loop.iter, ast.List | ast.Tuple | ast.Set):
        for element in loop.iter.elts:
            parts = element.elts if isinstance(element, ast.Tuple | ast.List) else [element]
            if position < len(parts):
                yield from _texts(parts[position])
        return
    called = loop.iter.func if isinstance(loop.iter, ast.Call) else None
    if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Dict) and position == 0:
        for key in called.value.keys:
            yield from _texts(key) if key is not None else ()


def _texts(node: ast.expr) -> list[str]:
    return [node.value] if isinstance(node, ast.Constant) and isinstance(node.value, str) else []


def _dotted(node: ast.expr) -> str:
    """a.b.c of such an expression, "" of any other at its start."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id if isinstance(node, ast.Name) else "", *reversed(parts)])


def _argv_index(node: ast.expr) -> int | None:
    """n of sys.argv[n], also within int(...)."""
    if isinstance(node, ast.Call) and len(node.args) == 1:
        node = node.args[0]
    if isinstance(node, ast.Subscript) and _dotted(node.value) in ("sys.argv", "argv"):
        index = node.slice
        if isinstance(index, ast.Constant) and isinstance(index.value, int):
            return index.value
    return None


def _argv_start(node: ast.expr) -> int | None:
    """The first index of sys.argv, or of a slice of it."""
    if _dotted(node) == "sys.argv":
        return 0
    if isinstance(node, ast.Subscript) and _dotted(node.value) == "sys.argv" and isinstance(node.slice, ast.Slice):
        low = node.slice.lower
        if low is None:
            return 0
        if isinstance(low, ast.Constant) and isinstance(low.value, int):
            return low.value
    return None
