"""Errors that end a command: one class a kind, each with its exit code.

Exit codes are a contract (docs/guide.md): 0 nothing wrong, 1 findings at or above ``--fail-on``, 2 usage,
3 the target cannot be read or reached, 4 a fault of bringup's own.
"""


class BringupError(Exception):
    """An error that a person can act on: names what was read and why it cannot be used."""

    exit_code = 3


class UsageError(BringupError):
    """The command line asks for something that does not exist or does not fit together."""

    exit_code = 2


class UnreadableError(BringupError):
    """A file, host or index that cannot be read or reached. ``subject`` names it, ``reason`` says why."""

    def __init__(self, subject: str, reason: str) -> None:
        super().__init__(f"{subject}: {reason}")
        self.subject = subject
        self.reason = reason

    def __reduce__(self) -> tuple[type, tuple[str, str]]:
        # Errors travel between worker processes; the default reduction would pass one argument to two.
        return (type(self), (self.subject, self.reason))


class MalformedElfError(UnreadableError):
    """An ELF file whose headers contradict each other or point outside of the file."""


class MalformedFatbinError(UnreadableError):
    """Device code whose container headers are not what the format allows."""


class MalformedWheelError(UnreadableError):
    """A wheel that is no zip archive, is damaged, or that tries to escape its folder."""


class IndexUnreachableError(UnreadableError):
    """A package index that does not answer, refuses, or answers something else than the protocol."""


class UnresolvableError(UnreadableError):
    """Requirements that no set of published versions satisfies. ``reason`` is the resolver's own explanation."""
