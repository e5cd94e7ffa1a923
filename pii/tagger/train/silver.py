"""Labels what labels itself: who is quoted, in collections of quotations, and the
persons, places and organizations of a dictionary. Other words with a capital are
marked as unknown, so that they are learned neither way.

Usage: silver.py ROOT OUT.jsonl, with ROOT as for plain.py. The form is that of the
labelled documents.
"""
import glob, json, os, random, re, sys

rng, root = random.Random(5), sys.argv[1]
CAPITAL = re.compile(r"(?<![\w@#])[^\W\d_]+(?:['’.-][^\W\d_]+)*")
NAME = re.compile(r"(?:[^\W\d_a-zà-ÿ][\w'’.-]*|van|von|de|der|den|du|la|le|di|da|do|dos|bin|al)")


small = set()  # words seen in small letters


def unknown(text, taken):
    """The words with capitals that are not the first of a sentence, or that nobody
    writes small."""
    out = []
    for m in CAPITAL.finditer(text):
        before = text[:m.start()].rstrip()
        first = not before or before[-1] in ".!?:\"“„«»-\n'(" 
        if m[0] in ("I", "I'm", "I've", "I'll"):
            continue
        if m[0][0].isupper() and not (first and (len(m[0]) == 1 or m[0].lower() in small)) and not any(a < m.end() and m.start() < b for a, b, _ in taken):
            out.append((m.start(), m.end(), None))
    return out


def document(text, spans, source, lang, n):
    at = lambda i: len(text[:i].encode())
    marks = [{"start": at(a), "end": at(b), "weir_label": l} for a, b, l in sorted(spans + unknown(text, spans), key=lambda s: s[0])]
    return json.dumps({"id": f"{source}-{n}", "text": text, "spans": marks, "source": source, "lang": lang}, ensure_ascii=False)


def quotations():
    packs = {"fortunes": "en", "fortunes-de": "de", "fortunes-es": "es", "fortunes-it": "it", "fortunes-pl": "pl", "fortunes-br": "pt", "fortunes-cs": "cs"}
    for pack, lang in packs.items():
        for f in sorted(glob.glob(f"{root}/{pack}/usr/share/games/fortunes/**/*", recursive=True)):
            if not os.path.isfile(f) or f.endswith((".dat", ".u8")):
                continue
            for q in re.split(r"\n%+\n", open(f, encoding="utf-8", errors="replace").read()):
                m = re.search(r"\n\s*(?:--|—|-)\s*([^\n]{4,60})\s*$", re.sub(r"\x1b\[[\d;]*m", "", q))
                if not m or len(q) > 900 or "�" in q:
                    continue
                who = re.split(r"[,(\[:;\"“]| in | über | su ", m[1])[0].strip()
                words = who.split()
                if len(words[-1].rstrip(".") if words else "") > 3:
                    who = who.rstrip(".")
                if not 2 <= len(words) <= 4 or not all(NAME.fullmatch(w) for w in words) or who.upper() == who or re.match(r"The|Das|Der|Die|Il|La|Un|Unknown|Anon|From|Murphy's", who):
                    continue
                quote = re.sub(r"\s*\n\s*", " ", q[:m.start()]).strip()
                form = rng.choice(["{q}\n\t-- {w}", "{q} -- {w}", "{q} ({w})", "{w}: {q}", "{q} ~ {w}", "“{q}” – {w}", "{q}\n{w}"])
                if form.startswith("{w}"):
                    text, a = form.format(q=quote, w=who), 0
                else:
                    text = form.format(q=quote, w=who)
                    a = text.rindex(who)
                yield text, [(a, a + len(who), "PERSON_NAME")], "quotations", lang


LEX = {"18": "PERSON_NAME", "15": "LOCATION", "14": "ORGANIZATION"}
FORMS = {
    "PERSON_NAME": ["{n} was a {g}.", "{n}, {g}", "the {g} {n}", "{n} ({g})", "{g}: {n}", "It was {n} again, {g}.", "{n}: {g}", "I read about {n} today. {g}"],
    "LOCATION": ["{n} is {g}.", "{n}, {g}", "{n} ({g})", "We went to {n}, {g}.", "{n}: {g}", "in {n}: {g}"],
    "ORGANIZATION": ["{n} is {g}.", "{n}, {g}", "{n} ({g})", "{n}: {g}", "She works for {n}, {g}."],
}


def dictionary():
    for f in glob.glob(f"{root}/wordnet-base/**/data.noun", recursive=True):
        for line in open(f):
            head = line.split(" ")
            if " @i " not in line or len(head) < 5 or head[1] not in LEX:
                continue
            label, gloss = LEX[head[1]], line.rsplit("|", 1)[1].strip().split(";")[0]
            names = [w.replace("_", " ") for w in head[4:4 + 2 * int(head[3], 16):2]]
            for name in {rng.choice(names), max(names, key=len)}:
                if not name[0].isupper() or "(" in name:
                    continue
                text = rng.choice(FORMS[label]).format(n=name, g=gloss)
                a = text.index(name)
                yield text, [(a, a + len(name), label)], "dictionary", "en"


with open(sys.argv[2], "w") as out:
    count, found = {}, [*quotations(), *dictionary()]
    for text, *_ in found:
        small.update(w for w in re.findall(r"[^\W\d_]+", text) if w.islower())
    for text, spans, source, lang in found:
        n = count[source, lang] = count.get((source, lang), 0) + 1
        out.write(document(text, spans, source, lang, n) + "\n")
print(count)
