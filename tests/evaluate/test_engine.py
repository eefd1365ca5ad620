from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from bringup.errors import UsageError
from bringup.evaluate.engine import evaluate
from bringup.evaluate.registry import RULES
from bringup.explain.rules import documentation, find_rules
from bringup.facts import Driver, Facts, Known
from bringup.findings import STAGES, Finding, Premise, Rule
from bringup.report import mask

FACTS = Facts(target="x", driver=Known(Driver("580.95.05", "13.0"), "--driver"))


def finding(subject: str = "a.so", stage: str = "import", **more: Any) -> Finding:
    settings: dict[str, Any] = {
        "rule": "X001",
        "kind": "k",
        "severity": "error",
        "because": (Premise("A", "s"),),
        "therefore": "C",
    }
    return Finding(subject=subject, stage=stage, **(settings | more))  # type: ignore[arg-type]


def rule(*findings: Finding, code: str = "X001", needs: tuple[str, ...] = (), error: Exception | None = None) -> Any:
    def check(facts: Facts) -> Iterator[Finding]:
        yield from findings
        if error is not None:
            raise error

    return SimpleNamespace(RULE=Rule(code, "k", "A rule", "import", needs), check=check, __doc__="A rule.")


def test_orders_by_stage_then_place_then_subject_whatever_the_rules_order() -> None:
    late, early = finding("z", "serve"), finding("y", "install")
    second, first = finding("b", order=20), finding("c", order=10)
    tie = finding("a", order=20)
    expected = [early, first, tie, second, late]
    for rules in ([rule(late, second), rule(first, early, tie)], [rule(first, early, tie), rule(late, second)]):
        found = evaluate(FACTS, rules).findings
        assert [one.finding for one in found] == expected
        assert [one.id for one in found] == ["F1", "F2", "F3", "F4", "F5"]


def test_a_fatal_error_masks_every_later_error_and_no_warning() -> None:
    found = mask(
        [finding("a"), finding("b", fatal=True), finding("c"), finding("d", severity="warning"), finding("e", "jit")]
    )
    assert [one.masks for one in found] == [(), ("F3", "F5"), (), (), ()]


def test_a_finding_that_is_not_fatal_masks_what_it_hides() -> None:
    found = mask([finding("a", hides=("c", "d")), finding("b"), finding("c"), finding("d", severity="warning")])
    assert found[0].masks == ("F3", "F4")


def test_a_fatal_warning_masks_nothing() -> None:
    assert mask([finding("a", severity="warning", fatal=True), finding("b")])[0].masks == ()


def test_an_unknown_fact_is_a_verdict_with_its_reason() -> None:
    found = evaluate(FACTS, [rule(finding(), code="X007", needs=("driver", "gpus"))])
    assert found.findings == ()
    (one,) = found.unknown
    assert (one.rule, one.missing) == ("X007", ("gpus",))
    assert "no GPU was named or found" in one.reason
    assert found.asked == 0


def test_known_facts_let_a_rule_be_asked() -> None:
    found = evaluate(FACTS, [rule(finding(), needs=("driver",))])
    assert len(found.findings) == 1
    assert (found.unknown, found.asked) == ((), 1)


def test_a_rule_that_fails_stops_no_other_and_keeps_what_it_found() -> None:
    broken = rule(finding("a"), code="X002", error=KeyError("sm_999"))
    found = evaluate(FACTS, [broken, rule(finding("b"))])
    assert [one.finding.subject for one in found.findings] == ["a", "b"]
    (one,) = found.unknown
    assert one.reason == "the rule itself failed: KeyError: 'sm_999'"
    assert found.faults[0].rule == "X002"
    assert "in check" in found.faults[0].traceback


def test_an_interrupt_is_no_verdict() -> None:
    def check(facts: Facts) -> Iterator[Finding]:
        raise KeyboardInterrupt
        yield

    with pytest.raises(KeyboardInterrupt):
        evaluate(FACTS, [SimpleNamespace(RULE=Rule("X", "k", "t", "import"), check=check, __doc__="")])


def test_the_same_facts_give_the_same_bytes() -> None:
    rules = [rule(finding("b"), finding("a")), rule(code="X002", needs=("gpus",))]
    assert msgspec.json.encode(evaluate(FACTS, rules)) == msgspec.json.encode(evaluate(FACTS, rules))


# --- the registered rules ---------------------------------------------------------------------------------------------


def test_codes_are_unique_and_in_order() -> None:
    codes = [module.RULE.code for module in RULES]
    assert codes == sorted(set(codes))


@pytest.mark.parametrize("module", RULES, ids=lambda module: module.RULE.code)
def test_a_rule_is_documented_as_its_page_needs(module: Any) -> None:
    page = documentation(module)
    for section in ("## What it checks", "## Why it matters", "## What to do"):
        assert section in page
    assert module.__name__.rpartition(".")[2] == module.RULE.code.lower()
    assert module.RULE.stage in STAGES


def test_nothing_known_gives_no_finding_and_no_failure() -> None:
    found = evaluate(Facts(target="nothing"))
    assert [one.finding.rule for one in found.findings] == []
    assert found.faults == ()
    assert {one.rule for one in found.unknown} | {module.RULE.code for module in RULES if not module.RULE.needs} == {
        module.RULE.code for module in RULES
    }


def test_rules_are_found_by_code_and_by_kind() -> None:
    (by_code,) = find_rules("abi001")
    assert by_code in find_rules("extension-built-for-other-torch")


def test_an_unknown_name_lists_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"no rule or kind is named ABI01; the nearest are .*ABI001"):
        find_rules("ABI01")
