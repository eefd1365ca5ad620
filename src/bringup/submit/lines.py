"""One line of the input to one request; pure.

Accepted shapes, told apart by their keys:

* OpenAI batch: ``{"custom_id": ..., "method": "POST", "url": "/v1/chat/completions", "body": {...}}``
* ``{"messages": [...], ...}``: a chat completion; ``{"prompt": ..., ...}``: a completion; ``{"input": ..., ...}``: embeddings.
  ``custom_id`` or ``id`` names the line, every other key goes into the request
* a JSON string: a prompt

A line without a name is called ``line-N`` by its number, which starts at 1.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"
EMBEDDINGS = "/v1/embeddings"
PATHS = (CHAT, COMPLETIONS, EMBEDDINGS)


class Request(Struct, frozen=True):
    """What is sent for a line. ``body`` is JSON text."""

    seq: int
    custom_id: str
    path: str
    body: bytes


class BadLine(Struct, frozen=True):
    """A line that cannot be sent. ``custom_id`` is '' where none could be read."""

    seq: int
    custom_id: str
    reason: str


class Defaults(Struct, frozen=True):
    """What is filled in where a line leaves it open. ``parameters`` are (name, JSON text)."""

    model: str = ""
    parameters: tuple[tuple[str, bytes], ...] = ()
    prompts: Literal["completions", "chat"] = "completions"
    """What a bare prompt becomes."""


class _Batch(Struct):
    custom_id: str
    url: str
    body: Raw
    method: str = "POST"


class _Peek(Struct):
    """The keys that tell the shapes apart; everything else is skipped without being built."""

    body: Raw | UnsetType = UNSET
    url: Raw | UnsetType = UNSET


class _Body(Struct):
    model: str | UnsetType = UNSET
    stream: bool | UnsetType | None = UNSET


_batch = msgspec.json.Decoder(_Batch)
_peek = msgspec.json.Decoder(_Peek)
_body = msgspec.json.Decoder(_Body)
_object = msgspec.json.Decoder(dict[str, Raw])
_text = msgspec.json.Decoder(str)


def parse_line(seq: int, line: bytes, defaults: Defaults) -> Request | BadLine:
    """The request of line ``seq``, or why there is none."""
    line = line.strip()
    if line.startswith(b'"'):
        try:
            return _prompt(seq, _text.decode(line), defaults)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return BadLine(seq, "", f"is not JSON: {error}")
    try:
        peek = _peek.decode(line)
    except msgspec.ValidationError:
        return BadLine(seq, "", "is neither a JSON object nor a JSON string")
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return BadLine(seq, "", f"is not JSON: {error}")
    try:
        if peek.body is UNSET and peek.url is UNSET:
            return _bare(seq, line, defaults)
        batch = _batch.decode(line)
    except msgspec.ValidationError as error:
        return BadLine(seq, _name(line), str(error))
    if batch.method != "POST":
        return BadLine(seq, batch.custom_id, f"has method {batch.method!r}, only POST can be sent")
    if batch.url not in PATHS:
        return BadLine(seq, batch.custom_id, f"has url {batch.url!r}, known are {', '.join(PATHS)}")
    if not batch.custom_id:
        return BadLine(seq, "", "has an empty custom_id")
    return _request(seq, batch.custom_id, batch.url, bytes(batch.body), defaults)


def _prompt(seq: int, text: str, defaults: Defaults) -> Request | BadLine:
    if defaults.prompts == "chat":
        body = msgspec.json.encode({"messages": [{"role": "user", "content": text}]})
        return _request(seq, f"line-{seq}", CHAT, body, defaults)
    return _request(seq, f"line-{seq}", COMPLETIONS, msgspec.json.encode({"prompt": text}), defaults)


def _bare(seq: int, line: bytes, defaults: Defaults) -> Request | BadLine:
    fields = _object.decode(line)
    name = f"line-{seq}"
    for key in ("custom_id", "id"):
        if key in fields:
            value = msgspec.json.decode(fields.pop(key))
            if not isinstance(value, (str, int)) or isinstance(value, bool) or value == "":
                return BadLine(seq, "", f"has a {key} that is neither text nor a whole number")
            name = str(value)
            break
    kinds = [key for key in ("messages", "prompt", "input") if key in fields]
    if len(kinds) != 1:
        what = "more than one of" if kinds else "none of"
        return BadLine(seq, name, f"has {what} body, messages, prompt, input")
    path = {"messages": CHAT, "prompt": COMPLETIONS, "input": EMBEDDINGS}[kinds[0]]
    if kinds[0] == "prompt" and defaults.prompts == "chat":
        content = fields.pop("prompt")
        fields["messages"] = Raw(b'[{"role":"user","content":%b}]' % bytes(content))
        path = CHAT
    return _request(seq, name, path, msgspec.json.encode(fields), defaults)


def _request(seq: int, name: str, path: str, body: bytes, defaults: Defaults) -> Request | BadLine:
    try:
        seen = _body.decode(body)
    except msgspec.ValidationError as error:
        return BadLine(seq, name, f"has a body that cannot be sent: {error}")
    # An answer is one JSON object here: a stream of events would be read as a broken one.
    if not seen.stream and (seen.model is not UNSET or not defaults.model) and not defaults.parameters:
        return Request(seq, name, path, body)
    fields: dict[str, Any] = {key: Raw(text) for key, text in defaults.parameters}
    fields.update(_object.decode(body))
    if defaults.model and seen.model is UNSET:
        fields["model"] = defaults.model
    if seen.stream:
        fields["stream"] = False
        fields.pop("stream_options", None)
    return Request(seq, name, path, msgspec.json.encode(fields))


def _name(line: bytes) -> str:
    try:
        value = msgspec.json.decode(_object.decode(line)["custom_id"])
    except (msgspec.DecodeError, KeyError):
        return ""
    return value if isinstance(value, str) else ""
