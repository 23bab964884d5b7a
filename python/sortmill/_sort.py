"""`sort`: what the command line can do, as a function."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence

from . import _sortmill
from ._asked import Path, bytes_of, paths_of
from ._errors import UsageError, of_sort
from ._report import Report

NODE_WORDS = [sys.executable, "-m", "sortmill"]


def sort(
    inputs: Path | Sequence[Path],
    output: Path | None = None,
    *,
    key: str | Sequence[str] = (),
    memory: int | str | None = None,
    temp: Path | Sequence[Path] | None = None,
    **options: bool | int | str | os.PathLike[str] | Sequence[str],
) -> Report:
    """Sorts files into one, as `sortmill sort` does, or with `parts=FOLDER` and no `output` into several.

    `inputs` may have `*`, `?` and `**`. `key` is a key as on the command line (`"-k2,2n"`, `"2,2n"` or, of fixed records,
    `"0:10"`), or several. All other options have the names they have there, with `_` for `-`: `format="csv"`,
    `by="city,-price:num"`, `unique=True`, `compress_output="zst"`.
    """
    if output is None and not options.get("parts"):
        raise UsageError("say where to: an output, or parts= for a folder of files")
    said: list[str] = [] if output is None else ["--output", os.fspath(output)]
    for one in [key] if isinstance(key, str) else key:
        said += shlex.split(one) if one.startswith("-") else ["--key", one]
    if memory is not None:
        said += ["--memory", memory if isinstance(memory, str) else str(bytes_of("memory", memory))]
    for folder in paths_of(temp):
        said += ["--temp", folder]
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        if value is None:
            continue
        if isinstance(value, bool):
            said += [option] if value else []
        elif isinstance(value, (str, int, os.PathLike)):
            said += [option, os.fspath(value) if isinstance(value, os.PathLike) else str(value)]
        elif isinstance(value, Sequence):
            for one in value:
                said += [option, os.fspath(one)]
        else:
            raise UsageError(f"{name}= takes a text, a whole number, True, or several of them, not {value!r}")
    named = paths_of(inputs)
    if not named and not options.get("files0_from"):
        raise UsageError("there is nothing to sort: name the inputs, \"-\" for standard input")
    with of_sort():
        files = [os.fspath(path) for path in _sortmill.expand(named)]
        return Report(*_sortmill.sort([*said, "--", *files], NODE_WORDS))
