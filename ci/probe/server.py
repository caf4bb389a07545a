"""A llama-server that a script of this folder or the one above starts, asks and stops."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time

# Elsewhere SO_REUSEADDR alone does not let a second socket bind the port, so it is released for the server.
HOLDS_PORTS = sys.platform == "linux"


def reserved_port() -> socket.socket:
    """A socket that is bound to a free port of the loopback and never listens.

    While it is open the system gives the port to no other program, whose answers would be taken for the server's. On
    Linux a server that sets SO_REUSEADDR or SO_REUSEPORT can bind the port beside it; llama-server sets the first.
    """
    bound = socket.socket()
    if HOLDS_PORTS:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    bound.bind(("127.0.0.1", 0))
    return bound


class Server:
    """A server on a port of the loopback; its output is appended to the file `log`.

    On Linux no other program gets the port before `stop` or `kill`. The ports of a router's children are chosen by the
    router, and nothing reserves them.
    """

    def __init__(self, program: str, arguments: list[str], log: str = os.devnull):
        self.reserved = reserved_port()
        self.port = self.reserved.getsockname()[1]
        if not HOLDS_PORTS:
            self.reserved.close()
        command = [program, "--port", str(self.port), *arguments]
        with open(log, "ab") as output:
            self.process = subprocess.Popen(command, stdout=output, stderr=output)

    def wait_until_ready(self, seconds: float = float("inf")) -> None:
        deadline = time.monotonic() + seconds
        while self.process.poll() is None:
            if time.monotonic() > deadline:
                raise RuntimeError(f"the server was not ready after {seconds:.0f} s")
            try:
                status, _ = self.ask("GET", "/health", timeout=5)
                if status == 200:
                    return
            except (OSError, http.client.HTTPException):
                pass
            time.sleep(0.01)
        raise RuntimeError("the server ended while starting")

    def ask(
        self, method: str, path: str, body: dict | None = None, *, timeout: float, key: str | None = None
    ) -> tuple[int, bytes]:
        """Returns the status and the body of the answer; `key` is an API key."""
        headers = {} if body is None else {"Content-Type": "application/json"}
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def stop(self, seconds: float) -> bool:
        """Stops it with SIGTERM; kills it, and returns False, if it has not ended after `seconds`."""
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            return False
        self.reserved.close()
        return True

    def kill(self) -> None:
        """Kills it, if it has not ended."""
        self.process.kill()
        self.process.wait()
        self.reserved.close()
