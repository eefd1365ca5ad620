"""Lines of an input to requests."""

import json

import pytest

from bringup.submit.lines import BadLine, Defaults, Request, parse_line

NONE = Defaults()


def parsed(value: object, defaults: Defaults = NONE) -> Request:
    result = parse_line(1, json.dumps(value).encode() + b"\n", defaults)
    assert isinstance(result, Request), result
    return result


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"custom_id": "a", "method": "POST", "url": "/v1/embeddings", "body": {"input": "x"}}, "/v1/embeddings"),
        ({"messages": [{"role": "user", "content": "x"}]}, "/v1/chat/completions"),
        ({"prompt": "x"}, "/v1/completions"),
        ({"input": ["x", "y"]}, "/v1/embeddings"),
        ("only text", "/v1/completions"),
    ],
)
def test_shapes(value: object, path: str) -> None:
    assert parsed(value).path == path


def test_a_batch_body_is_sent_byte_for_byte() -> None:
    line = b'{"custom_id":"\xc3\xa9","url":"/v1/completions","body":{ "model":"m",  "prompt":"x", "seed":12345678901234567890 }}'
    assert parse_line(7, line, Defaults("other")) == Request(
        7, "é", "/v1/completions", b'{ "model":"m",  "prompt":"x", "seed":12345678901234567890 }'
    )


def test_defaults_fill_only_what_is_open() -> None:
    defaults = Defaults("m", (("max_tokens", b"8"), ("temperature", b"0")))
    assert json.loads(parsed({"prompt": "x", "temperature": 1}, defaults).body) == {
        "model": "m",
        "max_tokens": 8,
        "temperature": 1,
        "prompt": "x",
    }
    assert json.loads(parsed({"prompt": "x", "model": "own"}, Defaults("m")).body)["model"] == "own"


def test_streams_are_asked_whole() -> None:
    body = {"model": "m", "prompt": "x", "stream": True, "stream_options": {"include_usage": True}}
    sent = json.loads(parsed({"custom_id": "a", "url": "/v1/completions", "body": body}).body)
    assert sent == {"model": "m", "prompt": "x", "stream": False}


def test_prompts_as_chat() -> None:
    defaults = Defaults(prompts="chat")
    assert json.loads(parsed("hi", defaults).body) == {"messages": [{"role": "user", "content": "hi"}]}
    assert json.loads(parsed({"prompt": "hi", "n": 2}, defaults).body) == {
        "n": 2,
        "messages": [{"role": "user", "content": "hi"}],
    }


def test_names() -> None:
    assert parsed({"prompt": "x", "id": 5}).custom_id == "5"
    assert parsed({"prompt": "x"}).custom_id == "line-1"
    assert "id" not in json.loads(parsed({"prompt": "x", "id": 5}).body)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{", "is not JSON"),
        (b"\xff\xfe", "is not JSON"),
        (b'"\xff"', "is not JSON"),
        (b"[1]", "neither a JSON object nor"),
        (b"12", "neither a JSON object nor"),
        (b"{}", "none of body, messages, prompt, input"),
        (b'{"prompt":"x","input":"y"}', "more than one of"),
        (b'{"custom_id":"a","url":"/v1/completions"}', "body"),
        (b'{"custom_id":"a","body":{}}', "url"),
        (b'{"custom_id":3,"url":"/v1/completions","body":{}}', "custom_id"),
        (b'{"custom_id":"","url":"/v1/completions","body":{}}', "empty custom_id"),
        (b'{"custom_id":"a","method":"GET","url":"/v1/completions","body":{}}', "only POST"),
        (b'{"custom_id":"a","url":"/v1/files","body":{}}', "known are"),
        (b'{"custom_id":"a","url":"/v1/completions","body":[]}', "body that cannot be sent"),
        (b'{"custom_id":"a","url":"/v1/completions","body":{"model":7}}', "body that cannot be sent"),
        (b'{"prompt":"x","id":true}', "neither text nor"),
    ],
)
def test_bad_lines_say_why(line: bytes, reason: str) -> None:
    result = parse_line(3, line, Defaults())
    assert isinstance(result, BadLine)
    assert result.seq == 3
    assert reason in result.reason
