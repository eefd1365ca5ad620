"""From texts to causes: every kind in other words than the tables', the shape of the result, healthy and damaged texts."""

from __future__ import annotations

import io
import json
from argparse import Namespace
from pathlib import Path

import jsonschema
import pytest
import yaml

from bringup.collect.reports.lines import read_stream, read_text
from bringup.commands.diagnose import _follow, diagnose_log
from bringup.explain.diagnosis import MEANINGS, diagnose, render_text, to_json
from bringup.explain.logs import ROWS
from bringup.explain.logs_conditions import CONDITIONS

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data" / "logs"
WORDINGS = [
    (kind, text.replace("|", "\n"))
    for kind, texts in yaml.safe_load((DATA / "wordings.yaml").read_text(encoding="utf-8")).items()
    for text in texts
]


def first(text: str) -> str:
    causes = diagnose(read_text(text)).causes
    return causes[0].kind if causes else ""


def test_tables_fit_together() -> None:
    assert {row.kind for row in ROWS} == set(MEANINGS)
    assert all(name.lstrip("!") in CONDITIONS for row in ROWS for name in row.when)
    assert all(-10 <= row.points <= 11 for row in ROWS)
    assert all(meaning.therefore and meaning.separates and meaning.remedy for meaning in MEANINGS.values())


def test_no_pattern_has_an_unbounded_gap() -> None:
    for row in ROWS:
        for pattern in (row.pattern, row.also, row.unless):
            assert ".*" not in pattern, pattern
            assert "]*" not in pattern, pattern


@pytest.mark.parametrize(("kind", "text"), WORDINGS)
def test_wordings(kind: str, text: str) -> None:
    assert first(text) == kind


def test_every_kind_has_a_wording() -> None:
    assert {kind for kind, _ in WORDINGS} == set(MEANINGS)


def test_json_is_of_the_schema() -> None:
    text = "gpu: RTX 5090\ntorch: 2.6.0+cu124\nRuntimeError: CUDA error: no kernel image is available for execution on the device"
    value = json.loads(to_json(diagnose_log(read_text(text))))
    jsonschema.validate(value, json.loads((ROOT / "docs/schema/diagnosis.schema.json").read_text(encoding="utf-8")))
    cause = value["causes"][0]
    assert cause["kind"] == "no_sass_for_gpu_in_torch"
    assert cause["evidence"][0]["line"] == 3
    assert 0 < cause["confidence"] <= 1


def test_text_names_evidence_and_a_way_out() -> None:
    text = render_text(diagnose(read_text("x\nPython.h: No such file or directory\n")), "log")
    assert "1. python_headers_missing" in text
    assert "line 2: Python.h: No such file or directory" in text
    assert "What to do: install the interpreter's development package" in text


HEALTHY = {
    "vllm": """INFO 11-30 12:00:01 [__init__.py:244] Automatically detected platform cuda.
INFO 11-30 12:00:05 [api_server.py:1395] vLLM API server version 0.11.0
INFO 11-30 12:00:09 [cuda.py:290] Using Flash Attention backend on V1 engine.
INFO 11-30 12:00:12 [weight_utils.py:292] Using model weights format ['*.safetensors']
INFO 11-30 12:00:20 [gpu_model_runner.py:1595] Model loading took 14.9 GiB and 8.1 seconds
INFO 11-30 12:00:40 [kv_cache_utils.py:715] GPU KV cache size: 93,770 tokens
INFO 11-30 12:00:52 [gpu_model_runner.py:1933] Graph capturing finished in 12 secs, took 0.52 GiB
WARNING 11-30 12:00:52 [api_server.py:913] SECURITY WARNING: Development endpoints are enabled
INFO:     Application startup complete.
""",
    "pip": """Collecting torch==2.9.1
  Downloading torch-2.9.1-cp311-cp311-manylinux_2_28_x86_64.whl (900 MB)
Requirement already satisfied: ninja in ./lib/python3.11/site-packages (1.13.0)
Collecting nvidia-nccl-cu12==2.27.5
Using cached triton-3.5.1-cp311-cp311-manylinux_2_27_x86_64.whl
Successfully installed ninja-1.13.0 nvidia-nccl-cu12-2.27.5 torch-2.9.1 triton-3.5.1
""",
    "warnings": """[1/3] nvcc -c page.cu -o page.cuda.o
page.cu(39): warning #177-D: variable "n" was declared but never referenced
fused.cpp:12:7: warning: unused variable 'x' [-Wunused-variable]
nvcc warning : Support for offline compilation for architectures prior to '<compute/sm/lto>_75' will be removed in a future release
[3/3] c++ page.o -shared -o page.so
""",
}


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_logs_have_no_cause(name: str) -> None:
    assert diagnose(read_text(HEALTHY[name])).causes == ()
    assert diagnose(read_text(HEALTHY[name] * 20)).causes == ()


@pytest.mark.parametrize("path", sorted((DATA / "healthy").glob("*.txt")), ids=lambda path: path.stem)
def test_recorded_healthy_logs_have_no_cause(path: Path) -> None:
    assert diagnose_log(read_stream(io.BytesIO(path.read_bytes()))).causes == ()


EXPECTED: dict[str, str] = yaml.safe_load((DATA / "expected.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", EXPECTED)
def test_texts_of_real_failures(name: str) -> None:
    causes = diagnose_log(read_stream(io.BytesIO((DATA / f"{name}.txt").read_bytes()))).causes
    assert causes
    assert causes[0].kind == EXPECTED[name]


def test_two_failures_in_one_log() -> None:
    text = HEALTHY["vllm"] + "ImportError: libnuma.so.1: cannot open shared object file: No such file or directory\n"
    text += (
        HEALTHY["vllm"] * 8 + "RuntimeError: Failed to find C compiler. Please specify via CC environment variable.\n"
    )
    causes = {cause.kind: cause for cause in diagnose(read_text(text)).causes}
    assert {"system_soname_missing", "c_compiler_missing"} <= set(causes)
    assert min(causes[kind].confidence for kind in ("system_soname_missing", "c_compiler_missing")) > 0.8


@pytest.mark.parametrize(
    "line",
    [
        "\x1b[31mERROR\x1b[0m RuntimeError: \x1b[1mNinja is required to load C++ extensions\x1b[0m",
        "> RuntimeError: Ninja is required to load C++ extensions",
        "2025-06-01T10:00:00.123456789Z stderr F RuntimeError: Ninja is required to load C++ extensions",
        "Jun 01 10:00:00 node7 vllm[812]: RuntimeError: Ninja is required to load C++ extensions",
        "(Worker_TP0 pid=12) ERROR 06-29 11:22:29 [multiproc_executor.py:1000] RuntimeError: Ninja is required to load C++ extensions",
        '{"level": "error", "message": "RuntimeError: Ninja is required to load C++ extensions"}',
        "[rank3]: RuntimeError: Ninja is required to load C++ extensions",
        "Loading: 10%\rLoading: 90%\rRuntimeError: Ninja is required to load C++ extensions",
    ],
)
def test_prefixes_and_colours_come_off(line: str) -> None:
    cause = diagnose(read_text(f"start\n{line}\n")).causes[0]
    assert cause.kind == "ninja_missing"
    assert cause.evidence[0].line == 2
    assert cause.evidence[0].text.startswith(("RuntimeError", "ERROR"))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "latin-1", "cp1252"])
def test_encodings(encoding: str) -> None:
    data = "Über den Server\nOSError: CUDA_HOME environment variable is not set.\n".encode(encoding)
    assert diagnose(read_stream(io.BytesIO(data))).causes[0].kind == "nvcc_absent_or_cuda_home_unset"


def test_truncated_in_the_middle_of_a_traceback() -> None:
    text = (
        'Traceback (most recent call last):\n  File "a.py", line 1\nImportError: libnvrtc.so.13: cannot open shared obj'
    )
    assert first("torch: 2.9.1+cu128\n" + text + "ect file") == "soname_missing_cuda_major_mismatch"
    assert diagnose(read_text(text[:60])).causes == ()


@pytest.mark.parametrize(
    "data",
    [
        b"a" * 10_000_000,
        b"undefined symbol: _ZN" + b"a" * 10_000_000,
        b"{" * 5_000_000 + b"}",
        b"\x1b[" * 2_000_000,
        b"/usr/local/cuda:/" * 500_000,
        b"not supported fp8 attention " * 300_000,
        bytes(range(256)) * 20_000,
        b"",
    ],
    ids=["letters", "symbol", "braces", "escapes", "colons", "words", "binary", "empty"],
)
def test_hostile_input_ends_soon(data: bytes) -> None:
    import time

    begin = time.process_time()
    diagnose(read_stream(io.BytesIO(data)))
    assert time.process_time() - begin < 10


def test_long_logs_are_read_in_little_memory() -> None:
    import tracemalloc

    line = b'INFO:     10.0.0.1:53122 - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'
    half = line * 250_000
    data = io.BytesIO(half + b"ImportError: vllm/_C.abi3.so: undefined symbol: _ZN3c104cuda9SetDeviceEab\n" + half)
    tracemalloc.start()
    log = read_stream(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 30_000_000
    cause = diagnose(log).causes[0]
    assert cause.kind == "extension_built_for_other_torch"
    assert cause.evidence[0].line == 250_001


def test_follow_writes_when_the_cause_changes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log"
    log.write_text("ninja: command not found\n")
    arguments = Namespace(file=str(log), format="text", output=None, redact=False)
    assert _follow(arguments, None, pause=0, rounds=2) == 1
    assert capsys.readouterr().out.count("1. ninja_missing") == 1


def test_public_cases() -> None:
    cases = ROOT.parent / "shared" / "cases"
    if not cases.is_dir():
        pytest.skip("the collection of public cases is not beside the repository")
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location("measure_diagnosis", ROOT / "tests" / "measure_diagnosis.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    one, three, table = module.measure(cases / "dev.yaml", cases / "render.py")
    assert one >= 0.9, table
    assert three >= 0.97, table
