#!/usr/bin/env python3
"""Compares ggml's AMX kernels with its other CPU kernels: logits of the gate's models, and tokens per second.

    python3 ci/probe/amx.py models --folder FOLDER
    python3 ci/probe/amx.py logits --folder FOLDER --probe amx=PATH --probe plain=PATH --json logits.json
    python3 ci/probe/amx.py speed --folder FOLDER --probe amx=PATH --probe plain=PATH --json speed.json

A probe is `ci/probe/probe.cpp`, linked with one build. The reference of a case has the same weights in f32, K and V in
f32, no flash attention, and each sequence alone; f32 weights never reach the AMX kernels. Models named `all-experts`
use every expert: a difference that they do not have comes from another choice of experts. `ci/amx-check` runs all of it.
"""

import argparse
import array
import concurrent.futures
import dataclasses
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import gate_model
import random_model

PROMPT, STEPS = 12, 8
CASES = [(1, 2), (5, 1), (8, 1)]  # sequences, threads, as in the gate
WEIGHTS = ("f16", "q8_0", "q4_0")
JUMP = 0.1  # a row whose logits differ by more is counted
FACTOR = 1.5
NOT_USED = "AMX is not ready"
SPEED_TYPES = ("q4_0", "q8_0", "q4_K", "q6_K")
SPEED_SHAPE = {"layers": 7, "embedding": 1024, "feed-forward": 2816, "heads": 16, "kv-heads": 4, "head": 64}


def names_of_models() -> list[tuple[str, str, bool]]:
    """Architecture, weights, and whether all experts are used; the models that failed the gate are first."""
    found = [(architecture, weights, False) for architecture in gate_model.ARCHITECTURES for weights in WEIGHTS]
    found += [(architecture, weights, True) for architecture in gate_model.MOE for weights in WEIGHTS]
    failed = [("qwen35moe", "q8_0"), ("qwen3next", "f16")]
    return sorted(found, key=lambda model: (model[:2] not in failed, model[2]))


def path_of(folder: str, architecture: str, weights: str, all_experts: bool, exact: bool) -> str:
    parts = [architecture, weights] + ["all-experts"] * all_experts + ["exact"] * exact
    return os.path.join(folder, "-".join(parts) + ".gguf")


def write_gate_model(folder: str, architecture: str, weights: str):
    paths = [path_of(folder, architecture, weights, every, exact) for every in (False, True) for exact in (False, True)]
    gate_model.write_models(architecture, weights, *(paths if architecture in gate_model.MOE else paths[:2]))


def write_speed_model(folder: str, kind: str):
    vocabulary = pathlib.Path(__file__).parent.parent / "models" / "espalier-retrieval.gguf"
    shape = [word for name, value in SPEED_SHAPE.items() for word in (f"--{name}", str(value))]
    command = [sys.executable, random_model.__file__, "--vocabulary", str(vocabulary), "--type", kind]
    subprocess.run([*command, "--out", speed_path(folder, kind), *shape], check=True, stdout=subprocess.DEVNULL)


def speed_path(folder: str, kind: str) -> str:
    return os.path.join(folder, f"speed-{kind}.gguf")


def write_models(given: argparse.Namespace):
    with concurrent.futures.ProcessPoolExecutor(given.jobs) as pool:
        models = [(architecture, weights) for architecture, weights, every in names_of_models() if not every]
        writing = [pool.submit(write_gate_model, given.folder, *model) for model in models]
        writing += [pool.submit(write_speed_model, given.folder, kind) for kind in SPEED_TYPES]
        for one in writing:
            one.result()
    print(f"{len(writing)} models in {given.folder}")


def prompt_length(seq: int) -> int:
    """As the probe computes it with `--ragged`."""
    return max(1, PROMPT - seq % 3)


def run_probe(probe: str, model: str, sequences: int, threads: int, more: list[str]) -> list[array.array]:
    """Rows of logits, in the order of the batches."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "logits.bin")
        command = [probe, "--model", model, "--out", out, "--prompt", str(PROMPT), "--steps", str(STEPS), "--ragged"]
        command += ["--seqs", str(sequences), "--threads", str(threads), *more]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=100)
        if done.returncode != 0 or NOT_USED in done.stderr:
            raise RuntimeError(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr[-500:]}")
        values = array.array("f")
        values.frombytes(pathlib.Path(out).read_bytes())
    size = gate_model.VOCABULARY
    return [values[first : first + size] for first in range(0, len(values), size)]


def batch_order(alone: list[list[array.array]], sequences: int) -> list[array.array]:
    """Rows of sequences that were decoded alone, in the order in which one batch has them."""
    rows = [row for seq in range(sequences) for row in alone[seq][: prompt_length(seq)]]
    return rows + [alone[seq][prompt_length(seq) + step] for step in range(STEPS) for seq in range(sequences)]


@dataclasses.dataclass
class Distance:
    """Between the logits of two runs; the divergence is of the second one's predictions from the first one's, in nats."""

    largest: float
    rms: float
    jumps: int
    divergence: float
    divergence_largest: float
    same_first: float


def log_probabilities(row: array.array) -> list[float]:
    most = max(row)
    total = most + math.log(math.fsum(math.exp(value - most) for value in row))
    return [value - total for value in row]


def distance(base: list[array.array], other: list[array.array]) -> Distance:
    if len(base) != len(other):
        raise RuntimeError(f"{len(other)} rows of logits instead of {len(base)}")
    largest, squares, divergences, same = [], 0.0, [], 0
    for expected, found in zip(base, other):
        apart = [abs(a - b) for a, b in zip(expected, found)]
        if not all(math.isfinite(value) for value in apart):
            raise RuntimeError("a logit is NaN or infinite")
        largest.append(max(apart))
        squares += math.fsum(value * value for value in apart)
        p, q = log_probabilities(expected), log_probabilities(found)
        divergences.append(max(0.0, math.fsum(math.exp(a) * (a - b) for a, b in zip(p, q))))
        same += expected.index(max(expected)) == found.index(max(found))
    rms = math.sqrt(squares / (len(base) * gate_model.VOCABULARY))
    jumps = sum(value > JUMP for value in largest)
    return Distance(max(largest), rms, jumps, sum(divergences) / len(base), max(divergences), same / len(base))


def compare_model(folder: str, probes: dict[str, str], model: tuple[str, str, bool]) -> list[dict]:
    """One record for each case of a model; an error is a record too."""
    name = f"{model[0]} {model[1]}" + " all-experts" * model[2]
    try:
        exact = path_of(folder, *model, exact=True)
        alone = {
            side: [run_probe(probes[side], exact, 1, 1, ["--reference", "--first-seq", str(seq)]) for seq in range(8)]
            for side in ("amx", "plain")
        }
        return [compare_case(folder, probes, model, name, alone, *case) for case in CASES]
    except (RuntimeError, OSError, ValueError, IndexError, subprocess.TimeoutExpired) as error:
        return [{"model": name, "error": f"{type(error).__name__}: {error}"}]


def compare_case(folder, probes, model, name, alone, sequences, threads) -> dict:
    path = path_of(folder, *model, exact=False)
    sides = {side: run_probe(probe, path, sequences, threads, []) for side, probe in probes.items()}
    reference = batch_order(alone["plain"], sequences)
    pairs = {
        "amx/plain": distance(sides["plain"], sides["amx"]),
        "amx/reference": distance(reference, sides["amx"]),
        "plain/reference": distance(reference, sides["plain"]),
        "references": distance(reference, batch_order(alone["amx"], sequences)),
    }
    if "stock" in sides:
        pairs["amx/stock"] = distance(sides["stock"], sides["amx"])
        pairs["stock/reference"] = distance(reference, sides["stock"])
    found = {pair: dataclasses.asdict(value) for pair, value in pairs.items()}
    return {"model": name, "sequences": sequences, "rows": len(reference), "pairs": found}


HEAD = (
    f"{'case':<28}{'seqs':>5} |{'largest difference':^39} |{'mean KL, nats':^19} |{'equal top-1':^13} |  rows over {JUMP}\n"
    f"{'':<28}{'':>5} |{'amx/plain':>10}{'amx/ref':>9}{'plain/ref':>10}{'amx/stock':>10} |{'amx':>9}{'plain':>10} |{'amx':>6}{'plain':>7} |"
    f"{'amx':>5}{'plain':>6}{'of':>5}"
)


def line_of(record: dict) -> str:
    if "error" in record:
        return f"{record['model']:<28}  FAILED: {record['error']}"
    pairs = record["pairs"]
    amx, plain, stock = pairs["amx/reference"], pairs["plain/reference"], pairs.get("amx/stock", {})
    largest = [one.get("largest", math.nan) for one in (pairs["amx/plain"], amx, plain, stock)]
    differs = "".join(f"{value:>{width}.4f}" for value, width in zip(largest, (10, 9, 10, 10)))
    divergence = f"{amx['divergence']:>9.1e}{plain['divergence']:>10.1e}"
    same = f"{100 * amx['same_first']:>6.1f}{100 * plain['same_first']:>7.1f}"
    jumps = f"{amx['jumps']:>5}{plain['jumps']:>6}{record['rows']:>5}"
    return f"{record['model']:<28}{record['sequences']:>5} |{differs} |{divergence} |{same} |{jumps}"


def ratios(records: list[dict], key: str) -> list[tuple[float, str]]:
    """AMX's distance to the reference as a multiple of the plain build's, largest first."""
    found = []
    for record in records:
        amx, plain = (record["pairs"][f"{side}/reference"][key] for side in ("amx", "plain"))
        ratio = 1.0 if amx == plain else amx / plain if plain else math.inf
        found.append((ratio, f"{record['model']}, {record['sequences']}"))
    return sorted(found, reverse=True)


def pooled(records: list[dict], side: str, key: str) -> float:
    """The mean of a distance over all rows; of squares for `rms`."""
    power = 2 if key == "rms" else 1
    rows = sum(record["rows"] for record in records)
    return (sum(record["rows"] * record["pairs"][side][key] ** power for record in records) / rows) ** (1 / power)


def conclusions(records: list[dict]) -> list[str]:
    measured = [record for record in records if "pairs" in record]
    failed = [record["model"] for record in records if "error" in record]
    lines = [f"FAILED, not in the conclusion: {', '.join(failed)}"] if failed else []
    groups = {"gate": [], "all-experts": []}
    for record in measured:
        groups["all-experts" if record["model"].endswith("all-experts") else "gate"].append(record)
    for name, group in groups.items():
        if group:
            lines += conclusion_of(name, group)
    if measured:
        apart = max(record["pairs"]["references"]["largest"] for record in measured)
        lines.append(f"the references of both builds differ by at most {apart:.1e}")
        if not any(record["pairs"]["amx/plain"]["largest"] for record in measured):
            lines.append("NO DIFFERENCE between both builds: AMX was not used")
    return lines


def conclusion_of(name: str, group: list[dict]) -> list[str]:
    lines = []
    for key in ("largest", "rms", "divergence"):
        found = ratios(group, key)
        above = [f"{case} sequences ({ratio:.2f})" for ratio, case in found if ratio > FACTOR]
        verdict = "rounding" if not above else "NOT EXPLAINED by rounding alone in " + "; ".join(above)
        middle = found[len(found) // 2][0]
        lines.append(f"{name}, {key}: AMX / plain distance to the reference: median {middle:.2f}, most {found[0][0]:.2f}: {verdict}")
    for key in ("rms", "divergence", "same_first"):
        amx, plain = (pooled(group, f"{side}/reference", key) for side in ("amx", "plain"))
        lines.append(f"{name}, {key} over all {len(group)} cases: AMX {amx:.3e}, plain {plain:.3e}")
    return lines


def write_json(path: str, value: dict):
    part = pathlib.Path(path + ".part")
    part.write_text(json.dumps(value, indent=1) + "\n")
    part.rename(path)


def compare_logits(given: argparse.Namespace) -> int:
    probes, records = dict(probe.split("=", 1) for probe in given.probe), []
    print(HEAD, flush=True)
    with concurrent.futures.ProcessPoolExecutor(given.jobs) as pool:
        running = [pool.submit(compare_model, given.folder, probes, model) for model in names_of_models()]
        for one in concurrent.futures.as_completed(running):
            records += one.result()
            for record in one.result():
                print(line_of(record), flush=True)
            write_json(given.json, {"records": records, "conclusions": conclusions(records)})
    print(f"\nRule: rounding, if AMX's distance to the reference is at most {FACTOR} x the plain build's in every case.")
    print("\n".join(conclusions(records)), flush=True)
    return 1 if any("error" in record for record in records) else 0


def measure(probe: str, model: str, threads: int, repeats: int) -> dict:
    command = [probe, "--model", model, "--seqs", "1", "--prompt", "512", "--steps", "32", "--threads", str(threads)]
    done = subprocess.run([*command, "--repeat", str(repeats)], stdout=subprocess.PIPE, text=True, timeout=100, check=True)
    return json.loads(done.stdout)


def compare_speed(given: argparse.Namespace) -> int:
    """Both builds in turn, twice; the best of all repeats counts, since other tenants may share the host."""
    probes, records, end = dict(probe.split("=", 1) for probe in given.probe), [], time.monotonic() + given.seconds
    print(f"tokens/s, best{'':<4}|{'prompt of 512':^26} |{'decode, 32 tokens':^26} |")
    print(f"{'type':<8}{'threads':>8}  |" + f"{'amx':>9}{'plain':>9}{'ratio':>8} |" * 2)
    for threads in (8, 1):
        for kind in SPEED_TYPES:
            if time.monotonic() > end:
                print("out of time")
                return 1
            records.append(speed_of(given, probes, kind, threads))
            print(speed_line(records[-1]), flush=True)
            write_json(given.json, {"records": records})
    return 0


def speed_of(given: argparse.Namespace, probes: dict[str, str], kind: str, threads: int) -> dict:
    found = {side: {"prompt": [], "decode": []} for side in ("amx", "plain")}
    for side in ("amx", "plain", "plain", "amx"):
        times = measure(probes[side], speed_path(given.folder, kind), threads, 5 if threads > 1 else 2)
        found[side]["prompt"].append(times["prompt_tps_best"])
        found[side]["decode"].append(times["decode_tps_best"])
    return {"type": kind, "threads": threads, **found}


def speed_line(record: dict) -> str:
    line = f"{record['type']:<8}{record['threads']:>8}  |"
    for what in ("prompt", "decode"):
        amx, plain = max(record["amx"][what]), max(record["plain"][what])
        line += f"{amx:>9.1f}{plain:>9.1f}{amx / plain:>8.2f} |"
    return line


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("models", "logits", "speed"))
    parser.add_argument("--folder", required=True, help="of the models")
    parser.add_argument("--probe", action="append", default=[], help="amx=PATH, plain=PATH, and stock=PATH for logits")
    parser.add_argument("--json", default="amx.json", help="results so far, after each model")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    parser.add_argument("--seconds", type=float, default=100.0, help="for speed; nothing is started later")
    given = parser.parse_args()
    if given.what == "models":
        write_models(given)
        return 0
    return compare_logits(given) if given.what == "logits" else compare_speed(given)


if __name__ == "__main__":
    raise SystemExit(main())
