"""Small stacks for tests of rules: facts by hand, with only what a rule reads."""

from __future__ import annotations

import importlib
from collections.abc import Iterable

from bringup.evaluate.drivers import driver_from
from bringup.facts import (
    DeviceCode,
    Distribution,
    Facts,
    Host,
    Interpreter,
    Known,
    Library,
    LoadSite,
    SharedPath,
    Unknown,
    Variable,
)
from bringup.findings import Finding
from bringup.gpus import parse_gpu


def code(text: str, isa: str = "9.0") -> tuple[DeviceCode, ...]:
    """Device code from ``"sm_80 sm_90a compute_120"``."""
    found = []
    for name in text.split():
        kind, _, arch = name.partition("_")
        suffix = arch[-1] if arch[-1] in "af" else ""
        number = int(arch.rstrip("af"))
        ptx = kind == "compute"
        found.append(DeviceCode("ptx" if ptx else "sass", number, suffix, isa if ptx else ""))  # type: ignore[arg-type]
    return tuple(found)


def library(path: str, owner: str = "", text: str = "", isa: str = "9.0", size: int = 1) -> Library:
    """A library below a site-packages folder."""
    return Library(path, root="/e/site-packages", owner=owner, device_code=code(text, isa), size=size, source=path)


def stack(
    distributions: dict[str, str] | None = None,
    libraries: Iterable[Library] = (),
    gpu: str = "",
    driver: str = "",
    python: str = "3.11.7",
    cuda: str = "13.0",
    requires: dict[str, tuple[str, ...]] | None = None,
    tags: dict[str, tuple[str, ...]] | None = None,
    requires_python: dict[str, str] | None = None,
    shared: dict[str, tuple[str, ...]] | None = None,
    sites: tuple[LoadSite, ...] = (),
    variables: dict[str, str] | None = None,
    host: Host | None = None,
    free_threaded: bool = False,
) -> Facts:
    """Facts with these parts. ``cuda`` is torch's, '' for a CPU build."""
    return Facts(
        target="test",
        roots=("/e/site-packages",),
        host=Known(host, "this host") if host else Unknown("not asked"),
        gpus=Known((parse_gpu(gpu),), "--gpu") if gpu else Unknown("no GPU was named"),
        driver=Known(driver_from(driver), "--driver") if driver else Unknown("no driver was named"),
        python=Known(Interpreter(python, free_threaded=free_threaded), "pyvenv.cfg"),
        distributions=Known(
            tuple(
                Distribution(
                    name,
                    version,
                    requires=(requires or {}).get(name, ()),
                    requires_python=(requires_python or {}).get(name, ""),
                    tags=(tags or {}).get(name, ()),
                    build=(("cuda", cuda or "None"),) if name == "torch" else (),
                    source=f"{name}.dist-info/METADATA",
                )
                for name, version in (distributions or {}).items()
            ),
            "test",
        ),
        shared_paths=Known(tuple(SharedPath(*one) for one in (shared or {}).items()), "RECORD"),
        libraries=Known(tuple(libraries), "test"),
        load_sites=Known(sites, "test"),
        variables=Known(tuple(Variable(*one) for one in (variables or {}).items()), "test"),
    )


def ask(rule: str, facts: Facts) -> list[Finding]:
    """What the rule of that code says."""
    module = importlib.import_module(f"bringup.evaluate.rules.{rule.lower()}")
    found = list(module.check(facts))
    for finding in found:
        assert finding.rule == rule
        assert finding.therefore
        assert not finding.therefore.endswith(".")
        assert all(premise.text and premise.source for premise in finding.because)
    return found


def said(finding: Finding) -> str:
    """The premises as one text."""
    return " and ".join(premise.text for premise in finding.because)


def commands(finding: Finding) -> list[str]:
    """Every command of every remedy."""
    return [command for remedy in finding.remedies for command in remedy.commands]
