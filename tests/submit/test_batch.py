"""Batches against a fast server of the tests' own: kills, faults, full disks."""

from __future__ import annotations

import gzip
import json
import random
import resource
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import Servers, answers, batch_command, end, errors, write_input

Batch = Callable[..., subprocess.CompletedProcess[str]]


def everything(count: int) -> set[str]:
    return {f"r{n}" for n in range(count)}


def test_answers_come_in_the_order_of_the_input(servers: Servers, batch: Batch, tmp_path: Path) -> None:
    url, _ = servers.start("--delay", "0.01")
    done = batch(
        write_input(tmp_path / "in.jsonl", 700),
        "-o",
        tmp_path / "out.jsonl",
        "--endpoint",
        url,
        "--html",
        tmp_path / "s.html",
    )
    assert done.returncode == 0, done.stderr
    assert list(answers(tmp_path / "out.jsonl")) == [f"r{n}" for n in range(700)]
    assert "700 answers, 0 lines without one" in done.stdout
    assert "4,900 prompt, 3,500 completion" in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl", "out.jsonl", "out.jsonl.journal", "s.html"]
    assert "<svg" in (tmp_path / "s.html").read_text() or "700 answers" in (tmp_path / "s.html").read_text()
    before = (tmp_path / "out.jsonl").read_bytes()
    servers.stop()
    again = batch(tmp_path / "in.jsonl", "-o", tmp_path / "out.jsonl", "--endpoint", url)
    assert again.returncode == 0, again.stderr  # nothing to do, nobody to ask
    assert (tmp_path / "out.jsonl").read_bytes() == before


def kill_until_done(command: list[str], out: Path, kills: int, longest: float, seed: int = 0) -> int:
    """Run again and again, killed at random moments, until the output is there. Returns how many kills hit a running batch."""
    chance = random.Random(seed)
    hits = 0
    for _ in range(kills * 5):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if hits < kills:
            try:
                process.wait(chance.uniform(0.15, longest))
            except subprocess.TimeoutExpired:
                end(process)
                hits += 1
                continue
        said = process.communicate(timeout=120)[1]
        assert process.returncode in (0, 1), said
        assert out.exists()
        return hits
    raise AssertionError("never finished")


@pytest.mark.parametrize("order", ["input", "completed"])
def test_killed_at_random_moments(servers: Servers, tmp_path: Path, order: str) -> None:
    one, _ = servers.start("--delay", "0.02", "--slots", "16")
    two, _ = servers.start("--delay", "0.03", "--slots", "16")
    out = tmp_path / "out.jsonl"
    given = write_input(tmp_path / "in.jsonl", 1400)
    command = batch_command(
        str(given), "-o", str(out), "--endpoint", one, "--endpoint", two, "--concurrency", "16", "--order", order, "-q"
    )
    hits = kill_until_done(command, out, 5, 0.7)
    assert hits >= 3
    found = answers(out)
    assert set(found) == everything(1400)
    if order == "input":
        assert list(found) == [f"r{n}" for n in range(1400)]


@pytest.mark.slow
def test_killed_fifty_times_with_replicas_dying(servers: Servers, tmp_path: Path) -> None:
    """Fifty kills of the batch over one run, while one of the servers is killed and started again, too."""
    one, _ = servers.start("--delay", "0.02", "--slots", "16")
    two, process = servers.start("--delay", "0.02", "--slots", "16")
    out = tmp_path / "out.jsonl"
    given = write_input(tmp_path / "in.jsonl", 45000)
    stop = threading.Event()

    def disturb() -> None:
        current = process
        while not stop.wait(3.0):
            end(current)
            _, current = servers.start("--delay", "0.02", "--slots", "16", port=int(two.rpartition(":")[2]))

    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        command = batch_command(
            str(given), "-o", str(out), "--endpoint", one, "--endpoint", two, "--concurrency", "16", "-q"
        )
        assert kill_until_done([*command, "--max-losses", "50"], out, 50, 1.5) == 50
    finally:
        stop.set()
        thread.join()
    assert set(answers(out)) == everything(45000)


def test_faults_lose_nothing(servers: Servers, batch: Batch, tmp_path: Path) -> None:
    """Every kind of fault in every seventh request: all of them are answered in the end."""
    kinds = ("hang", "half", "garbage", "notjson", "empty", "429", "500", "503", "drip", "close", "html")
    url, _ = servers.start("--every", "7", "--delay", "0.005", *[word for kind in kinds for word in ("--fault", kind)])
    done = batch(
        *(write_input(tmp_path / "in.jsonl", 400), "-o", tmp_path / "out.jsonl", "--endpoint", url),
        *("--timeout", "1", "--concurrency", "32", "--max-losses", "9", "-q"),
    )
    found, wrong = answers(tmp_path / "out.jsonl"), errors(tmp_path / "out.errors.jsonl")
    assert set(found) | set(wrong) == everything(400), done.stderr
    assert not set(found) & set(wrong)
    assert len(wrong) <= 8  # three time-outs of one line in a row, by chance
    for word in ("timeout", "lost", "malformed", "rate limited", "server error", "overloaded"):
        assert word in done.stdout, done.stdout


def test_each_fault_that_stays_has_its_code(servers: Servers, batch: Batch, tmp_path: Path) -> None:
    url, _ = servers.start("--faults")
    words = {
        1: "fault-hang",
        2: "fault-half",
        3: "fault-garbage",
        4: "fault-notjson",
        5: "fault-toolong",
        6: "fault-close",
        7: "fault-drip",
    }
    done = batch(
        write_input(tmp_path / "in.jsonl", 60, words),
        "-o",
        tmp_path / "out.jsonl",
        "--endpoint",
        url,
        "--timeout",
        "0.5",
        "-q",
    )
    assert done.returncode == 1, done.stderr
    assert errors(tmp_path / "out.errors.jsonl") == {
        "r1": "timeout",
        "r2": "connection_lost",
        "r3": "malformed_answer",
        "r4": "malformed_answer",
        "r5": "context_length_exceeded",
        "r6": "connection_lost",
        "r7": "timeout",
    }
    assert set(answers(tmp_path / "out.jsonl")) == everything(60) - {f"r{n}" for n in words}
    assert "7 lines without one" in done.stdout
    # The server behaves now: only what failed is sent again, and takes its place among the others.
    servers.stop()
    good, _ = servers.start()
    again = batch(tmp_path / "in.jsonl", "-o", tmp_path / "out.jsonl", "--endpoint", good, "--retry-errors", "-q")
    assert again.returncode == 0, again.stderr
    assert list(answers(tmp_path / "out.jsonl")) == [f"r{n}" for n in range(60)]
    assert not (tmp_path / "out.errors.jsonl").exists()


def test_a_request_that_ends_its_server_is_set_aside(servers: Servers, batch: Batch, tmp_path: Path) -> None:
    """The server dies of one line, and is started again each time; none of the lines beside it is blamed."""
    url, process = servers.start("--delay", "0.02", "--die-on", "poison")
    stop = threading.Event()
    deaths = 0

    def restart() -> None:
        nonlocal process, deaths
        while not stop.wait(0.1):
            if process.poll() is not None:
                deaths += 1
                _, process = servers.start("--delay", "0.02", "--die-on", "poison", port=int(url.rpartition(":")[2]))

    thread = threading.Thread(target=restart)
    thread.start()
    try:
        given = write_input(tmp_path / "in.jsonl", 500, {40: "poison"})
        done = batch(given, "-o", tmp_path / "out.jsonl", "--endpoint", url, "--concurrency", "32", "-q")
    finally:
        stop.set()
        thread.join()
    assert errors(tmp_path / "out.errors.jsonl") == {"r40": "connection_lost"}, done.stderr
    assert set(answers(tmp_path / "out.jsonl")) == everything(500) - {"r40"}
    assert deaths == 3


def test_an_endpoint_that_comes_back_on_another_port(servers: Servers, tmp_path: Path) -> None:
    url, process = servers.start("--delay", "0.02", "--slots", "8")
    listed = tmp_path / "endpoints"
    listed.write_text(f"{url}\n")
    given = write_input(tmp_path / "in.jsonl", 800)
    running = subprocess.Popen(
        batch_command(
            str(given), "-o", str(tmp_path / "out.jsonl"), "--endpoints-file", str(listed), "--concurrency", "8", "-q"
        ),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(1.2)
    end(process)
    other, _ = servers.start("--delay", "0.002")
    listed.write_text(f"{other}\n")
    out, err = running.communicate(timeout=60)
    assert running.returncode == 0, err
    assert set(answers(tmp_path / "out.jsonl")) == everything(800), out


def test_an_endpoint_that_hangs_and_is_no_longer_named(servers: Servers, tmp_path: Path) -> None:
    """What was on its way to a server that hangs is not waited for without end, only because nobody names that server any more."""
    hanging, _ = servers.start("--delay", "1000")
    listed = tmp_path / "endpoints"
    listed.write_text(f"{hanging}\n")
    given = write_input(tmp_path / "in.jsonl", 20)
    options = ("--endpoints-file", str(listed), "--concurrency", "8", "--timeout", "2.5", "-q")
    running = subprocess.Popen(
        batch_command(str(given), "-o", str(tmp_path / "out.jsonl"), *options),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(1.5)
    good, _ = servers.start()
    listed.write_text(f"{good}\n")
    _, err = running.communicate(timeout=30)
    assert running.returncode == 0, err
    assert set(answers(tmp_path / "out.jsonl")) == everything(20)


def test_a_slow_tail_is_given_to_another_endpoint(servers: Servers, batch: Batch, tmp_path: Path) -> None:
    slow, _ = servers.start("--delay", "30")
    fast, _ = servers.start("--delay", "0.01")
    given = write_input(tmp_path / "in.jsonl", 100)
    began = time.monotonic()
    done = batch(
        given, "-o", tmp_path / "out.jsonl", "--endpoint", slow, "--endpoint", fast, "--concurrency", "8", "-q"
    )
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - began < 15
    assert set(answers(tmp_path / "out.jsonl")) == everything(100)
    assert "slow requests were given to a second endpoint" in done.stdout


def test_sigterm_drains_and_the_same_command_goes_on(servers: Servers, batch: Batch, tmp_path: Path) -> None:
    url, _ = servers.start("--delay", "0.1", "--slots", "8")
    given = write_input(tmp_path / "in.jsonl", 200)
    command = batch_command(
        str(given), "-o", str(tmp_path / "out.jsonl"), "--endpoint", url, "--concurrency", "8", "-q"
    )
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(1.2)
    running.send_signal(signal.SIGTERM)
    _, err = running.communicate(timeout=20)
    assert running.returncode == 3
    assert "the same command goes on from here" in err
    kept = answers(tmp_path / "out.jsonl.partial")
    assert 8 <= len(kept) < 200
    assert not (tmp_path / "out.jsonl").exists()
    done = batch(*command[4:])
    assert done.returncode == 0, done.stderr
    assert set(answers(tmp_path / "out.jsonl")) == everything(200)
    assert "in 2 runs" in done.stdout
    assert "200 answers" in done.stdout


def test_answers_are_counted_by_endpoint_over_runs(servers: Servers, batch: Batch, tmp_path: Path) -> None:
    """The second run names the endpoints in another order: they keep their numbers."""
    one, _ = servers.start("--delay", "0.01")
    two, _ = servers.start("--delay", "0.01", "--faults")
    given = write_input(tmp_path / "in.jsonl", 101, {100: "fault-notjson"})
    fixed = (given, "-o", tmp_path / "out.jsonl", "-q", "--concurrency", "4")
    assert batch(*fixed, "--endpoint", two, "--endpoint", one).returncode in (0, 1)
    first = batch(*fixed, "--endpoint", one, "--endpoint", two, "--retry-errors")
    again = batch(*fixed, "--endpoint", one, "--endpoint", two)
    counts = [line for line in first.stdout.splitlines() if line.startswith("endpoint")]
    assert [line.split()[1] for line in counts] == [f"{two}:", f"{one}:"], first.stdout
    assert [line for line in again.stdout.splitlines() if line.startswith("endpoint")] == counts


def test_one_output_one_process(servers: Servers, batch: Batch, tmp_path: Path) -> None:
    url, _ = servers.start("--delay", "0.1", "--slots", "4")
    given = write_input(tmp_path / "in.jsonl", 300)
    command = batch_command(
        str(given), "-o", str(tmp_path / "out.jsonl"), "--endpoint", url, "--concurrency", "4", "-q"
    )
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True)
    time.sleep(1.0)
    second = batch(*command[4:])
    end(running)
    assert second.returncode == 3
    assert "another process is working on this output" in second.stderr


@pytest.mark.parametrize("change", ["first line", "shorter", "order", "options"])
def test_a_changed_input_is_noticed(servers: Servers, batch: Batch, tmp_path: Path, change: str) -> None:
    url, _ = servers.start()
    given = write_input(tmp_path / "in.jsonl", 600)
    assert batch(given, "-o", tmp_path / "out.jsonl", "--endpoint", url, "-q").returncode == 0
    more: tuple[str, ...] = ()
    lines = given.read_text().splitlines(keepends=True)
    if change == "first line":
        given.write_text("".join([lines[0].replace("say", "sing"), *lines[1:]]))
    elif change == "shorter":
        given.write_text("".join(lines[:512]))
    elif change == "order":
        more = ("--order", "completed")
    else:
        more = ("--param", "max_tokens=3")
    done = batch(given, "-o", tmp_path / "out.jsonl", "--endpoint", url, "-q", *more)
    assert done.returncode == 3, done.stdout
    assert "--fresh" in done.stderr
    fresh = batch(given, "-o", tmp_path / "out.jsonl", "--endpoint", url, "-q", "--fresh", *more)
    assert fresh.returncode == 0 or change == "first line", fresh.stderr


def test_bad_lines_and_duplicates(servers: Servers, batch: Batch, tmp_path: Path) -> None:
    url, _ = servers.start()
    given = write_input(tmp_path / "in.jsonl", 300)
    lines = given.read_text().splitlines()
    lines[10] = "{not json"
    lines[20] = lines[5]
    lines[290] = lines[280]
    lines[30] = ""
    given.write_text("\n".join(lines) + "\n")
    looked = batch(given, "--validate")
    assert looked.returncode == 1
    assert "line 11 is not JSON" in looked.stdout
    assert "line 21 has the custom_id of line 6: 'r5'" in looked.stdout
    assert "299 lines: 296 to /v1/chat/completions; 1 bad lines, 2 repeated custom_ids" in looked.stdout
    done = batch(given, "-o", tmp_path / "out.jsonl", "--endpoint", url, "-q")
    assert done.returncode == 1, done.stderr
    assert set(answers(tmp_path / "out.jsonl")) == everything(300) - {"r10", "r20", "r290", "r30"}
    wrong = [json.loads(line) for line in (tmp_path / "out.errors.jsonl").read_text().splitlines()]
    assert [(one["line"], one["error"]["code"]) for one in wrong] == [
        (11, "bad_line"),
        (21, "duplicate_custom_id"),
        (291, "duplicate_custom_id"),
    ]


def test_inputs(servers: Servers, batch: Batch, tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard")
    url, _ = servers.start()
    plain = write_input(tmp_path / "in.jsonl", 300)
    (tmp_path / "in.jsonl.gz").write_bytes(gzip.compress(plain.read_bytes()))
    (tmp_path / "in.jsonl.zst").write_bytes(zstandard.compress(plain.read_bytes()))
    outputs = []
    for name in ("in.jsonl", "in.jsonl.gz", "in.jsonl.zst", "-"):
        out = tmp_path / f"out{len(outputs)}.jsonl"
        with plain.open() as stdin:
            given = name if name == "-" else tmp_path / name
            done = batch(given, "-o", out, "--endpoint", url, "-q", stdin=stdin)
        assert done.returncode == 0, done.stderr
        outputs.append(out.read_bytes())
    assert len(set(outputs)) == 1
    (tmp_path / "cut.gz").write_bytes((tmp_path / "in.jsonl.gz").read_bytes()[:-300])
    cut = batch(tmp_path / "cut.gz", "-o", tmp_path / "cut.jsonl", "--endpoint", url, "-q")
    assert cut.returncode == 3
    assert "cut.gz" in cut.stderr
    (tmp_path / "bad.zst").write_bytes(b"garbage")
    bad = batch(tmp_path / "bad.zst", "--validate")
    assert bad.returncode == 3, bad.stderr


def test_prompts_get_the_servers_model(servers: Servers, batch: Batch, tmp_path: Path) -> None:
    url, _ = servers.start()
    (tmp_path / "in.jsonl").write_text('"one"\n{"prompt": "two", "id": "b"}\n{"input": "three"}\n')
    done = batch(
        tmp_path / "in.jsonl", "-o", tmp_path / "out.jsonl", "--endpoint", url, "-q", "--param", "max_tokens=4"
    )
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [one["custom_id"] for one in found] == ["line-1", "b", "line-3"]
    assert found[0]["response"]["body"]["choices"][0]["text"] == "re: one"
    assert found[0]["response"]["body"]["model"] == "fast"


def test_a_full_disk_ends_cleanly(servers: Servers, batch: Batch, tmp_path: Path) -> None:
    """RLIMIT_FSIZE stands for the full disk: a write beyond it fails as one without room does."""
    url, _ = servers.start("--delay", "0.02", "--slots", "32")
    given = write_input(tmp_path / "in.jsonl", 2200)

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))

    arguments = (
        given,
        "-o",
        tmp_path / "out.jsonl",
        "--endpoint",
        url,
        "-q",
        "--disk-wait",
        "1",
        "--concurrency",
        "32",
    )
    full = batch(*arguments, preexec_fn=limit)
    assert full.returncode == 3, full.stdout
    assert "make room and run the same command" in full.stderr
    assert 0 < len(answers(tmp_path / "out.jsonl.partial")) < 2200
    done = batch(*arguments)
    assert done.returncode == 0, done.stderr
    assert set(answers(tmp_path / "out.jsonl")) == everything(2200)


def test_a_disk_that_gets_room_again(servers: Servers, tmp_path: Path) -> None:
    """A real file system of one megabyte: the batch pauses when it is full, and goes on when something is removed."""
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(small)], capture_output=True, check=False
    ).returncode:
        pytest.skip("mounting a small file system is not allowed here")
    try:
        (small / "ballast").write_bytes(b"x" * 800_000)
        url, _ = servers.start("--delay", "0.02", "--slots", "32")
        given = write_input(tmp_path / "in.jsonl", 1200)
        command = batch_command(
            str(given), "-o", str(small / "out.jsonl"), "--endpoint", url, "--concurrency", "32", "--order", "completed"
        )
        running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(2.5)
        (small / "ballast").unlink()
        _, err = running.communicate(timeout=60)
        assert running.returncode == 0, err
        assert "waiting for space" in err
        assert set(answers(small / "out.jsonl")) == everything(1200)
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_nobody_answers(batch: Batch, tmp_path: Path) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{held.getsockname()[1]}"
        given = write_input(tmp_path / "in.jsonl", 10)
        done = batch(given, "-o", tmp_path / "out.jsonl", "--endpoint", url, "-q", "--give-up", "1")
    assert done.returncode == 3
    assert "no endpoint was up for 1 s" in done.stderr
    assert url in done.stderr


def test_a_batch_that_does_not_fit_is_stopped_early(servers: Servers, batch: Batch, tmp_path: Path) -> None:
    url, _ = servers.start("--faults")
    given = write_input(tmp_path / "in.jsonl", 5000, dict.fromkeys(range(5000), "fault-toolong"))
    done = batch(given, "-o", tmp_path / "out.jsonl", "--endpoint", url, "-q", "--concurrency", "16")
    assert done.returncode == 3
    assert "the first 50 requests were all refused" in done.stderr
    assert len(errors(tmp_path / "out.errors.jsonl")) < 200
