"""The documentation of rules: their docstrings, found by code or kind."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from bringup.errors import UsageError
from bringup.evaluate.registry import RULES, RuleModule


def find_rules(name: str, rules: Sequence[RuleModule] = RULES) -> list[RuleModule]:
    """The rules of a code (``ABI001``) or a kind; several rules may share a kind. Raises UsageError with the nearest names."""
    wanted = name.strip()
    found = [one for one in rules if one.RULE.code.lower() == wanted.lower()]
    found = found or [one for one in rules if one.RULE.kind == wanted.lower().replace("-", "_")]
    if found:
        return found
    known = [one.RULE.code for one in rules] + sorted({one.RULE.kind for one in rules})
    lowered = {one.lower(): one for one in known}
    near = difflib.get_close_matches(wanted.lower().replace("-", "_"), list(lowered), n=5, cutoff=0.4)
    hint = f"the nearest are {', '.join(lowered[one] for one in near)}" if near else "bringup explain lists them all"
    raise UsageError(f"no rule or kind is named {name}; {hint}")


def documentation(module: RuleModule) -> str:
    """A rule's page in Markdown: a heading, its identity, its docstring."""
    rule = module.RULE
    body = (module.__doc__ or "").strip().splitlines()
    needs = ", ".join(f"`{name}`" for name in rule.needs) or "nothing"
    head = f"# {rule.code}: {rule.title}\n\nKind `{rule.kind}`, met at stage `{rule.stage}`, reads {needs}.\n"
    # The docstring's first line is the title as a sentence; the page says it already.
    rest = "\n".join(body[1:]).strip()
    return f"{head}\n{rest}\n" if rest else head


def summary_of(module: RuleModule) -> str:
    """The first line of a rule's docstring."""
    return (module.__doc__ or module.RULE.title).strip().splitlines()[0]
