package msl

import (
	"fmt"
	"strings"
)

// Expand applies the //@for blocks of a file: `//@for A,B in x,y u,v` repeats
// what follows, up to `//@end`, with @A@ and @B@ replaced. Blocks do not nest.
// Line markers keep compilers' messages true to the file.
func Expand(file, src string) (string, error) {
	var out strings.Builder
	fmt.Fprintf(&out, "#line 1 %q\n", file)
	lines := strings.Split(strings.TrimSuffix(src, "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		head, ok := strings.CutPrefix(strings.TrimSpace(lines[i]), "//@for ")
		if !ok {
			if strings.TrimSpace(lines[i]) == "//@end" {
				return "", fmt.Errorf("%s:%d: //@end without //@for", file, i+1)
			}
			out.WriteString(lines[i] + "\n")
			continue
		}
		end := i + 1
		for end < len(lines) && strings.TrimSpace(lines[end]) != "//@end" {
			end++
		}
		if end == len(lines) {
			return "", fmt.Errorf("%s:%d: //@for without //@end", file, i+1)
		}
		copies, err := repeat(head, strings.Join(lines[i+1:end], "\n"))
		if err != nil {
			return "", fmt.Errorf("%s:%d: %w", file, i+1, err)
		}
		for _, c := range copies {
			fmt.Fprintf(&out, "#line %d %q\n%s\n", i+2, file, c)
		}
		fmt.Fprintf(&out, "#line %d %q\n", end+2, file)
		i = end
	}
	return out.String(), nil
}

// repeat makes the copies of a block.
func repeat(head, block string) ([]string, error) {
	f := strings.Fields(head)
	if len(f) < 3 || f[1] != "in" {
		return nil, fmt.Errorf("want //@for NAMES in VALUES")
	}
	if strings.Contains(block, "//@for ") {
		return nil, fmt.Errorf("//@for in //@for")
	}
	names := strings.Split(f[0], ",")
	var copies []string
	for _, v := range f[2:] {
		values := strings.Split(v, ",")
		if len(values) != len(names) {
			return nil, fmt.Errorf("%d names, %d values", len(names), len(values))
		}
		c := block
		for k, n := range names {
			c = strings.ReplaceAll(c, "@"+n+"@", values[k])
		}
		copies = append(copies, c)
	}
	return copies, nil
}
