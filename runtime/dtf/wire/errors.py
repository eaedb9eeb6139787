"""The errors of the runtime: one tree, with TensorFlow's names, codes and constructor arguments.

    OpError                         anything that the runtime reports; `code` says what
    +- CancelledError           1   the caller, or a closing session, withdrew the step
    +- UnknownError             2   a foreign error without a code of its own
    +- InvalidArgumentError     3   the input is wrong whatever the state of the system is
    +- DeadlineExceededError    4   the time ran out
    +- NotFoundError            5   a named thing (file, resource, device) does not exist
    +- AlreadyExistsError       6   a thing that was to be made exists
    +- PermissionDeniedError    7   the caller may not do this
    +- ResourceExhaustedError   8   memory, quota or space is used up
    +- FailedPreconditionError  9   the system is not in the needed state (an uninitialised variable)
    +- AbortedError            10   a peer restarted or a step was given up; trying again may help
    +- OutOfRangeError         11   past the end (a closed and empty queue)
    +- UnimplementedError      12   no such operation here
    +- InternalError           13   an invariant of the runtime is broken
    +- UnavailableError        14   a peer cannot be reached now; trying again may help
    +- DataLossError           15   stored data is cut short or corrupt
    +- UnauthenticatedError    16   the caller did not say who it is

The codes are those of gRPC and of `error_codes.proto`. A *derived* error only follows from another one (a
peer's cancelled step); the collector of a step's errors reports the first that is not derived.

This module owns the tree and the conversions between codes and classes. How an error travels is rpc's matter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import Self

OK = 0
CANCELLED = 1
UNKNOWN = 2
INVALID_ARGUMENT = 3
DEADLINE_EXCEEDED = 4
NOT_FOUND = 5
ALREADY_EXISTS = 6
PERMISSION_DENIED = 7
RESOURCE_EXHAUSTED = 8
FAILED_PRECONDITION = 9
ABORTED = 10
OUT_OF_RANGE = 11
UNIMPLEMENTED = 12
INTERNAL = 13
UNAVAILABLE = 14
DATA_LOSS = 15
UNAUTHENTICATED = 16


class OpError(Exception):
    """An error that the runtime reports about a step, an op or a session.

    Attributes:
      message: the text alone.
      op: the `Operation` of the caller's graph that failed, or None.
      node_def: the `NodeDef` that failed, or None (it may be a node that the runtime added).
      error_code: one of the code constants of this module (also `code`).
      derived: True when this error only follows from another one of the same step.
    """

    def __init__(self, node_def: Any, op: Any, message: str, error_code: int) -> None:
        super().__init__(message)
        self._node_def = node_def
        self._op = op
        self._message = message
        self._error_code = error_code
        self.derived = False

    @classmethod
    def of(cls, message: str) -> Self:
        """An error of this kind that belongs to no node: `InvalidArgumentError.of("The port is taken")`."""
        return cls(None, None, message)  # type: ignore[call-arg]  # each kind knows its code

    @property
    def message(self) -> str:
        return self._message

    @property
    def experimental_payloads(self) -> dict[bytes, bytes]:
        """Further details by type: none, as in graphs of TensorFlow."""
        return {}

    @property
    def op(self) -> Any:
        return self._op

    @property
    def node_def(self) -> Any:
        return self._node_def

    @property
    def error_code(self) -> int:
        return self._error_code

    @property
    def code(self) -> int:
        return self._error_code

    def __str__(self) -> str:
        where = _describe_op(self._op)
        return f"{self._message}\n\n{where}" if where else self._message

    def __reduce__(self) -> tuple[Any, ...]:
        # Neither an Operation nor a NodeDef crosses a process boundary; the words and the code do.
        return error_from_code, (self._error_code, self._message), {"derived": self.derived}


class CancelledError(OpError):
    def __init__(self, node_def: Any, op: Any, message: str) -> None:
        super().__init__(node_def, op, message, CANCELLED)


class UnknownError(OpError):
    def __init__(self, node_def: Any, op: Any, message: str, error_code: int = UNKNOWN) -> None:
        super().__init__(node_def, op, message, error_code)


class InvalidArgumentError(OpError):
    def __init__(self, node_def: Any, op: Any, message: str) -> None:
        super().__init__(node_def, op, message, INVALID_ARGUMENT)


class DeadlineExceededError(OpError):
    def __init__(self, node_def: Any, op: Any, message: str) -> None:
        super().__init__(node_def, op, message, DEADLINE_EXCEEDED)


class NotFoundError(OpError):
    def __init__(self, node_def: Any, op: Any, message: str) -> None:
        super().__init__(node_def, op, message, NOT_FOUND)


class AlreadyExistsError(OpError):
    def __init__(self, node_def: Any, op: Any, message: str) -> None:
        super().__init__(node_def, op, message, ALREADY_EXISTS)


class PermissionDeniedError(OpError):
    def __init__(self, node_def: Any, op: Any, message: str) -> None:
        super().__init__(node_def, op, message, PERMISSION_DENIED)


class ResourceExhaustedError(OpError):
    def __init__(self, node_def: Any, op: Any, message: str) -> None:
        super().__init__(node_def, op, message, RESOURCE_EXHAUSTED)


class FailedPreconditionError(OpError):
    def __init__(self, node_def: Any, op: Any, message: str) -> None:
        super().__init__(node_def, op, message, FAILED_PRECONDITION)


class AbortedError(OpError):
    def __init__(self, node_def: Any, op: Any, message: str) -> None:
        super().__init__(node_def, op, message, ABORTED)


class OutOfRangeError(OpError):
    def __init__(self, node_def: Any, op: Any, message: str) -> None:
        super().__init__(node_def, op, message, OUT_OF_RANGE)


class UnimplementedError(OpError):
    def __init__(self, node_def: Any, op: Any, message: str) -> None:
        super().__init__(node_def, op, message, UNIMPLEMENTED)


class InternalError(OpError):
    def __init__(self, node_def: Any, op: Any, message: str) -> None:
        super().__init__(node_def, op, message, INTERNAL)


class UnavailableError(OpError):
    def __init__(self, node_def: Any, op: Any, message: str) -> None:
        super().__init__(node_def, op, message, UNAVAILABLE)


class DataLossError(OpError):
    def __init__(self, node_def: Any, op: Any, message: str) -> None:
        super().__init__(node_def, op, message, DATA_LOSS)


class UnauthenticatedError(OpError):
    def __init__(self, node_def: Any, op: Any, message: str) -> None:
        super().__init__(node_def, op, message, UNAUTHENTICATED)


def error_from_code(code: int, message: str, node_def: Any = None, op: Any = None) -> OpError:
    """The error of class `code`; an unassigned code gives an UnknownError that keeps the number."""
    error_class = _CLASS_OF_CODE.get(code)
    if error_class is None:
        return UnknownError(node_def, op, message, code)
    return error_class(node_def, op, message)


def exception_type_from_error_code(error_code: int) -> type[OpError]:
    """The class of `error_code`; a KeyError for an unknown code and for 0."""
    return _CLASS_OF_CODE[error_code]


def error_code_from_exception_type(cls: type[OpError]) -> int:
    """The code of one of the classes of this module; a KeyError for any other class."""
    return _CODE_OF_CLASS[cls]


def code_name(code: int) -> str:
    """The constant's name: 10 -> "ABORTED"; a number that has none comes back as its digits."""
    return _NAME_OF_CODE.get(code, str(code))


def _describe_op(op: Any) -> str:
    traceback = getattr(op, "traceback", None)
    if not traceback:
        return ""
    lines = [f"Original stack trace for {op.name!r}:"]
    for frame in traceback:
        filename, line, function = frame[0], frame[1], frame[2]
        lines.append(f'  File "{filename}", line {line}, in {function}')
    return "\n".join(lines)


_CLASS_OF_CODE: dict[int, Any] = {
    CANCELLED: CancelledError,
    UNKNOWN: UnknownError,
    INVALID_ARGUMENT: InvalidArgumentError,
    DEADLINE_EXCEEDED: DeadlineExceededError,
    NOT_FOUND: NotFoundError,
    ALREADY_EXISTS: AlreadyExistsError,
    PERMISSION_DENIED: PermissionDeniedError,
    RESOURCE_EXHAUSTED: ResourceExhaustedError,
    FAILED_PRECONDITION: FailedPreconditionError,
    ABORTED: AbortedError,
    OUT_OF_RANGE: OutOfRangeError,
    UNIMPLEMENTED: UnimplementedError,
    INTERNAL: InternalError,
    UNAVAILABLE: UnavailableError,
    DATA_LOSS: DataLossError,
    UNAUTHENTICATED: UnauthenticatedError,
}
_CODE_OF_CLASS = {error_class: code for code, error_class in _CLASS_OF_CODE.items()}
_NAME_OF_CODE = {
    value: name for name, value in list(globals().items()) if name.isupper() and isinstance(value, int)
}

__all__ = [
    "OpError",
    "error_code_from_exception_type",
    "error_from_code",
    "exception_type_from_error_code",
    *(error_class.__name__ for error_class in _CLASS_OF_CODE.values()),
    *_NAME_OF_CODE.values(),
]
