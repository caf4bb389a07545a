#!/usr/bin/env python3
"""Signals a llama-server at random moments under a random mix of requests, and holds it to its exit and its answers.

    python3 ci/probe/shutdown_stress.py --server build/bin/llama-server --model model.gguf --rounds 500

Prints the slowest exit, and counts requests that were sent before the signal and got no answer.
Exits with 1 if a server did not end within `--bound` seconds, crashed, or left a request without an answer.

Most rounds signal a server that serves; the others signal one that loads its model or sleeps. Requests are sent in all of
them: while it loads as soon as it listens, and one that it does not accept in time has the outcome `refused`. A round in
six embeds, a round in six ranks. In a round in ten a client that never sends its whole request holds up the exit, and a
second signal has to end the server at once; such requests may be cut off, and their outcomes are not judged.

With `--kv-paged` the cache is paged, and many requests have a prefix of several blocks in common. The last line counts
the rounds in which requests were queued, waited for blocks, or waited for the prefix of another before the signal.

With `--router` the server is a router, `--model` lies in a folder that holds nothing else, and the router's children must be
gone when it is.
"""

import argparse
import dataclasses
import http.client
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from server import Server


class Request(threading.Thread):
    """One request; `outcome` is a status, or what went wrong.

    With `until_it_listens` it is tried again while the server refuses connections, until that event is set.
    """

    def __init__(self, port: int, path: str, body: dict | None = None, *, method: str | None = None,
                 headers: dict[str, str] | None = None, until_it_listens: threading.Event | None = None):
        super().__init__(daemon=True)
        self.port, self.path, self.body = port, path, body
        self.method = method or ("GET" if body is None else "POST")
        self.headers = {**({} if body is None else {"Content-Type": "application/json"}), **(headers or {})}
        self.may_stop_trying = until_it_listens
        # About the stream of a request that was sent before.
        self.follows = path.startswith("/v1/stream")
        self.is_stream = bool(body and body.get("stream")) or (self.follows and self.method == "GET")
        self.sent = threading.Event()
        self.outcome: str | None = None

    def run(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            self.connect(connection)
            connection.request(self.method, self.path, None if self.body is None else json.dumps(self.body), self.headers)
            self.sent.set()
            response = connection.getresponse()
            text = response.read().decode()
            self.outcome = str(response.status)
            if response.status == 200 and self.is_stream and "error" not in text and "[DONE]" not in text and '"stop":true' not in text:
                self.outcome = "stream without an end"
        except ConnectionRefusedError:
            self.outcome = "refused"
        except Exception as error:  # whatever the error, the request has no answer
            self.outcome = f"no answer: {type(error).__name__}"
        finally:
            self.sent.set()
            connection.close()

    def connect(self, connection: http.client.HTTPConnection):
        while True:
            try:
                connection.connect()
                return
            except ConnectionRefusedError:
                if self.may_stop_trying is None or self.may_stop_trying.wait(0.002):
                    raise


FILES = ["one", "two"]


def slot_action() -> tuple[str, dict]:
    action = random.choice(["save", "save", "restore", "erase"])
    return f"/slots/{random.randint(0, 1)}?action={action}", {} if action == "erase" else {"filename": random.choice(FILES)}


def random_requests(port: int, options, kind: str, until_it_listens: threading.Event | None) -> list[Request]:
    """Several requests, in the order in which they are to be sent; some are followed by others of the same conversation."""
    requests = []
    model = os.path.splitext(os.path.basename(options.model))[0]
    for _ in range(random.randint(0, 8)):
        path, body = random.choice(mix_of(options, kind))
        body = None if body is None else {"model": model, **body}
        if not (body and body.get("stream")) or random.random() < 0.5:
            requests.append(Request(port, path, body, until_it_listens=until_it_listens))
            continue
        # An id of its own: a later request with the same one would end this stream.
        conversation = f"chat-{random.getrandbits(64):x}"
        headers = {"X-Conversation-Id": conversation}
        requests.append(Request(port, path, body, headers=headers, until_it_listens=until_it_listens))
        follower = random.choice(["none", "resume", "look up", "end"])
        if follower == "look up":
            lookup = {"model": model, "conversation_ids": [conversation]}
            requests.append(Request(port, "/v1/streams/lookup", lookup, until_it_listens=until_it_listens))
        elif follower != "none":
            # A stream that a client ends need not have a last event.
            requests[-1].is_stream = follower != "end"
            method = {"resume": "GET", "end": "DELETE"}[follower]
            resumed = f"/v1/stream?conv_id={conversation}"
            requests.append(Request(port, resumed, method=method, until_it_listens=until_it_listens))
    return requests


def mix_of(options, kind: str) -> list[tuple[str, dict | None]]:
    # With a paged cache two thirds share several blocks of 64 tokens.
    repeats = [1, 60, 60] if options.kv_paged else [1, 1, 10, 50]
    text = "Once upon a time " * random.choice(repeats)
    others: list[tuple[str, dict | None]] = [
        ("/tokenize", {"content": "Once"}),
        ("/slots", None),
        ("/health", None),
        slot_action(),
        slot_action(),
    ]
    if kind == "ranking":
        documents = [f"{text} {number}" for number in range(random.choice([1, 20]))]
        return [("/rerank", {"query": "which one?", "documents": documents}), ("/v1/embeddings", {"input": documents}), *others]
    long = {"n_predict": -1, "ignore_eos": True, "prompt": text}
    chat = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": -1, "ignore_eos": True}
    completions: list[tuple[str, dict | None]] = [
        ("/completion", long),
        ("/completion", {**long, "stream": True}),
        ("/completion", {**long, "stream": True}),
        ("/completion", {**long, "prompt": ["a", "b", "c"]}),
        ("/v1/chat/completions", chat),
        ("/v1/chat/completions", {**chat, "stream": True}),
        ("/v1/completions", {**long, "n": 2}),
        ("/completion", {"prompt": "Once", "n_predict": 2}),
    ]
    if kind == "embedding":
        inputs = [text] * random.choice([1, 20])
        completions += [("/v1/embeddings", {"input": inputs}), ("/embedding", {"content": text})] * 3
    return completions + others


# The arguments of each kind of server. One that embeds answers completions, too.
KINDS = {
    "completion": [],
    "embedding": ["--embedding", "--pooling", "last"],
    "ranking": ["--reranking"],
}

# A pool of 32 blocks, which two requests fill, and steps so small that a prompt takes several.
PAGED = ["--kv-paged", "--parallel", "4", "--ctx-size", "2048", "--batch-size", "64", "--ubatch-size", "64"]
UNPAGED = ["--context-shift", "--parallel", "2", "--ctx-size", "512"]

# Seconds within which a second signal has to end the server. Children of a router have as long as after a first one.
AT_ONCE = 2.0

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
    """An exit, not a crash. While loading, a signal ends the server early, whether it has a handler yet or not."""
    signals = [signal.SIGINT, signal.SIGTERM] if state == "loading" else []
    if process.returncode not in [0, 1, *(-one for one in signals), *(128 + one for one in signals)]:
        raise Crashed(f"it ended with {process.returncode} while {state}")


class Crashed(Exception):
    pass


@dataclasses.dataclass
class Round:
    state: str  # of the server at the signal
    kind: str  # what it is for
    waits: set[str]  # what requests waited for
    took: float  # seconds until it had ended
    is_signalled_twice: bool
    outcomes: list[str]  # of the requests

    def unanswered(self) -> int:
        """Number of requests without an answer that should have one."""
        allowed = ["refused"] if self.state == "loading" else []
        judged = [] if self.is_signalled_twice else self.outcomes
        return sum(not outcome.isdigit() and outcome not in allowed for outcome in judged)


def children_of(pid: int) -> list[str]:
    with open(f"/proc/{pid}/task/{pid}/children") as children:
        return children.read().split()


def stalled_client(port: int) -> socket.socket:
    """A client that never sends all of its headers, and so holds up the exit until the timeout."""
    client = socket.create_connection(("127.0.0.1", port), timeout=10)
    client.sendall(b"POST /completion HTTP/1.1\r\nHost: localhost\r\n")
    return client


def start_requests(server: Server, options, state: str, kind: str) -> list[Request]:
    """Starts requests and returns them after all of them were sent, at a random moment; in the state `loading` some may
    have been refused."""
    must_stop_trying = threading.Event() if state == "loading" else None
    requests = random_requests(server.port, options, kind, must_stop_trying)
    for request in requests:
        if request.follows and state != "loading":
            requests[requests.index(request) - 1].sent.wait()
            time.sleep(random.uniform(0, 0.1))  # mostly enough for the stream to begin
        request.start()
    if must_stop_trying is not None:
        time.sleep(random.uniform(0, 0.4))
        must_stop_trying.set()
    for request in requests:
        request.sent.wait()
    if state != "loading":
        time.sleep(random.uniform(0, 0.5))
    return requests


def send_second_signal(process: subprocess.Popen, children: list[str], bound: float) -> None:
    """Signals a server that is about to exit once more, at a random moment. It has to end at once."""
    time.sleep(random.uniform(0, 0.5))
    process.send_signal(random.choice([signal.SIGINT, signal.SIGTERM]))
    begin = time.monotonic()
    try:
        process.wait(timeout=AT_ONCE)
    except subprocess.TimeoutExpired:
        raise Crashed(f"it still ran {AT_ONCE} s after a second signal") from None
    while any(is_there(child) for child in children) and time.monotonic() < begin + bound:
        time.sleep(0.01)


def is_there(pid: str) -> bool:
    return os.path.exists(f"/proc/{pid}")


def arguments_of(options, state: str, kind: str) -> list[str]:
    what = ["--models-dir", os.path.dirname(options.model)] if options.router else ["--model", options.model]
    cache = PAGED if options.kv_paged else UNPAGED
    arguments = [*what, *cache, *KINDS[kind], "--metrics", "--no-ui", "--slots", "--slot-save-path", options.folder,
                 "--shutdown-timeout", str(options.timeout)]
    return arguments + (["--sleep-idle-seconds", "1"] if state == "sleeping" else [])


def one_round(options) -> Round:
    state = random.choices(["serving", "loading", "sleeping"], [8, 1, 1])[0]
    kind = random.choices(list(KINDS), [4, 1, 1])[0]
    is_signalled_twice = state != "loading" and random.random() < 0.1
    server = Server(options.server, arguments_of(options, state, kind))
    process, stalled = server.process, None
    try:
        if state != "loading":
            server.wait_until_ready()
        if state == "sleeping":
            time.sleep(random.uniform(0.8, 2.5))
        if is_signalled_twice:
            stalled = stalled_client(server.port)
        requests = start_requests(server, options, state, kind)
        # A router has no such metrics, and neither a sleeping server without requests nor one that loads is to be asked.
        waits = waits_of(server) if requests and state != "loading" and not options.router else set()
        children = children_of(process.pid)
        begin = time.monotonic()
        process.send_signal(random.choice([signal.SIGINT, signal.SIGTERM]))
        if is_signalled_twice:
            send_second_signal(process, children, options.bound)
        process.wait(timeout=options.bound)
        took = time.monotonic() - begin
        orphans = [child for child in children if is_there(child)]
        must_be_an_end(process, state)
        if orphans:
            raise Crashed(f"children {orphans} outlived it while {state}")
        for request in requests:
            request.join(timeout=30)
        outcomes = [request.outcome or "no answer: waiting" for request in requests]
        return Round(state, kind, waits, took, is_signalled_twice, outcomes)
    finally:
        if stalled is not None:
            stalled.close()
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
    with tempfile.TemporaryDirectory(prefix="shutdown-stress-") as options.folder:
        return run(options)


def run(options) -> int:
    slowest, unanswered, hung, crashed, twice = 0.0, 0, 0, 0, 0
    outcomes: dict[str, int] = {}
    waited = dict.fromkeys(WAITS, 0)
    kinds: dict[str, int] = {}

    def summary(rounds: int) -> str:
        return (f"{rounds} rounds, slowest exit {slowest:.2f} s, {hung} hung, {crashed} crashed, "
                f"{unanswered} without an answer, {outcomes}, rounds with requests that waited: {waited}, "
                f"{twice} signalled twice, {kinds}")

    for number in range(1, options.rounds + 1):
        try:
            one = one_round(options)
        except subprocess.TimeoutExpired:
            hung += 1
            print(f"round {number}: still running after {options.bound} s", flush=True)
            continue
        except Crashed as error:
            crashed += 1
            print(f"round {number}: {error}", flush=True)
            continue
        for wait in one.waits:
            waited[wait] += 1
        if not one.is_signalled_twice:
            slowest = max(slowest, one.took)
        unanswered += one.unanswered()
        twice += one.is_signalled_twice
        what = f"{one.kind} {one.state}"
        kinds[what] = kinds.get(what, 0) + 1
        if one.unanswered():
            print(f"round {number}, {what}: {one.outcomes}", flush=True)
        for outcome in one.outcomes if not one.is_signalled_twice else []:
            outcomes[outcome] = outcomes.get(outcome, 0) + 1
        if number % 25 == 0:
            print(summary(number), flush=True)
    print(summary(options.rounds))
    return 1 if hung or crashed or unanswered else 0


if __name__ == "__main__":
    sys.exit(main())
