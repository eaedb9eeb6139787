"""Finds the unsupported names that a program uses, by a walk over its syntax tree. The program is not run.

Owns how names are followed: imports, `slim = tf.contrib.slim`, attributes, and the arguments of calls. A name that a
function binds itself is the function's own. In a `try` that catches the error, or below a test with hasattr, a finding
is guarded: the program handles it.
"""

from __future__ import annotations

import ast
import builtins
import difflib
import functools
import importlib
import importlib.util
import inspect
import os
import types
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dtf.check import pitfalls

__all__ = ["Finding", "check_source", "given_names"]

_TENSORFLOW = "tensorflow"
_CATCHES = frozenset(
    ("AttributeError", "ImportError", "ModuleNotFoundError", "Exception", "BaseException", "TypeError")
)


@dataclass(frozen=True, order=True)
class Finding:
    """An unsupported name, argument or syntax that a program uses.

    Attributes:
      kind: "name", "argument", "module", "python 3", "numpy 2" or "syntax".
      text: the unsupported name, and its substitute.
      is_guarded: whether the program handles it.
    """

    path: str
    line: int
    kind: str
    text: str
    is_guarded: bool = False

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.kind}: {self.text}{' (guarded)' if self.is_guarded else ''}"


TOO_DEEP = "an expression is nested too deeply to be read"


def check_source(source: str, path: str = "<source>", given: set[str] | None = None) -> list[Finding]:
    """The findings of a program, by line.

    Args:
      source: its text.
      path: its name in findings; modules in its folder belong to the program.
      given: names that other files of the program set (`given_names`).
    """
    from dtf.as_tensorflow import importer

    try:
        tree = ast.parse(source)
    except (RecursionError, MemoryError):  # the parser's own stack
        return [Finding(path, 1, "syntax", TOO_DEEP)]
    except (SyntaxError, ValueError) as error:
        old = pitfalls.old_statements(source)
        line = getattr(error, "lineno", None) or 1
        found = [Finding(path, number, "syntax", f"Python 3: {advice}") for number, advice in old]
        if not any(finding.line == line for finding in found):
            found.append(Finding(path, line, "syntax", str(getattr(error, "msg", error))))
        return sorted(found)
    importer.install()
    scan = _Scan(path, tree)
    scan.take(given_names(source) | (given or set()))
    try:
        scan.visit(tree)
    except RecursionError:
        return [Finding(path, 1, "syntax", TOO_DEEP)]
    return sorted(set(scan.findings))


def given_names(source: str) -> set[str]:
    """The names that a program sets on others' modules and classes: "GraphKeys.OWN" of `tf.GraphKeys.OWN = "own"`."""
    try:
        tree = ast.parse(source)
    except (RecursionError, MemoryError, SyntaxError, ValueError):
        return set()
    found = set()
    for node in ast.walk(tree):
        targets = node.targets if isinstance(node, ast.Assign) else []
        for target in targets:
            if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Attribute):
                found.add(f"{target.value.attr}.{target.attr}")
            elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
                found.add(f"{target.value.id}.{target.attr}")
    return found


class _Scan(ast.NodeVisitor):
    def __init__(self, path: str, tree: ast.Module) -> None:
        self.findings: list[Finding] = []
        self._path = path
        self._aliases: dict[str, str] = {}
        self._modules: set[str] = set()
        self._shadows: list[set[str]] = []
        self._resolved: dict[str, tuple[str, str] | None] = {}
        self._guards = 0
        self._defined = {name for node in ast.walk(tree) for name in _bound_by(node)}
        self._inner: set[ast.AST] = set()
        self._given: set[str] = set()

    # -- where names come from

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._import(node.lineno, alias.name)
            self._modules.add(alias.asname or alias.name.partition(".")[0])
            self._aliases[alias.asname or alias.name.partition(".")[0]] = (
                alias.name if alias.asname else alias.name.partition(".")[0]
            )

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.level or node.module is None or node.module == "__future__":
            return
        if not self._import(node.lineno, node.module):
            return
        for alias in node.names:
            if alias.name == "*":
                continue
            full = f"{node.module}.{alias.name}"
            self._aliases[alias.asname or alias.name] = full
            if node.module.partition(".")[0] in (_TENSORFLOW, "numpy") or full in pitfalls.ATTRIBUTES:
                self._resolve(full, node.lineno)

    def visit_Assign(self, node: ast.Assign) -> None:
        self.generic_visit(node)
        target = node.targets[0]
        dotted = self._dotted(node.value)
        if len(node.targets) == 1 and isinstance(target, ast.Name) and dotted and not self._shadows:
            value = _value(dotted)
            if isinstance(value, types.ModuleType):
                self._aliases[target.id] = dotted

    def _import(self, line: int, name: str) -> bool:
        """Whether the module exists; adds a finding if not."""
        top = name.partition(".")[0]
        if name == "urllib":
            return True
        if top == _TENSORFLOW:
            try:
                importlib.import_module(name)
            except ImportError as error:
                self._add(line, "name", str(error))
                return False
            return True
        if top in self._beside:
            return True
        if top in pitfalls.MODULES and importlib.util.find_spec(top) is None:
            self._add(line, "python 3", f"there is no module {top}: use {pitfalls.MODULES[top]}")
            return False
        try:
            is_there = importlib.util.find_spec(top) is not None
        except (ImportError, ValueError):
            is_there = True
        if not is_there:
            self._add(line, "module", f"the module {top} is not installed")
        return is_there

    @functools.cached_property
    def _beside(self) -> set[str]:
        """The modules in the program's folder, in the folders of the packages around it, and in the current folder."""
        folder = os.path.dirname(os.path.abspath(self._path))
        names: set[str] = set()
        try:
            names.update(os.listdir(folder), os.listdir())
            while os.path.exists(os.path.join(folder, "__init__.py")) and folder != os.path.dirname(folder):
                folder = os.path.dirname(folder)
                names.update(os.listdir(folder))
        except OSError:
            pass
        return {name.removesuffix(".py") for name in names}

    def take(self, given: set[str]) -> None:
        """Names below `tensorflow` that a file of the program sets itself, as in `tf.GraphKeys.OWN = "own"`."""
        self._given = given

    # -- names that are hidden, and names that may be absent

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        for decorator in getattr(node, "decorator_list", ()):
            self.visit(decorator)
        arguments = node.args
        for default in [*arguments.defaults, *(each for each in arguments.kw_defaults if each is not None)]:
            self.visit(default)
        body = node.body if isinstance(node.body, list) else [node.body]
        own = {each.arg for each in ast.walk(arguments) if isinstance(each, ast.arg)}
        own |= {name for part in body for each in ast.walk(part) for name in _assigned_by(each)}
        self._shadows.append(own)
        for part in body:
            self.visit(part)
        self._shadows.pop()

    visit_AsyncFunctionDef = visit_FunctionDef
    visit_Lambda = visit_FunctionDef

    def visit_Try(self, node: ast.Try) -> None:
        caught = {
            each.id if isinstance(each, ast.Name) else getattr(each, "attr", "")
            for handler in node.handlers
            for each in (ast.walk(handler.type) if handler.type is not None else [ast.Name("Exception")])
        }
        is_guard = bool(caught & _CATCHES)
        self._guards += is_guard
        for part in node.body:
            self.visit(part)
        self._guards -= is_guard
        for others in (node.handlers, node.orelse, node.finalbody):
            # An except handler runs where the first way fails: do not report names in the try block.
            self._guards += is_guard and others is node.handlers
            for each in others:
                self.visit(each)
            self._guards -= is_guard and others is node.handlers

    def visit_If(self, node: ast.If) -> None:
        self._visit_below(node.test, [*node.body, *node.orelse])

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._visit_below(node.test, [node.body, node.orelse])

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        first, *others = node.values
        self._visit_below(first, others)

    def _visit_below(self, condition: ast.expr, parts: Sequence[ast.AST]) -> None:
        """Visit a condition, and the parts that run or not by its value."""
        test = ast.unparse(condition)
        is_guard = "hasattr(" in test or " in dir(" in test or "version" in test.lower()
        self.visit(condition)
        self._guards += is_guard
        for part in parts:
            self.visit(part)
        self._guards -= is_guard

    # -- the use of names

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if node not in self._inner:
            dotted = self._dotted(node)
            if dotted:
                self._resolve(dotted, node.lineno)
                inner: ast.AST = node
                while isinstance(inner, ast.Attribute):
                    self._inner.add(inner)
                    inner = inner.value
            elif node.attr in pitfalls.METHODS and isinstance(node.ctx, ast.Load) and not self._is_own(node):
                self._add(node.lineno, "python 3", f"there is no method {node.attr}: use {pitfalls.METHODS[node.attr]}")
        self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        name = node.id
        is_free = name not in self._defined and not hasattr(builtins, name)
        if is_free and isinstance(node.ctx, ast.Load) and name in pitfalls.BUILTINS:
            self._add(node.lineno, "python 3", f"there is no {name}: use {pitfalls.BUILTINS[name]}")

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "next" and not node.args and not node.keywords:
            if not self._dotted(node.func) and not self._is_own(node.func):
                self._add(node.lineno, "python 3", "iterators have no method next: use next(iterator)")
            return
        self._check_python_3(node)
        dotted = self._dotted(node.func)
        if not dotted:
            return
        top, _, short = dotted.partition(".")
        for keyword in node.keywords if top == "numpy" else ():
            instead = pitfalls.ARGUMENTS.get((short, keyword.arg or ""))
            if instead and keyword.arg == "newshape":
                self._add(node.lineno, "numpy 2", f"np.{short} has no argument {keyword.arg}: use {instead}")
                return
        if top == _TENSORFLOW:
            self._check_arguments(node, dotted)

    def _check_python_3(self, node: ast.Call) -> None:
        """Calls whose values or arguments are others in Python 3."""
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        if name in ("sort", "sorted") and any(each.arg == "cmp" for each in node.keywords):
            self._add(node.lineno, "python 3", f"{name} has no argument cmp: use key=functools.cmp_to_key(...)")
        if not isinstance(function, ast.Attribute):
            return
        view = _view(function.value)
        if name == "sort" and view:
            self._add(node.lineno, "python 3", f"{view} has no method sort: use sorted(...)")
        is_text = isinstance(function.value, ast.Constant) and isinstance(function.value.value, str)
        if name == "decode" and is_text:
            self._add(node.lineno, "python 3", "texts have no method decode: they are decoded already")

    def visit_BinOp(self, node: ast.BinOp) -> None:
        self.generic_visit(node)
        if isinstance(node.op, ast.Add):
            view = _view(node.left) or _view(node.right)
            if view:
                self._add(node.lineno, "python 3", f"{view} cannot be added: use list({view})")

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self.generic_visit(node)
        call = node.value
        if not isinstance(call, ast.Call):
            return
        if (
            isinstance(call.func, ast.Name)
            and call.func.id in ("map", "filter", "zip")
            and call.func.id not in self._defined
        ):
            name = call.func.id
            self._add(node.lineno, "python 3", f"{name}() cannot be indexed: use list({name}(...))[...]")
        is_view = isinstance(call.func, ast.Attribute) and call.func.attr in ("keys", "values", "items")
        # HParams.values() is a dictionary.
        is_by_name = isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str)
        if is_view and not call.args and not is_by_name and not self._dotted(call.func):
            self._add(node.lineno, "python 3", f"{ast.unparse(call.func)}() cannot be indexed: use list(...)[...]")

    # -- what they mean

    def _is_own(self, method: ast.Attribute) -> bool:
        """Whether a method is the program's own, or a function of a module, as six.iteritems is."""
        owner: ast.AST = method.value
        while isinstance(owner, ast.Attribute):
            owner = owner.value
        return method.attr in self._defined or (isinstance(owner, ast.Name) and owner.id in self._modules)

    def _dotted(self, node: ast.AST) -> str:
        """The full name of an attribute or a name; "" for other expressions."""
        names: list[str] = []
        while isinstance(node, ast.Attribute):
            names.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self._aliases:
            return ""
        if any(node.id in shadow for shadow in self._shadows):
            return ""
        full = ".".join([self._aliases[node.id], *reversed(names)])
        return full if full.partition(".")[0] in (_TENSORFLOW, "numpy") or full in pitfalls.ATTRIBUTES else ""

    def _resolve(self, dotted: str, line: int) -> None:
        """A finding for the first part of the name that is not there."""
        if dotted not in self._resolved:
            self._resolved[dotted] = self._missing_part(dotted)
        found = self._resolved[dotted]
        if found is not None:
            self._add(line, *found)

    def _missing_part(self, dotted: str) -> tuple[str, str] | None:
        """The kind and the words of the finding for a name."""
        if dotted in pitfalls.ATTRIBUTES:
            module, _, name = dotted.rpartition(".")
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # scipy warns of scipy.misc
                    is_there = hasattr(importlib.import_module(module), name)
            except ImportError:  # its import has a finding of its own
                return None
            return None if is_there else ("python 3", f"there is no {dotted}: use {pitfalls.ATTRIBUTES[dotted]}")
        parts = dotted.split(".")
        if any(".".join(parts[-count:]) in self._given for count in range(2, len(parts))):
            return None
        value: Any = importlib.import_module(parts[0])
        for index, name in enumerate(parts[1:], 1):
            if not isinstance(value, types.ModuleType | type):
                return None
            try:
                value = _member(value, ".".join(parts[:index]), name)
            except (AttributeError, ImportError):
                return _missing(".".join(parts[: index + 1]), value)
        return None

    def _check_arguments(self, node: ast.Call, dotted: str) -> None:
        value = _value(dotted)
        if not callable(value):
            return
        try:
            parameters = list(inspect.signature(value).parameters.values())
        except (TypeError, ValueError):
            return
        shown = dotted.replace("tensorflow.", "tf.", 1)
        names = [each.name for each in parameters if each.kind is not each.POSITIONAL_ONLY]
        takes_any = any(each.kind is each.VAR_KEYWORD for each in parameters)
        for keyword in node.keywords:
            if keyword.arg is not None and keyword.arg not in names and not takes_any:
                near = difflib.get_close_matches(keyword.arg, names, 1, 0.7)
                hint = f": did you mean {near[0]}?" if near else f": it takes {', '.join(names) or 'none'}"
                self._add(node.lineno, "argument", f"{shown} has no argument {keyword.arg}{hint}")
        positional = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
        is_open = any(each.kind is each.VAR_POSITIONAL for each in parameters)
        is_spread = any(isinstance(each, ast.Starred) for each in node.args)
        if not is_open and not is_spread and len(node.args) > len(positional):
            self._add(node.lineno, "argument", f"{shown} takes {len(positional)} arguments, not {len(node.args)}")

    def _add(self, line: int, kind: str, text: str) -> None:
        self.findings.append(Finding(self._path, line, kind, text, self._guards > 0))


def _view(node: ast.expr) -> str:
    """How a call is written whose value was a list in Python 2, "" of others."""
    if not isinstance(node, ast.Call):
        return ""
    if isinstance(node.func, ast.Attribute) and node.func.attr in ("keys", "values", "items") and not node.args:
        return f"{ast.unparse(node.func)}()"
    is_lazy = isinstance(node.func, ast.Name) and node.func.id in ("range", "map", "filter", "zip")
    return f"{ast.unparse(node.func)}(...)" if is_lazy else ""


def _member(owner: Any, path: str, name: str) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # numpy warns of np.object
            return getattr(owner, name)
    except AttributeError:
        if not isinstance(owner, types.ModuleType) or not path.startswith(_TENSORFLOW):
            raise
        return importlib.import_module(f"{path}.{name}")


def _missing(dotted: str, owner: Any) -> tuple[str, str]:
    """The kind and the words of the finding for a name that its owner lacks."""
    shown = dotted.replace("tensorflow.", "tf.", 1) if dotted.startswith("tensorflow.") else dotted
    name = dotted.rpartition(".")[2]
    if dotted.startswith("numpy."):
        instead = pitfalls.NUMPY.get(name)
        return "numpy 2", f"there is no np.{dotted[6:]}{f': use np.{instead}' if instead else ''}"
    from dtf import absent
    from dtf.as_tensorflow import absent as absent_places

    short = dotted.removeprefix("tensorflow.")
    reason = absent_places.reason(short) or absent.reason(short)
    near = difflib.get_close_matches(name, [each for each in dir(owner) if not each.startswith("_")], 1, 0.8)
    if not reason and near:
        reason = f"did you mean {shown.rpartition('.')[0]}.{near[0]}?"
    return "name", f"{shown} is not supported{f': {reason}' if reason else ''}"


def _value(dotted: str) -> Any:
    """The object with a full name, or None if it does not exist."""
    parts = dotted.split(".")
    try:
        value: Any = importlib.import_module(parts[0])
        for index, name in enumerate(parts[1:], 1):
            value = _member(value, ".".join(parts[:index]), name)
    except (AttributeError, ImportError):
        return None
    return value


def _assigned_by(node: ast.AST) -> Iterator[str]:
    """The names that a statement or an expression binds, imports aside."""
    if isinstance(node, ast.Name):
        if isinstance(node.ctx, ast.Store):
            yield node.id
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.ExceptHandler):
        yield node.name or ""


def _bound_by(node: ast.AST) -> Iterator[str]:
    """The names that anything in a program binds."""
    yield from _assigned_by(node)
    if isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, ast.alias):
        yield (node.asname or node.name or "").partition(".")[0]
