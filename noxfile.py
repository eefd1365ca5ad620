"""Long jobs that plain ``uv run pytest`` leaves out. ``nox -l`` lists them."""

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
