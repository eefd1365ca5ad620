"""Whether a folder holds a whole model: said before a start, in milliseconds, instead of by a traceback after a minute."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "tekken.json")


def problems(folder: Path) -> list[str]:
    """What is missing or damaged, as sentences; empty for a whole model."""
    found: list[str] = []
    config = _json(folder / "config.json", found)
    if config is not None and not config.get("architectures"):
        found.append("config.json names no architectures")
    if not any((folder / name).is_file() for name in TOKENIZERS):
        found.append(f"no tokenizer: none of {', '.join(TOKENIZERS)}")
    found += _weights(folder)
    return found


def _weights(folder: Path) -> list[str]:
    found: list[str] = []
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        read = _json(index, found)
        files = sorted(set(map(str, (read or {}).get("weight_map", {}).values())))
        missing = [name for name in files if not (folder / name).is_file()]
        if missing:
            found.append(f"{len(missing)} of {len(files)} weight files are missing, first {missing[0]}")
        names = [folder / name for name in files if name not in missing]
    else:
        names = sorted(folder.glob("*.safetensors"))
        if not names and not any(path for pattern in ("*.bin", "*.gguf", "*.pt") for path in folder.glob(pattern)):
            found.append("no weights: no .safetensors, .bin or .gguf file")
    return found + [text for path in names if (text := _safetensors(path))]


def _safetensors(path: Path) -> str:
    """Why a weight file is not whole, '' where it is. Its header says where its last tensor ends: 8 bytes of length, then JSON."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if length > min(size, 100 << 20):
                file.seek(0)
                start = file.read(100)
                pointer = b"git-lfs" in start
                return (
                    f"{path.name} is a Git LFS pointer, not the weights"
                    if pointer
                    else f"{path.name} is no safetensors file"
                )
            header: Any = msgspec.json.decode(file.read(length))
        end = max((int(one["data_offsets"][1]) for name, one in header.items() if name != "__metadata__"), default=0)
    except (OSError, msgspec.DecodeError, AttributeError, KeyError, TypeError, ValueError, IndexError) as error:
        return f"{path.name} cannot be read: {error}"
    if size < 8 + length + end:
        return f"{path.name} is cut off: {size:,} bytes, its header speaks of {8 + length + end:,}"
    return ""


def _json(path: Path, found: list[str]) -> dict[str, Any] | None:
    try:
        value = msgspec.json.decode(path.read_bytes())
    except FileNotFoundError:
        found.append(f"{path.name} is missing")
        return None
    except (OSError, msgspec.DecodeError) as error:
        found.append(f"{path.name} cannot be read: {error}")
        return None
    if not isinstance(value, dict):
        found.append(f"{path.name} is no JSON object")
        return None
    return value
