"""The verbs as tools for agents: a Model Context Protocol server over standard input and output.

Each tool answers with the JSON of its verb: ``check`` by docs/schema/report.schema.json, ``diagnose`` by
docs/schema/diagnosis.schema.json. What ends a verb with one line on standard error ends a tool call with an error of that line.
"""

from __future__ import annotations

import io
from argparse import Namespace
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from importlib import import_module
from typing import Any, ParamSpec, TypeVar

import msgspec

from bringup.errors import BringupError, UsageError

P = ParamSpec("P")
T = TypeVar("T")

INSTRUCTIONS = (
    "Finds why a GPU software stack (torch, SGLang, vLLM, CUDA wheels) does not start. check reads a stack without importing "
    "it; diagnose reads a log or report; explain tells what a rule or kind means"
)
PLACES: tuple[tuple[str, str, str], ...] = (
    ("mcp.server.mcpserver", "MCPServer", "mcp.server.mcpserver.exceptions"),  # mcp 2
    ("mcp.server.fastmcp", "FastMCP", "mcp.server.fastmcp.exceptions"),  # mcp 1
)
"""Where the package has its server class, and the module of its ToolError."""


def serve() -> None:
    """Answer calls until standard input ends. Raises UsageError where the package ``mcp`` is not installed."""
    server, error = _package()
    application = server("bringup", instructions=INSTRUCTIONS)
    for tool in TOOLS:
        application.tool()(_with_one_line(tool, error))
    application.run("stdio")


def _package() -> tuple[Any, type[Exception]]:
    for module, name, errors in PLACES:
        with suppress(ModuleNotFoundError):
            return getattr(import_module(module), name), import_module(errors).ToolError
    raise UsageError("the package mcp is not installed; pip install 'bringup[mcp]' brings it")


def _with_one_line(tool: Callable[P, T], error: type[Exception]) -> Callable[P, T]:
    """The tool, with a BringupError turned into an error of the call: one line without credentials, as the verbs print."""

    @wraps(tool)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        from bringup.explain.redact import without_credentials

        try:
            return tool(*args, **kwargs)
        except BringupError as reason:
            raise error(without_credentials(" ".join(f"bringup: {reason}".split()))) from reason

    return call


def check(
    target: list[str] | None = None,
    gpu: str = "",
    driver: str = "",
    python: str = "",
    engine: str = "",
    model: str = "",
    find_links: list[str] | None = None,
    offline: bool = False,
    index_url: str = "",
    redact: bool = False,
) -> dict[str, object]:
    """Report every incompatibility of a GPU software stack at once, root cause first, without importing or running any of it.

    target: nothing for the active environment, else one path (environment, wheels, requirements file, facts file), a place
    elsewhere (ssh://host, docker://name), or requirements such as torch==2.11.0. gpu and driver judge for a machine that is not
    here: rtx-pro-6000, H200x8, sm_120; 580.95.05. engine: sglang, vllm or torch. model: the model's folder.
    """
    from bringup.commands.check import judge
    from bringup.commands.common import private, read_stack
    from bringup.explain.json import render_json
    from bringup.explain.redact import redact_struct

    if engine not in ("", "sglang", "vllm", "torch"):
        raise UsageError(f"engine {engine}: expected sglang, vllm or torch")
    named = target or []
    arguments = Namespace(
        target=named,
        gpu=gpu,
        driver=driver,
        python=python,
        engine=engine,
        model=model,
        find_links=find_links or [],
        offline=offline,
        index_url=index_url,
        redact=redact,
    )
    report, _ = judge(read_stack(arguments))
    return _decoded(render_json(redact_struct(report, private(*named)) if redact else report))


def diagnose(text: str = "", file: str = "", target: str = "", redact: bool = False) -> dict[str, object]:
    """Name the root cause in any text: a server's log, a traceback, an environment dump, a whole bug report; best cause first.

    Give the text, or the path of a file that holds it (for long logs). target: a stack whose facts count too, as in check.
    """
    from bringup.collect.reports.lines import read_path, read_text
    from bringup.commands.common import private
    from bringup.commands.diagnose import _target_facts, diagnose_log
    from bringup.explain.diagnosis import to_json
    from bringup.explain.redact import redact_struct

    if bool(text) == bool(file) or file == "-":
        raise UsageError("diagnose takes either text or the path of a file")
    log = read_path(file, io.BytesIO()) if file else read_text(text)
    diagnosis = diagnose_log(log, _target_facts(target) if target else None)
    return _decoded(to_json(redact_struct(diagnosis, private()) if redact else diagnosis))


def explain(name: str) -> dict[str, object]:
    """The documentation of a rule or of a kind of failure: ABI001, or extension_built_for_other_torch."""
    from bringup.explain.rules import documentation, find_rules

    return {
        "rules": [
            {"rule": module.RULE.code, "kind": module.RULE.kind, "documentation": documentation(module)}
            for module in find_rules(name)
        ]
    }


def _decoded(data: str | bytes) -> dict[str, object]:
    return msgspec.json.decode(data, type=dict[str, object])


TOOLS: tuple[Callable[..., dict[str, object]], ...] = (check, diagnose, explain)
