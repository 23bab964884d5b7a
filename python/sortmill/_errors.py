"""What can go wrong, as exceptions: by who must act."""

from __future__ import annotations


class Error(Exception):
    """An error of a job. No output has been made, and what was there before still is."""

    kind: str
    """Who must act: `Usage`, `Input`, `Function`, `Changed`, `Space`, `Memory`, `Io`, `Corrupt`, ..."""
    cause: str
    """Why, in words."""
    file: str | None
    """The file it is about."""
    offset: int | None
    """The byte in that file, of a compressed one in what it was."""
    hint: str | None
    """What to do about it."""

    def __init__(
        self,
        text: str,
        kind: str = "Usage",
        cause: str | None = None,
        file: str | None = None,
        offset: int | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(text)
        self.kind = kind
        self.cause = text if cause is None else cause
        self.file = file
        self.offset = offset
        self.hint = hint


class UsageError(Error, ValueError):
    """The request cannot be carried out as it was put."""


class InputError(Error):
    """An input is missing, unreadable, not what it should be, or changed meanwhile."""


class FunctionError(Error):
    """A function failed, or made what it should not. An exception that it raised is the `__cause__`."""


class SpaceError(Error):
    """There is not enough room on a disk."""


class MemoryLimitError(Error):
    """The memory given is too little for the job."""


_CLASSES: dict[str, type[Error]] = {
    "Usage": UsageError,
    "Input": InputError,
    "Changed": InputError,
    "Function": FunctionError,
    "Space": SpaceError,
    "Memory": MemoryLimitError,
}


def made(
    kind: str, text: str, cause: str, file: str | None, offset: int | None, hint: str | None
) -> Error:
    """The exception for an error of the engine, which calls this."""
    return _CLASSES.get(kind, Error)(text, kind, cause, file, offset, hint)
