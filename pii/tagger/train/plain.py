"""Collects running text without labels, in many languages, from unpacked
packages: novels, speeches, essays, stories, quotations, handbooks, glosses. The
network learns from it which words stand where, before it sees any label.

Usage: plain.py ROOT OUT.jsonl. ROOT holds one folder for each package that the
README names.
"""
import collections, glob, gzip, html, json, os, random, re, subprocess, sys

rng = random.Random(11)
root, LANGS = sys.argv[1], {"pt-br": "pt", "zh-cn": "zh", "zh-tw": "zh", "pt_BR": "pt", "zh_CN": "zh", "zh_TW": "zh"}


def read(path, encoding="utf-8"):
    return (gzip.open(path) if path.endswith(".gz") else open(path, "rb")).read().decode(encoding, "replace")


def paragraphs(text):
    return [p for p in re.split(r"\n\s*\n", text) if len(p) > 40]


def pages(text):
    """The paragraphs of a page of HTML."""
    text = re.sub(r"(?s)<(script|style|head).*?</\1>", " ", text)
    text = re.sub(r"</?(p|div|li|h\d|td|tr|br|dd|dt|pre|blockquote)\b[^>]*>", "\n\n", text)
    text = html.unescape(re.sub(r"<[^>]+>", "", text))
    return [re.sub(r"\s+", " ", p).strip() for p in paragraphs(text)]


def messages(path):
    po = subprocess.run(["msgunfmt", "--no-wrap", path], capture_output=True, text=True).stdout
    out = []
    for entry in re.split(r"\n\n", po):
        m = re.search(r'msgstr(?:\[0\])? ((?:".*"\n?)+)', entry)
        if m:
            s = "".join(re.findall(r'"(.*)"', m[1])).replace("\\n", "\n").replace('\\"', '"').replace("\\t", " ")
            s = re.sub(r"<[^>]+>|\$[\w.|]+", "", s)
            if len(s) > 30 and "Project-Id-Version" not in s:
                out.append(s)
    return out


def sources():
    """Language, most bytes, pieces of text, and whether they are of a manual."""
    g = lambda pattern: sorted(f for f in glob.glob(f"{root}/{pattern}", recursive=True) if os.path.isfile(f))
    yield "en", 4_000_000, (p for f in g("austen/*.txt") for p in paragraphs(read(f)))
    yield "en", 2_000_000, (p for f in g("*moby-dick*/package/data/data.txt") for p in paragraphs(read(f)))
    yield "en", 6_000_000, (p for f in g("*sotu*/package/data/*.txt") for p in paragraphs(read(f)))
    yield "en", 5_000_000, (p for f in g("anarchism/**/*.html") for p in pages(read(f)))
    gloss = [line.rsplit("|", 1)[1].strip() for f in g("wordnet-base/**/data.*") for line in read(f).split("\n") if "|" in line]
    named = [f"{re.split(' ', line)[4].replace('_', ' ')}: {line.rsplit('|', 1)[1].strip()}" for f in g("wordnet-base/**/data.noun") for line in read(f).split("\n") if " @i " in line]
    yield "en", 4_000_000, iter(rng.sample(gloss, len(gloss)) + named)
    for pack, lang in (("fortunes", "en"), ("fortunes-min", "en"), ("fortunes-de", "de"), ("fortunes-es", "es"), ("fortunes-it", "it"), ("fortunes-pl", "pl"), ("fortunes-br", "pt"), ("fortunes-cs", "cs"), ("fortunes-ru", "ru"), ("fortunes-zh", "zh")):
        files = [f for f in g(f"{pack}/usr/share/games/fortunes/**/*") if not f.endswith((".dat", ".u8")) and "." not in f.rsplit("/", 1)[1]]
        yield lang, 3_000_000, (re.sub(r"\x1b\[[\d;]*m", "", p) for f in files for p in re.split(r"\n%+\n", read(f)) if len(p) > 30)
    yield "en", 200_000, (line for f in g("calendar/usr/share/calendar/calendar.*") for line in read(f).split("\n") if len(line) > 15)
    for name in "de fr es it nl pl pt_BR sv da el ja ko zh_CN zh_TW ru ar".split():
        lang = LANGS.get(name, name)
        yield lang, 1_800_000 if lang != "ru" else 600_000, (m for f in g(f"wesnoth*/**/{name}/LC_MESSAGES/*.mo") for m in messages(f))
    yield "en", 1_000_000, (m for f in g("wesnoth*/**/en_GB/LC_MESSAGES/*.mo") for m in messages(f))
    for name in "de fr es it nl pl pt pt-br sv da el ja ko zh-cn zh-tw".split():
        yield LANGS.get(name, name), 1_500_000, (p for f in g(f"libreoffice-help-{name}/**/*.html") for p in pages(read(f))), True
        yield LANGS.get(name, name), 700_000, (p for f in g(f"debian-reference-{name}/**/*.html") for p in pages(read(f))), True


def main():
    sums = collections.Counter()
    with open(sys.argv[2], "w") as out:
        for lang, most, pieces, *dry in sources():
            pieces, seen, left = list(pieces), set(), most
            rng.shuffle(pieces)
            for p in pieces:
                p = p.strip().replace("\x00", "")
                if left < 0 or p[:200] in seen or len(p) < 30:
                    continue
                seen.add(p[:200])
                # Lines that are broken at a width are joined, as in most text.
                if rng.random() < 0.8 and not p.startswith("\t"):
                    p = re.sub(r"(?<=[^\n])\n(?=[^\n])", "" if lang in ("ja", "zh") else " ", p)
                p = p[:2000]
                left -= len(p.encode())
                sums[lang] += len(p.encode())
                out.write(json.dumps({"text": p, "lang": lang, "dry": bool(dry)}, ensure_ascii=False) + "\n")
    print(dict(sums), sum(sums.values()))


main()
