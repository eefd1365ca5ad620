"""The tools, asked by a client of the official package over standard input and output."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from bringup.collect.recorded import encode_facts
from bringup.facts import Distribution, Facts, Known

pytest.importorskip("mcp", reason="the extra mcp is not installed")
SCHEMAS = Path(__file__).parents[1] / "docs" / "schema"
LOG = "torch: 2.11.0\nImportError: vllm/_C.abi3.so: undefined symbol: _ZN3c104cuda9SetDeviceEab\n"


async def _session(calls: list[tuple[str, dict[str, object]]]) -> tuple[list[str], list[Any]]:
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    server = StdioServerParameters(command=sys.executable, args=["-m", "bringup", "mcp"])
    async with stdio_client(server) as (reader, writer), ClientSession(reader, writer) as session:
        await session.initialize()
        tools = [tool.name for tool in (await session.list_tools()).tools]
        return tools, [await session.call_tool(name, arguments) for name, arguments in calls]


def _failed(result: Any) -> bool:
    """The field's name differs between the package's releases."""
    return bool(getattr(result, "is_error", getattr(result, "isError", False)))


def _schema(name: str) -> Any:
    return json.loads((SCHEMAS / f"{name}.schema.json").read_text(encoding="utf-8"))


def test_a_client_asks_every_tool(tmp_path: Path) -> None:
    wanted = Distribution("torchvision", "0.26.0", requires=("torch==2.11.0",))
    stack = Facts(target="a stack", distributions=Known((Distribution("torch", "2.9.1"), wanted), "METADATA"))
    facts, log = tmp_path / "facts.json", tmp_path / "log"
    facts.write_bytes(encode_facts(stack))
    log.write_text(LOG, encoding="utf-8")
    tools, results = asyncio.run(
        _session(
            [
                ("diagnose", {"text": LOG}),
                ("diagnose", {"file": str(log)}),
                ("check", {"target": [str(facts)], "gpu": "rtx-pro-6000"}),
                ("explain", {"name": "extension_built_for_other_torch"}),
                ("check", {"target": [str(tmp_path / "absent.json")]}),
                ("diagnose", {}),
                ("explain", {"name": "NO999"}),
            ]
        )
    )
    assert tools == ["check", "diagnose", "explain"]
    assert [_failed(result) for result in results] == [False] * 4 + [True] * 3
    texts = [result.content[0].text for result in results]
    answers = [json.loads(text) for text in texts[:4]]
    for answer in answers[:2]:
        jsonschema.validate(answer, _schema("diagnosis"))
        assert answer["causes"][0]["kind"] == "extension_built_for_other_torch"
    jsonschema.validate(answers[2], _schema("report"))
    assert answers[2]["gpus"][0]["compute_capability"] == "12.0"
    assert answers[2]["findings"][0]["severity"] == "error"
    assert answers[3]["rules"][0]["rule"].startswith("ABI")
    for text, said in zip(
        texts[4:], ("absent.json", "diagnose takes either text or the path of a file", "NO999"), strict=True
    ):
        assert "\n" not in text
        assert "bringup: " in text
        assert said in text


def test_without_the_package_one_line_says_so() -> None:
    code = "import sys; sys.modules['mcp'] = None; from bringup.cli import main; sys.exit(main(['mcp']))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "bringup: the package mcp is not installed; pip install 'bringup[mcp]' brings it\n"
