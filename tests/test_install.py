"""What `pip install .` puts into a virtual environment with nothing else in it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
# As tests are built, so that the engine is not compiled again.
BUILT = "build-args=--profile dev --features tamper"


def installed(folder: Path) -> Path:
    """The programs of such an environment."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    subprocess.run([folder / "bin" / "pip", "install", "-q", f"--config-settings={BUILT}", ROOT], check=True)
    return folder / "bin"


def within(fresh: Path, script: str, folder: Path) -> str:
    """What a shell script says that finds the environment's programs first."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    environment = kept | {"PATH": f"{fresh}:{os.environ['PATH']}"}
    done = subprocess.run(["sh", "-ec", script], cwd=folder, env=environment, check=True, stdout=subprocess.PIPE)
    return done.stdout.decode()


def test_a_fresh_environment(tmp_path: Path) -> None:
    """One test: two that run side by side would build one wheel at the same time, and one of them read half of it."""
    fresh = installed(tmp_path / "fresh")
    is_a_wheel_for_every_python(fresh, tmp_path)
    the_examples_run_as_the_readme_says(fresh, tmp_path)


def is_a_wheel_for_every_python(fresh: Path, tmp_path: Path) -> None:
    version = within(fresh, "sortmill --version", tmp_path)
    assert re.fullmatch(r"sortmill \d+\.\d+\.\d+\n", version)
    assert within(fresh, "python -m sortmill --version", tmp_path) == version
    files = within(fresh, "pip show -f sortmill", tmp_path)
    assert all(f"sortmill/{name}\n" in files for name in ("py.typed", "_sortmill.pyi", "_sortmill.abi3.so"))
    # Arrow is not there, and need not be.
    where = within(fresh, "python -c 'import sortmill; print(sortmill.__file__)'", tmp_path)
    assert where.startswith(str(fresh.parent))


def the_examples_run_as_the_readme_says(fresh: Path, tmp_path: Path) -> None:
    """Its lines as they stand, over less data; of Rust's there are two, which need the compiler."""
    block = re.search(r"```sh\n(sortmill gen text .*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert block is not None
    lines = [line.replace("00MB", "MB").replace("20MB", "500kB") for line in block[1].splitlines() if not line.startswith("cargo")]
    assert all(f"examples/{program.name} " in block[1] for program in (ROOT / "examples").glob("*.py"))
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    within(fresh, "\n".join(lines), tmp_path)
    made = [tmp_path / name for name in ("words.csv", "ngrams.csv", "found.txt", "index.txt", "sessions.csv", "ranks.txt")]
    assert all(path.stat().st_size for path in made)
    assert sum(path.read_bytes().count(b"\n") for path in (tmp_path / "shuffled").iterdir() if path.name != "manifest.json") == (
        (tmp_path / "text.txt").read_bytes().count(b"\n")
    )
