from __future__ import annotations

from pathlib import Path

import pytest

from bringup.collect.requirements import RequirementsFile, read_requirements, read_requirements_file
from bringup.errors import UnreadableError


def written(folder: Path, text: str, name: str = "requirements.txt") -> RequirementsFile:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return read_requirements_file(path)


def texts(found: RequirementsFile) -> list[str]:
    return [one.text for one in found.requirements]


def places(found: RequirementsFile, folder: Path) -> list[str]:
    return [one.source.removeprefix(f"{folder}/") for one in found.requirements]


def test_a_requirements_file_with_all_that_pip_allows(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "base.txt").write_text("numpy<2\n-r ../requirements.txt\n-c limits.txt\n")
    (tmp_path / "more" / "limits.txt").write_text("numpy==1.26.4\n")
    found = written(
        tmp_path,
        """\ufeff# what the engine needs
--index-url https://user:secret@mirror.example/simple
--extra-index-url=https://other.example/simple
-f wheels
--pre
-r more/base.txt
torch==2.11.0 \\
    --hash=sha256:aaaa \\
    --hash=sha256:bbbb
sgl-kernel==0.3.21 ; python_version >= "3.10"  # a comment
vllm[audio] @ https://example.com/vllm-1-py3-none-any.whl#sha256=00
-e ./here
./wheels/demo-1.0-py3-none-any.whl
${MISSING}==3
""",
    )
    assert texts(found) == [
        "numpy<2",
        "torch==2.11.0",
        'sgl-kernel==0.3.21 ; python_version >= "3.10"',
        "vllm[audio] @ https://example.com/vllm-1-py3-none-any.whl#sha256=00",
        f"demo @ {(tmp_path / 'wheels/demo-1.0-py3-none-any.whl').as_uri()}",
    ]
    assert places(found, tmp_path)[1:3] == ["requirements.txt:7", "requirements.txt:10"]
    assert [one.text for one in found.constraints] == ["numpy==1.26.4"]
    assert found.index_url == "https://user:secret@mirror.example/simple"
    assert found.extra_index_urls == ("https://other.example/simple",)
    assert found.find_links == (str(tmp_path / "wheels"),)
    assert found.prerelease
    assert len(found.notes) == 2
    assert read_requirements(tmp_path / "requirements.txt")[1] == "torch==2.11.0"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"torch = 2.0\n", ":1"),
        (b"torch\n\xff\xfe\n", "not UTF-8"),
        (b"\0\0\0", "binary"),
        (b"-r absent.txt\n", "includes absent.txt"),
    ],
)
def test_what_is_no_list_of_requirements(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "requirements.txt"
    path.write_bytes(content)
    with pytest.raises(UnreadableError) as caught:
        read_requirements(path)
    assert str(path) in str(caught.value)
    assert said in str(caught.value)


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match="No such file"):
        read_requirements(tmp_path / "requirements.txt")
    with pytest.raises(UnreadableError, match="directory"):
        read_requirements(tmp_path)


def test_pylock(tmp_path: Path) -> None:
    found = written(
        tmp_path,
        """lock-version = "1.0"
created-by = "uv"

[[packages]]
name = "torch"
version = "2.11.0"
marker = "sys_platform == 'linux'"

[[packages]]
name = "local"
directory = { path = "." }

[[packages]]
name = "demo"
version = "1.0"
archive = { url = "https://example.com/demo-1.0-py3-none-any.whl", hashes = { sha256 = "00" } }
""",
        "pylock.toml",
    )
    assert texts(found) == [
        "torch==2.11.0 ; sys_platform == 'linux'",
        "demo @ https://example.com/demo-1.0-py3-none-any.whl",
    ]
    assert places(found, tmp_path) == ["pylock.toml:4", "pylock.toml:13"]
    assert found.no_deps
    assert "local" in found.notes[0]


def test_uv_lock(tmp_path: Path) -> None:
    found = written(
        tmp_path,
        """version = 1

[[package]]
name = "project"
version = "0.1"
source = { virtual = "." }

[[package]]
name = "numpy"
version = "1.26.4"
source = { registry = "https://example.com/simple" }
resolution-markers = ["python_full_version < '3.12'", "sys_platform == 'darwin'"]

[[package]]
name = "forked"
version = "2"
source = { git = "https://example.com/x.git" }
""",
        "uv.lock",
    )
    assert texts(found) == ["numpy==1.26.4 ; (python_full_version < '3.12') or (sys_platform == 'darwin')"]
    assert places(found, tmp_path) == ["uv.lock:8"]
    assert "forked" in found.notes[0]


@pytest.mark.parametrize("text", ["", "a = [", "package = 3", "[[package]]\nversion = '1'\n"])
def test_what_is_no_lock(tmp_path: Path, text: str) -> None:
    with pytest.raises(UnreadableError, match=r"uv\.lock"):
        written(tmp_path, text, "uv.lock")


def test_a_dockerfile(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("einops\n")
    found = written(
        tmp_path,
        """FROM nvidia/cuda:13.0.2-devel
ARG TORCH=2.11.0
ARG NOT_SET
ENV KERNEL=0.3.21 OTHER="a b"
# RUN pip install commented
RUN apt-get update && apt-get install -y python3 \\
    # a comment between
    && pip3 install --no-cache-dir --upgrade pip \\
    && pip3 install "torch==${TORCH}" 'triton>=3,<4' --index-url https://mirror.example/simple > log 2>&1
COPY requirements.txt /app/requirements.txt
RUN --mount=type=cache,target=/root/.cache uv pip install --system -r /app/requirements.txt sgl-kernel==$KERNEL x==${NOT_SET}
RUN ["python3", "-m", "pip", "install", "ninja"]
RUN <<END
set -e
pip install wheel flashinfer-python==${FLASH:-0.7.2}
END
RUN pip install -r /elsewhere/absent.txt .
RUN echo pip installs things
""",
        "Dockerfile",
    )
    assert texts(found) == [
        "torch==2.11.0",
        "triton>=3,<4",
        "einops",
        "sgl-kernel==0.3.21",
        "ninja",
        "flashinfer-python==0.7.2",
    ]
    assert found.index_url == "https://mirror.example/simple"
    assert places(found, tmp_path) == [
        "Dockerfile:6", "Dockerfile:6", "requirements.txt:1", "Dockerfile:11", "Dockerfile:12", "Dockerfile:13",
    ]  # fmt: skip
    assert len(found.notes) == 2
