"""Pairs of distributions whose releases are known to fail when they do not go together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from bringup.evaluate.faults import install
from bringup.evaluate.requirements import Unmet, unmet_requirements
from bringup.facts import Facts
from bringup.findings import Finding, Premise, Remedy, Rule


class Pair(NamedTuple):
    """The rule that speaks of it, who declares, of whom, what a start prints, and why it fails."""

    rule: str
    owners: tuple[str, ...]
    name: str
    message: str
    why: str

    def matches(self, one: Unmet) -> bool:
        """Whether an unmet requirement is of this pair."""
        return one.owner.name in self.owners and one.name == self.name and one.found is not None


PAIRS: tuple[Pair, ...] = (
    Pair(
        "VER002",
        ("torchvision",),
        "torch",
        "RuntimeError: operator torchvision::nms does not exist",
        "torchvision's operators are compiled against one torch release",
    ),
    Pair(
        "VER003",
        ("xformers",),
        "torch",
        "WARNING[XFORMERS]: xFormers can't load C++/CUDA extensions.",
        "xformers goes on without its operators, and every call of one fails later",
    ),
    Pair(
        "VER004", ("torch",), "triton", "", "torch's compiler uses triton's internals, which change with each release"
    ),
    Pair(
        "VER005",
        ("sglang", "vllm"),
        "transformers",
        "ImportError: cannot import name",
        "engines use transformers' internals, which move between releases",
    ),
)


def pair_findings(rule: Rule, facts: Facts) -> Iterator[Finding]:
    """Findings for the pair that the rule speaks of."""
    pair = next(one for one in PAIRS if one.rule == rule.code)
    for one in unmet_requirements(facts):
        if not pair.matches(one) or one.found is None:
            continue
        asked = f"{one.name}{one.specifier}"
        yield Finding(
            rule=rule.code,
            kind=rule.kind,
            severity="error",
            stage=rule.stage,
            subject=one.owner.name,
            because=(
                Premise(f"{one.owner.name} {one.owner.version} needs {asked}", one.owner.source),
                Premise(f"{one.name} {one.found.version} is installed", one.found.source),
                Premise(pair.why, "pairs of releases, known to fail"),
            ),
            therefore=f"{one.owner.name} {one.owner.version} and {one.name} {one.found.version} do not go together",
            predicted_error=pair.message,
            remedies=(Remedy(f"install {asked}", (install(facts, f"'{asked}'"),)),),
            order=60,
        )
