"""What a model's folder says of its memory: config.json and the headers of its safetensors files. No weight is read.

A safetensors file starts with the length of its header (u64, little endian) and the header in JSON: per tensor its dtype,
shape and byte range (huggingface/safetensors, README, "Format").
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bringup.errors import UnreadableError
from bringup.machine import Model

_MOST_HEADER = 100 << 20
_MOST_CONFIG = 32 << 20


def read_model(folder: Path) -> Model:
    """Read a local model folder.

    Raises UnreadableError where it is none, or where a file of it is damaged; weights that are not there count as 0 bytes.
    """
    if not folder.is_dir():
        raise UnreadableError(str(folder), "is no folder" if folder.exists() else "does not exist")
    config = _json(folder / "config.json")
    weights, parameters = _weights(folder)
    return parse_model(config, weights, parameters, str(folder))


def parse_model(config: Mapping[str, Any], weight_bytes: int, parameters: int, path: str) -> Model:
    """A model from its configuration. Nested text configurations of multimodal models count; sizes that are absent are 0."""
    text: Mapping[str, Any] = config
    for name in ("text_config", "llm_config", "language_config", "thinker_config"):
        inner = config.get(name)
        if isinstance(inner, dict):
            text = inner
            break
    heads = _int(text, "num_attention_heads", "n_head", "num_heads")
    hidden = _int(text, "hidden_size", "n_embd", "d_model")
    head_size = _int(text, "head_dim") or (hidden // heads if heads else 0)
    latent = _int(text, "kv_lora_rank")
    layers = _int(text, "num_hidden_layers", "n_layer", "num_layers")
    architectures = config.get("architectures")
    return Model(
        path=path,
        architecture=str(architectures[0]) if isinstance(architectures, list) and architectures else "",
        model_type=str(config.get("model_type", "")),
        dtype=str(
            text.get("dtype") or text.get("torch_dtype") or config.get("torch_dtype") or config.get("dtype") or ""
        ),
        quantization=_quantization(config, text),
        weight_bytes=weight_bytes,
        parameters=parameters,
        layers=layers,
        attention_layers=_attention_layers(text, layers),
        heads=heads,
        kv_heads=_int(text, "num_key_value_heads", "num_kv_heads", "multi_query_group_num") or heads,
        head_size=head_size,
        hidden_size=hidden,
        vocabulary=_int(text, "vocab_size"),
        context=_int(text, "max_position_embeddings", "n_positions", "seq_length", "max_sequence_length"),
        experts=_int(text, "num_experts", "n_routed_experts", "num_local_experts"),
        latent_size=latent + _int(text, "qk_rope_head_dim") if latent else 0,
        source=f"{path}/config.json",
    )


def _quantization(config: Mapping[str, Any], text: Mapping[str, Any]) -> str:
    raw = config.get("quantization_config") or text.get("quantization_config") or {}
    if not isinstance(raw, dict):
        return ""
    method = str(raw.get("quant_method", ""))
    detail = str(raw.get("quant_algo") or raw.get("format") or raw.get("fmt") or "")
    block = "block" if raw.get("weight_block_size") else ""
    return " ".join(part for part in (method, detail, block) if part)


def _attention_layers(text: Mapping[str, Any], layers: int) -> int:
    """Layers that keep keys and values: hybrid models name each layer's type (``linear_attention``, ``mamba``)."""
    kinds = text.get("layer_types") or text.get("layers_block_type") or text.get("hybrid_override_pattern")
    if isinstance(kinds, list) and len(kinds) == layers:
        return sum(1 for kind in kinds if "attention" in str(kind) and "linear" not in str(kind))
    if isinstance(kinds, str) and len(kinds) == layers:
        return kinds.count("*")
    interval = _int(text, "full_attention_interval")
    return layers // interval if interval > 1 else layers


def _int(config: Mapping[str, Any], *names: str) -> int:
    for name in names:
        value = config.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 40:
            return value
    return 0


def _json(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > _MOST_CONFIG:
            raise UnreadableError(str(path), "is larger than any configuration")
        value = json.loads(path.read_bytes())
    except OSError as error:
        raise UnreadableError(str(path), (error.strerror or str(error)).lower()) from error
    except (ValueError, RecursionError) as error:
        raise UnreadableError(str(path), f"is no JSON: {error}") from error
    if not isinstance(value, dict):
        raise UnreadableError(str(path), "holds no JSON object")
    return value


def _weights(folder: Path) -> tuple[int, int]:
    """Bytes and parameters of all safetensors files, or the total of an index whose files are not there."""
    files = sorted(folder.glob("*.safetensors"))
    consolidated = [file for file in files if file.name.startswith("consolidated")]
    if consolidated and len(consolidated) < len(files):
        files = [file for file in files if file not in consolidated]  # the same weights in another layout
    sizes = [safetensors_size(file) for file in files]
    if sizes:
        return sum(size for size, _ in sizes), sum(count for _, count in sizes)
    index = folder / "model.safetensors.index.json"
    if index.exists():
        total = _json(index).get("metadata", {})
        size = total.get("total_size", 0) if isinstance(total, dict) else 0
        return (int(size), 0) if isinstance(size, int | float) and size >= 0 else (0, 0)
    return sum(file.stat().st_size for pattern in ("*.bin", "*.gguf", "*.pt") for file in folder.glob(pattern)), 0


def safetensors_size(path: Path) -> tuple[int, int]:
    """Bytes and number of elements of a safetensors file's tensors, from its header.

    Raises UnreadableError for a header that is cut, too large, no JSON, or points outside of the file.
    """
    try:
        with open(path, "rb") as file:
            total = path.stat().st_size
            length = int.from_bytes(file.read(8), "little")
            if total < 8 or not 2 <= length <= min(_MOST_HEADER, total - 8):
                raise UnreadableError(str(path), f"is no safetensors file: its header claims {length} bytes of {total}")
            header = json.loads(file.read(length))
    except OSError as error:
        raise UnreadableError(str(path), (error.strerror or str(error)).lower()) from error
    except (ValueError, RecursionError) as error:
        raise UnreadableError(str(path), f"has a header that is no JSON: {error}") from error
    size = elements = 0
    for name, tensor in header.items() if isinstance(header, dict) else ():
        if name == "__metadata__":
            continue
        try:
            start, end = tensor["data_offsets"]
            shape = tensor["shape"]
            if not 0 <= start <= end <= total - 8 - length:
                raise UnreadableError(str(path), f"holds {name} outside of the file: is it a part of a download?")
            size += end - start
            elements += math.prod(shape)
        except (TypeError, KeyError, ValueError) as error:
            raise UnreadableError(str(path), f"describes {name} in an unknown way: {error!r}") from error
    return size, elements
