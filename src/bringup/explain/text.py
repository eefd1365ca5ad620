"""The report as text: what is wrong, root cause first, how to repair it, the layers, and what a start would have met."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby

from bringup.evaluate.layers import gpu_label
from bringup.explain.demangle import demangle_text
from bringup.explain.page import Line, Page, Segment, Style, plain
from bringup.explain.sentence import Narrator
from bringup.findings import SEVERITIES, Finding, Remedy, UnknownVerdict
from bringup.report import Report, Reported

LAYER_NAMES = {
    "driver": "host and driver",
    "gpu": "GPU",
    "cuda": "CUDA runtime",
    "torch": "torch",
    "kernels": "kernel wheels",
    "compiler": "compilers",
    "engine": "engine",
}

HOW_TO_TELL = {
    "gpus": "name the GPU: --gpu rtx-pro-6000 (or --gpu sm_120)",
    "driver": "name the driver: --driver 580.95.05",
    "python": "name the Python: --python 3.12",
    "model": "name the model's folder: --model DIR",
    "libraries": "check an installed environment, wheels or requirements",
    "distributions": "check an installed environment, wheels or requirements",
}
"""How a person gives a fact that is missing. Those not listed are the machine's: they are known where it is checked itself."""

ON_THE_MACHINE = "check the installed environment on the machine itself, or its facts file (bringup facts -o FILE)"
THE_MACHINE_IS_SILENT = "the machine does not tell, or has none; -v shows why"

_NOUNS = {"error": ("error", "errors"), "warning": ("warning", "warnings"), "info": ("note", "notes")}


def render_text(report: Report, *, width: int = 100, verbose: bool = False) -> str:
    """The whole report as plain text."""
    return plain(text_lines(report, width=width, verbose=verbose))


def text_lines(report: Report, *, width: int, verbose: bool) -> list[Line]:
    """The lines of the report, for a plain or a coloured rendering."""
    page = Page(width)
    _head(page, report)
    _layers(page, report)
    _findings(page, report, verbose)
    _time_line(page, report)
    _unknown(page, report, verbose)
    _next(page, report)
    return page.lines


def groups(findings: Sequence[Reported]) -> list[tuple[Reported, ...]]:
    """Neighbours of one rule, severity and remedy: one cause that shows in several files."""
    return [tuple(group) for _, group in groupby(findings, key=_cause)]


def _cause(one: Reported) -> tuple[object, ...]:
    finding = one.finding
    return (finding.rule, finding.severity, finding.stage, finding.remedies, finding.misread_as)


def verdict(report: Report) -> str:
    """The result in a line."""
    counts = [(severity, report.count(severity)) for severity in SEVERITIES]
    said = [f"{count} {_NOUNS[severity][count != 1]}" for severity, count in counts if count]
    first = next((one for one in report.findings if one.finding.severity == "error"), None)
    if first is None:
        head = f"Nothing here stops a start; {' and '.join(said)}" if said else "Nothing wrong found"
        return f"{head}; {_rules(report.unknown)} could not be asked" if report.unknown else head
    end = "ends" if first.finding.fatal else "goes wrong"
    return f"{', '.join(said)}. A start {end} at {first.finding.stage}: {demangle_text(first.finding.therefore)}"


def _head(page: Page, report: Report) -> None:
    page.paragraph(report.target, style="title")
    gpus = ", ".join(gpu_label(one.name, one.compute_capability, one.count) for one in report.gpus)
    driver = f"driver {report.driver.version}" if report.driver is not None else "driver not known"
    page.paragraph(f"for {gpus or 'a GPU that is not known'}, {driver}", style="quiet")
    page.blank()
    worst = report.worst()
    page.paragraph(verdict(report), style="ok" if worst in (None, "info") else worst)


def _layers(page: Page, report: Report) -> None:
    page.title("Layers")
    for layer in report.layers:
        name = f"  {LAYER_NAMES.get(layer.layer, layer.layer):<16}"
        lines = Page(page.width)
        lines.paragraph(layer.summary, label=f"{name}{layer.status:<8} ")
        first = lines.lines[0][0].text
        cut = len(name) + 8
        page.row(Segment(first[: len(name)]), Segment(first[len(name) : cut], layer.status), Segment(first[cut:]))
        page.lines += lines.lines[1:]


def _findings(page: Page, report: Report, verbose: bool) -> None:
    shown = [one for one in report.findings if verbose or one.finding.severity != "info"]
    if shown:
        page.title("What is wrong, root cause first")
    narrator = Narrator(one.finding for one in shown)
    # Errors first, each kind in the order of a start; a warning that comes earlier in a start is no root cause.
    ranked = sorted(shown, key=lambda one: SEVERITIES.index(one.finding.severity))
    repairs: dict[tuple[Remedy, ...], str] = {}
    for group in [(one,) for one in ranked] if verbose else groups(ranked):
        page.blank()
        _finding(page, group, narrator, verbose)
        first = repairs.setdefault(group[0].finding.remedies, group[0].id)
        _repairs(page, group[0], "" if first == group[0].id else first)
    notes = len(report.findings) - len(shown)
    if notes:
        page.blank()
        page.paragraph(f"{notes} {_NOUNS['info'][notes != 1]} more with -v", style="quiet")


def _finding(page: Page, group: Sequence[Reported], narrator: Narrator, verbose: bool) -> None:
    finding = group[0].finding
    style: Style = finding.severity
    ids = group[0].id if len(group) == 1 else f"{group[0].id} to {group[-1].id}" if _in_row(group) else _ids(group)
    page.row(
        Segment(f"{ids}  "),
        Segment(_NOUNS[finding.severity][0], style),
        Segment(f"  {finding.rule} {finding.kind}, at {finding.stage}"),
    )
    page.paragraph(finding.subject, indent=4, style="quiet")
    page.paragraph(demangle_text(narrator.say(finding)), indent=4)
    if len(group) > 1:
        page.paragraph(f"The same holds for {_subjects(group[1:])}", indent=4)
    if verbose:
        _evidence(page, finding)
    for hint in finding.hints:
        page.paragraph(demangle_text(hint), indent=4, label="note: ")


def _in_row(group: Sequence[Reported]) -> bool:
    numbers = [int(one.id[1:]) for one in group]
    return numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def _ids(group: Sequence[Reported]) -> str:
    shown = [one.id for one in group[:4]]
    return ", ".join(shown) + (f" and {len(group) - 4} more" if len(group) > 4 else "")


def _subjects(group: Sequence[Reported]) -> str:
    subjects = list(dict.fromkeys(one.finding.subject for one in group))
    more = f", and {len(subjects) - 4} more (-v lists them)" if len(subjects) > 4 else ""
    return ", ".join(subjects[:4]) + more


def _evidence(page: Page, finding: Finding) -> None:
    for premise in dict.fromkeys(finding.because):
        page.paragraph(f"{demangle_text(premise.text)} [{premise.source}]", indent=4, label="read: ", style="quiet")
    for item in finding.detail:
        words = demangle_text(item)
        page.paragraph(
            item if words == item else f"{words} [{item.rpartition(' ')[2]}]", indent=4, label="- ", style="quiet"
        )
    page.paragraph(f"bringup explain {finding.rule}", indent=4, label="more: ", style="quiet")


def _repairs(page: Page, one: Reported, like: str) -> None:
    """The ways out; ``like`` is the earlier finding that has the very same ones."""
    if like and one.finding.remedies:
        page.paragraph(f"as for {like}", indent=4, label="repair: ")
        return
    for position, remedy in enumerate(one.finding.remedies):
        page.paragraph(remedy.summary, indent=4, label="or: " if position else "repair: ")
        for command in remedy.commands:
            page.verbatim(command, 8, "command")


def _time_line(page: Page, report: Report) -> None:
    cascade = [report.by_id(identifier) for identifier in report.cascade]
    errors = [one for one in cascade if one.finding.severity == "error"]
    if not errors:
        return
    page.title("What a start would meet, in this order")
    behind = len(errors)
    for position, group in enumerate(groups(errors), 1):
        finding = group[0].finding
        behind -= len(group)
        label = f"  {position}. "
        page.paragraph(f"at {finding.stage}, {_ids(group)}: {finding.subject}", label=label)
        _told(page, "prints", finding.predicted_error or "nothing")
        if finding.misread_as:
            _told(page, "taken for", finding.misread_as)
        if finding.fatal and behind:
            _told(page, "hides", f"{behind} more, met only after this repair" if behind > 1 else "the next one")
        elif not finding.fatal and finding.hides:
            _told(page, "hides", ", ".join(sorted({id for one in group for id in one.masks})))
    maybe = [one for one in cascade if one.finding.severity == "warning"]
    if maybe:
        page.paragraph(f"Only where they are used: {_ids(maybe)}", indent=2, style="quiet")


def _told(page: Page, label: str, text: str) -> None:
    page.paragraph(" ".join(text.split()), indent=5, label=f"{label:<10} ")


def _unknown(page: Page, report: Report, verbose: bool) -> None:
    if not report.unknown:
        return
    failed = [one for one in report.unknown if not one.missing]
    asked = [one for one in report.unknown if one.missing]
    if asked:
        page.title(f"Not judged: {_rules(asked)} whose facts are not known")
        for way, count in _ways(asked):
            page.paragraph(f"{way} ({count} of them)", indent=2, hang=4)
        if verbose:
            for one in asked:
                page.paragraph(one.reason, indent=4, label=f"{one.rule}: ", style="quiet")
    if failed:
        page.title(f"Failed: {_rules(failed)}, which is a fault of bringup's own")
        for one in failed:
            page.paragraph(one.reason, indent=2, label=f"{one.rule}: ", hang=4)


def _rules(verdicts: Sequence[UnknownVerdict]) -> str:
    return f"{len(verdicts)} {'rule' if len(verdicts) == 1 else 'rules'}"


def _ways(verdicts: Sequence[UnknownVerdict]) -> list[tuple[str, int]]:
    """What a person can do so that rules can be judged, and how many want it; one rule may want several things."""
    wanted = Counter(
        way
        for one in verdicts
        for way in dict.fromkeys(HOW_TO_TELL.get(name) or _machine_way(one) for name in one.missing)
    )
    order = [*dict.fromkeys(HOW_TO_TELL.values()), ON_THE_MACHINE, THE_MACHINE_IS_SILENT]
    return sorted(wanted.items(), key=lambda item: order.index(item[0]))


def _machine_way(verdict: UnknownVerdict) -> str:
    not_asked = ("was not looked at", "say nothing about")
    return ON_THE_MACHINE if any(words in verdict.reason for words in not_asked) else THE_MACHINE_IS_SILENT


def _next(page: Page, report: Report) -> None:
    ranked = sorted(report.findings, key=lambda one: SEVERITIES.index(one.finding.severity))
    first = next((one for one in ranked if one.finding.severity != "info" and one.finding.remedies), None)
    page.blank()
    if first is None:
        if report.worst() in (None, "info"):
            page.paragraph("What to do first: nothing; no finding asks for a repair", style="title")
        else:
            rule = next(one.finding.rule for one in ranked)
            page.paragraph(f"What to do first: read bringup explain {rule}", style="title")
        return
    remedy = first.finding.remedies[0]
    page.paragraph(f"What to do first: {remedy.summary} ({first.id})", style="title")
    for command in remedy.commands:
        page.verbatim(command, 4, "command")
    others = (
        len({one.finding.remedies[0] for one in ranked if one.finding.remedies and one.finding.severity == "error"}) - 1
    )
    if others > 0:
        page.paragraph(
            f"then {others} more {'repair' if others == 1 else 'repairs'} above, and check again: a repair can change what others need",
        )
