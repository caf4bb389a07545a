"""Writes a trained model as GGUF: `to_gguf.py NAME.pt OUT.gguf`."""

import json
import sys

import gguf
import torch

from train import FFN, HEAD, HEADS, KV_HEADS, LAYERS, CONTEXT, VOCABULARY, WIDTH

TENSORS = {"q": "attn_q", "k": "attn_k", "v": "attn_v", "o": "attn_output", "g": "ffn_gate", "u": "ffn_up", "d": "ffn_down"}
NORMS = {"an": "attn_norm", "fn": "ffn_norm", "qn": "attn_q_norm", "kn": "attn_k_norm"}


def describe(writer, tokenizer):
    writer.add_name("Espalier retrieval")
    writer.add_author("the Espalier project")
    writer.add_license("MIT")
    writer.add_description("Small language model, trained from scratch on technical English and on facts to look up, for tests only.")
    writer.add_block_count(LAYERS)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(FFN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_key_length(HEAD)
    writer.add_value_length(HEAD)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(1e4)
    writer.add_vocab_size(VOCABULARY)
    vocabulary = sorted(tokenizer["model"]["vocab"].items(), key=lambda entry: entry[1])
    kinds = [gguf.TokenType.CONTROL if i < 4 else gguf.TokenType.NORMAL for i in range(VOCABULARY)]
    merges = [m if isinstance(m, str) else " ".join(m) for m in tokenizer["model"]["merges"]]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([token for token, _ in vocabulary])
    writer.add_token_types(kinds)
    writer.add_token_merges(merges)
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(0)
    writer.add_pad_token_id(3)
    writer.add_add_bos_token(False)


def add_tensors(writer, weights):
    def add(name, weight):
        matrix = weight.dim() == 2
        if matrix:
            data = gguf.quants.quantize(weight.numpy(), gguf.GGMLQuantizationType.Q8_0)
            writer.add_tensor(name, data, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
        else:
            writer.add_tensor(name, weight.numpy())

    add("token_embd.weight", weights["emb.weight"])
    add("output_norm.weight", weights["norm.weight"])
    for i in range(LAYERS):
        for ours, theirs in (NORMS | TENSORS).items():
            add(f"blk.{i}.{theirs}.weight", weights[f"blk.{i}.{ours}.weight"])


def main():
    writer = gguf.GGUFWriter(sys.argv[2], "qwen3")
    describe(writer, json.load(open("tok.json")))
    add_tensors(writer, torch.load(sys.argv[1]))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


main()
