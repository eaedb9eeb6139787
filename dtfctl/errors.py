"""What can go wrong for a user, one tree; the text of each says what, why and what to do.

DtfctlError (exit status 1)
|-- ConfigError (2)            the cluster file cannot be used; file:line:column: key
|-- SecretMissing (2)          a secret that the cluster file names cannot be read; where it was looked for
|-- UnknownCluster (4)         no such cluster; which there are
|-- UnknownTask (4)            no such task; which there are
|-- SupervisorUnreachable (7)  the daemon does not start or does not answer; the end of its log
    |   `-- SupervisorHasGone      while a command talked to it
|-- StoreError (1)             the state on disk is damaged or of another version
|   `-- StoreUnwritable           it cannot be written, on a full disk for instance; what is to be done about it
|-- NotPrivate (1)             a folder of secrets that others may enter, or a socket that is another user's
|-- CertificatesMissing (1)    security: tls cannot be had here; what to install, or which file is damaged
|-- MetricsMissing (1)         figures cannot be given here; what to install
|-- PlotMissing (1)            curves cannot be drawn here; what to install
|-- TraceUnreadable (1)        a file that `dtfctl trace` has not written
|-- TraceImpossible (1)        no task can be traced now; why
|-- HostsUnusable (8)          hosts that cannot be reached or used; each with why, and the command that shows it
|-- CommandEnded (0 or 3)      a job of an engine waits, has ended or is cancelled: the command has said so
`-- PortTaken (1)              a port that the cluster file names belongs to somebody else; to whom
"""

from __future__ import annotations


class DtfctlError(Exception):
    exit_status = 1


class ConfigError(DtfctlError):
    exit_status = 2


class SecretMissing(DtfctlError):
    exit_status = 2


class UnknownCluster(DtfctlError):
    exit_status = 4


class UnknownTask(DtfctlError):
    exit_status = 4


class SupervisorUnreachable(DtfctlError):
    exit_status = 7


class SupervisorHasGone(SupervisorUnreachable):
    """It ended while a command talked to it: it was killed, or its work is done."""


class StoreError(DtfctlError):
    pass


class StoreUnwritable(StoreError):
    """What is to be remembered waits until there is room again."""


class HostsUnusable(DtfctlError):
    exit_status = 8


class NotPrivate(DtfctlError):
    pass


class CertificatesMissing(DtfctlError):
    pass


class MetricsMissing(DtfctlError):
    pass


class PlotMissing(DtfctlError):
    pass


class TraceImpossible(DtfctlError):
    pass


class TraceUnreadable(DtfctlError):
    pass


class PortTaken(DtfctlError):
    pass


class CommandEnded(DtfctlError):
    NOT_RUNNING = 3

    def __init__(self, words: str, exit_status: int = 0) -> None:
        super().__init__(words)
        self.exit_status = exit_status
