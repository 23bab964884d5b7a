"""What can go wrong, as exceptions: by who must act."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager


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

    needed_bytes: int | None = None
    """What is needed, as far as it can be foreseen."""
    missing_bytes: int | None = None
    """How much more would have to be free there for that."""


class MemoryLimitError(Error):
    """The memory given is too little for the job."""


class SampleWarning(UserWarning):
    """What was shown of a table is of a sample of its input."""


_CLASSES: dict[str, type[Error]] = {
    "Usage": UsageError,
    "Input": InputError,
    "Changed": InputError,
    "Function": FunctionError,
    "Space": SpaceError,
    "Memory": MemoryLimitError,
}


def made(
    kind: str, text: str, cause: str, file: str | None, offset: int | None, hint: str | None, room: tuple[int, int | None] | None
) -> Error:
    """The exception for an error of the engine, which calls this."""
    of_sort = getattr(_here, "sorts", False)
    # The text ends in the hint.
    told = text.removesuffix(hint).rstrip() if hint else text
    # What is wrong with data, or with a file, is told in their words.
    if of_sort and kind == "Usage":
        told, cause = _options_of_sort(told), _options_of_sort(cause)
    if hint:
        hint = _options_of_sort(hint) if of_sort else _of_pipelines(hint)
    error = _CLASSES.get(kind, Error)(f"{told}\n\n{hint}" if hint else told, kind, cause, file, offset, hint)
    if isinstance(error, SpaceError) and room is not None:
        error.needed_bytes, error.missing_bytes = room
    return error


_here = threading.local()


@contextmanager
def of_sort() -> Iterator[None]:
    """Errors in here are those of `sort`, whose options have the names of the command line's."""
    _here.sorts = True
    try:
        yield
    finally:
        _here.sorts = False


_OPTION = re.compile(r"(?<![\w-])--([a-z][a-z0-9-]*)(?: (none|N|local:N)\b)?")
"""An option of the command line, and what is behind it."""

_SWITCHES = frozenset(["no-decompress", "as-of-start", "overwrite", "stable", "decompress", "verify", "no-direct", "temp-apart"])
"""Those that say all by being there."""

_PARAMETERS = {
    "--memory": "memory=", "--temp": "temp=", "--overwrite": 'mode="overwrite"', "--compress-output none": 'compression="none"',
    "--skip-bad N": "skip_bad=N", "--quote none": "quote=None",
}
"""What pipelines have for options of the command line."""


def _options_of_sort(text: str) -> str:
    """The same with options as parameters of `sort`."""

    def parameter(option: re.Match[str]) -> str:
        name, value = option[1], option[2]
        if value is None:
            value = "True" if name in _SWITCHES else ""
        return f"{name.replace('-', '_')}={value if value in ('True', 'N', '') else repr(value)}"

    return _OPTION.sub(parameter, text)


def _of_pipelines(hint: str) -> str | None:
    """The same with options as parameters of pipelines, without sentences of options that these do not have."""
    kept = []
    for sentence in re.split(r"(?<=[.])\s+", hint):
        options = [option[0] for option in _OPTION.finditer(sentence)]
        if all(option in _PARAMETERS for option in options):
            kept.append(_OPTION.sub(lambda option: _PARAMETERS[option[0]], sentence))
    return " ".join(kept).replace(" | sortmill sort", "") or None
