"""`python -m dtf`: runs a script, a module or a command, with dtf under TensorFlow's name.

Owns the command line, the first line of the log, and tracebacks that begin with the program. The program runs as under
`python trainer.py`: with its own sys.argv and sys.path[0], and as the module `__main__`.
"""

from __future__ import annotations

import contextlib
import errno
import importlib.metadata
import importlib.util
import os
import runpy
import sys
import types
from collections.abc import Sequence
from typing import NoReturn

from dtf import as_tensorflow

__all__ = ["USAGE", "main"]

USAGE = """usage: python -m dtf SCRIPT [ARGUMENT ...]
       python -m dtf -m MODULE [ARGUMENT ...]
       python -m dtf -c CODE [ARGUMENT ...]
       python -m dtf --exec COMMAND [ARGUMENT ...]

Runs a program for TensorFlow 1.x: `import tensorflow` gives dtf, in this process and in the Python programs that it
starts. With --exec a command of any kind takes the place of this process, such as a shell script that starts Python.
`python -m dtf.check FILE ...` lists what a program uses and dtf does not have."""

_OPTIONS = ("-m", "-c", "--exec")


def main(arguments: Sequence[str]) -> None:
    """Runs what the arguments name.

    Args:
      arguments: the command line's arguments, without the program's name.

    Raises:
      SystemExit: with status 2 and one line for an invalid command line.
    """
    if arguments and arguments[0] in ("-h", "--help"):
        print(USAGE)
        return
    option = arguments[0] if arguments and arguments[0] in _OPTIONS else ""
    words = list(arguments[1:] if option else arguments)
    if not words:
        _refuse("the script is missing" if not option else f"{option} needs an argument")
    if words[0].startswith("-") and not option:
        _refuse(f"unknown option {words[0]}; it has to stand after the script if it is the script's")
    if not option and (why := _why_unreadable(words[0])):
        _refuse(f"can't open file {words[0]!r}: {why}")
    _say_what_is_given()
    as_tensorflow.prepare_children()
    if option == "--exec":
        try:
            os.execvp(words[0], words)
        except OSError as error:
            # The exit statuses that shells use for the same failures.
            _refuse(f"can't execute {words[0]!r}: {error.strerror}", 127 if error.errno == errno.ENOENT else 126)
    as_tensorflow.install()
    sys.excepthook = _excepthook
    if option == "-m":
        sys.argv[1:] = words[1:]
        sys.path[0] = os.getcwd()
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
    elif option == "-c":
        sys.path[0] = ""
        _run(words[0], "<string>", ["-c", *words[1:]])
    elif os.path.isdir(words[0]):
        sys.argv[:] = words
        runpy.run_path(words[0], run_name="__main__")
    else:
        with open(words[0], "rb") as file:
            source = file.read()
        sys.path[0] = os.path.dirname(os.path.realpath(words[0]))
        _run(source, words[0], words)


def _why_unreadable(path: str) -> str:
    """Why Python could not run what is at a path, "" if it can; a folder needs a __main__.py."""
    if os.path.isdir(path):
        return "" if os.path.isfile(os.path.join(path, "__main__.py")) else "it is a folder without __main__.py"
    if os.path.isfile(path):
        return ""
    try:
        os.stat(path)
    except OSError as error:
        return "no such file" if error.errno == errno.ENOENT else (error.strerror or str(error))
    except ValueError as error:
        return str(error)
    return "not a file"


def _run(source: str | bytes, filename: str, argv: list[str]) -> None:
    """Executes the source as the module `__main__`."""
    sys.argv[:] = argv
    module = types.ModuleType("__main__")
    module.__dict__.update(__builtins__=__builtins__, __spec__=None)
    if filename != "<string>":
        module.__dict__.update(__file__=filename, __cached__=None)
    # The traceback of an error and multiprocessing look for the program there, also while Python shuts down.
    sys.modules["__main__"] = module
    exec(compile(source, filename, "exec", dont_inherit=True), module.__dict__)


def _say_what_is_given() -> None:
    import dtf
    from dtf.as_tensorflow.modules import VERSION

    line = f"dtf: import tensorflow gives dtf {dtf.__version__}, as TensorFlow {VERSION}, here and in child processes"
    if importlib.util.find_spec("tensorflow") is not None:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            line += f"; TensorFlow {importlib.metadata.version('tensorflow')} is installed and not used"
    print(line, file=sys.stderr, flush=True)


def _excepthook(kind: type[BaseException], error: BaseException, traceback: types.TracebackType | None) -> None:
    """Python's own, without the frames that ran the program."""
    first = traceback
    while first is not None and _is_above(first):
        first = first.tb_next
    sys.__excepthook__(kind, error.with_traceback(first), first)
    is_name = isinstance(error, AttributeError | ImportError) and "tensorflow" in str(error)
    if is_name or (isinstance(error, SyntaxError) and "print" in str(error)):
        name = getattr(sys.modules["__main__"], "__file__", "SCRIPT")
        print(f"dtf: python -m dtf.check {name} lists all that this program uses and lacks here", file=sys.stderr)


def _is_above(entry: types.TracebackType) -> bool:
    """Whether a frame is of runpy or of dtf's own start."""
    name = entry.tb_frame.f_code.co_filename
    return name in (__file__, runpy.__file__, "<frozen runpy>") or name.endswith(os.path.join("dtf", "__main__.py"))


def _refuse(message: str, status: int = 2) -> NoReturn:
    print(f"python -m dtf: {message}", file=sys.stderr)
    sys.exit(status)
