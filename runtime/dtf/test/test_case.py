"""`tf.test.TestCase`: unittest's, with a fresh graph for each test, sessions, and comparisons of arrays.

Arrays may be tensors too: they are evaluated in the test's session. Structures (lists, tuples, dictionaries) are
compared part by part.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/test/TestCase
"""

from __future__ import annotations

import atexit
import contextlib
import random
import re
import shutil
import sys
import tempfile
import threading
import unittest
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from google.protobuf import text_format

from dtf.build import nest
from dtf.build.graph import Graph, get_default_graph, get_default_session, reset_default_graph
from dtf.build.ops.random import DEFAULT_GRAPH_SEED
from dtf.build.sparse import SparseTensor, SparseTensorValue
from dtf.build.tensor import Tensor
from dtf.build.variables import Variable
from dtf.session import Session
from dtf.wire import errors
from dtf.wire.device import canonical_name
from dtf.wire.dtypes import as_dtype

__all__ = ["TestCase", "get_temp_dir", "main"]

_SHOWN = 10


class TestCase(unittest.TestCase):
    """Tests of graphs. Each begins with an empty default graph and with the same seeds."""

    def setUp(self) -> None:
        super().setUp()
        self._cached: Session | None = None
        self._threads: list[CheckedThread] = []
        self._temp_dir: str | None = None
        random.seed(DEFAULT_GRAPH_SEED)
        np.random.seed(DEFAULT_GRAPH_SEED)
        reset_default_graph()
        get_default_graph().seed = DEFAULT_GRAPH_SEED

    def tearDown(self) -> None:
        for thread in self._threads:
            thread.check_was_joined()
        if self._cached is not None:
            self._cached.close()
            self._cached = None
        super().tearDown()

    def get_temp_dir(self) -> str:
        """A folder of this test, which is gone after it."""
        if self._temp_dir is None:
            self._temp_dir = tempfile.mkdtemp(dir=get_temp_dir())
            self.addCleanup(shutil.rmtree, self._temp_dir, ignore_errors=True)
        return self._temp_dir

    # Sessions

    @contextlib.contextmanager
    def session(
        self, graph: Graph | None = None, config: Any = None, use_gpu: bool = False, force_gpu: bool = False
    ) -> Iterator[Session]:
        """A new session, which is the default one of the block and is closed after it."""
        del use_gpu, force_gpu
        with Session(graph=graph, config=config) as session:
            yield session

    @contextlib.contextmanager
    def cached_session(
        self, graph: Graph | None = None, config: Any = None, use_gpu: bool = False, force_gpu: bool = False
    ) -> Iterator[Session]:
        """One session for all blocks of the test: what variables hold stays from one to the next.

        Raises:
          ValueError: it was opened for another graph or with another config.
        """
        del use_gpu, force_gpu
        if self._cached is None:
            self._cached = Session(graph=graph, config=config)
            self._cached_config = config
        elif graph is not None and graph is not self._cached.graph:
            raise ValueError("The session of this test was opened for another graph: use self.session().")
        elif config is not None and config is not self._cached_config:
            raise ValueError("The session of this test was opened with another config: use self.session().")
        with self._cached.graph.as_default(), self._cached.as_default():
            yield self._cached

    def test_session(
        self, graph: Graph | None = None, config: Any = None, use_gpu: bool = False, force_gpu: bool = False
    ) -> Any:
        """The old form: `cached_session`, or for a given graph `session`."""
        if self._testMethodName == "test_session":
            self.skipTest("This is no test, although it has the name of one.")
        if graph is None:
            return self.cached_session(None, config, use_gpu, force_gpu)
        return self.session(graph, config, use_gpu, force_gpu)

    def evaluate(self, tensors: Any) -> Any:
        """The values of tensors, in the default session or else in that of the test."""
        session = get_default_session()
        if session is not None:
            return session.run(tensors)
        with self.cached_session() as cached:
            return cached.run(tensors)

    # Arrays

    def assertAllClose(self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: str | None = None) -> None:
        """|a - b| <= atol + rtol * |b|, everywhere; NaNs are equal."""

        def compare(one: np.ndarray, other: np.ndarray, where: str) -> None:
            if _is_text(one) or _is_text(other):
                self._check(np.asarray(one == other), one, other, where, msg)
                return
            with np.errstate(invalid="ignore"):
                close = np.isclose(_exact(one), _exact(other), rtol=rtol, atol=atol, equal_nan=True)
            self._check(close, one, other, f"{where} (rtol={rtol}, atol={atol})", msg)

        self._compared(a, b, compare, msg)

    def assertAllCloseAccordingToType(
        self,
        a: Any,
        b: Any,
        rtol: float = 1e-6,
        atol: float = 1e-6,
        float_rtol: float = 1e-6,
        float_atol: float = 1e-6,
        half_rtol: float = 1e-3,
        half_atol: float = 1e-3,
        bfloat16_rtol: float = 1e-2,
        bfloat16_atol: float = 1e-2,
        msg: str | None = None,
    ) -> None:
        """`assertAllClose` with the tolerances of the less exact of both dtypes."""
        bounds = {
            "float32": (float_rtol, float_atol),
            "complex64": (float_rtol, float_atol),
            "float16": (half_rtol, half_atol),
            "bfloat16": (bfloat16_rtol, bfloat16_atol),
        }

        def compare(one: np.ndarray, other: np.ndarray, where: str) -> None:
            chosen = [(rtol, atol), *(bounds[each.dtype.name] for each in (one, other) if each.dtype.name in bounds)]
            wide_rtol, wide_atol = (max(column) for column in zip(*chosen, strict=True))
            self.assertAllClose(one, other, wide_rtol, wide_atol, f"{msg or ''} {where}".strip())

        self._compared(a, b, compare, msg)

    def assertAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:
        """Equal everywhere; NaNs are equal."""

        def compare(one: np.ndarray, other: np.ndarray, where: str) -> None:
            same = np.asarray(one == other)
            if one.dtype.kind in "fc" and other.dtype.kind in "fc":
                same |= np.isnan(one) & np.isnan(other)
            self._check(same, one, other, where, msg)

        self._compared(a, b, compare, msg)

    def assertNotAllClose(self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: str | None = None) -> None:
        """The contrary of `assertAllClose`."""
        self._refused(lambda: self.assertAllClose(a, b, rtol, atol), "The two values are close at all elements.", msg)

    def assertNotAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:
        """The contrary of `assertAllEqual`."""
        self._refused(lambda: self.assertAllEqual(a, b), "The two values are equal at all elements.", msg)

    def assertAllGreater(self, a: Any, comparison_target: Any) -> None:
        """All elements are greater."""
        self._all(a, lambda values: values > comparison_target, f"> {comparison_target}")

    def assertAllGreaterEqual(self, a: Any, comparison_target: Any) -> None:
        """All elements are greater or equal."""
        self._all(a, lambda values: values >= comparison_target, f">= {comparison_target}")

    def assertAllLess(self, a: Any, comparison_target: Any) -> None:
        """All elements are less."""
        self._all(a, lambda values: values < comparison_target, f"< {comparison_target}")

    def assertAllLessEqual(self, a: Any, comparison_target: Any) -> None:
        """All elements are less or equal."""
        self._all(a, lambda values: values <= comparison_target, f"<= {comparison_target}")

    def assertAllInRange(
        self,
        target: Any,
        lower_bound: Any,
        upper_bound: Any,
        open_lower_bound: bool = False,
        open_upper_bound: bool = False,
    ) -> None:
        """All elements are between the bounds, which belong to the range unless they are open."""
        (self.assertAllGreater if open_lower_bound else self.assertAllGreaterEqual)(target, lower_bound)
        (self.assertAllLess if open_upper_bound else self.assertAllLessEqual)(target, upper_bound)

    def assertAllInSet(self, target: Any, expected_set: Any) -> None:
        """All elements are among these."""
        expected = list(expected_set)
        self._all(target, lambda values: np.isin(values, expected), f"in {expected}")

    def assertNear(self, f1: Any, f2: Any, err: float, msg: str | None = None) -> None:
        """|f1 - f2| <= err, for two numbers."""
        self.assertTrue(f1 == f2 or abs(f1 - f2) <= err, f"{f1!r} != {f2!r} +/- {err!r}{f' ({msg})' if msg else ''}")

    def assertArrayNear(
        self, farray1: Sequence[Any], farray2: Sequence[Any], err: float, msg: str | None = None
    ) -> None:
        """`assertNear` for each of two sequences of numbers."""
        self.assertEqual(len(farray1), len(farray2), msg=msg)
        for one, other in zip(farray1, farray2, strict=True):
            self.assertNear(float(one), float(other), err, msg)

    def assertNDArrayNear(self, ndarray1: Any, ndarray2: Any, err: float, msg: str | None = None) -> None:
        """The norm of the difference is less than `err`."""
        distance = np.linalg.norm(self._array(ndarray1) - self._array(ndarray2))
        self.assertTrue(distance < err, f"The arrays differ by {distance}, more than {err}. {msg or ''}")

    def assertShapeEqual(self, input_a: Any, input_b: Any, msg: str | None = None) -> None:
        """The static shapes of tensors, or the shapes of arrays, are equal."""
        first, second = (
            each.shape.as_list() if isinstance(each, Tensor) else list(np.shape(each)) for each in (input_a, input_b)
        )
        self.assertEqual(first, second, msg)

    def assertDTypeEqual(self, target: Any, expected_dtype: Any) -> None:
        """The dtype of an array, a tensor or all of a list of them."""
        for each in target if isinstance(target, list) else [target]:
            self.assertEqual(as_dtype(self._array(each).dtype), as_dtype(expected_dtype))

    # Messages, devices, errors

    def assertProtoEquals(
        self, expected_message_maybe_ascii: Any, validate_message: Any, msg: str | None = None,
        relative_tolerance: float | None = None,
    ) -> None:
        """The message is the other one, which may be given as text.

        Raises:
          NotImplementedError: a tolerance is asked for.
        """
        if relative_tolerance is not None:
            raise NotImplementedError("assertProtoEquals compares exactly.")
        expected = expected_message_maybe_ascii
        if isinstance(expected, str | bytes):
            expected = text_format.Parse(expected, type(validate_message)())
        self.assertEqual(type(expected), type(validate_message), msg=msg)
        self.assertMultiLineEqual(str(expected), str(validate_message), msg)

    def assertDeviceEqual(self, device1: Any, device2: Any, msg: str | None = None) -> None:
        """Both names mean one device."""
        first, second = canonical_name(device1), canonical_name(device2)
        self.assertEqual(first, second, f"Devices {first} and {second} are not equal. {msg or ''}")

    @contextlib.contextmanager
    def assertRaisesWithPredicateMatch(self, exception_type: Any, expected_err_re_or_predicate: Any) -> Iterator[None]:
        """The block raises such an exception, whose message (with the name of its op) matches, or which fulfils it."""
        try:
            yield
        except exception_type as error:
            if callable(expected_err_re_or_predicate):
                matches = expected_err_re_or_predicate(error)
            else:
                text = error.message if isinstance(error, errors.OpError) else str(error)
                op = getattr(error, "op", None)
                text += f"\nCaused by: {op.name}" if op is not None else ""
                matches = re.search(expected_err_re_or_predicate, text)
            if not matches:
                raise AssertionError(f"Exception of type {type(error)}: {error}") from error
        else:
            self.fail(f"{exception_type} not raised")

    def assertRaisesOpError(self, expected_err_re_or_predicate: Any) -> Any:
        """`assertRaisesWithPredicateMatch` for tf.errors.OpError."""
        return self.assertRaisesWithPredicateMatch(errors.OpError, expected_err_re_or_predicate)

    # Collections

    def assertItemsEqual(self, first: Any, second: Any, msg: str | None = None) -> None:
        """The same elements, in whatever order."""
        self.assertCountEqual(first, second, msg)

    def assertLen(self, container: Any, expected_len: int, msg: str | None = None) -> None:
        """A collection of this size."""
        self.assertEqual(len(container), expected_len, msg)

    def assertEmpty(self, container: Any, msg: str | None = None) -> None:
        """A collection of nothing."""
        self.assertFalse(len(container), msg or f"{container!r} has {len(container)} elements")

    def assertNotEmpty(self, container: Any, msg: str | None = None) -> None:
        """A collection of something."""
        self.assertTrue(len(container), msg or f"{container!r} is empty")

    def assertStartsWith(self, actual: str, expected_start: str, msg: str | None = None) -> None:
        """A text with this beginning."""
        self.assertTrue(actual.startswith(expected_start), msg or f"{actual!r} does not start with {expected_start!r}")

    # Threads

    def checkedThread(
        self, target: Callable[..., Any], args: Sequence[Any] | None = None, kwargs: Mapping[str, Any] | None = None
    ) -> CheckedThread:
        """A thread that is to be started, and joined before the test ends: `join` raises what it raised."""
        thread = CheckedThread(self, target, args, kwargs)
        self._threads.append(thread)
        return thread

    # How it is done

    def _compared(self, a: Any, b: Any, compare: Callable[..., None], msg: str | None, where: str = "") -> None:
        a, b = self._plain(a), self._plain(b)
        if isinstance(a, Mapping) or isinstance(b, Mapping):
            if not (isinstance(a, Mapping) and isinstance(b, Mapping)) or set(a) != set(b):
                self.fail(f"mismatched keys{where}: {a!r} and {b!r}. {msg or ''}")
            for key in a:
                self._compared(a[key], b[key], compare, msg, f"{where}[{key!r}]")
            return
        one, other = _as_array(a), _as_array(b)
        if one is None or other is None:
            self._by_parts(a, b, compare, msg, where)
            return
        if one.shape != other.shape:
            self.fail(f"Shape mismatch{where}: expected {other.shape}, got {one.shape}.\n{a!r}\n{b!r}\n{msg or ''}")
        compare(one, other, where)

    def _by_parts(self, a: Any, b: Any, compare: Callable[..., None], msg: str | None, where: str) -> None:
        if not isinstance(a, list | tuple) or not isinstance(b, list | tuple) or len(a) != len(b):
            self.fail(f"mismatched structures{where}: {a!r} and {b!r}. {msg or ''}")
        for index, (one, other) in enumerate(zip(a, b, strict=True)):
            self._compared(one, other, compare, msg, f"{where}[{index}]")

    def _plain(self, value: Any) -> Any:
        """With arrays in the place of tensors."""
        leaves = nest.flatten(value)
        places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, Tensor | Variable | SparseTensor)]
        if places:
            for place, found in zip(places, self.evaluate([leaves[place] for place in places]), strict=True):
                leaves[place] = tuple(found) if isinstance(found, SparseTensorValue) else found
            return nest.pack_sequence_as(value, leaves)
        return tuple(value) if isinstance(value, SparseTensorValue) else value

    def _array(self, value: Any) -> np.ndarray:
        return np.asarray(self._plain(value))

    def _check(self, same: np.ndarray, one: np.ndarray, other: np.ndarray, where: str, msg: str | None) -> None:
        if same.all():
            return
        lines = [f"{(~same).sum()} of {same.size} elements differ{where}. {msg or ''}"]
        for index in list(zip(*np.nonzero(~same), strict=True))[:_SHOWN] if same.ndim else [()]:
            at = ", ".join(str(each) for each in index)
            lines.append(f"  [{at}]: {one[index]!r} != {other[index]!r}")
        self.fail("\n".join(lines))

    def _all(self, target: Any, test: Callable[[np.ndarray], Any], words: str) -> None:
        values = self._array(target)
        good = np.asarray(test(values))
        if not good.all():
            self.fail(f"{(~good).sum()} of {good.size} elements are not {words}: {values[~good].ravel()[:_SHOWN]}")

    def _refused(self, check: Callable[[], None], complaint: str, msg: str | None) -> None:
        try:
            check()
        except AssertionError:
            return
        self.fail(f"{complaint} {msg or ''}")


class CheckedThread:
    """A thread whose exception its `join` raises."""

    def __init__(
        self,
        case: TestCase,
        target: Callable[..., Any],
        args: Sequence[Any] | None,
        kwargs: Mapping[str, Any] | None,
    ) -> None:
        self._case = case
        self._call = lambda: target(*(args or ()), **(kwargs or {}))
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._raised: BaseException | None = None
        self._was_started = False
        self._was_joined = False

    def start(self) -> None:
        """Starts it."""
        self._was_started = True
        self._thread.start()

    def join(self) -> None:
        """Waits for its end, and fails the test if it raised."""
        self._was_joined = True
        self._thread.join()
        if self._raised is not None:
            self._case.fail(f"Error in checkedThread: {self._raised!r}")

    def is_alive(self) -> bool:
        """Whether it still runs."""
        return self._thread.is_alive()

    def check_was_joined(self) -> None:
        """Fails the test if it was started and never joined."""
        if self._was_started and not self._was_joined:
            self._case.fail("A checked thread was not joined.")

    def _run(self) -> None:
        try:
            self._call()
        except BaseException as error:
            self._raised = error


def get_temp_dir() -> str:
    """A folder for the tests of this process, which is gone after it."""
    global _temp_dir
    if _temp_dir is None:
        _temp_dir = tempfile.mkdtemp(prefix="dtf_test_")
        atexit.register(shutil.rmtree, _temp_dir, ignore_errors=True)
    return _temp_dir


def main(argv: Sequence[str] | None = None) -> None:
    """Runs the tests of the program's script, and exits."""
    unittest.main(module="__main__", argv=list(sys.argv if argv is None else argv))


_temp_dir: str | None = None


def _as_array(value: Any) -> np.ndarray | None:
    """The array of a value; None for a structure that is none."""
    if isinstance(value, list | tuple) and any(isinstance(each, Mapping) for each in nest.flatten(value)):
        return None
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return None
    try:
        array = np.asarray(value)
    except ValueError:  # parts of different shapes
        return None
    if array.dtype == object and array.size and not isinstance(array.ravel()[0], bytes | str):
        return None
    return np.char.encode(array) if array.dtype.kind == "U" else array


def _is_text(array: np.ndarray) -> bool:
    return array.dtype.kind in "SO"


def _exact(array: np.ndarray) -> np.ndarray:
    """In a dtype that numpy can compare."""
    return array.astype(np.float64) if array.dtype.kind not in "fciub" or array.dtype.itemsize < 4 else array
