"""The modules below `tensorflow`: dtf's own modules under TensorFlow's names, and those in places.txt.

Owns how a name is found in them. A module of the table has its sources' public names, in order, then the names of
`tf`; each is looked up at first use.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dtf import late
from dtf.as_tensorflow import absent

__all__ = ["VERSION", "find", "places"]

VERSION = "1.15.5"
"""`tf.__version__`: programs compare it, and choose names by it."""

_TABLE = Path(__file__).with_name("places.txt")
_RENAMED = Path(__file__).with_name("renamed.txt")
_PARENTS = ("tensorflow.python", "tensorflow.core", "tensorflow.examples", "tensorflow.contrib")


def find(name: str) -> types.ModuleType:
    """The module that `import name` gives; `name` begins with tensorflow.

    Raises:
      ModuleNotFoundError: dtf lacks this name; the message names a substitute if one is known.
    """
    if name in ("tensorflow", "tensorflow.compat.v1", "tensorflow._api.v1"):
        return _tensorflow()
    if name == "tensorflow.compat":
        return _compat()
    if name in places():
        return _place(name)
    reason = absent.reason(name.removeprefix("tensorflow."))
    inside = _inside_contrib(name)
    if inside is not None:
        return inside
    if not reason:
        found = _module_of_dtf(name.removeprefix("tensorflow.").removeprefix("compat.v1."))
        if found is not None:
            return found
    raise ModuleNotFoundError(_not_found(f"no module named {name!r}", reason), name=name)


@functools.cache
def places() -> dict[str, tuple[str, ...]]:
    """Full names of the modules of the table, and of the packages above them -> their sources in dtf."""
    result: dict[str, tuple[str, ...]] = {}
    for line in _TABLE.read_text(encoding="utf-8").splitlines():
        names, colon, sources = line.partition(":")
        if not colon or line.startswith("#"):
            continue
        for short in names.split():
            full = f"tensorflow.{short}"
            result[full] = tuple(sources.split())
            parts = full.split(".")
            for length in range(2, len(parts)):
                is_part_of_contrib = length == 3 and parts[1] == "contrib"
                own = (f"contrib.{parts[2]}",) if is_part_of_contrib else ()
                result.setdefault(".".join(parts[:length]), own)
    return result


@functools.cache
def renamed() -> dict[str, dict[str, str]]:
    """Full names of modules -> names that dtf spells differently -> their place."""
    result: dict[str, dict[str, str]] = {}
    for line in _RENAMED.read_text(encoding="utf-8").splitlines():
        module, colon, pairs = line.partition(":")
        if colon and not line.startswith("#"):
            result.setdefault(f"tensorflow.{module}", {}).update(dict(each.split("=") for each in pairs.split()))
    return result


def resolve(source: str) -> Any:
    """The object that a source of the table names: tf, tf.nn, or a module of dtf such as build.graph."""
    if source == "tf":
        return _tensorflow()
    if source.startswith("tf."):
        return functools.reduce(getattr, source.split(".")[1:], importlib.import_module("dtf"))
    return importlib.import_module(f"dtf.{source}")


def attribute(module: str, sources: tuple[str, ...], name: str) -> Any:
    """The value of `module.name`, from the first source that defines it.

    Raises:
      AttributeError: no source defines it.
    """
    for source in sources:
        try:
            return getattr(resolve(source), name)
        except AttributeError:
            continue
    short = module.removeprefix("tensorflow.")
    path = name if module == "tensorflow" else f"{short}.{name}"
    raise AttributeError(_not_found(f"module {module!r} has no attribute {name!r}", absent.reason(path)))


class _Module(types.ModuleType):
    """A module whose names are found when they are used."""

    def __init__(
        self,
        name: str,
        doc: str,
        find_name: Callable[[str], Any],
        names: Callable[[], set[str]],
        owners: Callable[[], list[types.ModuleType]] = list,
    ) -> None:
        super().__init__(name, doc)
        self.__dict__.update(__path__=[], __package__=name, _find=find_name, _names=names, _owners=owners)
        self.__dict__["_replaced"] = {}

    def __setattr__(self, name: str, value: Any) -> None:
        """Replaces a name here and in the modules of dtf that it comes from: `mock.patch.object(module, name)`."""
        self.__dict__[name] = value
        replaced = self.__dict__["_replaced"]
        is_import = isinstance(value, types.ModuleType) and name not in replaced  # of a module below this one
        if is_import or name.startswith("__"):
            return
        if name not in replaced:
            owners = [owner for owner in self.__dict__["_owners"]() if name in vars(owner)]
            old = vars(owners[0])[name] if owners else None
            home = sys.modules.get(getattr(old, "__module__", None) or "")
            if home is not None and home not in owners and vars(home).get(name) is old:
                owners.append(home)  # the module that defines it, from which others have imported it
            if owners:
                replaced[name] = [(owner, vars(owner)[name]) for owner in owners]
        for owner, _ in replaced.get(name, ()):
            setattr(owner, name, value)

    def __delattr__(self, name: str) -> None:
        self.__dict__.pop(name, None)
        for owner, value in self.__dict__["_replaced"].pop(name, ()):
            setattr(owner, name, value)

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":  # `from module import *`
            return [each for each in dir(self) if not each.startswith("_") and self._gives(each)]
        if name.startswith("__") and not name.endswith(("_version__", "_flag__", "_build__", "__version__")):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        value = self.__dict__["_find"](name)
        self.__dict__[name] = value
        return value

    def _gives(self, name: str) -> bool:
        try:
            return late.is_public(name, getattr(self, name))
        except (AttributeError, ImportError):
            return False

    def __dir__(self) -> list[str]:
        return sorted({name for name in self.__dict__ if not name.startswith("_")} | self.__dict__["_names"]())


@functools.cache
def _tensorflow() -> types.ModuleType:
    """The package `tensorflow`: dtf, with TensorFlow's version and the names that older programs know."""
    import dtf

    def find_name(name: str) -> Any:
        if name in ("python", "core", "examples", "contrib", "compat", "keras"):
            return importlib.import_module(f"tensorflow.{name}")
        if name == "pywrap_tensorflow":
            return importlib.import_module("tensorflow.python.pywrap_tensorflow")
        if name in ("VERSION", "GIT_VERSION", "__git_version__", "COMPILER_VERSION", "__compiler_version__"):
            return {"VERSION": VERSION}.get(name, f"dtf-{dtf.__version__}")
        reason = absent.reason(name)
        try:
            return getattr(dtf, name)
        except AttributeError:
            if not reason:
                from dtf.as_tensorflow import old_names

                return attribute("tensorflow", (), name) if name not in old_names.NAMES else old_names.get(name)
        raise AttributeError(_not_found(f"module 'tensorflow' has no attribute {name!r}", reason))

    module = _Module("tensorflow", dtf.__doc__ or "", find_name, lambda: set(dir(dtf)) | {"python", "core"})
    module.__dict__.update(__version__=VERSION, __file__=dtf.__file__)
    return module


@functools.cache
def _compat() -> types.ModuleType:
    from dtf import compat

    def find_name(name: str) -> Any:
        return _tensorflow() if name == "v1" else attribute("tensorflow.compat", ("compat",), name)

    return _Module("tensorflow.compat", compat.__doc__ or "", find_name, lambda: set(dir(compat)))


def _place(name: str) -> types.ModuleType:
    sources = places()[name]
    if name.startswith(("tensorflow.python.ops.", "tensorflow.python.framework.")):
        importlib.import_module("dtf.graph_names")  # the operators of tensors, for programs that never say `tf`
    if name == "tensorflow.python.framework.test_ops":
        resolve(sources[0])  # its import adds ops
    below = {each[len(name) + 1 :] for each in places() if each.startswith(name + ".")}
    packages = {each.partition(".")[0] for each in below}
    rest = ("tf",) if name.startswith("tensorflow.python.") and sources else ()
    if name.startswith("tensorflow.python.ops.") and sources:
        # These modules import the functions of single ops.
        rest = (*rest, "as_tensorflow.version_2", "as_tensorflow.generated_ops")

    own = renamed().get(name, {})

    def find_name(attribute_name: str) -> Any:
        if attribute_name in packages:
            return importlib.import_module(f"{name}.{attribute_name}")
        if attribute_name in own:
            source, _, last = own[attribute_name].rpartition(".")
            return getattr(resolve(source), last)
        return attribute(name, (*sources, *rest), attribute_name)

    def names() -> set[str]:
        return packages.union(own, *(dir(resolve(source)) for source in sources))

    if len(sources) == 1 and not packages and not rest and not own:
        only = resolve(sources[0])
        if isinstance(only, types.ModuleType):
            return only

    def owners() -> list[types.ModuleType]:
        found = [resolve(source) for source in sources if source != "tf" and not source.startswith("tf.")]
        return [each for each in found if isinstance(each, types.ModuleType)]

    return _Module(name, f"TensorFlow's {name}, from dtf.", find_name, names, owners)


def _inside_contrib(name: str) -> types.ModuleType | None:
    """The part of contrib that `tensorflow.contrib.PART.python...` belongs to: it has the names of all its files."""
    words = name.split(".")
    if words[:2] != ["tensorflow", "contrib"] or len(words) < 3 or (words[3:] or ["python"])[0] != "python":
        return None
    if absent.reason(f"contrib.{words[2]}") or importlib.util.find_spec(f"dtf.contrib.{words[2]}") is None:
        return None
    sources = (f"contrib.{words[2]}",)
    found = resolve(sources[0])
    find_name = functools.partial(attribute, name, sources)
    return _Module(name, f"TensorFlow's {name}, from dtf.", find_name, lambda: set(dir(found)))


def _module_of_dtf(path: str) -> types.ModuleType | None:
    """The public dtf module under the same path."""
    from dtf.as_tensorflow import absent as not_there

    if path.partition(".")[0] in not_there.INTERNAL:
        return None
    try:
        found = functools.reduce(getattr, path.split("."), importlib.import_module("dtf"))
    except AttributeError:
        return None
    return found if isinstance(found, types.ModuleType) else None


def _not_found(message: str, reason: str) -> str:
    return f"{message} ({reason})" if reason else f"{message} (dtf does not have it)"
