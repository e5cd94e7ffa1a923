package repotest

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

var (
	mdLink    = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	mdHeading = regexp.MustCompile(`(?m)^#{1,6} +(.+?) *$`)
)

// fences blanks out code, in which nothing is a link or a heading, and keeps the
// lines.
func fences(text string) string {
	in := false
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			in = !in
			lines[i] = ""
		} else if in {
			lines[i] = ""
		}
	}
	return strings.Join(lines, "\n")
}

// slug is the anchor of a heading, as the common renderers make it.
func slug(heading string) string {
	var b strings.Builder
	for _, c := range strings.ToLower(heading) {
		switch {
		case unicode.IsLetter(c), unicode.IsDigit(c), c == '_', c == '-':
			b.WriteRune(c)
		case c == ' ':
			b.WriteByte('-')
		}
	}
	return b.String()
}

func anchors(f *File) []string {
	var out []string
	for _, m := range mdHeading.FindAllStringSubmatch(fences(f.Text), -1) {
		out = append(out, slug(m[1]))
	}
	return out
}

// CheckLinks finds links in documents that lead nowhere within the repository.
func CheckLinks(r *Repo) []Fault {
	var out []Fault
	for _, f := range r.Files {
		if !strings.HasSuffix(f.Path, ".md") {
			continue
		}
		text := fences(f.Text)
		for _, m := range mdLink.FindAllStringSubmatchIndex(text, -1) {
			if target := text[m[2]:m[3]]; !r.resolves(f, target) {
				out = append(out, Fault{f.Path, lineOf(text, m[0]), "links to " + target + ", which is not there"})
			}
		}
	}
	return out
}

func (r *Repo) resolves(from *File, target string) bool {
	if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
		return true
	}
	name, anchor, hasAnchor := strings.Cut(target, "#")
	to := from
	if name != "" {
		full := path.Join(from.Dir(), name)
		if !r.Paths[full] {
			return false
		}
		to = r.File(full)
	}
	return !hasAnchor || to != nil && slices.Contains(anchors(to), anchor)
}
