#!/usr/bin/env python3
"""Holds the answers of a running llama-server against the types of the `openai` and `anthropic` packages.

    python3 -m venv /tmp/sdk && /tmp/sdk/bin/pip install openai anthropic
    /tmp/sdk/bin/python ci/probe/api_types.py http://127.0.0.1:8080 [--embeddings http://127.0.0.1:8081]

The chat template of the server must have tools, or the two cases that require a call are refused with 400:
docs/reference/server-fixes.md has the command of such a server.

Each answer and each event of a stream is read as plain JSON and walked beside the SDK's own model of it: a required
field that is missing, a value of another type, and a field that the SDK does not know are reported, one line each.
The SDKs themselves report none of this: they build their objects without validation.
Exits with 1 if a required field is missing or a value has the wrong type.
"""

import argparse
import collections
import json
import sys
import types
import typing
import urllib.request

import anthropic.types
import openai.types
import openai.types.chat
import openai.types.responses
import pydantic

MESSAGES = [{"role": "user", "content": "Say hello"}]
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}}}]

FUNCTION = TOOLS[0]["function"]
CALLS = {"messages": MESSAGES, "max_tokens": 64, "tools": TOOLS, "tool_choice": "required"}
CALLS_OF_RESPONSES = {"input": "Say hello", "max_output_tokens": 64, "tools": [{"type": "function", **FUNCTION}], "tool_choice": "required"}
CALLS_OF_MESSAGES = {"messages": MESSAGES, "max_tokens": 64, "tools": [{"name": "f", "input_schema": FUNCTION["parameters"]}], "tool_choice": {"type": "any"}}

# name, path, request, type of the answer or of an event
CASES = [
    ("completions", "/v1/completions", {"prompt": "Once", "max_tokens": 4, "n": 2}, openai.types.Completion),
    ("completions, logprobs", "/v1/completions", {"prompt": "Once", "max_tokens": 4, "logprobs": 2}, openai.types.Completion),
    ("completions, streamed", "/v1/completions", {"prompt": "Once", "max_tokens": 4, "stream": True}, openai.types.Completion),
    ("completions, two streamed", "/v1/completions", {"prompt": "Once", "max_tokens": 4, "n": 2, "stream": True}, openai.types.Completion),
    ("chat", "/v1/chat/completions", {"messages": MESSAGES, "max_tokens": 4, "n": 2}, openai.types.chat.ChatCompletion),
    ("chat, logprobs", "/v1/chat/completions", {"messages": MESSAGES, "max_tokens": 4, "logprobs": True, "top_logprobs": 2}, openai.types.chat.ChatCompletion),
    ("chat, tool", "/v1/chat/completions", CALLS, openai.types.chat.ChatCompletion),
    ("chat, tool, streamed", "/v1/chat/completions", {**CALLS, "stream": True}, openai.types.chat.ChatCompletionChunk),
    ("chat, streamed", "/v1/chat/completions", {"messages": MESSAGES, "max_tokens": 4, "stream": True, "stream_options": {"include_usage": True}}, openai.types.chat.ChatCompletionChunk),
    ("responses", "/v1/responses", {"input": "Say hello", "max_output_tokens": 4}, openai.types.responses.Response),
    ("responses, tool", "/v1/responses", CALLS_OF_RESPONSES, openai.types.responses.Response),
    ("responses, tool, streamed", "/v1/responses", {**CALLS_OF_RESPONSES, "stream": True}, openai.types.responses.ResponseStreamEvent),
    ("responses, streamed", "/v1/responses", {"input": "Say hello", "max_output_tokens": 4, "stream": True}, openai.types.responses.ResponseStreamEvent),
    ("messages", "/v1/messages", {"messages": MESSAGES, "max_tokens": 4}, anthropic.types.Message),
    ("messages, tool", "/v1/messages", CALLS_OF_MESSAGES, anthropic.types.Message),
    ("messages, tool, streamed", "/v1/messages", {**CALLS_OF_MESSAGES, "stream": True}, anthropic.types.RawMessageStreamEvent),
    ("messages, streamed", "/v1/messages", {"messages": MESSAGES, "max_tokens": 4, "stream": True}, anthropic.types.RawMessageStreamEvent),
    ("count tokens", "/v1/messages/count_tokens", {"messages": MESSAGES}, anthropic.types.MessageTokensCount),
    ("models", "/v1/models", None, None),
]
EMBEDDINGS = [
    ("embeddings", "/v1/embeddings", {"input": ["Once", "twice"]}, openai.types.CreateEmbeddingResponse),
    ("embeddings, base64", "/v1/embeddings", {"input": "Once", "encoding_format": "base64"}, openai.types.CreateEmbeddingResponse),
]

MISSING, WRONG, UNKNOWN = "missing", "wrong type", "not in the SDK"


def shown(value) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:80] + "..."


def compare(value, annotation, path: str, report) -> None:
    """Reports where `value` is not what `annotation` says."""
    origin = typing.get_origin(annotation)
    arguments = typing.get_args(annotation)
    if annotation is typing.Any or annotation is object or isinstance(annotation, typing.TypeVar):
        return
    if origin is typing.Annotated:
        compare(value, arguments[0], path, report)
    elif origin in (typing.Union, types.UnionType):
        compare_union(value, arguments, path, report)
    elif origin is typing.Literal:
        if value not in arguments:
            report(WRONG, path, f"{shown(value)} is none of {', '.join(map(repr, arguments[:6]))}")
    elif origin in (list, typing.List, collections.abc.Iterable):
        if not isinstance(value, list):
            report(WRONG, path, f"{shown(value)} is not a list")
        else:
            for item in value:
                compare(item, arguments[0], path + "[]", report)
    elif origin in (dict, typing.Dict, collections.abc.Mapping):
        if not isinstance(value, dict):
            report(WRONG, path, f"{shown(value)} is not an object")
    elif isinstance(annotation, type) and issubclass(annotation, pydantic.BaseModel):
        compare_model(value, annotation, path, report)
    elif annotation is float:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            report(WRONG, path, f"{shown(value)} is not a number")
    elif annotation is int:
        if isinstance(value, bool) or not (isinstance(value, int) or isinstance(value, float) and value.is_integer()):
            report(WRONG, path, f"{shown(value)} is not an integer")
    elif isinstance(annotation, type) and annotation in (str, bool):
        if not isinstance(value, annotation):
            report(WRONG, path, f"{shown(value)} is not of type {annotation.__name__}")
    elif annotation is type(None):
        if value is not None:
            report(WRONG, path, f"{shown(value)} is not null")


def compare_model(value, model, path: str, report) -> None:
    if not isinstance(value, dict):
        report(WRONG, path, f"{shown(value)} is not of type {model.__name__}")
        return
    names = {field.alias or name: field for name, field in model.model_fields.items()}
    for name, field in names.items():
        if name in value:
            compare(value[name], field.annotation, f"{path}.{name}", report)
        elif field.is_required():
            report(MISSING, f"{path}.{name}", model.__name__)
    for name in value.keys() - names.keys():
        report(UNKNOWN, f"{path}.{name}", model.__name__)


def compare_union(value, members, path: str, report) -> None:
    """A union is as wrong as the member that fits best."""
    best = None
    for member in members:
        found = []
        compare(value, member, path, lambda *finding: found.append(finding))
        score = (sum(kind == WRONG and ".type" in where for kind, where, _ in found), sum(kind != UNKNOWN for kind, _, _ in found), len(found))
        if best is None or score < best[0]:
            best = (score, found)
    for finding in best[1]:
        report(*finding)


def ask(base: str, path: str, request):
    """The answer, or each event of the stream."""
    data = None if request is None else json.dumps({"model": "local", **request}).encode()
    with urllib.request.urlopen(urllib.request.Request(base + path, data=data, headers={"Content-Type": "application/json"}), timeout=300) as response:
        text = response.read().decode()
    if not (request or {}).get("stream"):
        return [json.loads(text)]
    lines = [line[len("data: "):] for line in text.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("server")
    arguments.add_argument("--embeddings", help="a server started with --embeddings")
    options = arguments.parse_args()
    cases = [(options.server, *case) for case in CASES]
    if options.embeddings:
        cases += [(options.embeddings, *case) for case in EMBEDDINGS]
    failed = 0
    for base, name, path, request, annotation in cases:
        findings: dict = {}
        try:
            answers = ask(base, path, request)
        except (OSError, ValueError) as error:
            print(f"{name}: {error}")
            failed += 1
            continue
        if annotation is None:
            for model in answers[0]["data"]:
                compare(model, openai.types.Model, "data[]", lambda *finding: findings.setdefault(finding, None))
        for answer in answers if annotation is not None else []:
            where = answer.get("type", "") if "streamed" in name else ""
            compare(answer, annotation, where, lambda *finding: findings.setdefault(finding, None))
        bad = [finding for finding in findings if finding[0] != UNKNOWN]
        failed += len(bad)
        print(f"{name}: {len(answers)} {'answers' if len(answers) == 1 else 'events'}, {len(bad)} wrong, {len(findings) - len(bad)} not in the SDK")
        for kind, where, detail in sorted(findings):
            print(f"    {kind}: {where} ({detail})")
    print(f"openai {openai.__version__}, anthropic {anthropic.__version__}: {failed} wrong")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
