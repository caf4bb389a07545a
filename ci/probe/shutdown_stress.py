#!/usr/bin/env python3
"""Signals a llama-server at random moments under a random mix of requests, and holds it to its exit and its answers.

    python3 ci/probe/shutdown_stress.py --server build/bin/llama-server --model model.gguf --rounds 500

Prints the slowest exit, and counts requests that were sent before the signal and got no answer.
Exits with 1 if a server did not end within `--bound` seconds, crashed, or left a request without an answer.

With `--kv-paged` the cache is paged, and many requests have a prefix of several blocks in common. The last line counts
the rounds in which requests were queued, waited for blocks, or waited for the prefix of another before the signal.

With `--router` the server is a router, `--model` lies in a folder that holds nothing else, and the router's children must be
gone when it is.
"""

import argparse
import http.client
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time

from server import Server


class Request(threading.Thread):
    """One request; `outcome` is a status, `stream ended`, or what went wrong."""

    def __init__(self, port: int, path: str, body: dict | None):
        super().__init__(daemon=True)
        self.port, self.path, self.body = port, path, body
        self.sent = threading.Event()
        self.outcome: str | None = None

    def run(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            if self.body is None:
                connection.request("GET", self.path)
            else:
                connection.request("POST", self.path, json.dumps(self.body), {"Content-Type": "application/json"})
            self.sent.set()
            response = connection.getresponse()
            text = response.read().decode()
            self.outcome = str(response.status)
            if response.status == 200 and self.body and self.body.get("stream") and "error" not in text and "[DONE]" not in text and '"stop":true' not in text:
                self.outcome = "stream without an end"
        except ConnectionRefusedError:
            self.outcome = "refused"
        except Exception as error:  # whatever the error, the request has no answer
            self.outcome = f"no answer: {type(error).__name__}"
        finally:
            self.sent.set()
            connection.close()


def random_request(port: int, options) -> Request:
    model = os.path.splitext(os.path.basename(options.model))[0]
    # With a paged cache two thirds share several blocks of 64 tokens.
    repeats = [1, 60, 60] if options.kv_paged else [1, 1, 10, 50]
    long = {"n_predict": -1, "ignore_eos": True, "prompt": "Once upon a time " * random.choice(repeats)}
    chat = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": -1, "ignore_eos": True}
    path, body = random.choice([
        ("/completion", long),
        ("/completion", {**long, "stream": True}),
        ("/completion", {**long, "prompt": ["a", "b", "c"]}),
        ("/v1/chat/completions", chat),
        ("/v1/chat/completions", {**chat, "stream": True}),
        ("/v1/completions", {**long, "n": 2}),
        ("/completion", {"prompt": "Once", "n_predict": 2}),
        ("/tokenize", {"content": "Once"}),
        ("/slots", None),
        ("/health", None),
    ])
    return Request(port, path, body and {"model": model, **body})


# A pool of 32 blocks, which two requests fill, and steps so small that a prompt takes several.
PAGED = ["--kv-paged", "--parallel", "4", "--ctx-size", "2048", "--batch-size", "64", "--ubatch-size", "64"]
UNPAGED = ["--context-shift", "--parallel", "2", "--ctx-size", "512"]

# What a request can wait for, and the metric that shows it.
WAITS = {
    "queued": "requests_deferred",
    "for blocks": "kv_cache_queue_waits_total",
    "for a prefix": "prefix_cache_inflight_waits_total",
}


def waits_of(server: Server) -> set[str]:
    """What requests wait, or have waited, for; nothing if the server does not tell."""
    try:
        # Briefly: the signal is to arrive while they wait.
        _, answer = server.ask("GET", "/metrics", timeout=0.5)
    except (OSError, http.client.HTTPException):
        return set()
    text = answer.decode()
    return {name for name, metric in WAITS.items() if re.search(rf"^llamacpp:{metric} [1-9]", text, re.MULTILINE)}


def must_be_an_end(process: subprocess.Popen, state: str) -> None:
    """An exit, not a crash. While loading, a signal ends the server at once, whether it has a handler yet or not."""
    signals = [signal.SIGINT, signal.SIGTERM] if state == "loading" else []
    if process.returncode not in [0, 1, *(-one for one in signals), *(128 + one for one in signals)]:
        raise Crashed(f"it ended with {process.returncode} while {state}")


class Crashed(Exception):
    pass


def children_of(pid: int) -> list[str]:
    with open(f"/proc/{pid}/task/{pid}/children") as children:
        return children.read().split()


def one_round(options) -> tuple[set[str], float, list[str]]:
    """What requests waited for, how long the exit took, and the outcomes of the requests."""
    state = random.choices(["serving", "loading", "sleeping"], [8, 1, 1])[0]
    what = ["--models-dir", os.path.dirname(options.model)] if options.router else ["--model", options.model]
    cache = PAGED if options.kv_paged else UNPAGED
    arguments = [*what, *cache, "--metrics", "--no-ui", "--slots", "--shutdown-timeout", str(options.timeout)]
    if state == "sleeping":
        arguments += ["--sleep-idle-seconds", "1"]
    server = Server(options.server, arguments)
    process = server.process
    try:
        requests, waits = [], set()
        if state == "loading":
            time.sleep(random.uniform(0, 0.4))
        else:
            server.wait_until_ready()
            if state == "sleeping":
                time.sleep(random.uniform(0.8, 2.5))
            requests = [random_request(server.port, options) for _ in range(random.randint(0, 8))]
            for request in requests:
                request.start()
            for request in requests:
                request.sent.wait()
            time.sleep(random.uniform(0, 0.5))
            # A router has no such metrics, and a sleeping server without requests is not to be woken.
            waits = waits_of(server) if requests and not options.router else set()
        children = children_of(process.pid)
        begin = time.monotonic()
        process.send_signal(random.choice([signal.SIGINT, signal.SIGTERM]))
        process.wait(timeout=options.bound)
        took = time.monotonic() - begin
        orphans = [child for child in children if os.path.exists(f"/proc/{child}")]
        must_be_an_end(process, state)
        if orphans:
            raise RuntimeError(f"children {orphans} outlived their server")
        for request in requests:
            request.join(timeout=30)
        return waits, took, [request.outcome or "no answer: waiting" for request in requests]
    finally:
        server.kill()


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--server", required=True)
    arguments.add_argument("--model", required=True)
    arguments.add_argument("--router", action="store_true", help="run as a router of the folder of --model")
    arguments.add_argument("--kv-paged", action="store_true", help="page the cache, and share prefixes")
    arguments.add_argument("--rounds", type=int, default=500)
    arguments.add_argument("--timeout", type=int, default=5, help="--shutdown-timeout of the server")
    arguments.add_argument("--bound", type=float, help="seconds within which the server must have ended; default: --timeout + 1")
    arguments.add_argument("--seed", type=int, default=1)
    options = arguments.parse_args()
    options.bound = options.timeout + 1 if options.bound is None else options.bound
    # A background job of a shell ignores SIGINT, and so would each server until it installs its own handler.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    random.seed(options.seed)
    slowest, unanswered, hung, crashed = 0.0, 0, 0, 0
    outcomes: dict[str, int] = {}
    waited = dict.fromkeys(WAITS, 0)

    def summary(rounds: int) -> str:
        return (f"{rounds} rounds, slowest exit {slowest:.2f} s, {hung} hung, {crashed} crashed, "
                f"{unanswered} without an answer, {outcomes}, rounds with requests that waited: {waited}")

    for number in range(1, options.rounds + 1):
        try:
            waits, took, of_requests = one_round(options)
        except subprocess.TimeoutExpired:
            hung += 1
            print(f"round {number}: still running after {options.bound} s", flush=True)
            continue
        except Crashed as error:
            crashed += 1
            print(f"round {number}: {error}", flush=True)
            continue
        for wait in waits:
            waited[wait] += 1
        slowest = max(slowest, took)
        for outcome in of_requests:
            outcomes[outcome] = outcomes.get(outcome, 0) + 1
            unanswered += not outcome.isdigit()
        if number % 25 == 0:
            print(summary(number), flush=True)
    print(summary(options.rounds))
    return 1 if hung or crashed or unanswered else 0


if __name__ == "__main__":
    sys.exit(main())
