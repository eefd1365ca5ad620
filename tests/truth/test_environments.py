"""Whole environments, really installed: every library is opened for real, and the outcome compared with the prediction.

Run with ``nox -s truth``. Environments are kept in the tests' cache folder; BRINGUP_TRUTH_ENVS names folders with ready-made ones
(``NAME`` below as the folder's name), which are then used as they are.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
from msgspec.structs import replace

from bringup.collect.cache import Cache
from bringup.collect.environment import read_roots
from bringup.evaluate.drivers import driver_from
from bringup.evaluate.engine import evaluate
from bringup.evaluate.loading import DRIVER_LIBRARIES
from bringup.evaluate.openings import open_all
from bringup.facts import Facts, Known, names
from bringup.findings import Finding
from bringup.gpus import parse_gpu
from bringup.pipeline import read_environment
from tests.conftest import cache_folder
from tests.truth.comparison import compare

pytestmark = pytest.mark.truth

PYTHON = "3.11"


class Environment(NamedTuple):
    """What is installed, the GPUs that all of it supports, and error findings that are true of it (rule and subject)."""

    name: str
    installs: tuple[tuple[str, ...], ...]
    gpus: tuple[str, ...]
    true_errors: frozenset[tuple[str, str]] = frozenset()


ENVIRONMENTS = (
    Environment(
        "a",
        (("torch==2.9.1", "sgl-kernel==0.3.21", "numpy"), ("--no-deps", "xformers==0.0.35")),
        ("rtx-pro-6000", "h200", "b200", "rtx-4090"),
        frozenset({("VER003", "xformers")}),  # built for torch 2.10: says so itself, and goes on without its operators
    ),
    Environment("s", (("--prerelease=allow", "sglang==0.5.23"),), ("rtx-pro-6000", "h200", "b200", "rtx-4090")),
    Environment(
        "c",
        (("torch==2.11.0", "torchvision", "torchaudio", "flash-attn-4>=4.0.0b1", "bitsandbytes", "cupy-cuda13x"),),
        ("rtx-pro-6000", "h200", "b200", "rtx-4090"),
        # The newest torchaudio beside an older torch: `import torchaudio` fails for real.
        frozenset({("ABI001", "torchaudio/lib/libtorchaudio.so")}),
    ),
    Environment("v", (("vllm==0.33.0",),), ("rtx-pro-6000", "h200", "b200", "rtx-4090")),
)

INSTALLED_STAGES = ("install", "import", "device", "kernels")
"""What the installed files decide. Later stages also depend on this machine's compilers and limits."""


def prefix_of(environment: Environment) -> Path:
    """The environment's folder: ready-made where one is named, else installed into the cache once."""
    for folder in os.environ.get("BRINGUP_TRUTH_ENVS", "").split(os.pathsep):
        if folder and Path(folder).name == environment.name:
            return Path(folder)
    prefix = cache_folder() / "environments" / environment.name
    done = prefix / "installed"
    if done.exists():
        return prefix
    free = shutil.disk_usage(cache_folder().parent).free
    if free < 20 << 30:
        pytest.skip(f"{free >> 30} GiB of disk are free, 20 are needed to install {environment.name}")
    subprocess.run(["uv", "venv", "--clear", "-q", "-p", PYTHON, prefix], check=True)
    for install in environment.installs:
        subprocess.run(["uv", "pip", "install", "-q", "-p", prefix / "bin/python", *install], check=True)
    done.touch()
    return prefix


def stub_driver(facts: Facts, folder: Path) -> Path:
    """A folder with a libcuda.so.1 that defines every function of the driver that any library refers to."""
    assert isinstance(facts.libraries, Known)
    wanted = {"cuInit", "cuDeviceGetCount", "cuGetProcAddress_v2"}
    others = ("cublas", "curand", "cufft", "cusparse", "cusolver", "cudnn", "cuFile", "cuda", "cupti", "cutensor")
    for library in facts.libraries.value:
        for symbol in (*names(library.imports), *names(library.weak_imports)):
            if (
                symbol.startswith("cu")
                and symbol[2:3].isupper()
                and not symbol.startswith(others)
                and "@" not in symbol
            ):
                wanted.add(symbol)
    source = folder / "stub.c"
    source.write_text("".join(f"int {name}(void) {{ return 100; }}\n" for name in sorted(wanted)))
    target = folder / "libcuda.so.1"
    subprocess.run(["gcc", "-w", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", target, source], check=True)
    return folder


def open_for_real(prefix: Path, stub: Path, out: Path) -> list[tuple[str, str]]:
    """What the loader said of every library."""
    script = Path(__file__).parent / "open_all.py"
    environment = {**os.environ, "LD_LIBRARY_PATH": str(stub)}
    subprocess.run([prefix / "bin/python", script, out], check=True, env=environment, cwd=out.parent)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    return [(row["path"], row["said"]) for row in rows]


@pytest.fixture(scope="module", params=ENVIRONMENTS, ids=lambda one: one.name)
def stack(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Environment, Path, Facts]:
    environment: Environment = request.param
    prefix = prefix_of(environment)
    folder = tmp_path_factory.mktemp("stub")
    stub = stub_driver(read_environment(prefix), folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LD_LIBRARY_PATH", str(stub))
        return environment, stub, read_environment(prefix)


def test_every_library_opens_as_predicted(
    stack: tuple[Environment, Path, Facts], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    environment, stub, facts = stack
    really = open_for_real(prefix_of(environment), stub, tmp_path / "said.jsonl")
    predicted = {library.path: opening for library, opening in open_all(facts).openings}
    agreed, compared, wrong = compare(really, predicted)
    with capsys.disabled():
        print(f"\n{environment.name}: {agreed} of {compared} libraries open or fail as predicted")
        for one in wrong:
            print(one)
    assert compared > 50
    assert agreed == compared


def test_no_error_on_a_healthy_environment(stack: tuple[Environment, Path, Facts]) -> None:
    environment, _, facts = stack
    for name in environment.gpus:
        judged = replace(
            facts, gpus=Known((parse_gpu(name),), "--gpu"), driver=Known(driver_from("580.95.05"), "--driver")
        )
        evaluation = evaluate(judged)
        assert not evaluation.faults
        errors = [one.finding for one in evaluation.findings if one.finding.severity == "error"]
        installed = {(one.rule, one.subject): one for one in errors if one.stage in INSTALLED_STAGES}
        assert set(installed) == environment.true_errors, (name, installed)
        for finding in installed.values():
            explains(finding)


def explains(finding: Finding) -> None:
    """An error says why it matters, and what to do."""
    assert len(finding.because) >= 2
    assert finding.therefore
    assert finding.remedies


LOADER = re.compile(r"undefined symbol: \S+|[\w.+-]+\.so[\w.]*: cannot open shared object|version `[^']+' not found")


def test_top_level_modules_import_unless_a_finding_says_otherwise(
    stack: tuple[Environment, Path, Facts], tmp_path: Path
) -> None:
    """The second truth: whatever the loader refuses while a top-level module is imported has been named."""
    environment, stub, facts = stack
    assert isinstance(facts.distributions, Known)
    assert isinstance(facts.libraries, Known)
    owners = {library.owner for library in facts.libraries.value}
    # A library that lies at the top by itself is opened by the other test; whether anything imports it is not its own to say.
    alone = {library.path.split(".", 1)[0] for library in facts.libraries.value if "/" not in library.path}
    modules = [
        module
        for distribution in facts.distributions.value
        if distribution.name in owners and not distribution.name.startswith("nvidia-")
        for module in distribution.top_level
        if module not in alone
    ]
    out = tmp_path / "said.jsonl"
    script = Path(__file__).parent / "import_all.py"
    subprocess.run(
        [prefix_of(environment) / "bin/python", script, out, *modules],
        check=True,
        env={**os.environ, "LD_LIBRARY_PATH": str(stub)},
        cwd=tmp_path,
    )
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    findings = [one.finding for one in evaluate(facts).findings]
    told = "\n".join((*(one.predicted_error for one in findings), *(text for one in findings for text in one.detail)))
    unexplained = []
    for row in rows:
        refused = LOADER.findall(row["said"])
        # The driver's own libraries are taken as present; here none are, but for a stub of libcuda.
        refused = [text for text in refused if not text.startswith(DRIVER_LIBRARIES)]
        names_ = [text.removeprefix("undefined symbol: ").split(":")[0].split(",")[0] for text in refused]
        if names_ and not any(name in told for name in names_):
            unexplained.append(f"{row['module']}: {refused[-1]}")
    assert len(rows) == len(modules)
    assert not unexplained, "\n".join(unexplained)


def test_a_second_reading_is_the_same(stack: tuple[Environment, Path, Facts], tmp_path: Path) -> None:
    _, _, facts = stack
    cache = Cache(tmp_path)
    first = msgspec.msgpack.encode(read_roots(facts.roots, cache))
    assert msgspec.msgpack.encode(read_roots(facts.roots, cache)) == first
