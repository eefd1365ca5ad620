"""Read many files on all cores: forked workers that send msgpack back.

A process pool's own machinery (queues, pickling, a manager thread) costs more than reading a stack's headers does, so
this forks one child a further core, gives each a share of about equal weight, and works on the first share itself.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

from bringup.errors import BringupError

Item = TypeVar("Item")
Result = TypeVar("Result")

_WORTH_A_FORK = 24


def usable_cores() -> int:
    """Cores that this process may run on."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def map_on_cores(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    weigh: Callable[[Item], float],
    result_type: type[Result],
    *,
    worth: int = _WORTH_A_FORK,
) -> list[Result]:
    """``[function(item) for item in items]``, in order. ``function`` must not raise; ``result_type`` decodes results.

    Serial where there is one core, fewer than ``worth`` items, or other threads (a fork would copy their locks).
    """
    shares = _shares(items, weigh, usable_cores())
    if len(shares) < 2 or len(items) < worth or threading.active_count() > 1 or not hasattr(os, "fork"):
        return [function(item) for item in items]
    children = [_start(function, [items[position] for position in share]) for share in shares[1:]]
    results: dict[int, Result] = {position: function(items[position]) for position in shares[0]}
    for share, (pid, reader) in zip(shares[1:], children, strict=True):
        with os.fdopen(reader, "rb") as pipe:
            data = pipe.read()
        _, status = os.waitpid(pid, 0)
        if status:
            # A worker that died (memory, a signal) leaves its share to us: slower, never incomplete.
            results.update({position: function(items[position]) for position in share})
            continue
        decoded = msgspec.msgpack.decode(data, type=list[result_type])  # type: ignore[valid-type]
        results.update(zip(share, decoded, strict=True))
    return [results[position] for position in range(len(items))]


def _shares(items: Sequence[Item], weigh: Callable[[Item], float], cores: int) -> list[list[int]]:
    order = sorted(range(len(items)), key=lambda position: -weigh(items[position]))
    shares: list[list[int]] = [[] for _ in range(min(cores, max(1, len(items))))]
    loads = [0.0] * len(shares)
    for position in order:
        least = loads.index(min(loads))
        shares[least].append(position)
        loads[least] += weigh(items[position])
    return shares


def _start(function: Callable[[Item], Result], share: list[Item]) -> tuple[int, int]:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writer)
        return pid, reader
    # The child: no clean-up handlers, no flushing of the parent's buffers, whatever happens.
    code = 1
    try:
        os.close(reader)
        data = msgspec.msgpack.encode([function(item) for item in share])
        with os.fdopen(writer, "wb") as pipe:
            pipe.write(data)
        code = 0
    except (BringupError, OSError, MemoryError):
        code = 1
    finally:
        os._exit(code)
    raise AssertionError("unreachable")
