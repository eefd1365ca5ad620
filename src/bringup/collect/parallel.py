"""Read many files on all cores: forked workers that send msgpack back.

A process pool's own machinery (queues, pickling, a manager thread) costs more than reading a stack's headers does, so
this forks one child a further core. Each takes the next piece of work from one pipe, and so does the caller once it has time:
which process reads which file depends on the moment, the results and their order do not.
"""

from __future__ import annotations

import contextlib
import gc
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

import msgspec

from bringup.errors import BringupError

Item = TypeVar("Item")
Result = TypeVar("Result")

_WORTH_A_FORK = 24
_TOKEN = 4
_MOST_PIECES = 1000  # of four bytes: a pipe holds at least a page of 4096


def usable_cores() -> int:
    """Cores that this process may run on."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def may_fork() -> bool:
    """Whether a child can be started: never beside other threads, whose locks it would inherit locked."""
    return threading.active_count() == 1 and hasattr(os, "fork")


@contextlib.contextmanager
def collector_paused() -> Iterator[None]:
    """Without Python's search for cycles, which would go through all facts again and again and find none."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class Beside(Generic[Result]):
    """One function's result, worked out beside the caller on another core. ``function`` may raise; ``result`` then does.

    ``result_type`` decodes the answer. Where there is one core, or where no child may be started, it is worked out when asked for.
    """

    def __init__(self, function: Callable[[], Result], result_type: type[Result]) -> None:
        self._function, self._type = function, result_type
        self._child = _Child(function) if usable_cores() > 1 and may_fork() else None
        self._result: list[Result] = []

    def result(self) -> Result:
        """Wait for the result."""
        if not self._result:
            data = self._child.answer() if self._child is not None else None
            # A child that died, or whose function raised, tells nothing: the same call here returns or raises.
            found = self._function() if data is None else msgspec.msgpack.decode(data, type=self._type)
            self._result.append(found)
        return self._result[0]

    def abandon(self) -> None:
        """Nobody will ask: let the child go."""
        if self._child is not None and not self._result:
            self._child.answer()


class OnCores(Generic[Item, Result]):
    """Items that other processes have started to work on; see `begin_on_cores`."""

    def __init__(
        self,
        function: Callable[[Item], Result],
        items: Sequence[Item],
        pieces: list[list[int]],
        workers: int,
        result_type: type[Result],
    ) -> None:
        self._function, self._items, self._pieces, self._type = function, items, pieces, result_type
        self._reader, writer = os.pipe()
        # All at once: no more than the least that a pipe holds, so that this never waits.
        os.write(writer, b"".join(number.to_bytes(_TOKEN, "little") for number in range(len(pieces))))
        os.close(writer)
        self._children = [_Child(self._take) for _ in range(workers)]

    def _take(self) -> list[tuple[int, Result]]:
        """Work on piece after piece until none is left: positions with their results."""
        found: list[tuple[int, Result]] = []
        while token := os.read(self._reader, _TOKEN):
            piece = self._pieces[int.from_bytes(token, "little")]
            found += [(position, self._function(self._items[position])) for position in piece]
        return found

    def results(self) -> list[Result]:
        """Work along, wait for the others, and return the results in the items' order."""
        found = dict(self._take())
        os.close(self._reader)
        for child in self._children:
            data = child.answer()
            if data is not None:
                found.update(msgspec.msgpack.decode(data, type=list[tuple[int, self._type]]))  # type: ignore[name-defined]
        # A worker that died (memory, a signal) leaves what it took to us: slower, never incomplete.
        return [
            found[position] if position in found else self._function(item) for position, item in enumerate(self._items)
        ]


def begin_on_cores(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    weigh: Callable[[Item], float],
    result_type: type[Result],
    *,
    worth: int = _WORTH_A_FORK,
) -> OnCores[Item, Result]:
    """Start what `map_on_cores` does, and return at once: the caller has something else to do first."""
    # The heaviest first: what is taken last then ends at about the same time everywhere.
    order = sorted(range(len(items)), key=lambda position: -weigh(items[position]))
    count = min(len(order), _MOST_PIECES)
    pieces = [order[start::count] for start in range(count)]
    workers = min(usable_cores(), count) - 1 if len(items) >= worth and may_fork() else 0
    return OnCores(function, items, pieces, workers, result_type)


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
    return begin_on_cores(function, items, weigh, result_type, worth=worth).results()


class _Child:
    """A forked process that works one function out and sends the msgpack of its result."""

    def __init__(self, function: Callable[[], object]) -> None:
        reader, writer = os.pipe()
        self._pid = os.fork()
        if self._pid:
            os.close(writer)
            self._reader = reader
            return
        # The child: no clean-up handlers, no flushing of the parent's buffers, whatever happens.
        code = 1
        try:
            os.close(reader)
            data = msgspec.msgpack.encode(function())
            with os.fdopen(writer, "wb") as pipe:
                pipe.write(data)
            code = 0
        except (BringupError, OSError, MemoryError):
            code = 1
        finally:
            os._exit(code)

    def answer(self) -> bytes | None:
        """Wait for what the process sent; None where it ended otherwise than well."""
        with os.fdopen(self._reader, "rb") as pipe:
            data = pipe.read()
        _, status = os.waitpid(self._pid, 0)
        return None if status else data
