"""What several verbs share: options that name the stack and the machine, and where the result goes."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from msgspec.structs import replace

from bringup.collect.recorded import read_facts, write_atomically
from bringup.collect.targets import ReadOptions, Target, parse_targets
from bringup.errors import UnreadableError, UsageError
from bringup.explain.redact import Private, redact, with_places
from bringup.facts import Driver, Facts, Interpreter, Known


def add_target_arguments(parser: argparse.ArgumentParser) -> None:
    """TARGET and everything that says how to read it."""
    parser.add_argument(
        "target",
        nargs="*",
        metavar="TARGET",
        help="nothing for the active environment; an environment, a site-packages folder, wheels, a folder of wheels, a "
        "requirements, pylock, uv.lock or Docker file, a facts file (.json), or requirements such as torch==2.11.0",
    )
    parser.add_argument("--gpu", metavar="NAME", help="the GPU to judge for: rtx-pro-6000, H200x8, sm_120")
    parser.add_argument("--driver", metavar="VERSION", help="the NVIDIA driver to judge for: 580.95.05")
    parser.add_argument("--python", metavar="X.Y", help="the Python to judge for, where the target names none")
    parser.add_argument("--engine", choices=("sglang", "vllm", "torch"), help="what shall be started")
    parser.add_argument("--model", metavar="DIR", help="the folder of the model that shall be served")
    parser.add_argument(
        "--find-links", metavar="DIR", action="append", default=[], help="also take wheels from here; may be repeated"
    )
    parser.add_argument("--offline", action="store_true", help="use no network")
    parser.add_argument(
        "--index-url", metavar="URL", default="", help="the package index to use instead of the default"
    )
    parser.add_argument(
        "--redact", action="store_true", help="leave out users, hosts, home folders, addresses and tokens"
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="show all evidence with its sources")


def read_stack(arguments: argparse.Namespace) -> Facts:
    """The facts of the target, with what the options override. Raises BringupError where it cannot be read."""
    target = parse_targets(arguments.target)
    if arguments.python:
        _check_python(arguments.python)
    facts = _read(target, arguments)
    return with_options(facts, arguments)


def _read(target: Target, arguments: argparse.Namespace) -> Facts:
    if target.kind == "facts":
        return read_facts(Path(target.path))
    from bringup.pipeline import read_target

    options = ReadOptions(
        python=arguments.python or "",
        find_links=tuple(arguments.find_links),
        offline=arguments.offline,
        index_url=arguments.index_url,
    )
    own = private(*arguments.target) if arguments.redact else None
    return read_target(target, options, lambda text: note(text if own is None else redact(text, own)))


def with_options(facts: Facts, arguments: argparse.Namespace) -> Facts:
    """Facts where --gpu, --driver, --python, --engine and --model take the place of what was found."""
    if arguments.gpu:
        from bringup.gpus import parse_gpu

        gpus = tuple(parse_gpu(text) for text in arguments.gpu.split(","))
        facts = replace(facts, gpus=Known(gpus, "--gpu"))
    if arguments.driver:
        facts = replace(facts, driver=Known(_driver(arguments.driver), "--driver"))
    if arguments.python and not isinstance(facts.python, Known):
        facts = replace(facts, python=Known(Interpreter(version=arguments.python), "--python"))
    if arguments.engine:
        facts = replace(facts, goal=replace(facts.goal, engine=arguments.engine))
    if arguments.model:
        from bringup.collect.model import read_model

        model = read_model(Path(arguments.model))
        facts = replace(facts, model=Known(model, "--model"), goal=replace(facts.goal, model=arguments.model))
    return facts


def _driver(version: str) -> Driver:
    import re

    from bringup.evaluate.drivers import driver_from

    if not re.fullmatch(r"\d{3}(\.\d+){0,3}", version):
        raise UsageError(f"--driver {version}: expected a driver release such as 580.95.05")
    return driver_from(version)


def _check_python(version: str) -> None:
    import re

    if not re.fullmatch(r"3\.\d+(\.\d+)?t?", version):
        raise UsageError(f"--python {version}: expected a version such as 3.12")


def write_result(text: str, output: str | None) -> None:
    """The result to standard output, or to a file that is either whole or untouched."""
    if output and output != "-":
        write_atomically(Path(output), text.encode())
        return
    if sys.stdout is None:
        raise UnreadableError("standard output", "is closed")
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UnreadableError("standard output", f"cannot be written: {error.strerror or error}") from None


def note(text: str) -> None:
    """A line for a person, beside the result."""
    sys.stderr.write(f"{text}\n")  # one write, so that notes of several threads do not mix


def private(*targets: str) -> Private:
    """What --redact takes out: what this machine knows of itself, and the hosts and users that targets name."""
    import getpass
    import socket

    host = socket.gethostname()
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = ""
    home = os.path.expanduser("~")  # noqa: PTH111 - "~" itself where there is none
    return with_places(
        Private(
            hosts=tuple(dict.fromkeys((host, host.partition(".")[0]))),
            users=(user,) if user else (),
            homes=(home,) if home not in ("~", "/", "/root") else (),
        ),
        targets,
    )
