"""Collects text without anything private from a Debian machine with Go: manual
pages and message catalogues in many languages, source code and READMEs.

Usage: clean.py OUT.jsonl. Paragraphs that look as if they named somebody
(authors, addresses, copyright lines) are left out.
"""
import glob, gzip, json, os, random, re, subprocess, sys

rng = random.Random(7)
NAMES = re.compile(r"copyright|\(c\)|@|author|written by|maintain|thanks to|\bby [A-Z]|https?://|\$Id|contribut|courtesy|invented|paper|credit", re.I)
MAIN = {"de", "fr", "es", "it", "pt", "nl", "pl", "el", "sv", "da", "ja", "ko", "zh"}
CATALOGUES = {"pt_BR": "pt", "zh_CN": "zh", "zh_TW": "zh", **{l: l for l in "de fr es it pt nl pl el sv da ja ko fi nb cs tr ru hu uk ro vi".split()}}
MANUALS = "de fr es it pt pt_BR nl pl sv da ja ko zh_CN zh_TW cs ru tr hu en".split()


def emit(out, text, lang):
    text = text.strip()
    if len(text) >= 20 and not NAMES.search(text):
        out.write(json.dumps({"text": text[:1500], "lang": lang}, ensure_ascii=False) + "\n")


def catalogues(out):
    for name, lang in CATALOGUES.items():
        messages = []
        for domain in ("gdk-pixbuf", "gtk20", "glib20", "at-spi2-core"):
            path = f"/usr/share/locale/{name}/LC_MESSAGES/{domain}.mo"
            if not os.path.exists(path):
                continue
            po = subprocess.run(["msgunfmt", "--no-wrap", path], capture_output=True, text=True).stdout
            for m in re.findall(r'^msgstr(?:\[\d\])? "(.+)"$', po, re.M):
                m = m.replace("\\n", "\n").replace('\\"', '"').replace("\\t", " ").replace("_", "")
                if len(m) > 15:
                    messages.append(m)
        rng.shuffle(messages)
        at = 0
        for _ in range(700 if lang in MAIN else 250):
            n = rng.choice([1, 1, 1, 2, 3, 5])
            emit(out, "\n".join(messages[at:at + n]), lang)
            at += n


def plain(roff):
    lines = []
    for line in roff.split("\n"):
        if line.startswith(('."', "'\\\"", '.\\"')):
            continue
        if re.match(r"\.(TH|SH|SS|so|Dd|Os|Dt)", line):
            line = ""
        elif line.startswith("."):
            line = re.sub(r"^\.\w*\s*", "", line).strip('"')
        line = re.sub(r"\\f.|\\f\(..|\\f\[.*?\]", "", line)
        lines.append(line.replace("\\-", "-").replace("\\&", "").replace("\\(aq", "'").replace("\\ ", " ").replace("\\e", "\\"))
    return "\n".join(lines)


def manuals(out):
    for lang in MANUALS:
        files = sorted(glob.glob("/usr/share/man/man[1578]/*.gz" if lang == "en" else f"/usr/share/man/{lang}/man*/*.gz"))
        rng.shuffle(files)
        left = 400_000 if lang == "en" else 160_000
        for path in files:
            try:
                text = plain(gzip.open(path).read().decode())
            except (UnicodeDecodeError, OSError):
                continue
            for para in re.split(r"\n\s*\n", text):
                if len(para) > 60 and left > 0:
                    join = "" if lang[:2] in ("ja", "zh") else " "
                    emit(out, para.replace("\n", join) if rng.random() < 0.7 else para, lang[:2])
                    left -= len(para.encode())


def code(out):
    root = lambda v: subprocess.run(["go", "env", v], capture_output=True, text=True).stdout.strip()
    for pattern, left, most in (
        (root("GOROOT") + "/src/**/*.go", 700_000, 3), ("/usr/lib/python3*/**/*.py", 200_000, 2), ("/usr/share/nodejs/**/*.js", 200_000, 2),
    ):
        files = sorted(glob.glob(pattern, recursive=True))
        rng.shuffle(files)
        for path in files:
            if left < 0:
                break
            lines = open(path, errors="ignore").read().split("\n")
            at = 0
            for _ in range(most):
                n = rng.randint(4, 30)
                emit(out, "\n".join(lines[at:at + n]), "code")
                left -= sum(map(len, lines[at:at + n]))
                at += n
    left = 500_000
    files = sorted(glob.glob(root("GOMODCACHE") + "/**/README.md", recursive=True))
    rng.shuffle(files)
    for path in files:
        for para in re.split(r"\n\s*\n", open(path, errors="ignore").read()):
            if left > 0 and rng.random() < 0.5:
                emit(out, para, "en")
                left -= len(para)


with open(sys.argv[1], "w") as f:
    catalogues(f)
    manuals(f)
    code(f)
