"""The part of a page that programs write, between two marks."""

from shell import fail


def replaced(path, begin, end, block):
    """The text of the page at `path` with `block` between the marks `begin` and `end`."""
    text = path.read_text()
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
        fail(f"{path.name} has not one {begin} and one {end} after it")
    before, rest = text.split(begin)
    _, after = rest.split(end)
    return f"{before}{begin}\n{block}\n{end}{after}"
