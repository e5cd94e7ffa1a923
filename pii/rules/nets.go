package rules

import (
	"net/netip"
	"strings"

	"weir/pii"
)

// numbersOfNets finds IP and MAC addresses and coordinates, and UUIDs of
// devices by the words around them.
func (s *Set) numbersOfNets(t *text, out *findings) {
	for i := 0; i < len(t.words); i++ {
		w := t.words[i]
		if !w.ascii() || w.len() > 8 || !hexWord(t.s[w.start:w.end]) {
			continue
		}
		end := int(w.end)
		if end+1 >= len(t.s) {
			continue
		}
		switch t.s[end] {
		case '.':
			switch {
			case w.numeric() && w.len() <= 3:
				i = s.dotted(t, i, out)
			case w.len() == 4:
				s.ciscoMAC(t, int(w.start), out)
			}
		case ':', '-':
			if w.len() == 2 && s.mac(t, int(w.start), out) {
				continue
			}
			if t.s[end] == ':' {
				i = s.ipv6(t, i, out)
			}
		}
	}
	for from := t.key; ; {
		i := strings.Index(t.s[from:], "::")
		if i < 0 {
			return
		}
		at := from + i
		from = at + 2
		if at == 0 || byteClass[t.s[at-1]] == byteOther {
			s.ipv6At(t, at, out)
		}
	}
}

func hexWord(s string) bool {
	for i := range len(s) {
		if c := s[i]; !(c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f') {
			return false
		}
	}
	return true
}

// dotted takes the numbers joined by dots from word i and returns the last. It
// is an address if there are four and nothing says that it is a version.
func (s *Set) dotted(t *text, i int, out *findings) int {
	start, last := int(t.words[i].start), i
	for last+1 < len(t.words) && t.words[last+1].start == t.words[last].end+1 && t.s[t.words[last].end] == '.' && t.words[last+1].ascii() {
		last++
	}
	end := int(t.words[last].end)
	switch {
	case last-i == 3:
		ip, err := netip.ParseAddr(t.s[start:end])
		if err != nil || !personalIP(ip) || s.sectionNumber(t, ip, start, end) || s.versionBefore(t, start) || attached(t.s, start) {
			break
		}
		if end < len(t.s) && (t.s[end] == '-' && end+1 < len(t.s) && byteClass[t.s[end+1]]&3 != 0 && byteClass[t.s[end+1]] != byteDigit || t.s[end] == '_') {
			break
		}
		out.add(t, start, end, s.own["ip"], 0.95, pii.RankChecksum)
	case last == i+1:
		s.coordinate(t, i, out)
	}
	return last
}

// sectionNumber reports four small numbers with no word about networks near:
// the number of a paragraph.
func (s *Set) sectionNumber(t *text, ip netip.Addr, start, end int) bool {
	b := ip.Unmap().As4()
	if max(b[0], b[1], b[2], b[3]) >= 40 || b[0] == 10 {
		return false
	}
	return !t.context(start, end, 40, 20).has(s.c.network)
}

// personalIP leaves out addresses that are the same on every machine, and
// masks.
func personalIP(ip netip.Addr) bool {
	ip = ip.Unmap()
	if ip.IsLoopback() || ip.IsUnspecified() || ip.IsMulticast() || ip.IsLinkLocalMulticast() {
		return false
	}
	if ip.Is4() {
		b := ip.As4()
		return b[0] != 0 && b[0] != 255 && !(b[3] == 0 && (b[2] == 0 || b[0] == 10 || b[0] == 192 || b[0] == 172))
	}
	return true
}

// versionBefore reports words and signs that make four numbers a version.
func (s *Set) versionBefore(t *text, start int) bool {
	i := start
	for i > 0 && strings.IndexByte(" =<>~^:\"'(", t.s[i-1]) >= 0 && start-i < 4 {
		i--
	}
	if strings.Contains(t.s[i:start], "==") || strings.Contains(t.s[i:start], ">=") || strings.Contains(t.s[i:start], "~=") {
		return true
	}
	if start > 0 && (t.s[start-1]|0x20 == 'v' || t.s[start-1] == '@') {
		return true
	}
	for j, n := t.wordAt(i)-1, 0; j >= 0 && n < 6; j-- {
		if start-int(t.words[j].end) > 40 {
			return false
		}
		if t.words[j].numeric() {
			continue // of another version, as in "from 1.2.3.4 to 1.2.3.5"
		}
		n++
		low := lowerASCII(t.word(j))
		if oneOf("version v ver versions release released upgrade upgraded build firmware kernel pinned rfc bump bumped section chapter oid driver chrome firefox safari edge", low) || strings.HasPrefix(low, "version") {
			return true
		}
		if strings.IndexByte(t.s[t.words[j].end:start], '\n') >= 0 || oneOf("ip address host server", low) {
			return false
		}
	}
	return false
}

func (s *Set) ipv6(t *text, i int, out *findings) int {
	return t.wordAt(max(int(t.words[i].end), s.ipv6At(t, int(t.words[i].start), out))) - 1
}

// ipv6At reads an IPv6 address at start and returns where it ends.
func (s *Set) ipv6At(t *text, start int, out *findings) int {
	end, colons := start, 0
	for end < len(t.s) && end-start < 46 {
		c := t.s[end]
		if c == ':' {
			colons++
		} else if byteClass[c] == byteOther && c != '.' || byteClass[c] == byteWide {
			break
		}
		end++
	}
	stop := end
	for end > start && (t.s[end-1] == '.' || t.s[end-1] == ':' && !strings.HasSuffix(t.s[start:end], "::")) {
		end--
	}
	v := t.s[start:end]
	if colons < 2 || len(v) < 4 || colons < 7 && !strings.Contains(v, "::") || start > 0 && (t.s[start-1] == ':' || glued(t.s[start-1])) {
		return stop
	}
	ip, err := netip.ParseAddr(v)
	if err != nil || !ip.Is6() || !personalIP(ip) || !strings.ContainsAny(v, "0123456789") || strings.HasSuffix(v, "::") {
		return stop
	}
	out.add(t, start, end, s.own["ip"], 0.95, pii.RankChecksum)
	return stop
}

// mac reads six pairs joined by colons or dashes.
func (s *Set) mac(t *text, start int, out *findings) bool {
	const n = 17
	if start+n > len(t.s) || start+n < len(t.s) && (byteClass[t.s[start+n]] != byteOther || t.s[start+n] == t.s[start+2] && start+n+1 < len(t.s) && byteClass[t.s[start+n+1]] != byteOther) {
		return false
	}
	v := t.s[start : start+n]
	for i := range n {
		if i%3 == 2 {
			if v[i] != v[2] {
				return false
			}
		} else if !hexWord(v[i : i+1]) {
			return false
		}
	}
	if attached(t.s, start) || start > 0 && t.s[start-1] == v[2] || v == "00:00:00:00:00:00" || strings.EqualFold(v, "ff:ff:ff:ff:ff:ff") {
		return false
	}
	out.add(t, start, start+n, s.own["mac"], 0.95, pii.RankChecksum)
	return true
}

// ciscoMAC reads three groups of four joined by dots.
func (s *Set) ciscoMAC(t *text, start int, out *findings) {
	if start+14 > len(t.s) || start+14 < len(t.s) && byteClass[t.s[start+14]] != byteOther || attached(t.s, start) {
		return
	}
	v := t.s[start : start+14]
	if v[4] != '.' || v[9] != '.' || !hexWord(v[:4]) || !hexWord(v[5:9]) || !hexWord(v[10:]) {
		return
	}
	if digitsOnly(v[:4]) && digitsOnly(v[5:9]) && digitsOnly(v[10:]) {
		return
	}
	out.add(t, start, start+14, s.own["mac"], 0.85, pii.RankContext)
}

// coordinate reads a pair of decimal degrees: one in range with four decimals
// each, or with fewer where a word says so.
func (s *Set) coordinate(t *text, i int, out *findings) {
	lat, start, end, ok := degrees(t, i, 90)
	if !ok {
		return
	}
	next := end
	for next < len(t.s) && next-end < 14 && (strings.IndexByte(" ,;/°\"':", t.s[next]) >= 0 || t.s[next] >= 0x80 || byteClass[t.s[next]]&3 != 0 && byteClass[t.s[next]] != byteDigit) {
		next++
	}
	j := t.wordAt(next)
	if j+1 >= len(t.words) || next == end {
		return
	}
	lon, _, stop, ok := degrees(t, j, 180)
	if !ok || int(t.words[j].start)-end > 14 {
		return
	}
	if min(lat, lon) < 4 && !(min(lat, lon) >= 2 && t.context(start, stop, 60, 20).has(s.c.coords)) {
		return
	}
	for _, unit := range [...]string{"N", "S", "E", "W", "°", " N", " S", " E", " W"} {
		if strings.HasPrefix(t.s[stop:], unit) && (stop+len(unit) == len(t.s) || byteClass[t.s[stop+len(unit)]] == byteOther) {
			stop += len(unit)
			break
		}
	}
	out.add(t, start, stop, s.own["coordinates"], 0.85, pii.RankContext)
}

// degrees reads a decimal number whose whole part is word i, and returns how
// many decimals it has.
func degrees(t *text, i, limit int) (decimals, start, end int, ok bool) {
	if i+1 >= len(t.words) {
		return 0, 0, 0, false
	}
	a, b := t.words[i], t.words[i+1]
	start, end = int(a.start), int(b.end)
	if !a.numeric() || a.len() > 3 || b.start != a.end+1 || t.s[a.end] != '.' || num(t.s[a.start:a.end]) > limit {
		return 0, 0, 0, false
	}
	for end > int(b.start) && byteClass[t.s[end-1]] != byteDigit {
		end--
	}
	if !digitsOnly(t.s[b.start:end]) || end-int(b.start) > 9 {
		return 0, 0, 0, false
	}
	if start > 0 && (t.s[start-1] == '-' || t.s[start-1] == '+') {
		start--
	}
	return end - int(b.start), start, end, start == 0 || byteClass[t.s[start-1]] == byteOther && t.s[start-1] != '.' && t.s[start-1] != '$'
}
