"""The summary as one HTML file with a plot: no script, nothing loaded from elsewhere."""

from __future__ import annotations

from html import escape

from bringup.submit.summary import Summary, duration, summary_lines

WIDTH, HEIGHT, LEFT, BOTTOM = 860, 260, 70, 30

_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:900px;margin:2em auto;padding:0 1em;color:#1a1a1a;background:#fff}
pre{background:#f5f5f5;padding:1em;overflow:auto}svg{width:100%;height:auto}text{font:12px system-ui,sans-serif;fill:#555}
.grid{stroke:#ddd}.line{fill:none;stroke:#1f6feb;stroke-width:2}.area{fill:#1f6feb22;stroke:none}
@media(prefers-color-scheme:dark){body{color:#ddd;background:#111}pre{background:#1c1c1c}text{fill:#aaa}.grid{stroke:#333}}
"""


def render_summary(title: str, summary: Summary) -> str:
    """The page. ``title`` is the output's name."""
    text = escape("\n".join(summary_lines(summary)))
    plots = [_plot("Answers a second", [(at, n) for at, n, _ in summary.throughput])]
    if summary.completion_tokens:
        plots.append(_plot("Completion tokens a second", [(at, tokens) for at, _, tokens in summary.throughput]))
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Batch {escape(title)}</title><style>{_STYLE}</style></head>'
        f"<body><h1>Batch {escape(title)}</h1><pre>{text}</pre>{''.join(plots)}</body></html>\n"
    )


def _plot(title: str, points: list[tuple[float, float]]) -> str:
    if len(points) < 2:
        return ""
    longest, highest = points[-1][0] or 1.0, max(y for _, y in points) or 1.0
    step = _step(highest)
    top = step * -(-highest // step)

    def place(x: float, y: float) -> str:
        return (
            f"{LEFT + x / longest * (WIDTH - LEFT - 10):.1f},{HEIGHT - BOTTOM - y / top * (HEIGHT - BOTTOM - 10):.1f}"
        )

    line = " ".join(place(x, y) for x, y in points)
    marks = []
    for n in range(round(top / step) + 1):
        left, height = place(0, n * step).split(",")
        right = place(longest, 0).split(",")[0]
        marks.append(f'<line class="grid" x1="{left}" y1="{height}" x2="{right}" y2="{height}"/>')
        marks.append(f'<text x="{LEFT - 6}" y="{float(height) + 4:.1f}" text-anchor="end">{n * step:,.6g}</text>')
    for n in range(5):
        left = place(longest * n / 4, 0).split(",")[0]
        marks.append(f'<text x="{left}" y="{HEIGHT - 8}" text-anchor="middle">{duration(longest * n / 4)}</text>')
    floor = f"{place(0, 0)} {line} {place(longest, 0)}"
    return (
        f'<h2>{title}</h2><svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title} over time">{"".join(marks)}'
        f'<polygon class="area" points="{floor}"/><polyline class="line" points="{line}"/></svg>'
    )


def _step(highest: float) -> float:
    size = 1.0
    while size * 5 < highest:
        size *= 10
    while size * 0.5 > highest / 5 and size > 1e-6:
        size /= 10
    return next(size * factor for factor in (1, 2, 5, 10) if size * factor * 5 >= highest)
