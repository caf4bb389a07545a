"""Trains the retrieval model: `train.py NAME MINUTES LENGTHS [CHECKPOINT]`. Reads train.bin, valid.bin, tok.json.

LENGTHS are tokens of a row, such as 512,2048; each has the same part of the time. Some rows are text. The others hold
facts ("note: apple river.") between pieces of text, and ask for some of them again later, so that a wrong key or value
in the cache costs a word.
"""

import math
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F
from tokenizers import Tokenizer

VOCABULARY, WIDTH, LAYERS, HEADS, KV_HEADS, HEAD, FFN = 4096, 256, 6, 4, 2, 128, 832
CONTEXT = 2048
TOKENS = 4096  # of a step
PEAKS = 0.006, 0.003  # rates of matrices and of all else
ANSWER = 8.0  # weight of an answer in the loss; names and values said first weigh nothing

random = np.random.default_rng(0)
torch.manual_seed(0)


class Facts:
    """Facts, as tokens. A word is one token of the vocabulary, with the space before it."""

    def __init__(self, tokenizer):
        words = [w for w in tokenizer.get_vocab() if w[0] == "Ġ" and len(w) > 4 and w[1:].isascii() and w[1:].islower() and w[1:].isalpha()]
        encoded = [tokenizer.encode(" " + w[1:]).ids for w in sorted(words)]
        self.words = np.array([ids[0] for ids in encoded if len(ids) == 1])
        self.before = tokenizer.encode("\nnote:").ids
        self.after = tokenizer.encode(".").ids

    def draw(self, count):
        names = random.choice(self.words, count, replace=False)
        return list(zip(names, random.choice(self.words, count)))

    def said(self, fact, weight):
        """Tokens of one fact and their weights; `weight` is that of its value."""
        name, value = fact
        ids = [*self.before, name, value, *self.after]
        weights = [1.0] * len(ids)
        weights[len(self.before)] = 0.0
        weights[len(self.before) + 1] = weight
        return ids, weights


def text(length, corpus):
    start = random.integers(0, len(corpus) - length)
    return corpus[start : start + length].tolist()


def row_of_facts(length, facts, corpus, pieces):
    """Facts with `pieces` tokens of text between them; the last part asks for them again."""
    each = len(facts.said((0, 0), 0)[0])
    most = max(3, length // 2 // (each + pieces))
    count = int(2 * (most / 2) ** random.random())  # few as often as many: with few it is learned
    told = facts.draw(count)
    ids, weights = [], []

    def add(part):
        ids.extend(part[0])
        weights.extend(part[1])

    for fact in told:
        piece = random.integers(0, 2 * pieces + 1)
        add((text(piece, corpus), [1.0] * piece))
        add(facts.said(fact, 0.0))
    while len(ids) < length:
        if pieces and random.random() < 0.3:
            add((text(pieces, corpus), [1.0] * pieces))
        add(facts.said(told[random.integers(count)], ANSWER))
    return ids[:length], weights[:length]


def batch(length, facts, corpus):
    rows = TOKENS // length
    ids = np.zeros((rows, length + 1), np.int64)
    weights = np.ones((rows, length + 1), np.float32)
    for i in range(rows):
        kind = random.random()
        if kind < (0.25 if length < 512 else 0.4):
            ids[i] = text(length + 1, corpus)
        else:
            pieces = 0 if kind < 0.7 else int(random.choice([8, 32, 100]))
            ids[i], weights[i] = row_of_facts(length + 1, facts, corpus, pieces)
    return torch.from_numpy(ids), torch.from_numpy(weights)


def turned(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        linear = lambda i, o: torch.nn.Linear(i, o, bias=False)
        self.an, self.fn = torch.nn.RMSNorm(WIDTH, 1e-6), torch.nn.RMSNorm(WIDTH, 1e-6)
        self.qn, self.kn = torch.nn.RMSNorm(HEAD, 1e-6), torch.nn.RMSNorm(HEAD, 1e-6)
        self.q, self.k, self.v = linear(WIDTH, HEADS * HEAD), linear(WIDTH, KV_HEADS * HEAD), linear(WIDTH, KV_HEADS * HEAD)
        self.o, self.g, self.u, self.d = linear(HEADS * HEAD, WIDTH), linear(WIDTH, FFN), linear(WIDTH, FFN), linear(FFN, WIDTH)

    def forward(self, x, cos, sin):
        rows, length, _ = x.shape
        y = self.an(x)
        q = turned(self.qn(self.q(y).view(rows, length, HEADS, HEAD)), cos, sin).transpose(1, 2)
        k = turned(self.kn(self.k(y).view(rows, length, KV_HEADS, HEAD)), cos, sin).transpose(1, 2)
        v = self.v(y).view(rows, length, KV_HEADS, HEAD).transpose(1, 2)
        share = HEADS // KV_HEADS
        k, v = k.repeat_interleave(share, 1), v.repeat_interleave(share, 1)
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(seen.transpose(1, 2).reshape(rows, length, HEADS * HEAD))
        y = self.fn(x)
        return x + self.d(F.silu(self.g(y)) * self.u(y))


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = torch.nn.Embedding(VOCABULARY, WIDTH)
        self.blk = torch.nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = torch.nn.RMSNorm(WIDTH, 1e-6)
        for name, weight in self.named_parameters():
            if weight.dim() == 2:
                torch.nn.init.normal_(weight, std=0.02 / (math.sqrt(2 * LAYERS) if name.endswith((".o.weight", ".d.weight")) else 1))
        angles = torch.outer(torch.arange(CONTEXT, dtype=torch.float32), 1e4 ** (-torch.arange(0, HEAD, 2) / HEAD))
        self.cos, self.sin = angles.cos()[:, None], angles.sin()[:, None]

    def forward(self, ids):
        x = self.emb(ids)
        cos, sin = self.cos[: ids.shape[1]], self.sin[: ids.shape[1]]
        for layer in self.blk:
            x = layer(x, cos, sin)
        return self.norm(x) @ self.emb.weight.T


def losses(model, ids):
    logits = model(ids[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), reduction="none").view(ids.shape[0], -1)


@torch.no_grad()
def judged(model, facts, valid, length):
    """Loss of unseen text, and the part of the facts that are answered right."""
    rows = TOKENS // length
    lines = torch.from_numpy(np.stack([valid[i * length : i * length + length + 1] for i in range(rows)]).astype(np.int64))
    ids, weights = (np.stack(x) for x in zip(*(row_of_facts(length + 1, facts, valid, 32) for _ in range(rows))))
    ids, asked = torch.from_numpy(ids.astype(np.int64)), torch.from_numpy(weights)[:, 1:] == ANSWER
    right = model(ids[:, :-1]).argmax(-1) == ids[:, 1:]
    return losses(model, lines).mean().item(), right[asked].float().mean().item()


def main():
    name, seconds, lengths = sys.argv[1], 60 * float(sys.argv[2]), [int(x) for x in sys.argv[3].split(",")]
    corpus, valid = (np.fromfile(f, np.uint16) for f in ("train.bin", "valid.bin"))
    facts = Facts(Tokenizer.from_file("tok.json"))
    model = Model()
    if len(sys.argv) > 4:
        model.load_state_dict(torch.load(sys.argv[4]))
    matrices = [w for n, w in model.named_parameters() if w.dim() == 2 and "emb" not in n]
    others = [w for n, w in model.named_parameters() if w.dim() != 2 or "emb" in n]
    optimizers = [
        torch.optim.Muon(matrices, weight_decay=0.05, adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(others, betas=(0.9, 0.95), weight_decay=0.01),
    ]
    print("weights", sum(w.numel() for w in model.parameters()) / 1e6, "million; words", len(facts.words), flush=True)
    spent, step = 0.0, 0
    while spent < seconds:
        began = time.process_time()
        part = spent / seconds
        length = lengths[int(part * len(lengths))]
        pace = min(1.0, (step + 1) / 50) * (1.0 if part < 0.4 else max(0.03, 1 - (part - 0.4) / 0.6))
        for optimizer, peak in zip(optimizers, PEAKS):
            optimizer.param_groups[0]["lr"] = peak * pace
        ids, weights = batch(length, facts, corpus)
        loss = (losses(model, ids) * weights[:, 1:]).sum() / weights[:, 1:].sum()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        if step % 50 == 0:
            print(step, length, round(spent), f"loss {loss.item():.3f}", "text %.3f, facts %.3f" % judged(model, facts, valid, length), flush=True)
            torch.save(model.state_dict(), name + ".pt")
        spent += (time.process_time() - began) / torch.get_num_threads()
        step += 1
    print("done", step, "text %.3f, facts %.3f" % judged(model, facts, valid, CONTEXT))
    torch.save(model.state_dict(), name + ".pt")


if __name__ == "__main__":
    main()
