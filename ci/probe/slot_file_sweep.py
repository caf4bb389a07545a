#!/usr/bin/env python3
"""Restores every damaged copy of a slot file, and expects that a llama-server refuses each one and survives.

    python3 ci/probe/slot_file_sweep.py --server build/bin/llama-server --model model.gguf --mode paged

Saves the slot of a short prompt, then restores one copy for each byte with a bit of it flipped, and one for each length
below the file's. Each has to be answered with 400; at the end the intact file has to be restored. The gate's promise
`damaged-slot-files` tries a sample of them.

Exits with 1 if a copy got another answer, if the server ended, or if the intact file was refused.
"""

import argparse
import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from shutdown_stress import free_port, wait_until_ready

KEY = "sweep-key"

# The arguments of each mode, beside those of all.
MODES = {
    "paged": ["--kv-paged"],
    "keys": ["--api-key", f"{KEY},other-key"],
    "paged-keys": ["--kv-paged", "--api-key", f"{KEY},other-key"],
    "plain": [],
}

FILE = "file"


class Server:
    """A server with one slot, whose files are in `folder`."""

    def __init__(self, options, folder: str):
        self.port = free_port()
        command = [options.server, "--model", options.model, "--port", str(self.port), "--parallel", "1",
                   "--ctx-size", "512", "--no-ui", "--slot-save-path", folder, *MODES[options.mode]]
        self.log = open(os.path.join(folder, os.pardir, "server.log"), "wb")
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log)

    def post(self, path: str, body: dict) -> tuple[int, str]:
        """Returns the status and the body; the status is 0 if there is no answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {KEY}"}
        try:
            connection.request("POST", path, json.dumps(body), headers)
            response = connection.getresponse()
            return response.status, response.read().decode(errors="replace")
        except (OSError, http.client.HTTPException) as error:
            return 0, repr(error)
        finally:
            connection.close()

    def act(self, action: str) -> tuple[int, str]:
        return self.post(f"/slots/0?action={action}", {"filename": FILE})

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.log.close()


def damaged_copies(content: bytes, every_bit: bool) -> Iterator[tuple[str, bytes]]:
    """Yields a description and the bytes of each copy: all flips, then all prefixes."""
    for at in range(len(content)):
        for bit in range(8) if every_bit else [at % 8]:
            flipped = bytearray(content)
            flipped[at] ^= 1 << bit
            yield f"bit {bit} of byte {at} flipped", bytes(flipped)
    for length in range(len(content)):
        yield f"cut after {length} bytes", content[:length]


def replace(path: str, content: bytes) -> None:
    with open(path + ".new", "wb") as file:
        file.write(content)
    os.replace(path + ".new", path)


def sweep(server: Server, path: str, options) -> list[str]:
    """Returns a line for each copy that was not refused, and for a server that ended."""
    status, body = server.post("/completion", {"prompt": options.prompt, "n_predict": 1, "temperature": 0})
    saved, said = server.act("save")
    if (status, saved) != (200, 200):
        return [f"nothing was saved: {status} {body}, {saved} {said}"]
    with open(path, "rb") as file:
        content = file.read()
    wrong: list[str] = []
    number = 0
    for number, (what, damaged) in enumerate(damaged_copies(content, options.every_bit), 1):
        replace(path, damaged)
        status, body = server.act("restore")
        if status != 400:
            wrong.append(f"{what}: {status} {body}")
        if server.process.poll() is not None:
            return [*wrong, f"{what}: the server ended with {server.process.returncode}"]
    print(f"{options.mode}: {number} damaged copies of {len(content)} bytes, {len(wrong)} not refused", flush=True)
    replace(path, content)
    status, body = server.act("restore")
    return wrong if status == 200 else [*wrong, f"the intact file: {status} {body}"]


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--server", required=True)
    arguments.add_argument("--model", required=True)
    arguments.add_argument("--mode", choices=sorted(MODES), default="paged")
    arguments.add_argument("--prompt", default="One", help="short, so that the file is small")
    arguments.add_argument("--every-bit", action="store_true", help="flip each bit of each byte instead of one")
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        slots = os.path.join(folder, "slots")
        os.mkdir(slots)
        server = Server(options, slots)
        try:
            wait_until_ready(server.process, server.port)
            wrong = sweep(server, os.path.join(slots, FILE), options)
        finally:
            server.stop()
    for line in wrong[:20]:
        print(line)
    if len(wrong) > 20:
        print(f"and {len(wrong) - 20} more")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
