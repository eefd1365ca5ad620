"""Writes the parts of docs/ that come from the code: a page for each rule, and the JSON schemas.

``python -m bringup.explain.docs`` writes them into ./docs; with ``--check`` it writes nothing and fails where they differ.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import msgspec

from bringup.evaluate.registry import RULES
from bringup.explain.diagnosis import Diagnosis
from bringup.explain.json import ReportJson
from bringup.explain.rules import documentation
from bringup.facts import Facts
from bringup.findings import STAGES


def generated() -> dict[str, str]:
    """Every generated file: path below docs/ to content."""
    files = {f"rules/{module.RULE.code}.md": documentation(module) for module in RULES}
    files["rules/README.md"] = _index()
    files["schema/report.schema.json"] = _schema(ReportJson, "bringup.report/1")
    files["schema/facts.schema.json"] = _schema(Facts, "bringup.facts/1")
    files["schema/diagnosis.schema.json"] = _schema(Diagnosis, "bringup.diagnosis/1")
    return files


def _index() -> str:
    lines = [
        "# Rules",
        "",
        f"{len(RULES)} rules, by the stage of a start at which each would be met. `bringup explain RULE` prints the same pages.",
    ]
    for stage in STAGES:
        rows = [module.RULE for module in RULES if module.RULE.stage == stage]
        if rows:
            lines += ["", f"## {stage}", "", "| rule | kind | what it finds |", "| --- | --- | --- |"]
            lines += [f"| [{rule.code}]({rule.code}.md) | `{rule.kind}` | {rule.title} |" for rule in rows]
    return "\n".join(lines) + "\n"


def _schema(of: type, name: str) -> str:
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": name, **msgspec.json.schema(of)}
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def differences(docs: Path) -> list[str]:
    """What is missing, stale or left over below ``docs``, a line each."""
    wanted = generated()
    found: list[str] = []
    for path, content in wanted.items():
        file = docs / path
        if not file.exists():
            found.append(f"{file} is missing")
        elif file.read_text(encoding="utf-8") != content:
            found.append(f"{file} is not what the code says")
    known = {docs / path for path in wanted}
    found += [f"{file} belongs to no rule" for file in sorted((docs / "rules").glob("*.md")) if file not in known]
    return found


def main(arguments: list[str]) -> int:
    """Write the files, or compare them with ``--check``. Returns the exit code."""
    docs = Path("docs")
    if arguments == ["--check"]:
        found = differences(docs)
        for line in found:
            print(line, file=sys.stderr)
        if found:
            print("write them with: uv run python -m bringup.explain.docs", file=sys.stderr)
        return 1 if found else 0
    for path, content in generated().items():
        file = docs / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8")
    for line in differences(docs):
        print(line, file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
