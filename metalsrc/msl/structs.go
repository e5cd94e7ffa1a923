package msl

import (
	"regexp"
	"strconv"
	"strings"
)

var (
	reStruct = regexp.MustCompile(`\bstruct\s+(\w+)\s*\{([^{}]*)\}\s*;`)
	reField  = regexp.MustCompile(`^(\w+)\s+(.+)$`)
	reNames  = regexp.MustCompile(`^\s*(\w+)\s*(?:\[\s*(\d+)\s*\])?\s*$`)
)

// structSizes returns the bytes of those structs whose fields are all uint, int
// or float, or arrays of them: the ones that the host can mirror, since every
// compiler lays them out alike.
func structSizes(src string) map[string]int {
	sizes := map[string]int{"uint": 4, "int": 4, "float": 4}
	for _, m := range reStruct.FindAllStringSubmatch(src, -1) {
		if n := fieldsSize(m[2]); n > 0 {
			sizes[m[1]] = n
		}
	}
	return sizes
}

// fieldsSize is zero where a field has another type.
func fieldsSize(fields string) int {
	words := 0
	for f := range strings.SplitSeq(fields, ";") {
		f = strings.TrimSpace(f)
		if f == "" {
			continue
		}
		m := reField.FindStringSubmatch(f)
		if m == nil || m[1] != "uint" && m[1] != "int" && m[1] != "float" {
			return 0
		}
		for name := range strings.SplitSeq(m[2], ",") {
			n := reNames.FindStringSubmatch(name)
			if n == nil {
				return 0
			}
			count := 1
			if n[2] != "" {
				count, _ = strconv.Atoi(n[2])
			}
			words += count
		}
	}
	return 4 * words
}
