#!/usr/bin/env python3
"""Writes a random model with grouped query attention, as GGUF, with the vocabulary of another model.

    python3 ci/probe/random_model.py --vocabulary ci/models/espalier-retrieval.gguf --out model.gguf

The standard library is enough: rows are windows of one table of normally distributed numbers, so that half a gigabyte
takes seconds. Q and K are larger than the rest, so that attention is peaked and an error in it changes the answer.

Matrices are f16, or random blocks of another `--type`: one scale for a tensor, and random bits.
"""

import argparse
import io
import pathlib
import random
import struct

STRING, ARRAY = 8, 9
SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
F32, F16 = 0, 1
# ggml_type, weights of a block, bytes of a block; where the f16 scale is in it, and the mean magnitude of a quant.
TYPES = {
    "f16": (F16, 1, 2, 0, 1.0),
    "q4_0": (2, 32, 18, 0, 4.6),
    "q8_0": (8, 32, 34, 0, 74.0),
    "q4_K": (12, 256, 144, 0, 290.0),
    "q6_K": (14, 256, 210, 208, 1370.0),
}
ALIGNMENT = 32
TABLE = 1 << 20


def read_value(file, kind: int) -> bytes:
    """The bytes of one value of GGUF metadata."""
    if kind == STRING:
        length = file.read(8)
        return length + file.read(struct.unpack("<Q", length)[0])
    if kind == ARRAY:
        head = file.read(12)
        element, count = struct.unpack("<IQ", head)
        return head + b"".join(read_value(file, element) for _ in range(count))
    return file.read(SIZES[kind])


def vocabulary_of(path: str) -> tuple[list[bytes], int]:
    """The entries of the tokenizer, as they are in the file, and the number of its tokens."""
    entries, tokens = [], 0
    with open(path, "rb") as file:
        magic, _, _, count = struct.unpack("<4sIQQ", file.read(24))
        if magic != b"GGUF":
            raise SystemExit(f"{path} is not GGUF")
        for _ in range(count):
            key = read_value(file, STRING)
            kind = file.read(4)
            value = read_value(file, struct.unpack("<I", kind)[0])
            if key[8:].startswith(b"tokenizer."):
                entries.append(key + kind + value)
            if key[8:] == b"tokenizer.ggml.tokens":
                tokens = struct.unpack("<IQ", value[:12])[1]
    return entries, tokens


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def number(key: str, value: int | float) -> bytes:
    kind, form = (6, "<f") if isinstance(value, float) else (4, "<I")
    return text(key) + struct.pack("<I", kind) + struct.pack(form, value)


def metadata_of(shape: argparse.Namespace, tokens: int) -> list[bytes]:
    llama = {
        "vocab_size": tokens, "context_length": 1 << 18, "embedding_length": shape.embedding, "block_count": shape.layers,
        "feed_forward_length": shape.feed_forward, "attention.head_count": shape.heads, "attention.head_count_kv": shape.kv_heads,
        "attention.key_length": shape.head, "attention.value_length": shape.head, "attention.layer_norm_rms_epsilon": 1e-5,
        "rope.dimension_count": shape.head, "rope.freq_base": 500000.0,
    }  # fmt: skip
    name = text("general.architecture") + struct.pack("<I", STRING) + text("llama")
    return [name] + [number("llama." + key, value) for key, value in llama.items()]


def tensors_of(shape: argparse.Namespace, tokens: int) -> list[tuple[str, tuple[int, ...], float]]:
    """Name, dimensions (the row first) and gain of each tensor; a vector has ones and no gain."""
    wide, narrow = shape.heads * shape.head, shape.kv_heads * shape.head
    found = [("token_embd.weight", (shape.embedding, tokens), 1.0), ("output_norm.weight", (shape.embedding,), 0.0)]
    for layer in range(shape.layers):
        parts = {
            "attn_norm": ((shape.embedding,), 0.0), "attn_q": ((shape.embedding, wide), 2.0), "attn_k": ((shape.embedding, narrow), 2.0),
            "attn_v": ((shape.embedding, narrow), 1.0), "attn_output": ((wide, shape.embedding), 2.0), "ffn_norm": ((shape.embedding,), 0.0),
            "ffn_gate": ((shape.embedding, shape.feed_forward), 1.0), "ffn_up": ((shape.embedding, shape.feed_forward), 1.0),
            "ffn_down": ((shape.feed_forward, shape.embedding), 1.0),
        }  # fmt: skip
        found += [(f"blk.{layer}.{name}.weight", dims, gain) for name, (dims, gain) in parts.items()]
    return found


def padded(length: int) -> int:
    return -(-length // ALIGNMENT) * ALIGNMENT


def bytes_of(dims: tuple[int, ...], kind: str) -> int:
    _, block, size, _, _ = TYPES[kind]
    return 4 * dims[0] if len(dims) == 1 else dims[0] // block * size * dims[1]


def header(metadata: list[bytes], tensors: list[tuple[str, tuple[int, ...], float]], kind: str) -> bytes:
    out = io.BytesIO()
    out.write(struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(metadata)))
    out.write(b"".join(metadata))
    offset = 0
    for name, dims, _ in tensors:
        out.write(text(name) + struct.pack("<I", len(dims)) + struct.pack(f"<{len(dims)}Q", *dims))
        out.write(struct.pack("<IQ", F32 if len(dims) == 1 else TYPES[kind][0], offset))
        offset += padded(bytes_of(dims, kind))
    return out.getvalue() + bytes(padded(out.tell()) - out.tell())


class Rows:
    """Rows of normally distributed f16, or of random blocks, of any scale: one table for each scale."""

    def __init__(self, kind: str):
        self.kind = kind
        self.random = random.Random(1)
        self.normal = [self.random.gauss(0.0, 1.0) for _ in range(TABLE)]
        self.tables: dict[float, bytes] = {}

    def table(self, scale: float) -> bytes:
        if scale not in self.tables:
            make = self.halves if self.kind == "f16" else self.blocks
            self.tables[scale] = make(scale)
        return self.tables[scale]

    def halves(self, scale: float) -> bytes:
        return struct.pack(f"<{TABLE}e", *(value * scale for value in self.normal))

    def blocks(self, scale: float) -> bytes:
        _, block, size, at, mean = TYPES[self.kind]
        table = bytearray(self.random.randbytes(TABLE // block * size))
        for first in range(0, len(table), size):
            struct.pack_into("<e", table, first + at, scale / mean)
            if self.kind == "q4_K":  # the scale of the minima, which are half of the largest quant
                struct.pack_into("<e", table, first + 2, 7.5 * scale / mean)
        return bytes(table)

    def write(self, out, dims: tuple[int, ...], gain: float):
        if len(dims) == 1:
            out.write(struct.pack(f"<{dims[0]}f", *[1.0] * dims[0]))
            return
        table = memoryview(self.table(gain / dims[0] ** 0.5))
        _, block, size, _, _ = TYPES[self.kind]
        length = dims[0] // block
        for _ in range(dims[1]):
            first = self.random.randrange(TABLE // block - length)
            out.write(table[size * first : size * (first + length)])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vocabulary", required=True, help="a model in GGUF")
    parser.add_argument("--out", required=True)
    parser.add_argument("--type", choices=TYPES, default="f16", help="of the matrices")
    for name, value in [("layers", 8), ("embedding", 2048), ("feed-forward", 2048), ("heads", 32), ("kv-heads", 4), ("head", 128)]:
        parser.add_argument(f"--{name}", type=int, default=value)
    shape = parser.parse_args()
    entries, tokens = vocabulary_of(shape.vocabulary)
    tensors, rows = tensors_of(shape, tokens), Rows(shape.type)
    part = pathlib.Path(shape.out + ".part")
    with part.open("wb") as out:
        out.write(header(metadata_of(shape, tokens) + entries, tensors, shape.type))
        for _, dims, gain in tensors:
            rows.write(out, dims, gain)
            length = bytes_of(dims, shape.type)
            out.write(bytes(padded(length) - length))
    part.rename(shape.out)
    print(f"{shape.out}: {pathlib.Path(shape.out).stat().st_size / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
