#!/usr/bin/env python3
"""Restores every damaged copy of a slot file, and expects that a llama-server refuses each one and survives.

    python3 ci/probe/slot_file_sweep.py --server build/bin/llama-server --model model.gguf --mode paged

Saves the slot of a short prompt, then restores one copy for each byte with a bit of it flipped, and one for each length
below the file's. Each has to be answered with 400; at the end the intact file has to be restored. The gate's promise
`damaged-slot-files` tries a sample of them.

Exits with 1 if a copy got another answer, if the server ended before SIGTERM or not within 20 s of it, or if the intact
file was refused.
"""

import argparse
import http.client
import os
import sys
import tempfile
from collections.abc import Iterator

from server import Server

KEY = "sweep-key"

# The arguments of each mode, beside those of all.
MODES = {
    "paged": ["--kv-paged"],
    "keys": ["--api-key", f"{KEY},other-key"],
    "paged-keys": ["--kv-paged", "--api-key", f"{KEY},other-key"],
    "plain": [],
}

FILE = "file"


def started(options, folder: str) -> Server:
    """Returns a server with one slot, whose files are in `folder`."""
    return Server(options.server, ["--model", options.model, "--parallel", "1", "--ctx-size", "512", "--no-ui",
                                   "--slot-save-path", folder, *MODES[options.mode]])


def post(server: Server, path: str, body: dict) -> tuple[int, str]:
    """Returns the status and the body; the status is 0 if there is no answer."""
    try:
        status, answer = server.ask("POST", path, body, timeout=60, key=KEY)
    except (OSError, http.client.HTTPException) as error:
        return 0, repr(error)
    return status, answer.decode(errors="replace")


def act(server: Server, action: str) -> tuple[int, str]:
    return post(server, f"/slots/0?action={action}", {"filename": FILE})


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
    status, body = post(server, "/completion", {"prompt": options.prompt, "n_predict": 1, "temperature": 0})
    saved, said = act(server, "save")
    if (status, saved) != (200, 200):
        return [f"nothing was saved: {status} {body}, {saved} {said}"]
    with open(path, "rb") as file:
        content = file.read()
    wrong: list[str] = []
    number = 0
    for number, (what, damaged) in enumerate(damaged_copies(content, options.every_bit), 1):
        replace(path, damaged)
        status, body = act(server, "restore")
        if status != 400:
            wrong.append(f"{what}: {status} {body}")
        if server.process.poll() is not None:
            return [*wrong, f"{what}: the server ended with {server.process.returncode}"]
    print(f"{options.mode}: {number} damaged copies of {len(content)} bytes, {len(wrong)} not refused", flush=True)
    replace(path, content)
    status, body = act(server, "restore")
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
        server = started(options, folder)
        try:
            server.wait_until_ready()
            wrong = sweep(server, os.path.join(folder, FILE), options)
        finally:
            stopped = server.stop(seconds=20)
        if not stopped:
            wrong.append("the server had not ended 20 s after SIGTERM")
    for line in wrong[:20]:
        print(line)
    if len(wrong) > 20:
        print(f"and {len(wrong) - 20} more")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
