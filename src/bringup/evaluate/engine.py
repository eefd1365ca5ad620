"""Runs the rules in order. A missing fact and a rule that fails are results, too: neither fine nor broken.

The same facts give the same evaluation, byte for byte: findings are sorted by stage, by their place within it, and by
subject, and what no rule orders is sorted by its words.
"""

from __future__ import annotations

import traceback
from collections.abc import Sequence

from bringup.evaluate.registry import RULES, RuleModule
from bringup.facts import Facts, Unknown, fact
from bringup.findings import STAGES, Finding, UnknownVerdict
from bringup.report import Evaluation, RuleFault, mask


def evaluate(facts: Facts, rules: Sequence[RuleModule] = RULES) -> Evaluation:
    """Ask every rule whose facts are known.

    A rule that fails keeps the findings that it made before, and becomes an `UnknownVerdict` with the exception's own
    words; its traceback is in `Evaluation.faults`.
    """
    findings: list[Finding] = []
    unknown: list[UnknownVerdict] = []
    faults: list[RuleFault] = []
    asked = 0
    for module in rules:
        rule = module.RULE
        missing = [(name, value) for name in rule.needs if isinstance(value := fact(facts, name), Unknown)]
        if missing:
            reasons = dict.fromkeys(f"{_words(name)}: {value.reason}" for name, value in missing)
            unknown.append(UnknownVerdict(rule.code, tuple(name for name, _ in missing), "; ".join(reasons)))
            continue
        asked += 1
        try:
            findings.extend(module.check(facts))
        except Exception as error:
            unknown.append(UnknownVerdict(rule.code, (), f"the rule itself failed: {type(error).__name__}: {error}"))
            faults.append(RuleFault(rule.code, traceback.format_exc()))
    return Evaluation(mask(sorted(findings, key=_place)), tuple(unknown), tuple(faults), asked)


def _words(name: str) -> str:
    return name.rpartition(".")[2].replace("_", " ")


def _place(finding: Finding) -> tuple[int, int, str, str, str, str]:
    stage = STAGES.index(finding.stage)
    return (stage, finding.order, finding.subject, finding.rule, finding.therefore, finding.predicted_error)
