from __future__ import annotations

import time

import pytest

from bringup.collect.metadata import distribution_from, record_paths, top_level_names
from bringup.errors import MalformedWheelError

METADATA = b"""Metadata-Version: 2.4\r
Name: SGL_Kernel.Extra\r
Version: 0.3.21\r
Requires-Python: >=3.10\r
Requires-Dist: torch>=2.9; sys_platform == "linux"\r
Requires-Dist: numpy\r
Provides-Extra: fast\r
Summary: folded\r
  over two lines\r
\r
Requires-Dist: not-a-header\r
"""


def test_a_distribution_from_its_files() -> None:
    record = (
        b"sgl_kernel/__init__.py,sha256=x,1\nsgl_kernel-0.3.21.dist-info/METADATA,,\n../../bin/tool,,\nsingle.py,,\n"
    )
    found = distribution_from(
        METADATA,
        b"Wheel-Version: 1.0\nTag: cp310-abi3-manylinux2014_x86_64\nTag: py3-none-any\n",
        record,
        direct_url=b'{"url": "file:///src", "dir_info": {"editable": true}}',
        installer=b"uv\n",
        source="here",
    )
    assert (found.name, found.version, found.requires_python) == ("sgl-kernel-extra", "0.3.21", ">=3.10")
    assert found.requires == ('torch>=2.9; sys_platform == "linux"', "numpy")
    assert found.provides_extra == ("fast",)
    assert found.tags == ("cp310-abi3-manylinux2014_x86_64", "py3-none-any")
    assert found.top_level == ("sgl_kernel", "single")
    assert (found.direct_url, found.editable, found.installer, found.source) == ("file:///src", True, "uv", "here")
    assert found.files == 4


@pytest.mark.parametrize(
    "metadata",
    [
        b"",
        b"\n\nName: x\nVersion: 1\n",
        b"Name: x\n",
        b"Version: 1\n",
        b"\0\0",
        b"\xff" * 100,
        b"Name: ../x\nVersion: 1\n",
    ],
)
def test_damaged_metadata_is_one_error(metadata: bytes) -> None:
    with pytest.raises(MalformedWheelError) as caught:
        distribution_from(metadata, None, None, source="a.dist-info/METADATA")
    assert caught.value.subject == "a.dist-info/METADATA"


def test_damage_elsewhere_is_no_error() -> None:
    found = distribution_from(
        b"Name: x\nVersion: 1\n", b"\xff\0", b'\xff\xfe,"\n"a,b', direct_url=b"{", installer=b"\xff", source="s"
    )
    assert (found.name, found.direct_url, found.tags) == ("x", "", ())


def test_records_are_read_as_installers_write_them() -> None:
    record = b'plain.py,sha256=a,1\r\n"with,comma.py",sha256=b,2\n"with ""quotes"".py",,\n\nlast.py'
    assert record_paths(record) == ("plain.py", "with,comma.py", 'with "quotes".py', "last.py")
    assert record_paths(b"") == ()
    assert top_level_names(("a/b.py", "__pycache__/x.pyc", "x-1.dist-info/RECORD", "x.libs/y.so", "_m.abi3.so")) == (
        "_m",
        "a",
    )


@pytest.mark.parametrize("quoted", [False, True])
def test_a_long_record_costs_milliseconds(quoted: bool) -> None:
    record = b"".join(b"torch/include/some/folder/file_%d.h,sha256=%s,1234\n" % (i, b"x" * 43) for i in range(10_000))
    record += b'"a,b.py",,\n' if quoted else b""
    best = 1.0
    for _ in range(5):
        started = time.perf_counter()
        paths = record_paths(record)
        best = min(best, time.perf_counter() - started)
    assert len(paths) == 10_000 + quoted
    assert best < 0.05


def test_build_facts_by_package() -> None:
    files = {
        "torch/version.py": b"cuda: Optional[str] = '13.0'\nhip: Optional[str] = None\ndebug = False\nother = f()\n",
        "torch/share/cmake/Torch/TorchConfig.cmake": b"_GLIBCXX_USE_CXX11_ABI=0",
        "xformers/cpp_lib.json": (
            b'{"version": {"cuda": 1208, "torch": "2.9.0", "python": "3.11"}, "env": {"TORCH_CUDA_ARCH_LIST": "8.0 9.0a"}}'
        ),
    }
    torch = distribution_from(b"Name: torch\nVersion: 2\n", None, None, read_file=files.get, source="s")
    assert dict(torch.build) == {"cuda": "13.0", "hip": "", "debug": "False", "cxx11_abi": "0"}
    xformers = distribution_from(b"Name: xformers\nVersion: 1\n", None, None, read_file=files.get, source="s")
    assert dict(xformers.build) == {"cuda": "12.8", "torch": "2.9.0", "arch_list": "8.0 9.0a"}
    for damaged in (b"def (", b"\0", b"(" * 5000, b"\xff"):
        broken = distribution_from(
            b"Name: torch\nVersion: 2\n", None, None, read_file=lambda _, data=damaged: data, source="s"
        )
        assert broken.build == ()
