"""What tests share: texts drawn from a seed that is printed, and taken from SEED."""

from __future__ import annotations

import gzip
import os
import random
import signal
from dataclasses import dataclass
from pathlib import Path

import pytest

# What a shell runs in the background begins with Ctrl-C ignored, and what it starts inherits that: here it is a signal.
signal.signal(signal.SIGINT, signal.default_int_handler)


@dataclass
class Text:
    """Three files of text in a folder, one of them compressed."""

    folder: Path
    lines: list[str]

    @property
    def pattern(self) -> str:
        """All of them."""
        return str(self.folder / "**" / "*.txt*")


@pytest.fixture
def draw(request: pytest.FixtureRequest) -> random.Random:
    """A source of randomness whose seed is shown when the test fails."""
    seed = os.environ.get("SEED") or str(random.SystemRandom().getrandbits(32))
    print(f"SEED={seed}")
    return random.Random(f"{seed} {request.node.name}")


@pytest.fixture
def text(tmp_path: Path, draw: random.Random) -> Text:
    """Words as uneven as those of a language, with what stands between words."""
    lines = []
    for _ in range(4000):
        words = [draw.choice(["w{}", "Ärger{}", "É{}x"]).format(int(draw.paretovariate(0.7)) % 5000) for _ in range(draw.randrange(12))]
        lines.append(draw.choice([" ", ", ", " - ", "\t"]).join(words))
    folder = tmp_path / "in"
    (folder / "deep").mkdir(parents=True)
    parts = [lines[:1000], lines[1000:2500], lines[2500:]]
    (folder / "a.txt").write_text("\n".join(parts[0]) + "\n", encoding="utf-8")
    (folder / "b.txt").write_text("\n".join(parts[1]) + "\n", encoding="utf-8")
    whole = ("\n".join(parts[2]) + "\n").encode()
    (folder / "deep" / "c.txt.gz").write_bytes(gzip.compress(whole))
    return Text(folder, lines)
