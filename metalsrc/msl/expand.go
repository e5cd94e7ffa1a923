package msl

import (
	"fmt"
	"strings"
)

// Expand applies the //@for blocks.
func Expand(src string) (string, error) {
	var out strings.Builder
	lines := strings.Split(src, "\n")
	for i := 0; i < len(lines); i++ {
		l := strings.TrimSpace(lines[i])
		if !strings.HasPrefix(l, "//@for ") {
			out.WriteString(lines[i])
			out.WriteByte('\n')
			continue
		}
		f := strings.Fields(strings.TrimPrefix(l, "//@for "))
		if len(f) < 3 || f[1] != "in" {
			return "", fmt.Errorf("line %d: want //@for NAMES in VALUES...", i+1)
		}
		end := i + 1
		for end < len(lines) && strings.TrimSpace(lines[end]) != "//@end" {
			end++
		}
		if end == len(lines) {
			return "", fmt.Errorf("line %d: //@for without //@end", i+1)
		}
		names := strings.Split(f[0], ",")
		for _, v := range f[2:] {
			vals := strings.Split(v, ",")
			if len(vals) != len(names) {
				return "", fmt.Errorf("line %d: %d names, %d values", i+1, len(names), len(vals))
			}
			block := strings.Join(lines[i+1:end], "\n")
			for k, n := range names {
				block = strings.ReplaceAll(block, "@"+n+"@", vals[k])
			}
			out.WriteString(block)
			out.WriteByte('\n')
		}
		i = end
	}
	return out.String(), nil
}
