"""Which tests run, and what they share.

Plain ``pytest`` runs everything that needs no network, and tests marked ``wheels`` where the package index answers and the disk has
room. Tests marked ``truth`` (whole environments) or ``slow`` run only where ``-m`` names them. Whatever is left out says why.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

WHEELS_NEED = 8 << 30
"""Bytes of free disk that downloads of wheels may take."""


LEFT_OUT = {
    "truth": "installs whole environments; run it with: nox -s truth",
    "slow": "takes longer than a minute; run it with: uv run pytest -m slow",
}
"""Markers whose tests run only where -m names them, and what is said of them."""


def cache_folder() -> Path:
    """Where downloads are kept between runs: BRINGUP_TEST_CACHE, else ~/.cache/bringup-tests."""
    return Path(os.environ.get("BRINGUP_TEST_CACHE") or Path.home() / ".cache" / "bringup-tests")


def why_no_wheels() -> str:
    """Why tests that download wheels cannot run here, '' where they can."""
    if os.environ.get("BRINGUP_TEST_WHEELS") == "0":
        return "BRINGUP_TEST_WHEELS=0"
    folder = cache_folder()
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    if free < WHEELS_NEED:
        return f"{free >> 30} GiB of disk are free at {folder}, {WHEELS_NEED >> 30} are needed"
    # Through uv, so that a mirror, a proxy or a bundle of certificates of this machine is used as users' commands use it.
    command = ["uv", "pip", "compile", "--quiet", "--no-deps", "--no-header", "--no-cache", "-"]
    try:
        done = subprocess.run(command, input="packaging", capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"the package index does not answer: {error}"
    return "" if done.returncode == 0 else f"the package index does not answer: {done.stderr.strip()[-300:]}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    asked = config.getoption("-m") or ""
    for marker, reason in LEFT_OUT.items():
        if marker not in asked:
            for item in items:
                if item.get_closest_marker(marker):
                    item.add_marker(pytest.mark.skip(reason=reason))
    wheels = [item for item in items if item.get_closest_marker("wheels") and not item.get_closest_marker("truth")]
    if wheels and not config.option.collectonly and (reason_text := why_no_wheels()):
        for item in wheels:
            item.add_marker(pytest.mark.skip(reason=reason_text))


@pytest.fixture(scope="session")
def wheel_cache() -> Path:
    """A folder that is kept between runs, for what was downloaded."""
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(autouse=True, scope="session")
def _own_facts_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep the facts that tests read out of the user's own cache."""
    os.environ["BRINGUP_CACHE_DIR"] = str(tmp_path_factory.mktemp("facts-cache"))


@pytest.fixture
def data() -> Path:
    """The folder of recorded inputs and ground truth."""
    return Path(__file__).parent / "data"
