"""The sender at scale: memory, CPU a request, and throughput beside wrk's, against the tests' fast server.

    python benchmarks/bench_batch.py [--requests 1000000] [--concurrency 64] [--folder DIR]

The server runs no model: it is as fast as a server in Python can be, so that what is measured is the sender.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SERVER = Path(__file__).parents[1] / "tests" / "submit" / "fast_server.py"
WRK = """wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.body = '{"model":"fast","messages":[{"role":"user","content":"Say something about request number 500000"}],"max_tokens":16}'
"""


def write_input(path: Path, count: int) -> None:
    """``count`` chat requests in OpenAI batch form."""
    with path.open("w") as target:
        for n in range(count):
            body = {
                "model": "fast",
                "messages": [{"role": "user", "content": f"Say something about request number {n}"}],
                "max_tokens": 16,
            }
            line = {"custom_id": f"request-{n}", "method": "POST", "url": "/v1/chat/completions", "body": body}
            target.write(json.dumps(line) + "\n")


def resident(pid: int) -> int:
    """Resident memory in KiB, 0 for a process that is gone."""
    try:
        found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return 0
    return int(found[1]) if found else 0


def send(given: Path, out: Path, url: str, concurrency: int) -> tuple[float, float, list[int], str]:
    """Seconds, CPU seconds, resident memory once a second in KiB, the summary."""
    command = [sys.executable, "-m", "bringup", "batch", str(given), "-o", str(out), "--endpoint", url]
    began = time.monotonic()
    process = subprocess.Popen([*command, "--concurrency", str(concurrency), "-q"], stdout=subprocess.PIPE, text=True)
    samples: list[int] = []
    while True:
        gone, status, usage = os.wait4(process.pid, os.WNOHANG)
        if gone:
            break
        samples.append(resident(process.pid))
        time.sleep(1)
    assert process.stdout is not None
    if status:
        raise SystemExit(f"the batch ended with {status}")
    return time.monotonic() - began, usage.ru_utime + usage.ru_stime, samples, process.stdout.read()


def main() -> None:
    """Run everything and print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--folder", default=None)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        given, out = folder / "in.jsonl", folder / "out.jsonl"
        write_input(given, options.requests)
        server = subprocess.Popen([sys.executable, str(SERVER)], stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            url = f"http://127.0.0.1:{int(server.stdout.readline())}"
            if shutil.which("wrk"):
                (folder / "post.lua").write_text(WRK)
                wrk = [
                    "wrk",
                    "-t1",
                    f"-c{options.concurrency}",
                    "-d10s",
                    "-s",
                    str(folder / "post.lua"),
                    f"{url}/v1/chat/completions",
                ]
                said = subprocess.run(wrk, capture_output=True, text=True, check=True).stdout
                print(
                    "wrk:",
                    ", ".join(
                        line.strip() for line in said.splitlines() if "Requests/sec" in line or "requests in" in line
                    ),
                )
            seconds, cpu, samples, summary = send(given, out, url, options.concurrency)
        finally:
            server.kill()
        names: set[str] = set()
        with out.open() as lines:
            for line in lines:
                value = json.loads(line)
                content = value["response"]["body"]["choices"][0]["message"]["content"]
                assert content.rsplit(" ", 1)[1] == value["custom_id"].removeprefix("request-"), line
                names.add(value["custom_id"])
        assert len(names) == options.requests
        print(summary)
        print(
            f"{options.requests / seconds:,.0f} requests/s over the whole run, {cpu / options.requests * 1e6:.0f} us of CPU a request"
        )
        tenth = max(1, len(samples) // 10)
        early, late, most = (size / 1024 for size in (samples[tenth], samples[-tenth], max(samples)))
        print(f"resident MiB: after a tenth {early:.0f}, at nine tenths {late:.0f}, most {most:.0f}")
        print(f"journal {Path(f'{out}.journal').stat().st_size / 1e6:.0f} MB, output {out.stat().st_size / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
