package rules

import (
	"encoding/base64"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"weir/pii"
)

// headers finds credentials in HTTP headers, and JSON web tokens anywhere.
func (s *Set) headers(t *text, out *findings) {
	done := 0 // the line of cookies before ends here
	for i, w := range t.words {
		if n := w.len(); n >= 5 && n <= 6 && int(w.start) >= done {
			done = max(done, s.header(t, i, out))
		}
		if w.len() >= 10 && strings.HasPrefix(t.s[w.start:], "eyJ") {
			s.jwt(t, int(w.start), out)
		}
	}
}

// header looks at a word that may name a credential, and returns where to go on.
func (s *Set) header(t *text, i int, out *findings) int {
	w := t.words[i]
	var buf [8]byte
	name := buf[:w.len()]
	for j := range name {
		if c := t.s[int(w.start)+j]; byteClass[c] == byteUpper {
			name[j] = c | 0x20
		} else {
			name[j] = c
		}
	}
	switch string(name) {
	case "bearer", "basic":
		s.bearer(t, int(w.end), string(name) == "basic", out)
	case "cookie":
		if end := int(w.end); end+1 < len(t.s) && t.s[end] == ':' {
			return s.cookies(t, end+1, out)
		}
	}
	return 0
}

func (s *Set) bearer(t *text, i int, basic bool, out *findings) {
	start := i
	for start < len(t.s) && start < i+4 && (t.s[start] == ' ' || t.s[start] == ':' || t.s[start] == '"') {
		start++
	}
	end := start
	for end < len(t.s) && (byteClass[t.s[end]] != byteOther && byteClass[t.s[end]] != byteWide || strings.IndexByte("-._~+/=", t.s[end]) >= 0) {
		end++
	}
	v := strings.TrimRight(t.s[start:end], ".")
	if start == i || len(v) < 8 || pii.Never(v) {
		return
	}
	if basic {
		raw, err := base64.StdEncoding.DecodeString(v)
		if err != nil || strings.IndexByte(string(raw), ':') < 0 {
			return
		}
	} else if len(v) < 16 || !strings.ContainsAny(v, "0123456789") && entropy(v) < 3.8 || plainName(v) && len(v) < 24 {
		return
	}
	out.add(t, start, start+len(v), s.own["auth-header"], 0.95, pii.RankPrefix)
}

// cookies finds the values in a Cookie or Set-Cookie header that are long
// enough to be a session, and returns the end of its line.
func (s *Set) cookies(t *text, i int, out *findings) int {
	line := t.s[i:lineEnd(t.s, i)]
	stop := i + len(line)
	for part := range strings.SplitSeq(line, ";") {
		name, value, ok := strings.Cut(part, "=")
		at := i
		i += len(part) + 1
		value = strings.TrimRight(value, "\"'` \r")
		if cut := strings.IndexAny(value, " \"'"); cut >= 0 {
			value = value[:cut]
		}
		if !ok || len(value) < 12 || pii.Never(value) || oneOf("expires path domain max-age samesite", strings.ToLower(strings.TrimSpace(name))) || !strings.ContainsAny(value, "0123456789") {
			continue
		}
		start := at + len(name) + 1
		out.add(t, start, start+len(value), s.own["cookie"], 0.9, pii.RankPrefix)
	}
	return stop
}

// jwt finds three parts of base64url, the first a JSON object with "alg" or
// another member of such a header.
func (s *Set) jwt(t *text, start int, out *findings) {
	end, dots := start, 0
	var firstDot int
	for end < len(t.s) {
		c := t.s[end]
		if c == '.' {
			if dots == 0 {
				firstDot = end
			}
			if dots++; dots > 4 {
				break
			}
		} else if byteClass[c] == byteOther && c != '-' && c != '_' || byteClass[c] == byteWide {
			break
		}
		end++
	}
	for end > start && t.s[end-1] == '.' && dots != 2 {
		end--
		dots--
	}
	if dots != 2 && dots != 4 || firstDot-start > 4096 {
		return
	}
	head, err := base64.RawURLEncoding.DecodeString(t.s[start:firstDot])
	if err != nil || !jsontext.Value(head).IsValid() || !strings.Contains(string(head), `"alg"`) && !strings.Contains(string(head), `"typ"`) {
		return
	}
	// The claims of a signed token are JSON, unless they are packed.
	if claims, _, ok := strings.Cut(t.s[firstDot+1:end], "."); dots == 2 && ok && !strings.Contains(string(head), `"zip"`) && !strings.Contains(string(head), `"b64"`) {
		if raw, err := base64.RawURLEncoding.DecodeString(claims); err == nil && !strings.HasPrefix(strings.TrimSpace(string(raw)), "{") {
			return
		}
	}
	if specimen(t.s[start:end]) {
		return
	}
	out.add(t, start, end, s.own["jwt"], 0.99, pii.RankChecksum)
}
