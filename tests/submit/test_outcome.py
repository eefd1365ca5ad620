"""What answers mean, and what limits follow from what an engine says of itself."""

import pytest

from bringup.submit.concurrency import Limit, Load, parse_metrics
from bringup.submit.http import Answer, parse_base
from bringup.submit.outcome import of_answer, retry_after, wait


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (200, b'{"id":"x","choices":[],"usage":{"prompt_tokens":3}}', "ok"),
        (200, b'{"id":7,"choices":[{}]}', "ok"),
        (200, b'{"data":[{"embedding":[1]}]}', "ok"),
        (200, b'{"choices":null}', "malformed"),
        (200, b'{"error":{"message":"no"}}', "malformed"),
        (200, b'{"choices":[', "malformed"),
        (200, b"", "malformed"),
        (200, b"[]", "malformed"),
        (400, b"{}", "final"),
        (404, b'{"error":{"message":"no such model"}}', "final"),
        (401, b"", "unauthorized"),
        (302, b"", "unauthorized"),
        (408, b"", "server_error"),
        (429, b"", "rate_limited"),
        (500, b"\xff\xfe", "server_error"),
        (503, b"", "overloaded"),
    ],
)
def test_classes(status: int, body: bytes, kind: str) -> None:
    assert of_answer(Answer(status, body)).kind == kind


@pytest.mark.parametrize(
    "text",
    [
        "This model's maximum context length is 2048 tokens. However, you requested 3000 tokens",
        "The decoder prompt (length 5000) is longer than the maximum model length of 2048",
        "The input (5000 tokens) is longer than the model's context length (2048 tokens).",
        "Requested token count exceeds the model's maximum context length of 2048 tokens.",
    ],
)
def test_a_context_that_is_too_long_is_final_and_named(text: str) -> None:
    outcome = of_answer(Answer(400, b'{"message":"%b"}' % text.encode()))
    assert (outcome.kind, outcome.code) == ("final", "context_length_exceeded")


def test_answers_become_one_line() -> None:
    assert of_answer(Answer(200, b'{\n  "choices": ["a\\nb"]\n}')).body == b'{"choices":["a\\nb"]}'


def test_retry_after() -> None:
    assert retry_after("7", 0) == 7
    assert retry_after("Thu, 01 Jan 1970 00:01:40 GMT", 40) == 60
    assert retry_after("Thu, 01 Jan 1970 00:00:00 GMT", 40) == 0
    assert retry_after("soon", 0) is None
    assert retry_after("-5", 0) == 0
    assert retry_after("nan", 0) == 0
    assert retry_after("1e99", 0) == 3600


def test_waits_grow_and_end() -> None:
    assert [wait("rate_limited", n) for n in (1, 2, 3, 50)] == [0.5, 1.0, 2.0, 60.0]


def test_metrics() -> None:
    vllm = '# HELP x\nvllm:num_requests_running{engine="0",model_name="m"} 3.0\nvllm:num_requests_running{engine="1"} 2.0\n'
    assert parse_metrics(vllm) is None
    assert parse_metrics(vllm + 'vllm:num_requests_waiting{engine="0"} 4.0\n') == Load("vllm", 5, 4)
    assert parse_metrics("sglang:num_running_reqs 8\nsglang:num_queue_reqs 1\n") == Load("sglang", 8, 1)
    assert parse_metrics("\0garbage") is None


def test_the_limit_follows_the_engines_batch() -> None:
    """An engine of 100 slots, driven as the metrics say."""
    limit = Limit()
    seen = []
    for _ in range(40):
        waiting = max(0, limit.value - 100)
        limit.by_load(Load("vllm", limit.value - waiting, waiting), limit.value)
        seen.append(limit.value)
    assert all(100 < value <= 200 for value in seen[10:]), seen


def test_the_limit_without_metrics_stops_where_throughput_stops() -> None:
    limit = Limit()
    seen = []
    for _ in range(60):
        limit.by_rate(float(min(limit.value, 80)), limit.value)
        seen.append(limit.value)
    assert max(seen[20:]) <= 200, seen
    assert min(seen[20:]) >= 60, seen
    limit.back_off()
    assert limit.value < 100


def test_bases() -> None:
    assert parse_base("http://a:8000/v1/").url == "http://a:8000"
    assert parse_base("a:8000").port == 8000
    assert parse_base("https://b/x/v1").prefix == "/x"
    assert parse_base("http://[::1]:9/").host == "::1"
