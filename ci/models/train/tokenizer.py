"""Trains the tokenizer: byte-level BPE of 4,096 tokens. Writes tok.json, train.bin and valid.bin."""

import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|pad|>"]


def main():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=4096, special_tokens=SPECIAL, initial_alphabet=alphabet)
    documents = open("txt/train.txt").read().split("\0")
    tokenizer.train_from_iterator(documents, trainer)
    tokenizer.save("tok.json")
    ids = [token for document in tokenizer.encode_batch(documents) for token in [*document.ids, 0]]
    np.array(ids, dtype=np.uint16).tofile("train.bin")
    valid = tokenizer.encode(open("txt/valid.txt").read()).ids
    np.array(valid, dtype=np.uint16).tofile("valid.bin")
    print(len(ids), "tokens to train,", len(valid), "to judge")


main()
