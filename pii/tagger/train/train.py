"""Trains the tagger's network on what the Go command beside this file wrote.

Reads feature rows and tags, never text. Writes model.pt, to
teach with; weights.bin (layout in export()), manifest.json, and vectors.jsonl,
which holds inputs and outputs of the exported network computed here, for the Go
code to be held to.
"""
import argparse, hashlib, json, math, time
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

GOLD, SWAP, OWN, CLEAN, TUNE, PLAIN = range(6)
WORD_FROM, GRAM_FROM, LIST_FROM, MISC_FROM = 1, 24576, 57344, 58496
WORD_LISTS = 64 * 6  # the rows of lists of whole words
ROW, GAP = 512, 8  # tokens of a row of packed sequences, and what parts them: no tap of a convolution reaches over it
NEWS = "btc europeana_fr europeana_nl germeval14 stockmark_ja uner_da uner_en uner_sv uner_zh wnut17".split()


class Norm(nn.Module):
    """Batch normalisation, which folds into a scale and a bias."""

    def __init__(self, n):
        super().__init__()
        self.scale, self.bias = nn.Parameter(torch.ones(n)), nn.Parameter(torch.zeros(n))
        self.register_buffer("mean", torch.zeros(n))
        self.register_buffer("var", torch.ones(n))

    def forward(self, x):
        y = F.batch_norm(x.reshape(-1, x.shape[-1]).float(), self.mean, self.var, self.scale, self.bias, self.training, 0.02, 1e-5)
        return y.view(x.shape)

    def fold(self):
        s = self.scale * torch.rsqrt(self.var + 1e-5)
        return s, self.bias - self.mean * s


class Conv(nn.Module):
    def __init__(self, n_in, n_out, dilation):
        super().__init__()
        self.d = dilation
        self.w = nn.Parameter(torch.randn(3 * n_in, n_out) * math.sqrt(2 / (3 * n_in)))
        self.norm = Norm(n_out)

    def forward(self, x, live):
        n, d = x.shape[1], self.d
        p = F.pad(x, (0, 0, d, d))
        y = torch.cat([p[:, :n], x, p[:, 2 * d:]], -1) @ self.w
        return F.relu(self.norm(y)) * live


class Sum(torch.autograd.Function):
    """The sum of rows of a table, whose gradient needs no sorting."""

    @staticmethod
    def forward(ctx, table, ids):
        ctx.save_for_backward(ids)
        ctx.rows = table.shape[0]
        return F.embedding(ids, table).sum(-2)

    @staticmethod
    def backward(ctx, grad):
        (ids,) = ctx.saved_tensors
        flat = grad.unsqueeze(-2).expand(*ids.shape, grad.shape[-1]).reshape(-1, grad.shape[-1])
        # Row 0 stands for none; half of all are, and would queue for one address.
        at = ids.reshape(-1)
        spare = ctx.rows + torch.arange(len(at), device=at.device, dtype=at.dtype) % 1024
        out = grad.new_zeros(ctx.rows + 1024, grad.shape[-1]).index_add_(0, torch.where(at == 0, spare, at), flat)
        return out[:ctx.rows], None


class Tagger(nn.Module):
    def __init__(self, rows, tags, dim, hidden, dilations, drop):
        super().__init__()
        self.shape = dict(rows=rows, tags=tags, dim=dim, hidden=hidden, dilations=dilations, drop=drop)
        self.emb = nn.Parameter(torch.randn(rows, dim) * 0.1)
        with torch.no_grad():
            self.emb[0] = 0
        self.enorm = Norm(dim)
        self.first = Conv(dim, hidden, 1)
        self.blocks = nn.ModuleList(Conv(hidden, hidden, d) for d in dilations)
        self.out = nn.Linear(hidden, tags)
        self.drop = nn.Dropout(drop)
        # What a hidden token is guessed with: its word, by the rows of words, and
        # what lists say of it.
        self.word = nn.Linear(hidden, dim)
        self.word_bias = nn.Parameter(torch.zeros(GRAM_FROM - WORD_FROM))
        self.list = nn.Linear(hidden, WORD_LISTS)

    def forward(self, ids, live):
        """The last layer, for rows of features of tokens of which some are live."""
        x = self.enorm(Sum.apply(self.emb, ids)) * live
        x = self.first(self.drop(x), live)
        for block in self.blocks:
            x = x + block(self.drop(x), live)
        return self.drop(x)


class Data:
    def __init__(self, path, dev):
        read = lambda n, t: np.fromfile(f"{path}/{n}", t)
        self.meta = m = json.load(open(f"{path}/meta.json"))
        self.dev, self.kind, self.src = dev, read("kind.u8", np.uint8), read("source.u8", np.uint8)
        toks = read("tokens.u32", np.int32)
        self.start = read("start.u32", np.uint32).astype(np.int64)
        self.len = np.diff(np.append(self.start, len(toks)))
        to = lambda a: torch.from_numpy(a).to(dev)
        self.forms = to(read("forms.u16", np.uint16).astype(np.int32).reshape(-1, m["max_ids"]))
        self.toks, self.tags = to(toks), to(read("tags.u8", np.uint8))
        word, listed = (self.forms >= WORD_FROM) & (self.forms < GRAM_FROM), (self.forms >= LIST_FROM) & (self.forms < LIST_FROM + WORD_LISTS)
        self.word = torch.where(word.any(1), self.forms.gather(1, word.int().argmax(1, keepdim=True))[:, 0], 0)
        self.listed = torch.where(listed.any(1), self.forms.gather(1, listed.int().argmax(1, keepdim=True))[:, 0] - LIST_FROM, 0)
        n = m["tags"]
        allowed = torch.eye(n, dtype=torch.bool).repeat(len(m["sources"]), 1, 1)
        for s, labels in enumerate(m["open"]):
            for l in labels:
                allowed[s, 0, 1 + 4 * (l - 1):1 + 4 * l] = True
        self.allowed = allowed.to(dev)

    def pack(self, seqs):
        """Lays sequences into rows, with gaps: numbers of tokens, -1 in a gap,
        and for each place the source and whether it has no labels."""
        row, at = np.zeros(len(seqs), np.int64), np.zeros(len(seqs), np.int64)
        r, used = 0, 0
        for i, n in enumerate(self.len[seqs].tolist()):
            if used + n > ROW:
                r, used = r + 1, 0
            row[i], at[i] = r, used
            used += n + GAP
        to = lambda a: torch.from_numpy(a).to(self.dev)
        n = to(self.len[seqs])
        ends = n.cumsum(0)
        off = torch.arange(int(ends[-1]), device=self.dev) - torch.repeat_interleave(ends - n, n)
        place = torch.repeat_interleave(to(row * ROW + at), n) + off
        size = (r + 1) * ROW
        idx = torch.full((size,), -1, dtype=torch.int64, device=self.dev)
        idx[place] = torch.repeat_interleave(to(self.start[seqs]), n) + off
        src = torch.zeros(size, dtype=torch.uint8, device=self.dev)
        src[place] = torch.repeat_interleave(to(self.src[seqs]), n)
        plain = torch.zeros(size, dtype=torch.bool, device=self.dev)
        plain[place] = torch.repeat_interleave(to(self.kind[seqs] == PLAIN), n)
        return idx.view(-1, ROW), src.view(-1, ROW), plain.view(-1, ROW)

    def at(self, idx):
        """Rows of features, tags (255 for none) and which places are live."""
        live = idx >= 0
        form = self.toks[idx.clamp(min=0)].long()
        ids = self.forms[form] * live.unsqueeze(-1)
        return ids, torch.where(live, self.tags[idx.clamp(min=0)].long(), 255), live, form


def drop_rows(ids, words):
    """Leaves out features, so that no list of names is all that is learned."""
    word = (ids >= WORD_FROM) & (ids < GRAM_FROM)
    gram = (ids >= GRAM_FROM) & (ids < LIST_FROM)
    listed = (ids >= LIST_FROM) & (ids < MISC_FROM)
    r = torch.rand(ids.shape, device=ids.device)
    whole, lists = torch.rand(2, *ids.shape[:2], 1, device=ids.device)
    gone = (word & (whole < words)) | (gram & (r < 0.2)) | (listed & (lists < 0.2)) | ((ids >= MISC_FROM) & (r < 0.08))
    return ids.masked_fill(gone, 0)


def tag_loss(logits, tags, src, data, smooth):
    x = logits.float()
    keep = (tags != 255).float()
    allowed = data.allowed[src.long(), tags.clamp(max=x.shape[-1] - 1)]
    total = torch.logsumexp(x, -1)
    exact = total - torch.logsumexp(x.masked_fill(~allowed, -1e9), -1)
    each = exact * (1 - smooth) + smooth * (total - x.mean(-1))
    return (each * keep).sum() / keep.sum().clamp(min=1)


def guess_loss(model, x, form, at, hidden, data):
    """How well the words at places that were hidden are guessed from those around."""
    h, f = x.reshape(-1, x.shape[-1])[at], form.reshape(-1)[at]
    # Row 0 is no word, and must stay zero: it stands for features that are left out.
    words = (model.word(h) @ model.emb[WORD_FROM:GRAM_FROM].t()).float() + model.word_bias
    words = F.cross_entropy(words, (data.word[f].long() - WORD_FROM).clamp(min=0), reduction="none")
    lists = F.cross_entropy(model.list(h).float(), data.listed[f].long(), reduction="none")
    return ((words + 0.5 * lists) * hidden).sum() / hidden.sum().clamp(min=1)


def taught_loss(logits, ids, live, teachers):
    """How far the tags are from what the teachers think, who see everything."""
    with torch.no_grad():
        p = sum(F.softmax(t.out(t(ids, live.unsqueeze(-1))).float(), -1) for t in teachers) / len(teachers)
    q = F.log_softmax(logits.float(), -1)
    keep = live.float()
    return (-(p * q).sum(-1) * keep).sum() / keep.sum()


def restore(path, dev):
    saved = torch.load(path, map_location=dev)
    model = Tagger(**saved["shape"]).to(dev)
    model.load_state_dict(saved["state"])
    return model


def step_loss(model, batch, data, args, teachers):
    idx, src, plain = batch
    ids, tags, live, form = data.at(idx)
    tags = torch.where(plain, 255, tags)
    seen = drop_rows(ids, args.drop_words)
    # A tenth of the places, of which those are hidden that hold a word of text
    # without labels.
    at = torch.randint(idx.numel(), (idx.numel() // 10,), device=idx.device)
    may = (plain & live & (data.word[form] > 0)).reshape(-1)[at]
    hidden = torch.zeros_like(plain).reshape(-1).scatter_(0, at, may).view(plain.shape)
    x = model(seen * ~hidden.unsqueeze(-1), live.unsqueeze(-1))
    logits = model.out(x)
    loss = tag_loss(logits, tags, src, data, 0.01)
    if teachers:
        loss = 0.4 * loss + 0.6 * taught_loss(logits, ids, live, teachers)
    return loss + args.guess * guess_loss(model, x, form, at, may.float(), data)


def train(data, args):
    rng = np.random.default_rng(args.seed)
    torch.manual_seed(args.seed)
    dilations = [int(d) for d in args.dilations.split(",")]
    model = Tagger(data.meta["rows"], data.meta["tags"], args.dim, args.hidden, dilations, args.drop).to(data.dev)
    teachers = [restore(p, data.dev).eval() for p in args.teachers.split(",") if p]
    lr = torch.zeros((), device=data.dev)
    opt = torch.optim.AdamW([
        {"params": [p for n, p in model.named_parameters() if n != "emb"], "weight_decay": 0.01},
        {"params": [model.emb], "weight_decay": 0.05}], betas=(0.9, 0.99), **({"lr": lr, "fused": True, "capturable": True} if data.dev == "cuda" else {"lr": args.lr}))
    weight = np.array([args.gold, 1.0, args.own, 1.0, 0.0, args.plain])[data.kind]
    for name in ("europeana_fr", "europeana_nl", "meddocan"):
        weight[data.src == data.meta["sources"].index(name)] *= 0.5
    for name in NEWS:
        weight[data.src == data.meta["sources"].index(name)] *= args.news
    mean = Tagger(**model.shape).to(data.dev)
    mean.load_state_dict(model.state_dict())
    live, kept = list(model.state_dict().values()), list(mean.state_dict().values())
    place = [torch.zeros(args.batch, ROW, dtype=t, device=data.dev) for t in (torch.int64, torch.uint8, torch.bool)]

    def once():
        with torch.autocast(data.dev, dtype=torch.bfloat16, enabled=data.dev == "cuda", cache_enabled=False):
            loss = step_loss(model, place, data, args, teachers)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        opt.zero_grad(set_to_none=True)
        with torch.no_grad():
            torch._foreach_mul_(kept, 0.998)
            torch._foreach_add_(kept, live, alpha=0.002)
        return loss.detach()

    again = None
    begin, step, total, epoch = time.time(), 0, torch.zeros((), device=data.dev), 0
    while step < args.steps and time.time() - begin < args.seconds:
        take = np.repeat(np.arange(len(weight)), np.floor(weight + rng.random(len(weight))).astype(int))
        idx, src, plain = data.pack(rng.permutation(take))
        for i in torch.randperm(len(idx) // args.batch).tolist():
            if step >= args.steps or time.time() - begin > args.seconds:
                break
            done = max(step / args.steps, (time.time() - begin) / args.seconds)
            lr.fill_(args.lr * min(1, (step + 1) / 200) * (1 - 0.7 * done))
            for to, of in zip(place, (idx, src, plain)):
                to.copy_(of[i * args.batch:(i + 1) * args.batch])
            if again is None:
                again = recorded(once) if data.dev == "cuda" else once
            total += again()
            step += 1
            if step % 10 == 0:
                float(total)  # waits, so that the clock above is the device's
            if step % args.every == 0:
                print(f"{args.out} step {step} epoch {epoch} loss {float(total) / args.every:.4f} {time.time() - begin:.0f} s", flush=True)
                total.zero_()
                judge(mean, data)
        epoch += 1
    print(f"{args.out} {step} steps, {epoch} epochs, {time.time() - begin:.0f} s", flush=True)
    return mean, step


def recorded(once):
    """Records a step, so that it is sent to the device as a whole: it is some
    hundreds of small kernels."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            once()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            loss = once()
    except RuntimeError as e:
        print("steps are not recorded:", e, flush=True)
        return once

    def again():
        graph.replay()
        return loss

    return again


def spans_of(tags):
    """Well-formed spans of names of persons in a sequence of tags."""
    out, begin = [], -1
    for i, t in enumerate(tags):
        if t == 4:
            out.append((i, i))
        begin = i if t == 1 else begin if t in (2, 3) else -1
        if t == 3 and begin >= 0:
            out.append((begin, i))
            begin = -1
    return out


def judge(model, data):
    """Prints, for the part that tunes, the F1 of names of persons in running text
    as the tags have them, and at the score that one sequence in a hundred without
    anything private stays below."""
    model.eval()
    clean, found, gold, sources = [], [], 0, data.meta["sources"]
    tune = np.nonzero((data.kind == TUNE) & np.isin(data.src, [i for i, n in enumerate(sources) if n in NEWS]))[0]
    idx, src, _ = data.pack(tune)
    n = len(data.toks)
    best, score = torch.zeros(n, dtype=torch.uint8, device=data.dev), torch.zeros(n, device=data.dev)
    with torch.no_grad():
        for i in range(0, len(idx), 64):
            ids, _, live, _ = data.at(idx[i:i + 64])
            p = F.softmax(model.out(model(ids, live.unsqueeze(-1))).float(), -1)
            best[idx[i:i + 64][live]], score[idx[i:i + 64][live]] = p.argmax(-1)[live].to(torch.uint8), p[..., 1:5].sum(-1)[live]
    best, score, tags = best.cpu().numpy(), score.cpu().numpy(), data.tags.cpu().numpy()
    by = {}
    for s in tune:
        a, b = data.start[s], data.start[s] + data.len[s]
        want, got = set(spans_of(tags[a:b])), spans_of(best[a:b])
        sure = [float(score[a + i:a + j + 1].mean()) for i, j in got]
        if not tags[a:b].any():
            clean.append(max(sure, default=0.0))
        gold += len(want)
        found += [(p, g in want) for p, g in zip(sure, got)]
        c = by.setdefault(sources[data.src[s]], np.zeros(3, int))
        c += [sum(g in want for g in got), len(got), len(want)]
    f1 = lambda least: 2 * sum(hit for p, hit in found if p >= least) / max(1, gold + sum(p >= least for p, _ in found))
    least = np.quantile(clean, 0.99)
    print(f"  tags {f1(0):.4f} at 1% ({least:.3f}) {f1(least):.4f}", " ".join(f"{k} {2 * c[0] / max(1, c[1] + c[2]):.2f}" for k, c in sorted(by.items())), flush=True)
    model.train()


def export(model, data, args):
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
        "rows": data.meta["rows"], "dim": args.dim, "hidden": args.hidden, "dilations": model.shape["dilations"], "tags": data.meta["tags"],
        "tensors": [{"name": n, "type": str(t.dtype).removeprefix("torch."), "shape": list(t.shape)} for n, t in parts],
        "seed": args.seed, "steps": args.steps, "batch_tokens": args.batch * ROW, "learning_rate": args.lr, "training_tokens": data.meta["tokens"],
    }
    json.dump(manifest, open(f"{args.out}/manifest.json", "w"), indent=1)
    vectors(dict(parts), model.shape["dilations"], data, args)


def vectors(p, dilations, data, args):
    f = {k: v.detach().double() for k, v in p.items()}
    table = f["rows"] * f["row_scale"][:, None]
    rng = np.random.default_rng(5)
    with open(f"{args.out}/vectors.jsonl", "w") as out:
        for s in rng.choice(np.nonzero((data.kind == TUNE) & (data.len > 4) & (data.len < 40))[0], 10, replace=False):
            idx = torch.arange(data.start[s], data.start[s] + data.len[s], device=data.dev)[None]
            ids = data.at(idx)[0][0].cpu()
            x = (table[ids.long()].sum(1) * f["input_scale"] + f["input_bias"])[None]
            for i, d in enumerate((1, *dilations)):
                n, q = x.shape[1], F.pad(x, (0, 0, d, d))
                y = F.relu(torch.cat([q[:, :n], x, q[:, 2 * d:]], -1) @ f[f"conv{i}"] + f[f"conv{i}_bias"])
                x = y if i == 0 else x + y
            logits = (x @ f["out"] + f["out_bias"])[0]
            out.write(json.dumps({"rows": [[int(v) for v in r if v] for r in ids], "logits": [[round(float(v), 6) for v in r] for r in logits]}) + "\n")


def main():
    a = argparse.ArgumentParser()
    a.add_argument("data")
    a.add_argument("out")
    a.add_argument("--steps", type=int, default=2600)
    a.add_argument("--seconds", type=float, default=1e9, help="end after so long, if that is before the last step")
    a.add_argument("--batch", type=int, default=64, help=f"rows of {ROW} tokens")
    a.add_argument("--lr", type=float, default=3e-3)
    a.add_argument("--dim", type=int, default=96)
    a.add_argument("--hidden", type=int, default=128)
    a.add_argument("--dilations", default="1,2,4,8,1")
    a.add_argument("--drop", type=float, default=0.3)
    a.add_argument("--drop-words", type=float, default=0.4)
    a.add_argument("--gold", type=float, default=3.0, help="how often labelled documents are seen for one generated")
    a.add_argument("--own", type=float, default=0.5, help="part of the generated documents that is seen each epoch")
    a.add_argument("--plain", type=float, default=0.6, help="part of the text without labels that is seen each epoch")
    a.add_argument("--guess", type=float, default=0.5, help="weight of guessing hidden words of text without labels")
    a.add_argument("--news", type=float, default=1.0, help="how much more documents of running text are seen than others")
    a.add_argument("--teachers", default="", help="several model.pt to learn from, between commas")
    a.add_argument("--every", type=int, default=500)
    a.add_argument("--seed", type=int, default=1)
    args = a.parse_args()
    dev = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cuda.matmul.allow_tf32 = True
    begin = time.time()
    data = Data(args.data, dev)
    kinds = ["gold", "swap", "own", "clean", "tune", "plain"]
    print(f"read in {time.time() - begin:.0f} s", {k: (int((data.kind == i).sum()), int(data.len[data.kind == i].sum())) for i, k in enumerate(kinds)}, flush=True)
    model, args.steps = train(data, args)
    torch.save({"shape": model.shape, "state": {k: v.half() if v.is_floating_point() else v for k, v in model.state_dict().items()}}, f"{args.out}/model.pt")
    judge(model, data)
    if args.dim == 96:
        export(model, data, args)


main()
