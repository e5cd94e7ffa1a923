package rules

import (
	"strings"

	"weir/pii"
)

// profileHosts are sites on which the first part of the path is a person, and
// what must stand before it.
const profileHosts = " linkedin.com/in/ linkedin.com/pub/ facebook.com/ fb.com/ instagram.com/ twitter.com/ x.com/ t.me/ tiktok.com/@ threads.net/@ youtube.com/@ youtube.com/user/ youtube.com/c/ reddit.com/user/ reddit.com/u/ github.com/ gitlab.com/ medium.com/@ pinterest.com/ snapchat.com/add/ keybase.io/ about.me/ linktr.ee/ vk.com/ xing.com/profile/ orcid.org/ researchgate.net/profile/ flickr.com/people/ soundcloud.com/ twitch.tv/ steamcommunity.com/id/ stackoverflow.com/users/ mastodon.social/@ bsky.app/profile/ calendly.com/ wa.me/ venmo.com/ paypal.me/ patreon.com/ strava.com/athletes/ goodreads.com/user/ behance.net/ dribbble.com/ last.fm/user/ "

// notPeople are first parts of paths that are no person.
const notPeople = " home login signup explore about help search settings share sharer intent hashtag groups pages events watch reel reels p tv stories topics features pricing marketplace orgs sponsors trending collections company jobs i status legal terms privacy tr plugins dialog policies ads business notifications messages security enterprise customer-stories readme team contact docs blog news developers api static assets "

// urls finds addresses with credentials in them, and pages about one person.
func (s *Set) urls(t *text, out *findings) {
	for from := t.key; ; {
		i := strings.Index(t.s[from:], "://")
		if i < 0 {
			break
		}
		at := from + i
		from = at + 3
		start := at
		for start > t.key && at-start < 24 && (byteClass[t.s[start-1]]&3 != 0 && byteClass[t.s[start-1]] != byteWide || strings.IndexByte("+.-", t.s[start-1]) >= 0) {
			start--
		}
		if start == at {
			continue
		}
		end := urlEnd(t.s, at+3)
		from = max(from, end)
		if s.dsn(t, start, at+3, end, out) {
			continue
		}
		if scheme := t.s[start:at]; scheme == "http" || scheme == "https" {
			s.page(t, start, at+3, end, out)
		}
	}
	s.barePages(t, out)
	s.dsnFields(t, out)
}

func urlEnd(s string, i int) int {
	for i < len(s) {
		c := s[i]
		if c <= ' ' || c == '"' || c == '\'' || c == '<' || c == '>' || c == '`' || c == '|' || c == '\\' || c == '^' {
			break
		}
		if c == 0xE3 && (strings.HasPrefix(s[i:], "\u3002") || strings.HasPrefix(s[i:], "\u3001")) || c == 0xEF && strings.HasPrefix(s[i:], "\uFF0C") {
			break
		}
		i++
	}
	for least := max(i-8, 0); i > least && strings.IndexByte(".,;:!?)]}*", s[i-1]) >= 0; {
		if s[i-1] == ')' && strings.Count(s[max(0, i-200):i], "(") >= strings.Count(s[max(0, i-200):i], ")") {
			break
		}
		i--
	}
	return i
}

// dsn reports an address of the form scheme://user:password@host.
func (s *Set) dsn(t *text, start, host, end int, out *findings) bool {
	authority := t.s[host:end]
	if i := strings.IndexAny(authority, "/?#"); i >= 0 && strings.IndexByte(authority[:i], '@') < 0 {
		// A slash may stand in a password; the last @ ends it all the same.
		if j := strings.LastIndexByte(authority, '@'); j < 0 || strings.Contains(authority[:j], "://") || !strings.Contains(authority[:min(i, j)], ":") || digitsOnly(afterColon(authority[:i])) {
			authority = authority[:i]
		}
	}
	at := strings.LastIndexByte(authority, '@')
	if at <= 0 {
		return false
	}
	user, pass, ok := strings.Cut(authority[:at], ":")
	if !ok || pass == "" || pii.Never(pass) || strings.ContainsAny(user, "/?#") {
		return false
	}
	if low := strings.ToLower(pass); low == "pass" || low == "pw" || low == user && low == "user" {
		return false
	}
	out.add(t, start, end, s.own["dsn"], 0.98, pii.RankChecksum)
	return true
}

func afterColon(s string) string {
	return s[strings.LastIndexByte(s, ':')+1:]
}

// page reports a person's page.
func (s *Set) page(t *text, start, host, end int, out *findings) {
	rest := t.s[host:end]
	name, path, _ := strings.Cut(rest, "/")
	if strings.HasPrefix(path, "~") && len(path) > 2 && byteClass[path[1]] == byteLower {
		out.add(t, start, end, s.own["profile-url"], 0.85, pii.RankContext)
		return
	}
	if sharePage(name, path) {
		out.add(t, start, end, s.own["share-url"], 0.8, pii.RankContext)
		return
	}
	if n := profile(rest); n > 0 {
		out.add(t, start, host+n, s.own["profile-url"], 0.9, pii.RankPrefix)
	}
}

// sharePage reports links to a private document.
func sharePage(host, path string) bool {
	switch strings.TrimPrefix(host, "www.") {
	case "docs.google.com", "drive.google.com":
		return strings.Contains(path, "/d/") || strings.Contains(path, "folders/")
	case "1drv.ms", "meet.google.com", "photos.app.goo.gl":
		return len(path) > 5
	case "dropbox.com":
		return strings.HasPrefix(path, "s/") || strings.HasPrefix(path, "scl/")
	}
	return strings.HasSuffix(host, ".zoom.us") && strings.HasPrefix(path, "j/")
}

// profile returns the length of the profile's address that begins s, or 0.
func profile(s string) int {
	bare := strings.TrimPrefix(strings.TrimPrefix(s, "www."), "m.")
	cut := len(s) - len(bare)
	slash := strings.IndexByte(bare, '/')
	if slash < 4 || slash > 30 {
		return 0
	}
	host := strings.ToLower(bare[:slash+1])
	for from := 0; ; {
		i := strings.Index(profileHosts[from:], " "+host)
		if i < 0 {
			break
		}
		i += from + 1
		from = i
		prefix := profileHosts[i : i+strings.IndexByte(profileHosts[i:], ' ')]
		if len(bare) <= len(prefix) || !strings.EqualFold(bare[:len(prefix)], prefix) {
			continue
		}
		name := bare[len(prefix):]
		end := strings.IndexAny(name, "/?#")
		if end < 0 {
			end = len(name)
		}
		rest := name[end:]
		code := prefix == "github.com/" || prefix == "gitlab.com/"
		if end < 3 || strings.Contains(notPeople, " "+strings.ToLower(name[:end])+" ") || code && len(rest) > 1 {
			continue // a repository is no person's page
		}
		return cut + len(prefix) + end + restOfProfile(rest)
	}
	if strings.Contains(host, ".") && strings.HasPrefix(bare[slash:], "/in/") && len(bare) > slash+6 && strings.Contains(host, "linkedin") {
		return len(s)
	}
	return 0
}

func restOfProfile(rest string) int {
	if len(rest) <= 40 && !strings.Contains(rest, "://") {
		return len(rest)
	}
	return 0
}

// barePages finds profiles written without a scheme.
func (s *Set) barePages(t *text, out *findings) {
	for from := t.key; ; {
		i := strings.IndexByte(t.s[from:], '/')
		if i < 0 {
			return
		}
		at := from + i
		from = at + 1
		if at < 5 || at+3 >= len(t.s) || byteClass[t.s[at-1]] == byteOther || byteClass[t.s[at-1]] == byteWide {
			continue
		}
		start := at
		for start > t.key && at-start < 30 && (byteClass[t.s[start-1]] != byteOther && byteClass[t.s[start-1]] != byteWide || t.s[start-1] == '.' || t.s[start-1] == '-') {
			start--
		}
		if start >= 1 && (t.s[start-1] == '/' || t.s[start-1] == '@') || strings.IndexByte(t.s[start:at], '.') < 0 {
			continue
		}
		end := urlEnd(t.s[:min(len(t.s), at+300)], at)
		if n := profile(t.s[start:end]); n > 0 {
			out.add(t, start, start+n, s.own["profile-url"], 0.88, pii.RankPrefix)
			from = start + n
		}
	}
}

// dsnFields finds connection strings of semicolon-separated fields.
func (s *Set) dsnFields(t *text, out *findings) {
	for _, h := range t.hits {
		if !h.set.has(s.c.password) && !h.set.has(s.c.apikey) || int(h.end) >= len(t.s) || t.s[h.end] != '=' {
			continue
		}
		start := int(h.start)
		for start > t.key && int(h.start)-start < 400 && strings.IndexByte("\"'\n`<>", t.s[start-1]) < 0 {
			start--
		}
		fields := t.s[start:h.start]
		if eq := strings.LastIndexByte(fields, ' '); eq >= 0 && !strings.ContainsAny(fields[:eq], ";=") {
			fields = fields[eq+1:]
			start += eq + 1
		}
		// NAME=Server=...: the first name is that of the variable.
		if i := strings.IndexByte(fields, '='); i > 0 {
			if j := strings.IndexByte(fields[i+1:], '='); j > 0 && !strings.ContainsAny(fields[i+1:i+1+j], "; ,.") {
				start += i + 1
				fields = fields[i+1:]
			}
		}
		low := strings.ToLower(fields)
		if !strings.Contains(fields, ";") || !strings.Contains(low, "server=") && !strings.Contains(low, "host=") && !strings.Contains(low, "data source=") && !strings.Contains(low, "endpoint") && !strings.Contains(low, "accountname=") && !strings.Contains(low, "uid=") && !strings.Contains(low, "user id=") {
			continue
		}
		end := int(h.end)
		for end < len(t.s) && strings.IndexByte("\"'\n`<>", t.s[end]) < 0 && end-start < 800 {
			end++
		}
		value := t.s[h.end+1 : end]
		if cut := strings.IndexByte(value, ';'); cut >= 0 {
			value = value[:cut]
		}
		if value == "" || pii.Never(value) {
			continue
		}
		out.add(t, start, end, s.own["dsn-fields"], 0.96, pii.RankChecksum)
	}
}
