"""The server's side of its helper processes: one question at a time to each, and a new process where one is stuck."""

from __future__ import annotations

import asyncio
import json
import os
import struct
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from contextlib import suppress
from typing import Any, Literal

from veilkit.errors import DataError, WorkerError

_WAITING = 64  # questions that may wait for one process


class Helpers:
    """Several processes of one kind; a question goes to the one with the fewest waiting."""

    def __init__(self, kind: Literal["look", "work"], seconds: float, count: int) -> None:
        self._each = [Helper(kind, seconds) for _ in range(count)]

    async def ask(self, do: str, **request: Any) -> tuple[dict[str, Any], bytes]:
        """The answer to one question."""
        return await min(self._each, key=lambda each: each.waiting).ask(do, **request)

    async def warm(self) -> None:
        """Let all import what they need while nobody waits."""
        await asyncio.gather(*(each.ask("warm") for each in self._each))

    async def close(self) -> None:
        """End the processes."""
        for each in self._each:
            await each.close()


class Helper:
    """One process that is started when it is first asked. kind: what it may do, see `helper`."""

    def __init__(self, kind: Literal["look", "work"], seconds: float) -> None:
        self._kind, self._seconds = kind, seconds
        self._turn = asyncio.Lock()
        self.waiting = 0
        self._process: Process | None = None

    async def ask(self, do: str, **request: Any) -> tuple[dict[str, Any], bytes]:
        """The answer to one question; what it refuses is raised as DataError."""
        if self.waiting >= _WAITING:
            raise WorkerError("too much is asked at once: try again in a moment")
        self.waiting += 1
        try:
            async with self._turn:
                facts, data = await self._answer({"do": do, **request})
        finally:
            self.waiting -= 1
        if "error" in facts:
            raise DataError(facts["error"])
        return facts, data

    async def close(self) -> None:
        """End the process."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
            self._process = None

    async def _answer(self, request: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        try:
            async with asyncio.timeout(self._seconds):
                return await self._exchange(request)
        except (TimeoutError, asyncio.IncompleteReadError, ConnectionError):
            await self.close()
            raise DataError("this picture could not be read within the limits of time and memory") from None
        except asyncio.CancelledError:
            await self.close()  # its answer would be taken for that to the next question
            raise

    async def _exchange(self, request: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        if self._process is None or self._process.returncode is not None:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "veilkit.web.helper", self._kind, stdin=PIPE, stdout=PIPE, stderr=DEVNULL,
                env={**os.environ, "OMP_NUM_THREADS": "1"}, limit=2**26,
            )  # fmt: skip
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        asked = json.dumps(request).encode()
        process.stdin.write(struct.pack("<I", len(asked)) + asked)
        await process.stdin.drain()
        parts = []
        for _ in range(2):
            (length,) = struct.unpack("<I", await process.stdout.readexactly(4))
            parts.append(await process.stdout.readexactly(length))
        facts: dict[str, Any] = json.loads(parts[0])
        return facts, parts[1]
