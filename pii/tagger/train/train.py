"""Trains the tagger's network on what the Go command beside this file wrote.

Reads feature rows and tags, never text. Writes weights.bin (layout in
export()), manifest.json and vectors.jsonl, which holds inputs and outputs of the
exported network computed here, for the Go code to be held to.
"""
import argparse, hashlib, json, math, os, struct, time
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

GOLD, SWAP, OWN, CLEAN, HELD = range(5)
DIM, DILATIONS = 96, (1, 2, 4, 8, 1)
WORD_FROM, GRAM_FROM, MISC_FROM = 1, 24576, 57344


def shift(x, d):
    """x[t + d], zero outside."""
    if d == 0:
        return x
    z = x.new_zeros(x.shape[0], min(abs(d), x.shape[1]), x.shape[2])
    if abs(d) >= x.shape[1]:
        return torch.zeros_like(x)
    return torch.cat([x[:, d:], z], 1) if d > 0 else torch.cat([z, x[:, :d]], 1)


class Norm(nn.Module):
    """Batch normalisation over the positions that hold a token."""

    def __init__(self, n):
        super().__init__()
        self.scale, self.bias = nn.Parameter(torch.ones(n)), nn.Parameter(torch.zeros(n))
        self.register_buffer("mean", torch.zeros(n))
        self.register_buffer("var", torch.ones(n))

    def forward(self, x, mask):
        if self.training:
            m = mask.unsqueeze(-1)
            n = m.sum()
            mean = (x * m).sum((0, 1)) / n
            var = (((x - mean) ** 2) * m).sum((0, 1)) / n
            with torch.no_grad():
                self.mean.lerp_(mean, 0.02)
                self.var.lerp_(var, 0.02)
        else:
            mean, var = self.mean, self.var
        return (x - mean) * torch.rsqrt(var + 1e-5) * self.scale + self.bias

    def fold(self):
        s = self.scale * torch.rsqrt(self.var + 1e-5)
        return s, self.bias - self.mean * s


class Conv(nn.Module):
    def __init__(self, n_in, n_out, dilation):
        super().__init__()
        self.d = dilation
        self.w = nn.Parameter(torch.randn(3 * n_in, n_out) * math.sqrt(2 / (3 * n_in)))
        self.norm = Norm(n_out)

    def forward(self, x, mask):
        y = torch.cat([shift(x, -self.d), x, shift(x, self.d)], -1) @ self.w
        return F.relu(self.norm(y.float(), mask)) * mask.unsqueeze(-1)


class Tagger(nn.Module):
    def __init__(self, rows, tags, hidden, drop):
        super().__init__()
        self.emb = nn.Parameter(torch.randn(rows, DIM) * 0.1)
        self.enorm = Norm(DIM)
        self.first = Conv(DIM, hidden, 1)
        self.blocks = nn.ModuleList(Conv(hidden, hidden, d) for d in DILATIONS)
        self.out = nn.Linear(hidden, tags)
        self.drop = nn.Dropout(drop)

    def forward(self, ids, mask):
        b, t, k = ids.shape
        e = F.embedding_bag(ids.reshape(-1, k), self.emb, mode="sum", padding_idx=0).view(b, t, DIM)
        x = self.enorm(e, mask) * mask.unsqueeze(-1)
        x = self.first(self.drop(x), mask)
        for block in self.blocks:
            x = x + block(self.drop(x), mask)
        return self.out(self.drop(x))


def load(path):
    meta = json.load(open(f"{path}/meta.json"))
    forms = np.fromfile(f"{path}/forms.u16", np.uint16).reshape(-1, meta["max_ids"])
    read = lambda n, t: np.fromfile(f"{path}/{n}", t)
    return meta, forms, read("tokens.u32", np.uint32), read("tags.u8", np.uint8), read("start.u32", np.uint32), read("kind.u8", np.uint8), read("source.u8", np.uint8)


class Data:
    def __init__(self, path, dev):
        self.meta, forms, toks, tags, start, self.kind, self.src = load(path)
        self.start = start.astype(np.int64)
        self.len = np.diff(np.append(self.start, len(toks)))
        self.forms = torch.from_numpy(forms.astype(np.int32)).to(dev)
        self.toks = torch.from_numpy(toks.astype(np.int64)).to(dev)
        self.tags = torch.from_numpy(tags.astype(np.int64)).to(dev)
        self.dev, n = dev, self.meta["tags"]
        allowed = torch.eye(n, dtype=torch.bool).repeat(len(self.meta["sources"]), 1, 1)
        for s, labels in enumerate(self.meta["open"]):
            for l in labels:
                allowed[s, 0, 1 + 4 * (l - 1):1 + 4 * l] = True
        self.allowed = allowed.to(dev)

    def batch(self, seqs):
        n = torch.from_numpy(self.len[seqs]).to(self.dev)
        at = torch.from_numpy(self.start[seqs]).to(self.dev)
        t = torch.arange(int(n.max()), device=self.dev)
        mask = t < n[:, None]
        idx = (at[:, None] + t).clamp(max=len(self.toks) - 1)
        ids = self.forms[self.toks[idx]] * mask.unsqueeze(-1)
        tags = torch.where(mask, self.tags[idx], 255)
        src = torch.from_numpy(self.src[seqs].astype(np.int64)).to(self.dev)
        return ids, mask.float(), tags, src


def drop_rows(ids, words):
    """Leaves out features, so that no list of names is all that is learned."""
    word = (ids >= WORD_FROM) & (ids < GRAM_FROM)
    gram = (ids >= GRAM_FROM) & (ids < MISC_FROM)
    r = torch.rand(ids.shape, device=ids.device)
    whole = torch.rand(ids.shape[:2], device=ids.device).unsqueeze(-1)
    gone = (word & (whole < words)) | (gram & (r < 0.2)) | (~word & ~gram & (r < 0.08))
    return ids.masked_fill(gone, 0)


def loss_of(logits, tags, src, data, smooth=0.0):
    keep = tags != 255
    x = logits[keep].float()
    allowed = data.allowed[src[:, None].expand_as(tags)[keep], tags[keep]]
    total = torch.logsumexp(x, -1)
    exact = (total - torch.logsumexp(x.masked_fill(~allowed, -1e9), -1)).mean()
    return exact * (1 - smooth) + smooth * (total - x.mean(-1)).mean()


def batches(data, seqs, tokens, rng):
    """Batches of about as many tokens, of sequences of about one length."""
    rng.shuffle(seqs)
    out = []
    for i in range(0, len(seqs), 8192):
        pool = seqs[i:i + 8192]
        pool = pool[np.argsort(data.len[pool], kind="stable")]
        at = 0
        while at < len(pool):
            n = at + 1
            while n < len(pool) and (n + 1 - at) * data.len[pool[n]] <= tokens:
                n += 1
            out.append(pool[at:n])
            at = n
    order = rng.permutation(len(out))
    return [out[i] for i in order]


def train(data, args):
    rng = np.random.default_rng(args.seed)
    torch.manual_seed(args.seed)
    model = Tagger(data.meta["rows"], data.meta["tags"], args.hidden, args.drop).to(data.dev)
    with torch.no_grad():
        model.emb[0] = 0
    opt = torch.optim.AdamW([
        {"params": [p for n, p in model.named_parameters() if n != "emb"], "weight_decay": 0.01},
        {"params": [model.emb], "weight_decay": 0.05}], lr=args.lr, betas=(0.9, 0.99), fused=data.dev == "cuda")
    weight = np.array([args.gold, 1.0, args.own, 1.0, 0.0])[data.kind]
    for name in ("europeana_fr", "europeana_nl", "meddocan"):
        weight[data.src == data.meta["sources"].index(name)] *= 0.5
    begin, step, total, seen = time.time(), 0, 0.0, 0
    mean = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.998), use_buffers=True)
    epoch = 0
    while True:
        take = np.floor(weight + rng.random(len(weight))).astype(int)
        for seqs in batches(data, np.repeat(np.arange(len(weight)), take), args.tokens, rng):
            done = step / args.steps
            if done >= 1:
                print(f"{step} steps, {epoch} epochs, {time.time() - begin:.0f} s")
                return mean.module, step
            lr = args.lr * min(1, (step + 1) / 300) * (1 - 0.6 * done)
            for g in opt.param_groups:
                g["lr"] = lr
            ids, mask, tags, src = data.batch(seqs)
            with torch.autocast(data.dev, dtype=torch.bfloat16):
                logits = model(drop_rows(ids, args.drop_words), mask)
            loss = loss_of(logits, tags, src, data, 0.01)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            mean.update_parameters(model)
            step += 1
            total, seen = total + loss.detach(), seen + 1
            if step % 1000 == 0:
                print(f"step {step} epoch {epoch} loss {float(total) / seen:.4f} {time.time() - begin:.0f} s", flush=True)
                total, seen = 0.0, 0
            if step % 600 == 0 and step >= 1200:
                held(mean.module, data)
        epoch += 1


def held(model, data):
    """Prints, for each source, the loss and the F1 of tokens in names, and sums."""
    model.eval()
    out, sums = [], np.zeros(4)
    with torch.no_grad():
        for s, name in enumerate(data.meta["sources"]):
            seqs = np.nonzero((data.kind == HELD) & (data.src == s))[0]
            if not len(seqs):
                continue
            tp = np.zeros(3)
            losses = []
            for b in batches(data, seqs, 65536, np.random.default_rng(0)):
                ids, mask, tags, src = data.batch(b)
                logits = model(ids, mask)
                losses.append(float(loss_of(logits, tags, src, data)))
                p, keep = logits.argmax(-1), tags != 255
                a, g = (p >= 1) & (p <= 4) & keep, (tags >= 1) & (tags <= 4)
                tp += [int((a & g).sum()), int(a.sum()), int(g.sum())]
            sums += [np.sum(tp[0]), np.sum(tp[1]), np.sum(tp[2]), np.mean(losses)]
            out.append(f"{name} {np.mean(losses):.3f}/{2 * tp[0] / max(1, tp[1] + tp[2]):.2f}")
    print("held", " ".join(out), f"all {sums[3]:.3f}/{2 * sums[0] / max(1, sums[1] + sums[2]):.4f}", flush=True)
    model.train()


def export(model, data, args, steps):
    """Layout of weights.bin, little-endian: rows int8, row scales f16, then f32
    scale and bias of the input, then for each convolution its f16 matrix (3 taps
    x inputs, outputs) and f32 bias with the normalisation folded in, then the
    f16 output matrix and f32 bias."""
    model = model.eval().cpu().float()
    with torch.no_grad():
        emb = model.emb.clone()
        emb[0] = 0
        scale = (emb.abs().amax(1) / 127).clamp(min=1e-8).half()
        rows = torch.clamp(torch.round(emb / scale.float()[:, None]), -127, 127).to(torch.int8)
        parts = [("rows", rows), ("row_scale", scale)]
        s, b = model.enorm.fold()
        parts += [("input_scale", s), ("input_bias", b)]
        for i, c in enumerate([model.first, *model.blocks]):
            s, b = c.norm.fold()
            parts += [(f"conv{i}", (c.w * s).half()), (f"conv{i}_bias", b)]
        parts += [("out", model.out.weight.t().contiguous().half()), ("out_bias", model.out.bias)]
    blob = b"".join(t.detach().contiguous().numpy().tobytes() for _, t in parts)
    open(f"{args.out}/weights.bin", "wb").write(blob)
    manifest = {
        "format": 1, "feature_version": data.meta["feature_version"], "sha256": hashlib.sha256(blob).hexdigest(), "bytes": len(blob),
        "rows": data.meta["rows"], "dim": DIM, "hidden": args.hidden, "dilations": list(DILATIONS), "tags": data.meta["tags"],
        "tensors": [{"name": n, "type": str(t.dtype).removeprefix("torch."), "shape": list(t.shape)} for n, t in parts],
        "seed": args.seed, "steps": steps, "batch_tokens": args.tokens, "learning_rate": args.lr, "training_tokens": data.meta["tokens"],
    }
    json.dump(manifest, open(f"{args.out}/manifest.json", "w"), indent=1)
    vectors(dict(parts), data, args)


def vectors(p, data, args):
    f = {k: v.detach().double() for k, v in p.items()}
    table = f["rows"] * f["row_scale"][:, None]
    rng = np.random.default_rng(5)
    with open(f"{args.out}/vectors.jsonl", "w") as out:
        for s in rng.choice(np.nonzero((data.kind == HELD) & (data.len > 4) & (data.len < 40))[0], 10, replace=False):
            ids, mask, _, _ = data.batch(np.array([s]))
            ids = ids[0].cpu()
            x = (table[ids.long()].sum(1) * f["input_scale"] + f["input_bias"])[None]
            for i, d in enumerate((1, *DILATIONS)):
                y = F.relu(torch.cat([shift(x, -d), x, shift(x, d)], -1) @ f[f"conv{i}"] + f[f"conv{i}_bias"])
                x = y if i == 0 else x + y
            logits = (x @ f["out"] + f["out_bias"])[0]
            out.write(json.dumps({"rows": [[int(v) for v in r if v] for r in ids], "logits": [[round(float(v), 6) for v in r] for r in logits]}) + "\n")


def main():
    a = argparse.ArgumentParser()
    a.add_argument("data")
    a.add_argument("out")
    a.add_argument("--steps", type=int, default=2200)
    a.add_argument("--tokens", type=int, default=32768)
    a.add_argument("--lr", type=float, default=3e-3)
    a.add_argument("--hidden", type=int, default=128)
    a.add_argument("--drop", type=float, default=0.2)
    a.add_argument("--drop-words", type=float, default=0.35)
    a.add_argument("--gold", type=float, default=3.0, help="how often labelled documents are seen for one generated")
    a.add_argument("--own", type=float, default=1.0, help="part of the generated documents that is seen each epoch")
    a.add_argument("--seed", type=int, default=1)
    args = a.parse_args()
    dev = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cuda.matmul.allow_tf32 = True
    data = Data(args.data, dev)
    kinds, tokens = ["gold", "swap", "own", "clean", "held"], data.len
    print({k: (int((data.kind == i).sum()), int(tokens[data.kind == i].sum())) for i, k in enumerate(kinds)}, flush=True)
    model, steps = train(data, args)
    held(model, data)
    export(model, data, args, steps)


main()
