"""`foh-pg watch` as a process, the way a supervisor runs it."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from http.client import HTTPConnection

from tests.support.waiting import PATIENCE, until


class Watch:
    """A watcher under way; its standard error is gathered line by line."""

    def __init__(self, dsn: str, *arguments: str) -> None:
        command = [sys.executable, "-c", "from foh_pg.cli import app; app()", "watch", *arguments]
        options = ["--interval=0.2", "--metrics-port=0", "--longest-wait=1"]
        self.process = subprocess.Popen(
            [*command, *options, f"--dsn={dsn}"], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line.rstrip())

    @property
    def said(self) -> str:
        return "\n".join(self.lines)

    def wait(self, what: Callable[[], bool]) -> None:
        """Wait until something is so, or the watcher has ended."""

        def is_so() -> bool:
            assert self.process.poll() is None, f"the watcher ended: {self.said}"
            return what()

        until(is_so, lambda: self.said, pause=0.05)

    def wait_for_line(self, pattern: str) -> None:
        self.wait(lambda: re.search(pattern, self.said) is not None)

    @property
    def port(self) -> int:
        self.wait_for_line(r"serving .* on 127")
        found = re.search(r"127\.0\.0\.1:(\d+)", self.said)
        assert found is not None
        return int(found[1])

    def ask(self, path: str, **headers: str) -> tuple[int, dict[str, str], str]:
        """Status, headers and body of an answer."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, dict(answer.headers), answer.read().decode()

    def get(self, path: str) -> tuple[int, str]:
        status, _, text = self.ask(path)
        return status, text

    def metric(self, name: str) -> float:
        """The value of a metric with its labels; 0 where it is not there."""
        for line in self.get("/metrics")[1].splitlines():
            if line.startswith(f"{name} "):
                return float(line.rpartition(" ")[2])
        return 0.0

    def end(self, number: int = signal.SIGTERM) -> int:
        """Ask it to stop; give its exit code."""
        self.process.send_signal(number)
        return self.join()

    def join(self) -> int:
        """Wait for its end; give its exit code."""
        code = self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        return code

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
