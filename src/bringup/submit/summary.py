"""What a batch took, read out of its journal: over all runs that it needed, however each of them ended."""

from __future__ import annotations

from msgspec import Struct

from bringup.errors import UsageError
from bringup.submit.journal import Journal

PLOT_POINTS = 120


class Price(Struct, frozen=True):
    """In whatever currency: per million prompt tokens, per million completion tokens, per hour of all machines together."""

    prompt: float = 0.0
    completion: float = 0.0
    hour: float = 0.0


def parse_price(text: str) -> Price:
    """``0.15:0.60`` (per million prompt and completion tokens) or ``24/h``. Raises UsageError."""
    try:
        if text.endswith("/h"):
            price = Price(hour=float(text[:-2]))
        else:
            prompt, _, completion = text.partition(":")
            price = Price(float(prompt), float(completion or prompt))
    except ValueError as error:
        raise UsageError(f"--price {text!r} is neither PROMPT:COMPLETION per million tokens nor AMOUNT/h") from error
    return price


class Failures(Struct, frozen=True):
    """Lines without an answer, by code."""

    code: str
    lines: int


class Summary(Struct, frozen=True):
    """Seconds, tokens, requests. ``seconds`` is time at work, without the time between runs."""

    answered: int
    failures: tuple[Failures, ...]
    seconds: float
    runs: int
    prompt_tokens: int
    completion_tokens: int
    p50: float
    p99: float
    longest: float
    retries: tuple[tuple[str, int], ...]
    stolen: int
    per_endpoint: tuple[tuple[str, int], ...]
    throughput: tuple[tuple[float, float, float], ...]
    """(seconds since the first answer, answers a second, completion tokens a second)"""
    cost: float | None = None
    gpus: int = 0

    @property
    def failed(self) -> int:
        """Lines without an answer."""
        return sum(one.lines for one in self.failures)


def read_summary(journal: Journal, endpoints: tuple[str, ...], price: Price | None = None, gpus: int = 0) -> Summary:
    """Read it. The latency quantiles are exact: of every answer, not of a sample."""
    answered = journal.number("SELECT count(*) FROM answers")
    prompt = journal.number("SELECT sum(prompt_tokens) FROM answers")
    completion = journal.number("SELECT sum(completion_tokens) FROM answers")
    seconds = journal.number("SELECT sum(ended_ms - began_ms) FROM runs") / 1000

    def quantile(share: float) -> float:
        place = min(answered - 1, int(answered * share))
        return (
            journal.number("SELECT latency_us FROM answers ORDER BY latency_us LIMIT 1 OFFSET ?", (place,)) / 1e6
            if answered
            else 0.0
        )

    counters = {str(name): int(n) for name, n in journal.rows("SELECT name, n FROM counters ORDER BY n DESC")}
    cost = None
    if price is not None:
        cost = (prompt * price.prompt + completion * price.completion) / 1e6 + seconds / 3600 * price.hour
    return Summary(
        answered=answered,
        failures=tuple(
            Failures(str(code), int(n))
            for code, n in journal.rows("SELECT code, count(*) FROM errors GROUP BY code ORDER BY 2 DESC")
        ),
        seconds=seconds,
        runs=journal.number("SELECT count(*) FROM runs"),
        prompt_tokens=prompt,
        completion_tokens=completion,
        p50=quantile(0.5),
        p99=quantile(0.99),
        longest=quantile(1.0),
        retries=tuple((name, n) for name, n in counters.items() if name != "stolen"),
        stolen=counters.get("stolen", 0),
        per_endpoint=tuple(
            (endpoints[number] if number < len(endpoints) else f"endpoint {number}", int(n))
            for number, n in journal.rows("SELECT endpoint, count(*) FROM answers GROUP BY endpoint ORDER BY endpoint")
        ),
        throughput=_throughput(journal),
        cost=cost,
        gpus=gpus,
    )


def _throughput(journal: Journal) -> tuple[tuple[float, float, float], ...]:
    row = journal.rows("SELECT min(finished_ms), max(finished_ms) FROM answers").fetchone()
    if row is None or row[0] is None:
        return ()
    first, last = int(row[0]), int(row[1])
    width = max(1000, -(-(last - first + 1) // PLOT_POINTS))
    found = {
        int(place): (int(n), int(tokens))
        for place, n, tokens in journal.rows(
            "SELECT (finished_ms - ?) / ?, count(*), sum(completion_tokens) FROM answers GROUP BY 1", (first, width)
        )
    }
    seconds = width / 1000
    points = range((last - first) // width + 1)
    return tuple(
        (at * seconds, found.get(at, (0, 0))[0] / seconds, found.get(at, (0, 0))[1] / seconds) for at in points
    )


def summary_lines(summary: Summary) -> list[str]:
    """The summary in words."""
    seconds = max(summary.seconds, 1e-9)
    lines = [f"{summary.answered:,} answers, {summary.failed:,} lines without one, {duration(summary.seconds)} at work"]
    if summary.runs > 1:
        lines[0] += f" in {summary.runs} runs"
    lines.append(
        f"requests   {summary.answered / seconds:,.1f}/s, p50 {summary.p50:.3f} s, p99 {summary.p99:.3f} s, longest {summary.longest:.3f} s"
    )
    tokens = summary.prompt_tokens + summary.completion_tokens
    rate = f"{summary.completion_tokens / seconds:,.0f} completion tokens/s, {tokens / seconds:,.0f} tokens/s"
    if summary.gpus:
        rate += f", {summary.completion_tokens / seconds / summary.gpus:,.0f} completion tokens/s per GPU"
    lines.append(f"tokens     {summary.prompt_tokens:,} prompt, {summary.completion_tokens:,} completion, {rate}")
    if summary.retries:
        lines.append("retries    " + ", ".join(f"{n:,} {name.replace('_', ' ')}" for name, n in summary.retries))
    if summary.stolen:
        lines.append(f"tail       {summary.stolen:,} slow requests were given to a second endpoint")
    if summary.failures:
        lines.append(
            "errors     " + ", ".join(f"{one.lines:,} {one.code.replace('_', ' ')}" for one in summary.failures)
        )
    if len(summary.per_endpoint) > 1:
        lines += [f"endpoint   {url}: {n:,} answers" for url, n in summary.per_endpoint]
    if summary.cost is not None:
        lines.append(f"cost       {summary.cost:,.4f}")
    return lines


def duration(seconds: float) -> str:
    """``1 h 02 min``, ``3 min 05 s``, ``12.3 s``."""
    if seconds >= 3600:
        return f"{int(seconds // 3600)} h {int(seconds % 3600 // 60):02d} min"
    if seconds >= 60:
        return f"{int(seconds // 60)} min {int(seconds % 60):02d} s"
    return f"{seconds:.1f} s"
