"""Pairs of distributions whose releases are known to fail when they do not go together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from bringup.evaluate.faults import install
from bringup.evaluate.requirements import Unmet, unmet_requirements
from bringup.facts import Facts
from bringup.findings import Finding, Premise, Remedy, Rule, Severity


class Pair(NamedTuple):
    """The rule that speaks of it, who declares (empty: anybody), of whom, what a start prints, and why it fails.

    ``severity``: error where the import itself fails or every use does, warning where only some uses do.
    """

    rule: str
    owners: tuple[str, ...]
    name: str
    message: str
    why: str
    source: str
    severity: Severity = "error"

    def matches(self, one: Unmet) -> bool:
        """Whether an unmet requirement is of this pair."""
        return (not self.owners or one.owner.name in self.owners) and one.name == self.name and one.found is not None


PAIRS: tuple[Pair, ...] = (
    Pair(
        "VER002",
        ("torchvision", "torchaudio"),
        "torch",
        "RuntimeError: operator torchvision::nms does not exist",
        "its operators are compiled against one torch release",
        "vladmandic/sdnext#3531",
    ),
    Pair(
        "VER003",
        ("xformers",),
        "torch",
        "WARNING[XFORMERS]: xFormers can't load C++/CUDA extensions.",
        "xformers goes on without its operators, and every call of one fails later",
        "xformers/_cpp_lib.py (0.0.35)",
    ),
    Pair(
        "VER004",
        ("torch",),
        "triton",
        "AttributeError",
        "torch's compiler uses triton's internals, which change with each release",
        "triton-lang/triton#7594, pytorch/pytorch#127271",
    ),
    Pair(
        "VER005",
        ("sglang", "vllm"),
        "transformers",
        "ImportError: cannot import name",
        "engines use transformers' internals, which move between releases",
        "QwenLM/Qwen3-VL#2058",
    ),
    Pair(
        "VER012",
        (),
        "apache-tvm-ffi",
        "",
        "libraries built against one release of TVM FFI meet other type tables and symbols in another",
        "flashinfer-ai/flashinfer#1913, mlc-ai/xgrammar#799",
    ),
)


def pair_findings(rule: Rule, facts: Facts) -> Iterator[Finding]:
    """Findings for the pairs that the rule speaks of."""
    for one in unmet_requirements(facts):
        pair = next((pair for pair in PAIRS if pair.rule == rule.code and pair.matches(one)), None)
        if pair is None or one.found is None:
            continue
        asked = f"{one.name}{one.specifier}"
        message = pair.message if one.owner.name != "torchaudio" else "OSError: Could not load this library"
        yield Finding(
            rule=rule.code,
            kind=rule.kind,
            severity=pair.severity,
            stage=rule.stage,
            subject=one.owner.name,
            because=(
                Premise(f"{one.owner.name} {one.owner.version} needs {asked}", one.owner.source),
                Premise(f"{one.name} {one.found.version} is installed", one.found.source),
                Premise(pair.why, pair.source),
            ),
            therefore=f"{one.owner.name} {one.owner.version} and {one.name} {one.found.version} do not go together",
            predicted_error=message,
            remedies=(
                Remedy(f"install {asked}", (install(facts, f"'{asked}'"),)),
                *(
                    (
                        Remedy(
                            f"install the release of {one.owner.name} for {one.name} {one.found.version}",
                            (_other(facts, one),),
                        ),
                    )
                    if one.owner.name != "torch"
                    else ()
                ),
            ),
            order=60,
        )


def _other(facts: Facts, one: Unmet) -> str:
    """Let the resolver find the owner's release that goes with what is installed."""
    found = one.found.version.split("+")[0] if one.found is not None else ""
    return install(facts, f"--reinstall-package {one.owner.name} {one.owner.name} {one.name}=={found}")
