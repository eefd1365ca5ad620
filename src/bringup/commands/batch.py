"""``bringup batch``: send a file of requests to OpenAI-compatible servers; survives crashes, loses and repeats nothing."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from bringup.errors import UnreadableError, UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    parser.add_argument(
        "input",
        metavar="IN",
        help="JSON lines: OpenAI batch requests, messages, prompts or inputs; .gz, .zst, .parquet, an fsspec URL, or - (stdin)",
    )
    parser.add_argument("-o", "--output", metavar="OUT", help="where the answers go, as OpenAI batch output")
    where = parser.add_argument_group("where to send")
    where.add_argument(
        "--endpoint", action="append", default=[], metavar="URL", help="a server, http://host:port; may be given often"
    )
    where.add_argument(
        "--endpoints-file", metavar="FILE", help="a file with a URL a line, read again whenever it changes"
    )
    where.add_argument("--api-key-env", metavar="NAME", help="the environment variable that holds the key to send")
    where.add_argument(
        "--concurrency", default="auto", metavar="N|auto", help="requests in flight per endpoint (default: %(default)s)"
    )
    where.add_argument(
        "--timeout", type=float, default=600.0, metavar="S", help="seconds for one answer (default: %(default)g)"
    )
    where.add_argument(
        "--give-up", type=float, default=900.0, metavar="S", help="seconds with no endpoint up (default: %(default)g)"
    )
    where.add_argument(
        "--no-steal", action="store_true", help="never give a slow request of the tail to a second endpoint, too"
    )
    where.add_argument(
        "--max-losses",
        type=int,
        default=3,
        metavar="N",
        help="set a request aside after so many lost connections (default: %(default)s)",
    )
    what = parser.add_argument_group("what to send")
    what.add_argument(
        "--model", default="", help="for lines that name none; the one that the server has, where it has one"
    )
    what.add_argument(
        "--param",
        action="append",
        default=[],
        metavar="NAME=JSON",
        help="for lines that do not say otherwise: max_tokens=64",
    )
    what.add_argument("--chat", action="store_true", help="send bare prompts as chat messages")
    what.add_argument(
        "--validate", action="store_true", help="look at every line, report what is wrong, and send nothing"
    )
    how = parser.add_argument_group("output")
    how.add_argument(
        "--order", choices=("input", "completed"), default="input", help="of the answers (default: %(default)s)"
    )
    how.add_argument(
        "--errors", metavar="FILE", help="lines without an answer (default: OUT with .errors before its suffix)"
    )
    how.add_argument("--retry-errors", action="store_true", help="send lines again that an earlier run gave up")
    how.add_argument("--fresh", action="store_true", help="forget what earlier runs did for this output")
    how.add_argument(
        "--drain",
        type=float,
        default=120.0,
        metavar="S",
        help="seconds to wait for answers after SIGTERM (default: %(default)g)",
    )
    how.add_argument(
        "--disk-wait",
        type=float,
        default=60.0,
        metavar="S",
        help="seconds to wait where the disk is full (default: %(default)g)",
    )
    how.add_argument("--html", metavar="FILE", help="write the summary as a page with a plot")
    how.add_argument("--price", metavar="P:C|A/h", help="cost per million prompt and completion tokens, or per hour")
    how.add_argument("--gpus", type=int, default=0, metavar="N", help="how many GPUs serve, for tokens/s per GPU")
    how.add_argument("-q", "--quiet", action="store_true", help="no progress")


def run(arguments: argparse.Namespace) -> int:
    """Send a batch. Returns 0 where every line has its answer, 1 where some have an error; raises where it did not finish."""
    from bringup.submit.lines import Defaults
    from bringup.submit.source import Source

    defaults = Defaults(arguments.model, _parameters(arguments.param), "chat" if arguments.chat else "completions")
    source = Source(arguments.input)
    if arguments.validate:
        return _validate(source, defaults)
    if not arguments.output:
        raise UsageError("batch needs -o OUT, or --validate")
    if not arguments.endpoint and not arguments.endpoints_file:
        raise UsageError("batch needs --endpoint URL or --endpoints-file FILE")
    return _send(arguments, source, defaults)


def _parameters(texts: list[str]) -> tuple[tuple[str, bytes], ...]:
    found = []
    for text in texts:
        name, equals, value = text.partition("=")
        try:
            if not equals or not name:
                raise ValueError
            json.loads(value)
        except ValueError as error:
            raise UsageError(f"--param {text!r} is not NAME=JSON, as in max_tokens=64 or stop='[\"x\"]'") from error
        found.append((name, value.encode()))
    return tuple(found)


def _validate(source: object, defaults: object) -> int:
    from bringup.submit.lines import Defaults
    from bringup.submit.source import Source
    from bringup.submit.validate import validate

    assert isinstance(source, Source)
    assert isinstance(defaults, Defaults)
    found = validate(source, defaults)
    for problem in found.problems:
        print(problem)
    if (more := found.bad + found.duplicates - len(found.problems)) > 0:
        print(f"and {more:,} more")
    paths = ", ".join(f"{n:,} to {path}" for path, n in found.per_path) or "nothing to send"
    print(
        f"{found.lines:,} lines: {paths}; {found.bad:,} bad lines, {found.duplicates:,} repeated custom_ids; {found.body_bytes:,} bytes"
    )
    return 1 if found.bad or found.duplicates else 0


def _concurrency(text: str) -> int:
    if text == "auto":
        return 0
    if not text.isdigit() or not 1 <= int(text) <= 65536:
        raise UsageError(f"--concurrency {text!r} is neither auto nor a number from 1 to 65536")
    return int(text)


def _headers(name: str | None) -> tuple[tuple[str, str], ...]:
    if not name:
        return ()
    key = os.environ.get(name, "")
    if not key or any(c in key for c in "\r\n"):
        raise UsageError(f"--api-key-env: the variable {name} is empty, unset, or holds a line break")
    return (("Authorization", f"Bearer {key}"),)


def _send(arguments: argparse.Namespace, source: object, defaults: object) -> int:
    import asyncio
    import hashlib

    from bringup.submit.http import parse_base
    from bringup.submit.journal import Journal
    from bringup.submit.lines import Defaults
    from bringup.submit.output import finish, paths, reopen, settle, write_errors
    from bringup.submit.progress import Progress
    from bringup.submit.run import NotFinishedError, Run, Settings
    from bringup.submit.source import Source
    from bringup.submit.summary import parse_price, read_summary, summary_lines
    from bringup.submit.writer import Writer

    assert isinstance(source, Source)
    assert isinstance(defaults, Defaults)
    settings = Settings(
        endpoints=tuple(parse_base(url).url for url in arguments.endpoint),
        endpoints_file=arguments.endpoints_file or "",
        concurrency=_concurrency(arguments.concurrency),
        timeout=arguments.timeout,
        give_up=arguments.give_up,
        drain=arguments.drain,
        disk_wait=arguments.disk_wait,
        max_losses=max(1, arguments.max_losses),
        steal=not arguments.no_steal,
        headers=_headers(arguments.api_key_env),
    )
    price = parse_price(arguments.price) if arguments.price else None
    files = paths(Path(arguments.output), Path(arguments.errors) if arguments.errors else None)
    if source.name != "-" and "://" not in source.name and not Path(source.name).is_file():
        raise UnreadableError(source.name, "is not a file that can be read")
    if not files.journal.exists() and files.out.exists() and not arguments.fresh:
        raise UsageError(
            f"{files.out}: exists and has no journal beside it; use --fresh to overwrite it, or another name"
        )
    if arguments.fresh:
        _forget(files)
    asked = hashlib.blake2b(
        repr((defaults.model, defaults.parameters, defaults.prompts)).encode(), digest_size=8
    ).hexdigest()
    journal = Journal(files.journal, (("order", arguments.order), ("options --model --param --chat", asked)))
    finished = settle(journal, files)
    if arguments.retry_errors and journal.number("SELECT count(*) FROM errors"):
        if finished:
            reopen(journal, files)
            finished = False
        journal.begin()
        journal.forget_errors()
        journal.commit()
    writer = Writer(journal, files.out if finished else files.partial, source.name)
    job = Run(settings, source, writer, defaults, Progress(arguments.quiet))
    unfinished: NotFinishedError | None = None
    try:
        if finished:
            _check_input(source, journal)
        else:
            asyncio.run(job.go())
            finish(journal, files)
    except NotFinishedError as error:
        unfinished = error
    except OSError as error:
        unfinished = NotFinishedError(
            f"{files.out}: {error.strerror or error}; every answer is in {files.partial.name}, run the same command"
        )
    finally:
        try:
            errors = write_errors(journal, files)
        except OSError as error:
            errors = journal.number("SELECT count(*) FROM errors")
            print(f"bringup: {files.errors}: {error.strerror or error}", file=sys.stderr)
    summary = read_summary(journal, tuple(journal.meta("endpoints").split()), price, arguments.gpus)
    writer.close()
    print("\n".join(summary_lines(summary)))
    if errors:
        print(f"errors in  {files.errors}")
    if arguments.html:
        from bringup.submit.summary_html import render_summary

        Path(arguments.html).write_text(render_summary(files.out.name, summary), encoding="utf-8")
    if unfinished is not None:
        raise unfinished
    return 1 if errors else 0


def _check_input(source: object, journal: object) -> None:
    """A finished output: say so where the input is not the one that it answers."""
    from bringup.submit.journal import InputChangedError, Journal
    from bringup.submit.source import Source

    assert isinstance(source, Source)
    assert isinstance(journal, Journal)
    read = 0
    for block in source.blocks():
        read += 1
        if not journal.known_block(block.index, block.first, len(block.lines), block.digest, source.name):
            raise InputChangedError(
                f"{source.name}: has more lines than when this output was finished; use another output or --fresh"
            )
    if read != journal.number("SELECT count(*) FROM blocks"):
        raise InputChangedError(
            f"{source.name}: has fewer lines than when this output was finished; use another output or --fresh"
        )


def _forget(files: object) -> None:
    from bringup.submit.journal import Journal
    from bringup.submit.output import Paths

    assert isinstance(files, Paths)
    if files.journal.exists():
        Journal(files.journal).close()  # raises where another process is at work
    for path in files.all():
        path.unlink(missing_ok=True)
