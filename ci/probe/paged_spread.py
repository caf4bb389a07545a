#!/usr/bin/env python3
"""Compares a llama-server with `--kv-paged` with the same server without it, on real weights and any accelerator.

    python3 ci/probe/paged_spread.py --server build/bin/llama-server --model model.gguf --text words.txt --gpu-layers 99

Answers differ between batch shapes even without paging, so the first run (unpaged, one slot) is compared with an unpaged
one of eight slots too: the paged runs should be no further away. Then 16 requests with one prefix of 2,400 words are
sent at once to an unpaged and to a paged server. Prints a table; exits with 1 if a request fails.
"""

import argparse
import concurrent.futures
import contextlib
import json
import pathlib
import tempfile
import time
from collections.abc import Iterator

from server import Server

RUNS = [  # name, options, clients
    ("unpaged, 1 slot", ["-np", "1", "-c", "4096"], 1),
    ("unpaged, 8 slots", ["-np", "8", "-c", "32768"], 8),
    ("paged, 1 slot", ["-np", "1", "-c", "4096", "--kv-paged"], 1),
    ("paged, 8 slots", ["-np", "8", "-c", "32768", "--kv-paged"], 8),
    ("paged, 8 slots, pool of 40 blocks", ["-np", "8", "-c", "2560", "--kv-paged"], 8),
    ("unpaged, 1 slot, q8_0", ["-np", "1", "-c", "4096", "-ctk", "q8_0", "-ctv", "q8_0"], 1),
    ("paged, 8 slots, q8_0", ["-np", "8", "-c", "32768", "--kv-paged", "-ctk", "q8_0", "-ctv", "q8_0"], 8),
]
BURSTS = [
    ("unpaged, 16 slots, one cache", ["-np", "16", "-c", "65536", "--kv-unified"]),
    ("paged, 16 slots", ["-np", "16", "-c", "65536", "--kv-paged"]),
]


@contextlib.contextmanager
def started(arguments: argparse.Namespace, options: list[str]) -> Iterator[Server]:
    """A server that is ready, until the end of the block; its log is shown if it does not get ready."""
    with tempfile.NamedTemporaryFile("r", suffix=".log", errors="replace") as log:
        common = ["-m", arguments.model, "-ngl", str(arguments.gpu_layers), "--host", "127.0.0.1"]
        server = Server(arguments.server, [*common, *options], log.name)
        try:
            try:
                server.wait_until_ready(120)
            except RuntimeError as error:
                raise SystemExit(f"{error}:\n{log.read()[-2000:]}") from error
            yield server
        except BaseException:
            # First: the next server needs its memory.
            server.kill()
            raise
        if not server.stop(30):
            raise SystemExit("the server had not ended 30 s after SIGTERM")


def complete(server: Server, prompt: str, tokens: int) -> dict:
    body = {"prompt": prompt, "n_predict": tokens, "temperature": 0, "n_probs": 1, "return_tokens": True}
    status, answer = server.ask("POST", "/completion", body, timeout=300)
    if status != 200:
        raise SystemExit(f"status {status}: {answer[:500].decode(errors='replace')}")
    return json.loads(answer)


def complete_all(server: Server, prompts: list[str], tokens: int, clients: int) -> tuple[list[dict], float]:
    """The answers in the order of the prompts, and the seconds until the last one."""
    start = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(clients) as pool:
        answers = list(pool.map(lambda prompt: complete(server, prompt, tokens), prompts))
    return answers, time.monotonic() - start


def differences(base: dict, other: dict) -> list[float]:
    """How far the log probabilities of the chosen tokens differ, up to the first other token."""
    distances = []
    for token, same, mine, theirs in zip(base["tokens"], other["tokens"], base["completion_probabilities"], other["completion_probabilities"]):
        if token != same:
            break
        distances.append(abs(mine["logprob"] - theirs["logprob"]))
    return distances


def computed(answers: list[dict]) -> int:
    return sum(answer["timings"]["prompt_n"] for answer in answers)


def compare(arguments: argparse.Namespace, words: list[str]):
    system = "You are a helpful assistant. " + " ".join(words[:700])
    prompts = [f"{system}\nQuestion {n}: tell me about {words[1000 + 13 * n]} and {words[1500 + 7 * n]}.\nAnswer:" for n in range(arguments.prompts)]
    print("| server | seconds | prompt tokens computed | equal answers | log probability, median | 99 % | max |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    base: list[dict] = []
    for name, options, clients in RUNS:
        with started(arguments, options) as server:
            answers, seconds = complete_all(server, prompts, 32, clients)
        base = base or answers
        equal = sum(one["tokens"] == other["tokens"] for one, other in zip(base, answers))
        apart = sorted(distance for one, other in zip(base, answers) for distance in differences(one, other)) or [0.0]
        middle, most = apart[len(apart) // 2], apart[int(len(apart) * 0.99)]
        print(f"| {name} | {seconds:.2f} | {computed(answers):,} | {equal} of {len(prompts)} | {middle:.4f} | {most:.4f} | {apart[-1]:.4f} |", flush=True)


def burst(arguments: argparse.Namespace, words: list[str]):
    prefix = " ".join(words[2000:4400])
    print("\n| server | seconds until the last answer | prompt tokens computed |\n|---|--:|--:|")
    for name, options in BURSTS * 2:
        with started(arguments, options) as server:
            complete(server, "warm up", 4)
            answers, seconds = complete_all(server, [f"{prefix}\n{n}:" for n in range(16)], 8, 16)
        print(f"| {name} | {seconds:.2f} | {computed(answers):,} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--text", required=True, help="a text of at least 4,400 words")
    parser.add_argument("--gpu-layers", type=int, default=99)
    parser.add_argument("--prompts", type=int, default=40)
    arguments = parser.parse_args()
    words = pathlib.Path(arguments.text).read_text().split()
    if len(words) < 4400:
        parser.error(f"{arguments.text} has {len(words)} words, and 4,400 are needed")
    compare(arguments, words)
    burst(arguments, words)


if __name__ == "__main__":
    main()
