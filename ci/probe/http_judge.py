#!/usr/bin/env python3
"""Asks a server for conversations through its prefix cache, then for the same answers without it, and compares them.

    python3 ci/probe/http_judge.py --server build/bin/llama-server --model model.gguf -- --kv-paged

Knows nothing but the HTTP API. Several clients hold conversations with few system prompts and several turns, so that
prompts continue earlier ones, share a beginning, or are in flight at the same time. Then each request is sent again,
alone, with `cache_prompt: false`: tokens, log probabilities and `usage` have to be the same. Where the tokens part, both
have to be as likely within `--bound`, as has each token before that. Nothing is streamed: a stream has no log
probabilities of tokens that end inside of a character.

Prints the counts and the largest difference. Exits with 1 if an answer differs, or if the cache was never used.
"""

import argparse
import collections
import concurrent.futures
import json
import random
import sys

from server import Server

WORDS = "the a branch tree river stone walks under over before light cold seven letters answer question and because".split()


def post(server: Server, body: dict) -> dict:
    status, answer = server.ask("POST", "/v1/chat/completions", body, timeout=300)
    text = answer.decode()
    if status != 200:
        raise SystemExit(f"status {status}: {text[:500]}")
    return json.loads(text)


def words(dice: random.Random, count: int) -> str:
    return " ".join(dice.choice(WORDS) for _ in range(count))


def conversation(number: int, server: Server, options) -> list[tuple[dict, dict]]:
    """Holds a conversation; returns each request with its answer."""
    dice = random.Random(f"{options.seed} {number}")
    topic = number % options.systems
    system = words(random.Random(f"{options.seed} system {topic}"), 20 + 20 * topic)
    messages = [{"role": "system", "content": system}]
    held = []
    for _ in range(options.turns):
        messages.append({"role": "user", "content": words(dice, dice.choice([3, 10, 40]))})
        body = {
            "messages": list(messages), "max_tokens": dice.randint(4, options.tokens), "temperature": 0, "seed": 1,
            "logprobs": True, "top_logprobs": 5, "cache_prompt": True,
        }
        answer = post(server, body)
        held.append((body, answer))
        messages.append({"role": "assistant", "content": answer["choices"][0]["message"]["content"]})
    return held


def cached_tokens(answer: dict) -> int:
    return (answer["usage"].get("prompt_tokens_details") or {}).get("cached_tokens") or 0


def name_of(token: dict) -> int | bytes:
    """Returns the id of a token, or its bytes, which are not those of one token inside of a character."""
    return token["id"] if "id" in token else bytes(token["bytes"])


def difference(cached: dict, alone: dict, bound: float) -> tuple[str | None, float]:
    """Returns the difference of two answers beyond ties, if any, and the largest one of a log probability."""
    ours, expected = ([*answer["choices"][0]["logprobs"]["content"]] for answer in (cached, alone))
    largest = 0.0
    for at, (one, other) in enumerate(zip(ours, expected)):
        if name_of(one) != name_of(other):
            tops = {name_of(top): top["logprob"] for top in other["top_logprobs"]}
            gap = other["logprob"] - tops.get(name_of(one), float("-inf"))
            if gap <= bound:
                return None, max(largest, gap)
            return f"token {at} is {one['token']!r} instead of {other['token']!r}, which leads by {gap:.4f}", largest
        largest = max(largest, abs(one["logprob"] - other["logprob"]))
        if largest > bound:
            return f"the log probability of token {at} differs by {largest:.4f}", largest
    for name in ["prompt_tokens", "completion_tokens", "total_tokens"]:
        if cached["usage"][name] != alone["usage"][name]:
            return f"{name} is {cached['usage'][name]} instead of {alone['usage'][name]}", largest
    for field in ["finish_reason", "message"]:
        if cached["choices"][0][field] != alone["choices"][0][field]:
            return f"{field}: {cached['choices'][0][field]} instead of {alone['choices'][0][field]}", largest
    return None, largest


def judge(server: Server, options) -> int:
    with concurrent.futures.ThreadPoolExecutor(options.clients) as pool:
        held = list(pool.map(lambda number: conversation(number, server, options), range(options.conversations)))
    pairs = [pair for turns in held for pair in turns]
    found = collections.Counter(answers=len(pairs), conversations=len(held))
    largest = 0.0
    for body, cached in pairs:
        alone = post(server, body | {"cache_prompt": False})
        how, apart = difference(cached, alone, options.bound)
        largest = max(largest, apart)
        found["cached"] += cached_tokens(cached)
        found["prompt"] += cached["usage"]["prompt_tokens"]
        found["recomputed from a cache"] += cached_tokens(alone)
        same = [answer["choices"][0]["message"]["content"] for answer in (cached, alone)]
        found["parted at a tie"] += how is None and same[0] != same[1]
        if how:
            found["differ"] += 1
            print(f"differs: {how}; {len(body['messages'])} messages", file=sys.stderr)
    print(f"{found['conversations']} conversations, {found['answers']} answers: {found['differ']} differ, "
          f"{found['parted at a tie']} parted at a tie; largest difference of a log probability {largest:.5f}; "
          f"{found['cached']} of {found['prompt']} prompt tokens from the cache")
    if found["recomputed from a cache"]:
        print(f"{found['recomputed from a cache']} tokens were cached although it was off", file=sys.stderr)
    return int(found["differ"] > 0 or found["cached"] == 0 or found["recomputed from a cache"] > 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--conversations", type=int, default=120)
    parser.add_argument("--turns", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=24, help="most tokens of an answer")
    parser.add_argument("--systems", type=int, default=6, help="number of system prompts")
    parser.add_argument("--clients", type=int, default=6)
    parser.add_argument("--bound", type=float, default=0.1, help="largest difference of log probabilities")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("arguments", nargs="*", help="arguments of the server, after --")
    options = parser.parse_args()
    server = Server(options.server, ["--model", options.model, "--no-ui", "--parallel", "4", "--ctx-size", "16384",
                                     *options.arguments])
    try:
        server.wait_until_ready()
        code = judge(server, options)
    finally:
        # Judged below: an exception here would replace the one that ended the comparison.
        stopped = server.stop(seconds=30)
    if not stopped:
        print("the server had not ended 30 s after SIGTERM", file=sys.stderr)
    return code if stopped else 1


if __name__ == "__main__":
    sys.exit(main())
