"""Numbers that a user said, looked at."""

from __future__ import annotations

from typing import Any

from ._errors import UsageError


def whole(name: str, value: Any, least: int = 0, most: int = 2**64 - 1) -> int:
    """A whole number, neither less nor more than these."""
    try:
        number = None if isinstance(value, bool) else value.__index__()
    except (AttributeError, TypeError):
        number = None
    if number is None:
        raise UsageError(f"{name} is a whole number, not {value!r}")
    if not least <= number <= most:
        raise UsageError(f"{name} is {number}, and {least} to {most} can be")
    return int(number)
