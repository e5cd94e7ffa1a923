package rules

import (
	"encoding/base64"
	"strings"

	"weir/pii"
)

const maxPEM = 1 << 16

// pemKeys finds armoured private keys, JSON web keys with a private part, and
// Base64 that begins as a key does.
func (s *Set) pemKeys(t *text, out *findings) {
	for from := t.key; ; {
		i := strings.Index(t.s[from:], "-----BEGIN ")
		if i < 0 {
			break
		}
		start := from + i
		from = start + 11
		line := t.s[from:min(len(t.s), from+80)]
		title := strings.Index(line, "-----")
		if title < 0 || !strings.Contains(line[:title], "PRIVATE KEY") {
			continue
		}
		body := from + title + 5
		// A key that was cut off still gives away what is left of it.
		end := min(len(t.s), body+maxPEM)
		if j := strings.Index(t.s[body:end], "-----END "); j >= 0 {
			end = body + j + 9
			if k := strings.Index(t.s[end:min(len(t.s), end+80)], "-----"); k >= 0 {
				end += k + 5
			}
		} else {
			end = armourEnd(t.s, body, end)
		}
		if end-body < 24 || !strings.ContainsAny(t.s[body:min(end, body+200)], "ABCDEFGHIJKLMNOPQRSTUVWXYZ") {
			continue
		}
		out.add(t, start, end, s.own["pem"], 0.99, pii.RankChecksum)
		from = end
	}
	s.putty(t, out)
	s.bareKeys(t, out)
	s.webKeys(t, out)
}

// armourEnd returns the end of the Base64 lines at i.
func armourEnd(s string, i, limit int) int {
	end := i
	for i < limit && (blobChar(s[i]) || s[i] == '\n' || s[i] == '\r' || s[i] == ' ' || s[i] == '\\' || s[i] == '=' || s[i] == ':' || s[i] == ',' || s[i] == '-') {
		if blobChar(s[i]) || s[i] == '=' {
			end = i + 1
		}
		if s[i] == ' ' && i > 0 && s[i-1] != ':' && s[i-1] != ',' {
			break
		}
		i++
	}
	return end
}

func blobChar(c byte) bool {
	return byteClass[c] != byteOther && byteClass[c] != byteWide || c == '+' || c == '/'
}

func (s *Set) putty(t *text, out *findings) {
	for from := t.key; ; {
		i := strings.Index(t.s[from:], "PuTTY-User-Key-File-")
		if i < 0 {
			return
		}
		start := from + i
		from = start + 20
		end := min(len(t.s), start+maxPEM)
		if j := strings.Index(t.s[start:end], "Private-MAC:"); j >= 0 {
			end = lineEnd(t.s, start+j)
			out.add(t, start, end, s.own["pem"], 0.98, pii.RankChecksum)
			from = end
		}
	}
}

func lineEnd(s string, i int) int {
	if j := strings.IndexByte(s[i:], '\n'); j >= 0 {
		return i + j
	}
	return len(s)
}

// bareKeys finds the Base64 of a DER or OpenSSH key without its armour.
func (s *Set) bareKeys(t *text, out *findings) {
	for i := 0; i < len(t.words); i++ {
		w := t.words[i]
		if w.len() < 16 || !strings.HasPrefix(t.s[w.start:], "MI") && !strings.HasPrefix(t.s[w.start:], "b3BlbnNzaC1rZXkt") && !strings.HasPrefix(t.s[w.start:], "MC4CAQ") {
			continue
		}
		start := int(w.start)
		end := armourEnd(t.s, start, min(len(t.s), start+maxPEM))
		if !keyBytes(t.s[start:end]) {
			continue
		}
		out.add(t, start, end, s.own["bare-key"], 0.95, pii.RankChecksum)
		i = max(i, t.wordAt(end)-1)
	}
}

// keyBytes reports the beginning of a private key: PKCS #1, PKCS #8 or the
// format of OpenSSH.
func keyBytes(run string) bool {
	if len(run) < 60 {
		return false
	}
	raw, err := base64.StdEncoding.DecodeString(run[:40])
	if err != nil {
		return false
	}
	head := string(raw)
	if strings.HasPrefix(head, "openssh-key-v1") {
		return true
	}
	// SEQUENCE, its length, then the INTEGER 0 or 1 that is the version.
	if len(head) < 12 || head[0] != 0x30 {
		return false
	}
	skip := 2
	if head[1] >= 0x80 {
		skip += int(head[1] & 3)
	}
	return head[skip:skip+2] == "\x02\x01" && head[skip+2] <= 1
}

// webKeys finds JSON web keys that hold their private part.
func (s *Set) webKeys(t *text, out *findings) {
	for from := t.key; ; {
		i := strings.Index(t.s[from:], `"kty"`)
		if i < 0 {
			return
		}
		at := from + i
		from = at + 5
		start := strings.LastIndexByte(t.s[max(t.key, at-2000):at], '{')
		if start < 0 {
			continue
		}
		start += max(t.key, at-2000)
		n := strings.IndexByte(t.s[at:min(len(t.s), at+6000)], '}')
		if n < 0 {
			continue
		}
		object := t.s[start : at+n+1]
		found := false
		for _, name := range [...]string{`"d"`, `"p"`, `"q"`, `"dp"`, `"dq"`, `"qi"`, `"k"`} {
			if name == `"k"` && !strings.Contains(object, `"oct"`) {
				continue
			}
			if lo, hi, ok := memberText(object, name); ok {
				out.add(t, start+lo, start+hi, s.own["jwk"], 0.97, pii.RankChecksum)
				found = true
			}
		}
		if found {
			from = at + n + 1
		}
	}
}

// memberText returns where the text of a member of a JSON object lies.
func memberText(object, name string) (start, end int, ok bool) {
	i := strings.Index(object, name)
	if i < 0 {
		return 0, 0, false
	}
	i += len(name)
	for i < len(object) && (object[i] == ' ' || object[i] == ':' || object[i] == '\n' || object[i] == '\t') {
		i++
	}
	if i >= len(object) || object[i] != '"' {
		return 0, 0, false
	}
	n := strings.IndexByte(object[i+1:], '"')
	return i + 1, i + 1 + n, n >= 16
}
