"""What an answer, or its absence, means for the line; pure."""

from __future__ import annotations

import email.utils
import re
import time
from typing import Any, Literal

import msgspec
from msgspec import Raw, Struct

from bringup.submit.http import Answer, NoAnswer

Class = Literal[
    "ok",
    "refused",
    "lost",
    "timeout",
    "malformed",
    "rate_limited",
    "overloaded",
    "server_error",
    "unauthorized",
    "final",
]


class Retry(Struct, frozen=True):
    """How often a class of failure is tried, the first time included, and the waits before: base * 2**n, at most ``longest`` s."""

    attempts: int
    base: float
    longest: float


RETRIES: dict[Class, Retry] = {
    # Nothing was sent: not the line's attempt, its endpoint's. It waits until one is back.
    "refused": Retry(1 << 30, 0.0, 0.0),
    # The server may have died of this very request: after three ends it is set aside.
    "lost": Retry(3, 0.2, 5.0),
    "timeout": Retry(3, 0.5, 10.0),
    "malformed": Retry(3, 0.2, 5.0),
    # 429 and 503 say "later", not "never".
    "rate_limited": Retry(60, 0.5, 60.0),
    "overloaded": Retry(30, 0.5, 30.0),
    "server_error": Retry(4, 0.5, 15.0),
    # The endpoint refuses everybody: the line waits for another one.
    "unauthorized": Retry(1 << 30, 0.0, 0.0),
    "final": Retry(1, 0.0, 0.0),
}

CODES: dict[Class, str] = {
    "lost": "connection_lost",
    "timeout": "timeout",
    "malformed": "malformed_answer",
    "rate_limited": "rate_limited",
    "overloaded": "server_overloaded",
    "server_error": "server_error",
    "final": "request_refused",
}

_TOO_LONG = re.compile(
    rb"maximum context length|context[_ ]length|longer than the (?:maximum )?model(?:'s)? |max_model_len|exceeds the model's|"
    rb"input is too long|(?:prompt|input) .{0,60}too long|allowed maximum input length",
    re.IGNORECASE,
)
"""vLLM: "This model's maximum context length is"; OpenAI: context_length_exceeded; SGLang: "longer than the model's context
length"; TGI, llama.cpp likewise."""


class _Usage(Struct):
    prompt_tokens: int | None = 0
    completion_tokens: int | None = 0


class _Reply(Struct):
    id: str | None = None
    usage: _Usage | None = None
    choices: Raw = Raw()
    data: Raw = Raw()


_reply = msgspec.json.Decoder(_Reply)
_any = msgspec.json.Decoder()


class Outcome(Struct, frozen=True):
    """``body`` is one line of JSON where ``kind`` is ok. ``after``: seconds that the server asked to wait, else None."""

    kind: Class
    message: str = ""
    status: int = 0
    body: bytes = b""
    request_id: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    after: float | None = None
    code: str = ""


def of_failure(failure: NoAnswer) -> Outcome:
    """The outcome of a request that got no answer."""
    kind: Class = "malformed" if failure.why == "broken" else "lost" if failure.why == "cancelled" else failure.why
    return Outcome(kind, str(failure))


def of_answer(answer: Answer, now: float | None = None) -> Outcome:
    """The outcome of an answer. ``now`` in seconds since the epoch, for a Retry-After that is a date."""
    status = answer.status
    if status == 200:
        return _good(answer)
    text = _message(answer.body)
    after = retry_after(answer.retry_after, time.time() if now is None else now)
    kind: Class
    if status == 429:
        kind = "rate_limited"
    elif status in (502, 503, 504, 529):
        kind = "overloaded"
    elif status >= 500 or status in (408, 409, 425):
        kind = "server_error"
    elif status in (401, 403):
        kind = "unauthorized"
    elif 300 <= status < 400:
        return Outcome("unauthorized", f"redirects to {answer.location or 'nowhere'}", status)
    else:
        too_long = status in (400, 413, 422) and _TOO_LONG.search(answer.body)
        code = "context_length_exceeded" if too_long else CODES["final"]
        return Outcome("final", text, status, answer.body, answer.request_id, code=code)
    return Outcome(kind, text, status, answer.body, answer.request_id, after=after)


def _good(answer: Answer) -> Outcome:
    body = answer.body
    prompt = completion = 0
    try:
        reply = _reply.decode(body)
        if reply.usage is not None:
            prompt, completion = reply.usage.prompt_tokens or 0, reply.usage.completion_tokens or 0
        whole = any(bytes(one) not in (b"", b"null") for one in (reply.choices, reply.data))
        name = reply.id or ""
    except msgspec.ValidationError:
        # JSON, with fields of other types than the usual ones: what matters is that it is an answer at all.
        value: Any = _any.decode(body)
        whole = isinstance(value, dict) and ("choices" in value or "data" in value)
        name = ""
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return Outcome("malformed", f"status 200 with a body that is not JSON: {error}", 200, body[:2000])
    if not whole:
        return Outcome("malformed", f"status 200 with JSON that is no answer: {_message(body)}", 200, body[:2000])
    if b"\n" in body or b"\r" in body:
        body = msgspec.json.encode(msgspec.json.decode(body))
    return Outcome("ok", "", 200, body, answer.request_id or name, prompt, completion)


def retry_after(value: str, now: float) -> float | None:
    """Seconds that a Retry-After header asks for: a number, or a date. None where it says nothing usable."""
    value = value.strip()
    if not value:
        return None
    try:
        return min(max(0.0, float(value)), 3600.0)
    except ValueError:
        pass
    try:
        return min(max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - now), 3600.0)
    except (TypeError, ValueError, OverflowError):
        return None


def wait(kind: Class, attempt: int) -> float:
    """Seconds before the next try, after ``attempt`` tries of this kind."""
    retry = RETRIES[kind]
    return float(min(retry.longest, retry.base * 2 ** min(attempt - 1, 20)))


def _message(body: bytes) -> str:
    try:
        value: Any = _any.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return body[:300].decode("utf-8", "replace").strip()
    if isinstance(value, dict):
        inner = value.get("error", value)
        if isinstance(inner, dict):
            inner = inner.get("message") or inner.get("detail") or inner
        return str(inner)[:500]
    return str(value)[:500]
