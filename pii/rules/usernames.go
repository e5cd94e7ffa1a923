package rules

import (
	"strings"

	"weir/pii"
)

// username finds an account name, and the password that often follows it as in
// "login is kim.r / hunter2".
func (s *Set) username(t *text, h hit, out *findings) {
	l, ok := follow(t.s, int(h.end), false)
	if !ok || l.at < t.key || !l.strong && !l.is {
		return
	}
	end := l.at
	if end == len(t.s) || t.s[end] != '@' && byteClass[t.s[end]] == byteOther {
		return
	}
	for end < len(t.s) && (byteClass[t.s[end]] != byteOther && byteClass[t.s[end]] != byteWide || strings.IndexByte("@_.-", t.s[end]) >= 0) {
		end++
	}
	end = trimEnd(t.s, l.at, end)
	v := t.s[l.at:end]
	if len(v) < 3 || len(v) > 40 || pii.Never(v) || strings.Contains(v[1:], "@") || end < len(t.s) && (t.s[end] == '(' || t.s[end] == '[') || digitsOnly(v) {
		return
	}
	if strings.HasPrefix(v, "0x") || assignedTo(t.s[end:]) {
		return
	}
	low := strings.ToLower(strings.TrimPrefix(v, "@"))
	marked := v[0] == '@' || strings.ContainsAny(v, "0123456789_-.")
	if oneOf("root admin administrator user username guest test system public postgres mysql ubuntu nginx www-data nobody login you your the this that not required string str self.user req.user request.user", low) {
		return
	}
	whole := l.at == t.key && t.key > 0 && end == len(t.s) || l.quote != 0
	if !marked && !l.strong {
		return
	}
	if !marked && !whole && (s.vocab.words[low].list&(listCommon|listPlace) != 0 || byteClass[v[0]] == byteUpper || end < len(t.s) && t.s[end] == ' ') {
		return
	}
	if strings.Contains(low, ".") && (strings.HasSuffix(low, ".py") || strings.HasSuffix(low, ".js") || strings.HasSuffix(low, ".com") || !strings.ContainsAny(low, "0123456789") && end < len(t.s) && t.s[end] == ')') {
		return
	}
	out.add(t, l.at, end, s.own["username"], 0.75, pii.RankContext)
	if rest := t.s[end:]; strings.HasPrefix(rest, " / ") || strings.HasPrefix(rest, "/") {
		start := end + len(rest) - len(strings.TrimLeft(rest, " /"))
		stop := trimEnd(t.s, start, t.token(start))
		if v := t.s[start:stop]; s.looksSecret(v) && !pii.Never(v) {
			out.add(t, start, stop, s.own["password"], 0.8, pii.RankContext)
		}
	}
}
