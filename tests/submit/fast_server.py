"""A server of the tests' own: answers like an OpenAI-compatible one and runs no model.

It exists for scale and for faults that a real engine cannot be made to show at will. What it answers holds the prompt that it was
asked, so that a test can tell whether an answer belongs to its line. Faults are chosen by words in the prompt, or by options.

    python fast_server.py --port 8000 [--delay S] [--die-on WORD] [--metrics vllm|none] [--every N FAULT] ...

Faults: hang, half, garbage, notjson, empty, 429, 500, 503, drip, close, toolong, html.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random

import httptools

MODEL = "fast"


class Server:
    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.running = 0
        self.requests = 0
        self.random = random.Random(options.seed)


class Protocol(asyncio.Protocol):
    def __init__(self, server: Server) -> None:
        self.server = server
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]
        self.parser = httptools.HttpRequestParser(self)
        self.body = b""
        self.url = b""

    def data_received(self, data: bytes) -> None:
        self.parser.feed_data(data)

    def on_url(self, url: bytes) -> None:
        self.url += url

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        url, body = self.url, self.body
        self.url = self.body = b""
        options = self.server.options
        if url == b"/health":
            return self.answer(200, b"{}")
        if url == b"/v1/models":
            return self.answer(200, json.dumps({"data": [{"id": MODEL}]}).encode())
        if url == b"/metrics":
            if options.metrics == "none":
                return self.answer(404, b"{}")
            waiting = max(0, self.server.running - options.slots)
            text = (
                f'vllm:num_requests_running{{engine="0"}} {float(self.server.running - waiting)}\n'
                f'vllm:num_requests_waiting{{engine="0"}} {float(waiting)}\n'
            )
            return self.answer(200, text.encode())
        self.server.requests += 1
        if not options.delay and not options.every and not options.die_on and not options.faults:
            return self.answer(200, self.reply(url, body))
        self.task = asyncio.ensure_future(self.slow(url, body))
        return None

    def reply(self, url: bytes, body: bytes) -> bytes:
        asked = json.loads(body)
        if url.endswith(b"embeddings"):
            return json.dumps(
                {
                    "data": [{"index": 0, "embedding": [0.5], "text": asked["input"]}],
                    "usage": {"prompt_tokens": 3, "total_tokens": 3},
                }
            ).encode()
        text = asked["messages"][-1]["content"] if "messages" in asked else asked["prompt"]
        choice = {"index": 0, "finish_reason": "stop"}
        choice |= (
            {"message": {"role": "assistant", "content": f"re: {text}"}}
            if "messages" in asked
            else {"text": f"re: {text}"}
        )
        usage = {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}
        return json.dumps({"id": "r", "model": asked["model"], "choices": [choice], "usage": usage}).encode()

    async def slow(self, url: bytes, body: bytes) -> None:
        options = self.server.options
        if options.die_on and options.die_on.encode() in body:
            os._exit(139)
        self.server.running += 1
        try:
            # Slots as an engine has them: what does not fit waits.
            if options.delay:
                await asyncio.sleep(options.delay * (1 + max(0, self.server.running - options.slots) / options.slots))
        finally:
            self.server.running -= 1
        fault = next((word for word in FAULTS if b"fault-%b" % word.encode() in body), "") if options.faults else ""
        if not fault and options.every and self.server.requests % options.every == 0:
            fault = self.server.random.choice(options.fault or list(FAULTS))
        if not fault:
            return self.answer(200, self.reply(url, body))
        await self.fail(fault, self.reply(url, body))
        return None

    async def fail(self, fault: str, body: bytes) -> None:
        if fault == "hang":
            return
        if fault == "half":
            self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body[: len(body) // 2])
            self.transport.close()
        elif fault == "garbage":
            self.transport.write(b"\x00\x01\x02 this is not HTTP\r\n\r\n")
            self.transport.close()
        elif fault == "drip":
            self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body))
            for place in range(len(body)):
                await asyncio.sleep(0.5)
                self.transport.write(body[place : place + 1])
        elif fault == "close":
            self.transport.close()
        elif fault == "notjson":
            self.answer(200, body[:-5])
        elif fault == "empty":
            self.answer(200, b"")
        elif fault == "html":
            self.answer(200, b"<html>proxy</html>")
        elif fault == "429":
            self.answer(429, b'{"error":{"message":"slow down"}}', b"Retry-After: 1\r\n")
        elif fault == "toolong":
            self.answer(400, b'{"error":{"message":"This model\'s maximum context length is 8 tokens"}}')
        else:
            self.answer(int(fault), b'{"error":{"message":"injected"}}')

    def answer(self, status: int, body: bytes, headers: bytes = b"") -> None:
        if not self.transport.is_closing():
            self.transport.write(
                b"HTTP/1.1 %d X\r\nContent-Type: application/json\r\n%bContent-Length: %d\r\n\r\n%b"
                % (status, headers, len(body), body)
            )


FAULTS = ("hang", "half", "garbage", "notjson", "empty", "429", "500", "503", "drip", "close", "html", "toolong")


async def serve(options: argparse.Namespace) -> None:
    state = Server(options)
    server = await asyncio.get_running_loop().create_server(
        lambda: Protocol(state), "127.0.0.1", options.port, reuse_address=True, backlog=4096
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--delay", type=float, default=0.0)
    parser.add_argument("--slots", type=int, default=64)
    parser.add_argument("--metrics", default="vllm")
    parser.add_argument("--die-on", default="")
    parser.add_argument("--every", type=int, default=0, help="a fault in every Nth request")
    parser.add_argument("--fault", action="append", choices=FAULTS, help="with --every: one of these")
    parser.add_argument("--faults", action="store_true", help="show the fault that the prompt names: fault-NAME")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--uvloop", action="store_true")
    options = parser.parse_args()
    if options.uvloop:
        import uvloop

        uvloop.run(serve(options))
    else:
        asyncio.run(serve(options))


if __name__ == "__main__":
    main()
