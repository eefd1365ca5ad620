"""Long jobs that plain ``uv run pytest`` leaves out. ``nox -l`` lists them."""

import os
import sys
from pathlib import Path

import nox

nox.options.default_venv_backend = "uv"
nox.options.sessions = []


def install(session: nox.Session) -> None:
    session.run_install("uv", "sync", "--active", "--group", "dev", env={"VIRTUAL_ENV": session.virtualenv.location})


@nox.session
def truth(session: nox.Session) -> None:
    """Install whole environments, open every library for real, and compare with the prediction."""
    install(session)
    session.run("pytest", "-m", "truth", *session.posargs)


@nox.session
def fuzz(session: nox.Session) -> None:
    """100,000 damaged files a kind instead of plain pytest's 2,000."""
    install(session)
    session.run("pytest", "tests/fuzz", "-s", *session.posargs, env={"BRINGUP_FUZZ_CASES": "100000"})


@nox.session
def bench(session: nox.Session) -> None:
    """Time checks and library reading in the first environment that BRINGUP_TRUTH_ENVS names, then the growth."""
    install(session)
    named = [Path(one) for one in os.environ.get("BRINGUP_TRUTH_ENVS", "").split(os.pathsep) if one]
    if named:
        session.run("python", "benchmarks/bench_check.py", str(named[0]), *session.posargs)
        libraries = [path for path in named[0].rglob("*.so*") if path.is_file() and not path.is_symlink()]
        largest = max(libraries, key=lambda path: path.stat().st_size)
        session.run("python", "benchmarks/bench_elf.py", str(largest))
    else:
        print("BRINGUP_TRUTH_ENVS names no environment: only what needs none is measured", file=sys.stderr)
    session.run("python", "benchmarks/bench_check.py", "--growth")
