#!/usr/bin/env python3
"""Writes the gate's random models without the tool: the bytes that the crate `modelgen` writes for `ModelSpec::small`.

    python3 ci/probe/gate_model.py --architecture qwen35moe --weights q8_0 --out model.gguf

With `--exact FILE` it also writes the same weights in f32, which is exact: every quantized value is a product of an f16
scale and a small integer. With `--all-experts FILE` and `--all-experts-exact FILE` also models with the same weights
that use every expert, so that no rounding error can change the choice of experts. The standard library is enough.
"""

import argparse
import array
import math
import pathlib
import struct

MASK = (1 << 64) - 1
QWEN = ("qwen35", "qwen35moe", "qwen3next")
MOE = ("qwen35moe", "qwen3next")
ARCHITECTURES = ("llama", "qwen3", "gemma3", *QWEN)
# Name: ggml_type, llama_ftype, weights of a block, bytes of a block.
TYPES = {"f32": (0, 0, 1, 4), "f16": (1, 1, 1, 2), "q4_0": (2, 2, 32, 18), "q8_0": (8, 7, 32, 34)}
LAYERS, EMBEDDING, FEED_FORWARD, VOCABULARY, HEADS, KV_HEADS, HEAD = 4, 256, 512, 320, 4, 2, 64
KEY_HEADS, VALUE_HEADS, CONVOLUTION, INTERVAL, DELTA_HEAD = 4, 8, 4, 4, 64
EXPERTS, EXPERTS_USED, EXPERT_FEED_FORWARD = 4, 2, 128
KEYS, VALUES = KEY_HEADS * DELTA_HEAD, VALUE_HEADS * DELTA_HEAD
ALIGNMENT = 32


def f32(value: float) -> float:
    """The nearest f32."""
    return struct.unpack("<f", struct.pack("<f", value))[0]


class Tensor:
    """A tensor of the file: dimensions innermost first, values uniform within `center` +- `spread`."""

    def __init__(self, name: str, dims: tuple[int, ...], weights: str, center: float, spread: float):
        self.name, self.dims, self.weights = name, dims, weights
        self.center, self.spread = f32(center), f32(spread)
        self.elements = math.prod(dims)


class Tensors(list):
    """The tensors of a model, in the order of the file."""

    def __init__(self, architecture: str, weights: str):
        super().__init__()
        self.architecture, self.weights, self.prefix = architecture, weights, ""
        self.matrix("token_embd.weight", EMBEDDING, VOCABULARY)
        self.norm("output_norm.weight", EMBEDDING)
        self.matrix("output.weight", EMBEDDING, VOCABULARY)
        for layer in range(LAYERS):
            self.prefix = f"blk.{layer}."
            self.layer(architecture not in QWEN or (layer + 1) % INTERVAL == 0)

    def matrix(self, name: str, *dims: int):
        self.append(Tensor(self.prefix + name, dims, self.weights, 0.0, math.sqrt(f32(3.0 / dims[0]))))

    def floats(self, name: str, dims: tuple[int, ...], center: float, spread: float):
        self.append(Tensor(self.prefix + name, dims, "f32", center, spread))

    def norm(self, name: str, size: int):
        self.floats(name, (size,), 1.0, 0.1)

    def layer(self, is_attention: bool):
        self.norm("attn_norm.weight", EMBEDDING)
        if is_attention:
            self.attention()
        else:
            self.delta_net()
        if self.architecture == "gemma3":
            self.norm("post_attention_norm.weight", EMBEDDING)
            self.norm("post_ffw_norm.weight", EMBEDDING)
        self.norm("post_attention_norm.weight" if self.architecture in QWEN else "ffn_norm.weight", EMBEDDING)
        if self.architecture in MOE:
            self.experts()
        else:
            self.matrix("ffn_gate.weight", EMBEDDING, FEED_FORWARD)
            self.matrix("ffn_up.weight", EMBEDDING, FEED_FORWARD)
            self.matrix("ffn_down.weight", FEED_FORWARD, EMBEDDING)

    def attention(self):
        heads, kv_heads = HEAD * HEADS, HEAD * KV_HEADS
        self.matrix("attn_q.weight", EMBEDDING, 2 * heads if self.architecture in QWEN else heads)
        self.matrix("attn_k.weight", EMBEDDING, kv_heads)
        self.matrix("attn_v.weight", EMBEDDING, kv_heads)
        self.matrix("attn_output.weight", heads, EMBEDDING)
        if self.architecture != "llama":
            self.floats("attn_q_norm.weight", (HEAD,), 1.0 if self.architecture in QWEN else 2.0, 0.1)
            self.norm("attn_k_norm.weight", HEAD)

    def delta_net(self):
        width = 2 * KEYS + VALUES
        self.matrix("attn_qkv.weight", EMBEDDING, width)
        self.matrix("attn_gate.weight", EMBEDDING, VALUES)
        self.floats("ssm_conv1d.weight", (CONVOLUTION, width), 0.0, 0.8)
        self.floats("ssm_dt.bias", (VALUE_HEADS,), 0.0, 1.0)
        self.floats("ssm_a", (VALUE_HEADS,), -0.2, 0.15)
        if self.architecture == "qwen3next":
            self.matrix("ssm_ba.weight", EMBEDDING, 2 * VALUE_HEADS)
        else:
            self.matrix("ssm_beta.weight", EMBEDDING, VALUE_HEADS)
            self.matrix("ssm_alpha.weight", EMBEDDING, VALUE_HEADS)
        self.norm("ssm_norm.weight", DELTA_HEAD)
        self.matrix("ssm_out.weight", VALUES, EMBEDDING)

    def experts(self):
        spread = math.sqrt(f32(3.0 / EMBEDDING))
        self.floats("ffn_gate_inp.weight", (EMBEDDING, EXPERTS), 0.0, spread)
        self.matrix("ffn_gate_exps.weight", EMBEDDING, EXPERT_FEED_FORWARD, EXPERTS)
        self.matrix("ffn_up_exps.weight", EMBEDDING, EXPERT_FEED_FORWARD, EXPERTS)
        self.matrix("ffn_down_exps.weight", EXPERT_FEED_FORWARD, EMBEDDING, EXPERTS)
        self.floats("ffn_gate_inp_shexp.weight", (EMBEDDING,), 0.0, spread)
        self.matrix("ffn_gate_shexp.weight", EMBEDDING, EXPERT_FEED_FORWARD)
        self.matrix("ffn_up_shexp.weight", EMBEDDING, EXPERT_FEED_FORWARD)
        self.matrix("ffn_down_shexp.weight", EXPERT_FEED_FORWARD, EMBEDDING)


class Noise:
    """SplitMix64, seeded by the name of a tensor and the model's seed, 1."""

    def __init__(self, name: str):
        state = 0xCBF29CE484222325
        for byte in name.encode():
            state = ((state ^ byte) * 0x100000001B3) & MASK
        self.state = state ^ 0x9E3779B97F4A7C15

    def next(self) -> int:
        self.state = state = (self.state + 0x9E3779B97F4A7C15) & MASK
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & MASK
        return state ^ (state >> 31)

    def unit(self) -> float:
        return (self.next() >> 40) / (1 << 24)


def floats_of(tensor: Tensor) -> array.array:
    """Values that are generated as f32."""
    noise, spread, half = Noise(tensor.name), tensor.spread, 1 << 23
    products = array.array("f", (spread * (((noise.next() >> 40) - half) / half) for _ in range(tensor.elements)))
    if tensor.center == 0.0:
        return products
    return array.array("f", (tensor.center + product for product in products))


def blocks_of(tensor: Tensor, quants: int, most: float, centered: bytes):
    """The f16 scale and the quants of each block, as they are in the file."""
    noise, scale = Noise(tensor.name), f32(tensor.spread / most)
    for _ in range(tensor.elements // 32):
        factor = f32(0.75 + 0.5 * noise.unit())
        half = struct.pack("<e", f32(scale * factor))
        words = struct.pack(f"<{quants // 8}Q", *(noise.next() for _ in range(quants // 8)))
        yield half, words.translate(centered)


# -128 has no positive counterpart, neither has -8: both become 0, so that the mean is 0.
CENTERED_BYTES = bytes(0 if byte == 0x80 else byte for byte in range(256))
CENTERED_NIBBLES = bytes((byte & 15 or 8) | (byte >> 4 or 8) << 4 for byte in range(256))


def q8_0_of(tensor: Tensor) -> tuple[bytes, array.array]:
    blocks, exact = [], array.array("f")
    for half, quants in blocks_of(tensor, 32, 127.0, CENTERED_BYTES):
        scale = struct.unpack("<e", half)[0]
        blocks.append(half + quants)
        exact.extend([scale * quant for quant in array.array("b", quants)])
    return b"".join(blocks), exact


def q4_0_of(tensor: Tensor) -> tuple[bytes, array.array]:
    blocks, exact = [], array.array("f")
    for half, quants in blocks_of(tensor, 16, 7.0, CENTERED_NIBBLES):
        scale = struct.unpack("<e", half)[0]
        blocks.append(half + quants)
        exact.extend([scale * ((quant & 15) - 8) for quant in quants])
        exact.extend([scale * ((quant >> 4) - 8) for quant in quants])
    return b"".join(blocks), exact


def data_of(tensor: Tensor) -> tuple[bytes, bytes]:
    """The bytes of a tensor in its own type, and those of the same values in f32."""
    if tensor.weights == "q8_0":
        data, exact = q8_0_of(tensor)
    elif tensor.weights == "q4_0":
        data, exact = q4_0_of(tensor)
    else:
        exact = floats_of(tensor)
        if tensor.weights == "f32":
            return exact.tobytes(), exact.tobytes()
        data = struct.pack(f"<{len(exact)}e", *exact)
        exact = array.array("f", struct.unpack(f"<{len(exact)}e", data))
    return data, exact.tobytes()


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


class Metadata:
    """Key-value pairs of the header."""

    def __init__(self, architecture: str):
        self.prefix, self.pairs = architecture + ".", []
        self.text("general.architecture", architecture)

    def pair(self, key: str, kind: int, value: bytes):
        self.pairs.append(text(key) + struct.pack("<I", kind) + value)

    def text(self, key: str, value: str):
        self.pair(key, 8, text(value))

    def number(self, key: str, value: int):
        self.pair(key, 4, struct.pack("<I", value))

    def float(self, key: str, value: float):
        self.pair(self.prefix + key, 6, struct.pack("<f", value))

    def own(self, **values: int):
        for key, value in values.items():
            self.number(self.prefix + key.replace("__", "."), value)

    def array(self, key: str, kind: int, items: list[bytes]):
        self.pair(key, 9, struct.pack("<IQ", kind, len(items)) + b"".join(items))


def metadata_of(architecture: str, weights: str, experts_used: int) -> list[bytes]:
    found, rope = Metadata(architecture), HEAD // 4 if architecture in QWEN else HEAD
    found.text("general.name", f"random {architecture}")
    found.number("general.file_type", TYPES[weights][1])
    found.number("general.quantization_version", 2)
    found.own(vocab_size=VOCABULARY, context_length=4096, embedding_length=EMBEDDING, block_count=LAYERS)
    found.own(feed_forward_length=FEED_FORWARD, attention__head_count=HEADS, attention__head_count_kv=KV_HEADS)
    found.own(attention__key_length=HEAD, attention__value_length=HEAD, rope__dimension_count=rope)
    found.float("rope.freq_base", 10000.0)
    found.float("attention.layer_norm_rms_epsilon", 1e-6)
    if architecture == "gemma3":
        found.own(attention__sliding_window=16, attention__sliding_window_pattern=2)
    if architecture in QWEN:
        found.own(full_attention_interval=INTERVAL, ssm__conv_kernel=CONVOLUTION, ssm__state_size=DELTA_HEAD)
        found.own(ssm__group_count=KEY_HEADS, ssm__time_step_rank=VALUE_HEADS, ssm__inner_size=VALUES)
    if architecture in ("qwen35", "qwen35moe"):
        third = rope // 2 // 3
        sections = [struct.pack("<i", value) for value in (rope // 2 - 2 * third, third, third, 0)]
        found.array(found.prefix + "rope.dimension_sections", 5, sections)
    if architecture in MOE:
        found.own(expert_count=EXPERTS, expert_used_count=experts_used)
        found.own(expert_feed_forward_length=EXPERT_FEED_FORWARD, expert_shared_feed_forward_length=EXPERT_FEED_FORWARD)
    tokenizer(found)
    return found.pairs


def tokenizer(found: Metadata):
    """A SentencePiece vocabulary of bytes."""
    special = ["<unk>", "<s>", "</s>"]
    tokens = special + [f"<0x{byte:02X}>" for byte in range(256)] + [f"~{token}~" for token in range(259, VOCABULARY)]
    kinds = [2, 3, 3] + [6] * 256 + [1] * (VOCABULARY - 259)
    found.text("tokenizer.ggml.model", "llama")
    found.array("tokenizer.ggml.tokens", 8, [text(token) for token in tokens])
    found.array("tokenizer.ggml.scores", 6, [struct.pack("<f", 0.0)] * VOCABULARY)
    found.array("tokenizer.ggml.token_type", 5, [struct.pack("<i", kind) for kind in kinds])
    for token, name in enumerate(("unknown", "bos", "eos")):
        found.number(f"tokenizer.ggml.{name}_token_id", token)
    for name in ("add_bos_token", "add_space_prefix"):
        found.pair(f"tokenizer.ggml.{name}", 7, b"\0")


def padding(length: int) -> bytes:
    return bytes(-length % ALIGNMENT)


def header_of(metadata: list[bytes], tensors: list[Tensor], sizes: list[int], exact: bool) -> bytes:
    parts = [struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(metadata)), *metadata]
    offset = 0
    for tensor, size in zip(tensors, sizes):
        kind = TYPES["f32" if exact else tensor.weights][0]
        parts += [text(tensor.name), struct.pack("<I", len(tensor.dims)), struct.pack(f"<{len(tensor.dims)}Q", *tensor.dims)]
        parts.append(struct.pack("<IQ", kind, offset))
        offset += size + len(padding(size))
    header = b"".join(parts)
    return header + padding(len(header))


def write(path: str, architecture: str, weights: str, experts_used: int, tensors: list[Tensor], data: list[bytes], exact: bool):
    metadata = metadata_of(architecture, "f32" if exact else weights, experts_used)
    part = pathlib.Path(path + ".part")
    with part.open("wb") as out:
        out.write(header_of(metadata, tensors, [len(one) for one in data], exact))
        for one in data:
            out.write(one + padding(len(one)))
    part.rename(path)


def write_models(architecture: str, weights: str, out: str, exact: str = "", all_experts: str = "", all_experts_exact: str = ""):
    """Writes the model, and its variants whose paths are not empty."""
    tensors = Tensors(architecture, weights)
    data = [data_of(tensor) for tensor in tensors]
    variants = [(out, EXPERTS_USED, 0), (exact, EXPERTS_USED, 1), (all_experts, EXPERTS, 0), (all_experts_exact, EXPERTS, 1)]
    for path, used, column in variants:
        if path:
            write(path, architecture, weights, used, tensors, [one[column] for one in data], column == 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--architecture", required=True, choices=ARCHITECTURES)
    parser.add_argument("--weights", required=True, choices=TYPES)
    parser.add_argument("--out", required=True)
    for name in ("exact", "all-experts", "all-experts-exact"):
        parser.add_argument(f"--{name}", default="")
    given = parser.parse_args()
    if (given.all_experts or given.all_experts_exact) and given.architecture not in MOE:
        parser.error(f"{given.architecture} has no experts")
    write_models(given.architecture, given.weights, given.out, given.exact, given.all_experts, given.all_experts_exact)


if __name__ == "__main__":
    main()
