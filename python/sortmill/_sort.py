"""`sort`: what the command line can do, as a function."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from . import _sortmill
from ._asked import Path, bytes_of, paths_of
from ._errors import UsageError, of_sort
from ._instead import instead_of
from ._report import Report

NODE_WORDS = [sys.executable, "-m", "sortmill"]


def sort(
    inputs: Path | Iterable[Path],
    output: Path | None = None,
    *,
    key: str | Sequence[str] = (),
    memory: int | str | None = None,
    temp: Path | Iterable[Path] | None = None,
    **options: bool | int | str | os.PathLike[str] | Sequence[str],
) -> Report:
    """Sorts files into one, as `sortmill sort` does, or with `parts=FOLDER` and no `output` into several.

    `inputs` may have `*`, `?` and `**`. `key` is a key as on the command line (`"-k2,2n"`, `"2,2n"` or, of fixed records,
    `"0:10"`), or several. All other options have the names they have there, with `_` for `-`: `format="csv"`,
    `by="city,-price:num"`, `unique=True`, `compress_output="zst"`. `False` is what the option with `no_` in front says, where there is
    one (`decompress=False`), and else the same as saying nothing.
    """
    if output is None and not options.get("parts"):
        raise UsageError("say where to: an output, or parts= for a folder of files")
    said: list[str] = [] if output is None else ["--output", os.fspath(output)]
    for one in _keys(key):
        said += shlex.split(one) if one.startswith("-") else ["--key", one]
    if memory is not None:
        said += ["--memory", memory if isinstance(memory, str) else str(bytes_of("memory", memory))]
    for folder in paths_of(temp):
        said += ["--temp", folder]
    known = _sortmill.sort_options() if options else {}
    for name, value in options.items():
        said += _option(name, value, known)
    named = paths_of(inputs)
    if not named and not options.get("files0_from"):
        raise UsageError("there is nothing to sort: name the inputs, \"-\" for standard input")
    with of_sort():
        files = [os.fspath(path) for path in _sortmill.expand(named)]
        return Report(*_sortmill.sort([*said, "--", *files], NODE_WORDS))


def _keys(key: Any) -> Sequence[str]:
    keys = [key] if isinstance(key, str) else key
    if isinstance(keys, (list, tuple)) and all(isinstance(one, str) for one in keys):
        return keys
    raise UsageError(f"a key is as on the command line, '2,2n' or '-k2,2n', or of fixed records '0:10', or there are several; not {key!r}")


def _option(name: str, value: Any, known: dict[str, str]) -> list[str]:
    """An option and its value as one word each, so that nothing is taken for what it is not."""
    option = name.replace("_", "-")
    takes = known.get(option)
    if takes is None:
        instead = instead_of("sort", name)
        raise UsageError(f"there is no option {name}=" + (f": {instead}" if instead else ""))
    if option == "progress" and isinstance(value, bool):
        value = "auto" if value else "none"
    if value is None:
        return []
    if isinstance(value, bool):
        if takes == "value":
            raise UsageError(f"{name}= takes a value, not {value!r}")
        if not value:
            option = f"no-{option}"
        return [f"--{option}"] if option in known else []
    if takes == "nothing":
        raise UsageError(f"{name}= is True or False, not {value!r}")
    each = [value] if isinstance(value, (str, int, os.PathLike)) else value
    if isinstance(each, (list, tuple)) and all(isinstance(one, (str, int, os.PathLike)) for one in each):
        return [f"--{option}={os.fsdecode(one) if isinstance(one, os.PathLike) else one}" for one in each]
    raise UsageError(f"{name}= takes a text, a whole number, True, or several of them, not {value!r}")
