"""The report as one HTML file: no script, no other file, light and dark, fit for print."""

from __future__ import annotations

from importlib.resources import files

from bringup.evaluate.layers import gpu_label
from bringup.explain.demangle import demangle_text
from bringup.explain.sentence import Narrator
from bringup.explain.text import HOW_TO_TELL, LAYER_NAMES, verdict
from bringup.findings import SEVERITIES
from bringup.report import Report


def render_html(report: Report) -> str:
    """The page. Every text from a target is escaped."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string((files("bringup.explain") / "report.html.jinja").read_text(encoding="utf-8"))
    ranked = sorted(report.findings, key=lambda one: SEVERITIES.index(one.finding.severity))
    narrator = Narrator(one.finding for one in ranked)
    wanted = dict.fromkeys(name for one in report.unknown for name in one.missing)
    return template.render(
        report=report,
        verdict=verdict(report),
        worst=report.worst() or "ok",
        gpus=", ".join(gpu_label(one.name, one.compute_capability, one.count) for one in report.gpus),
        findings=[(one, demangle_text(narrator.say(one.finding))) for one in ranked],
        cascade=[report.by_id(identifier) for identifier in report.cascade],
        layer_names=LAYER_NAMES,
        how_to_tell=[HOW_TO_TELL[name] for name in wanted if name in HOW_TO_TELL],
        readable=demangle_text,
    )
