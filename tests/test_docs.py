"""What documents and examples show works as they show it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def test_the_tutorial_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Each block of Python in docs/python.md, one after the other; what it prints is the block of text behind it."""
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```(python|text)\n(.*?)```", (ROOT / "docs" / "python.md").read_text(), re.DOTALL)
    names: dict[str, object] = {}
    assert sum(kind == "python" for kind, _ in blocks) >= 5
    for kind, block in blocks:
        if kind == "python":
            capsys.readouterr()
            exec(compile(block, "docs/python.md", "exec"), names)
        else:
            assert capsys.readouterr().out == block


def run(example: str, *words: str | Path) -> str:
    program = ROOT / "examples" / example
    assert len(program.read_text().splitlines()) <= 60
    done = subprocess.run([sys.executable, program, *words], check=True, stdout=subprocess.PIPE)
    return done.stdout.decode()


def test_the_examples_run(tmp_path: Path) -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    words = [re.findall(r"[^\W_]+", line.lower()) for line in text.splitlines()]
    printed = run("word_count.py", ROOT / "ARCHITECTURE.md", tmp_path / "words.csv")
    assert "proven" in printed
    counts = Counter(word for line in words for word in line)
    wanted = sorted(counts.items(), key=lambda one: (-one[1], one[0]))[:1000]
    lines = "".join(f"{word},{n}\n" for word, n in wanted)
    assert (tmp_path / "words.csv").read_text() == "word,n\n" + lines

    run("ngrams.py", "3", ROOT / "ARCHITECTURE.md", tmp_path / "three.csv")
    counts = Counter(" ".join(line[at : at + 3]) for line in words for at in range(len(line) - 2))
    often = sorted(((three, n) for three, n in counts.items() if n > 1), key=lambda one: (-one[1], one[0]))
    lines = "".join(f"{three},{n}\n" for three, n in often)
    assert (tmp_path / "three.csv").read_text() == "ngram,n\n" + lines
