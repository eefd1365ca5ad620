"""Model folders, and whether they fit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from bringup.collect.model import parse_model, read_model, safetensors_size
from bringup.errors import UnreadableError
from bringup.evaluate.memory import fit, kv_bytes_per_token, least_parallel, option
from bringup.evaluate.rules import mem001, mem002
from bringup.facts import Facts, Goal, Gpu, Known

QWEN = {
    "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "torch_dtype": "bfloat16", "num_hidden_layers": 64,
    "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 128, "hidden_size": 5120, "vocab_size": 151936,
    "max_position_embeddings": 40960,
}  # fmt: skip
PRO = Gpu("RTX PRO 6000", 12, 0, 1, memory=96 << 30)


def safetensors(path: Path, shape: tuple[int, ...] = (4, 8), cut: int = 0) -> Path:
    size = 2 * shape[0] * shape[1]
    header = json.dumps(
        {"__metadata__": {"format": "pt"}, "w": {"dtype": "BF16", "shape": shape, "data_offsets": [0, size]}}
    ).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + b"\0" * (size - cut))
    return path


def test_weights_from_headers(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(QWEN))
    safetensors(tmp_path / "a.safetensors")
    safetensors(tmp_path / "b.safetensors", (2, 2))
    model = read_model(tmp_path)
    assert (model.weight_bytes, model.parameters) == (72, 36)
    assert (model.layers, model.kv_heads, model.head_size, model.dtype) == (64, 8, 128, "bfloat16")


def test_an_index_without_its_files(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(QWEN))
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"metadata": {"total_size": 65527752704}}))
    assert read_model(tmp_path).weight_bytes == 65527752704


@pytest.mark.parametrize(
    "data", [b"", b"\0" * 7, b"\xff" * 64, (2).to_bytes(8, "little") + b"[]", (9).to_bytes(8, "little") + b"not json!"]
)
def test_damaged_safetensors(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(data)
    if data.endswith(b"[]"):
        assert safetensors_size(path) == (0, 0)
        return
    with pytest.raises(UnreadableError):
        safetensors_size(path)


def test_a_download_that_was_cut(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match="outside of the file"):
        safetensors_size(safetensors(tmp_path / "x.safetensors", cut=3))


@pytest.mark.parametrize("text", ["", "[]", "{", "\0", '{"a":' * 3000])
def test_damaged_configurations(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(UnreadableError):
        read_model(tmp_path)
    with pytest.raises(UnreadableError, match="does not exist"):
        read_model(tmp_path / "gone")


def test_kinds_of_attention() -> None:
    dense = parse_model(QWEN, 0, 0, "m")
    assert kv_bytes_per_token(dense, 1) == 2 * 64 * 8 * 128 * 2
    assert kv_bytes_per_token(dense, 16) == 2 * 64 * 1 * 128 * 2, "one head stays whole"
    assert kv_bytes_per_token(dense, 1, "fp8") == 2 * 64 * 8 * 128
    latent = parse_model({**QWEN, "kv_lora_rank": 512, "qk_rope_head_dim": 64, "num_hidden_layers": 61}, 0, 0, "m")
    assert kv_bytes_per_token(latent, 8) == 61 * 576 * 2
    hybrid = parse_model({**QWEN, "layer_types": ["linear_attention", "full_attention"] * 32}, 0, 0, "m")
    assert hybrid.attention_layers == 32
    inner = parse_model({"architectures": ["X"], "text_config": QWEN}, 0, 0, "m")
    assert inner.layers == 64
    quantised = parse_model(
        {**QWEN, "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}, 0, 0, "m"
    )
    assert quantised.quantization == "fp8 block"


def facts(weight_bytes: int, gpu: Gpu = PRO, engine: str = "vllm", options: tuple[str, ...] = ()) -> Facts:
    model = replace(parse_model(QWEN, 0, 0, "m"), weight_bytes=weight_bytes)
    return Facts(target="t", model=Known(model, "m"), gpus=Known((gpu,), "g"), goal=Goal(engine, "m", options))


def test_no_memory_left() -> None:
    found = list(mem001.check(facts(65 << 30, replace(PRO, memory=24 << 30))))
    assert [(one.kind, one.predicted_error) for one in found] == [
        ("no_memory_left_for_kv_cache", "torch.OutOfMemoryError: CUDA out of memory.")
    ]
    assert found[0].remedies[0].commands == ("--tensor-parallel-size 4",)
    assert "No available memory for the cache blocks" in next(iter(mem001.check(facts(89 << 30)))).predicted_error
    assert list(mem001.check(facts(61 << 30))) == []
    assert list(mem001.check(facts(0))) == [], "weights that are not there are not known"
    assert list(mem001.check(facts(65 << 30, replace(PRO, memory=0)))) == []


def test_context() -> None:
    found = list(mem002.check(facts(78 << 30, options=("--max-model-len", "131072"))))
    assert "max seq len (131072)" in found[0].predicted_error
    assert list(mem002.check(facts(61 << 30))) == []
    assert (
        next(iter(mem002.check(facts(78 << 30, engine="sglang", options=("--context-length=131072",))))).severity
        == "warning"
    )


def test_degrees_and_options() -> None:
    model = replace(parse_model(QWEN, 0, 0, "m"), weight_bytes=65 << 30)
    small = replace(PRO, memory=24 << 30)
    assert least_parallel(model, small, "vllm", Goal()) == 4
    assert fit(model, PRO, 1, "vllm", Goal(options=("--gpu-memory-utilization=0.5",))).left < 0
    assert option(Goal(options=("--tp", "8")), "--tp") == "8"
