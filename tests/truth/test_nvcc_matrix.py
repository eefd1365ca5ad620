"""Every mix of nvcc, crt, nvvm, runtime headers and CCCL: what is predicted against what the real compiler says.

The wheels are fetched by uv into a cache folder of this machine. Two files are compiled a mix: one that includes
<cuda_runtime.h> alone, and one that includes CCCL. A mix agrees where both say that it compiles, or where the compiler's
text holds the predicted one.
"""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from bringup.collect import probe
from bringup.collect.toolchain import parse_toolkits
from bringup.evaluate.toolchain import predict

RELEASES = {
    "13.0": {"nvcc": "13.0.88", "runtime": "13.0.96", "cccl": "13.0.85"},
    "13.1": {"nvcc": "13.1.115", "runtime": "13.1.80", "cccl": "13.1.115"},
    "13.2": {"nvcc": "13.2.78", "runtime": "13.2.75", "cccl": "13.2.75"},
    "13.5": {"nvcc": "13.5.37", "runtime": "13.5.37", "cccl": "13.3.5.0.6"},
}
PARTS = ("nvcc", "crt", "nvvm", "runtime", "cccl")
DISTRIBUTIONS = {
    "nvcc": "nvidia-cuda-nvcc", "crt": "nvidia-cuda-crt", "nvvm": "nvidia-nvvm", "runtime": "nvidia-cuda-runtime",
    "cccl": "nvidia-cuda-cccl",
}  # fmt: skip
SOURCES = {
    False: "#include <cuda_runtime.h>\n__global__ void k(int*p){*p=1;}\n",
    True: "#include <cuda/std/type_traits>\n__global__ void k(int*p){*p=1;}\n",
}
Mix = tuple[str, str, str, str, str]


def whole_matrix() -> list[Mix]:
    names = list(RELEASES)
    mixes: list[Mix] = [(n, c, v, r, r) for n, c, v, r in itertools.product(names, repeat=4)]
    mixes += [(n, n, n, r, c) for n, r, c in itertools.product(names, repeat=3) if r != c]
    return mixes + [row for n in names for row in absent(n)]


def absent(n: str) -> list[Mix]:
    return [(n, "", n, n, n), (n, n, "", n, n), (n, n, n, "", n), (n, n, n, n, "")]


def small_matrix() -> list[Mix]:
    mixes: list[Mix] = [(n, c, v, n, n) for n, c, v in itertools.product(("13.0", "13.2"), repeat=3)]
    return [*mixes, ("13.2", "13.2", "13.2", "13.0", "13.2"), ("13.0", "13.0", "13.0", "13.2", "13.2"), *absent("13.2")]


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not shutil.which("gcc"):
        pytest.skip("no gcc on this machine")
    if shutil.disk_usage(tmp_path_factory.getbasetemp()).free < 5 << 30:
        pytest.skip("less than 5 GiB of disk left")
    given = os.environ.get("BRINGUP_TEST_CACHE")
    return Path(given) / "nvcc" if given else tmp_path_factory.mktemp("nvcc")


def part(store: Path, name: str, release: str) -> Path:
    """The tree that one wheel lays, fetched once."""
    version = RELEASES[release].get(name, RELEASES[release]["nvcc"])
    target = store / f"{name}-{version}"
    if not target.exists():
        partial = store / f".{name}-{version}"
        spec = f"{DISTRIBUTIONS[name]}=={version}"
        command = ["uv", "pip", "install", "-q", "--no-deps", "--target", str(partial), spec]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"{spec} cannot be fetched: {done.stderr.strip().splitlines()[-1:]}")
        partial.rename(target)
    return target / "nvidia/cu13"


def compose(store: Path, home: Path, mix: Mix) -> Path:
    """A CUDA_HOME of the parts, by links: nvcc finds its own folder by its path, so its programs are copied as hard links."""
    trees = {name: part(store, name, release) for name, release in zip(PARTS, mix, strict=True) if release}
    shutil.rmtree(home, ignore_errors=True)
    (home / "include").mkdir(parents=True)
    shutil.copytree(trees["nvcc"] / "bin", home / "bin", copy_function=os.link)
    if "nvvm" in trees:
        (home / "nvvm").symlink_to(trees["nvvm"] / "nvvm")
    for name in ("nvcc", "runtime", "crt", "cccl"):
        for file in (trees[name] / "include").iterdir() if name in trees else ():
            if not (home / "include" / file.name).exists():
                (home / "include" / file.name).symlink_to(file)
    return home


def disagreements(store: Path, folder: Path, mixes: list[Mix]) -> tuple[int, list[str]]:
    """How many compiles were run, and those whose outcome was not the predicted one."""
    home, count, wrong = store / "composed", 0, []
    for mix in mixes:
        compose(store, home, mix)
        kit = parse_toolkits({"toolkits": [probe.toolkit(str(home), ["asked"])]})[0]
        for cccl, text in SOURCES.items():
            source = folder / "x.cu"
            source.write_text(text)
            command = [f"{home}/bin/nvcc", "-gencode=arch=compute_120a,code=sm_120a", "-std=c++17", "-c", str(source)]
            done = subprocess.run(
                [*command, "-o", str(folder / "x.o")],
                capture_output=True,
                text=True,
                check=False,
                env={"PATH": "/usr/bin:/bin"},
            )
            said, predicted = done.stdout + done.stderr, predict(kit, cccl)
            count += 1
            if (not predicted.fault) != (done.returncode == 0) or predicted.error not in said:
                wrong.append(f"{mix} cccl={cccl}: predicted {predicted}, got {done.returncode} {said[-300:]}")
    return count, wrong


@pytest.mark.wheels
def test_a_part_of_the_matrix(store: Path, tmp_path: Path) -> None:
    count, wrong = disagreements(store, tmp_path, small_matrix())
    assert (count, wrong) == (28, [])


@pytest.mark.truth
def test_the_whole_matrix(store: Path, tmp_path: Path) -> None:
    count, wrong = disagreements(store, tmp_path, whole_matrix())
    assert (count, wrong) == (640, [])


@pytest.mark.wheels
@pytest.mark.parametrize("release", sorted(RELEASES))
def test_host_compilers(store: Path, tmp_path: Path, release: str) -> None:
    """Every g++ of this machine against a whole toolkit; and the header's own limit, asked for each major version."""
    home = compose(store, store / "composed", (release,) * 5)
    kit = parse_toolkits({"toolkits": [probe.toolkit(str(home), ["asked"])]})[0]
    source = tmp_path / "x.cu"
    source.write_text(SOURCES[True])
    compilers = [path for number in range(9, 20) if (path := shutil.which(f"g++-{number}"))]
    for compiler in compilers:
        command = [
            f"{home}/bin/nvcc",
            "-ccbin",
            compiler,
            "-arch=sm_120",
            "-std=c++17",
            "-c",
            str(source),
            "-o",
            str(tmp_path / "x.o"),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env={"PATH": "/usr/bin:/bin"})
        fits = int(compiler.rpartition("-")[2]) <= kit.host_gcc_maximum
        assert (done.returncode == 0) is fits, (compiler, done.stderr)
    header = f"{home}/include/crt/host_config.h"
    for major in range(10, 20):
        command = [
            "g++",
            "-E",
            "-w",
            "-D__CUDACC__",
            "-U__GNUC__",
            f"-D__GNUC__={major}",
            f"-I{home}/include",
            "-x",
            "c++",
            header,
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        said = f"unsupported GNU version! gcc versions later than {kit.host_gcc_maximum} are not supported!"
        assert (said in done.stderr) is (major > kit.host_gcc_maximum), (major, done.stderr[-300:])
