package msl

import (
	"fmt"
	"regexp"
	"strings"
)

// Cast is the C++ expression for a thread attribute of type typ of an array of
// three numbers called base.
func Cast(typ, base string) string {
	switch {
	case strings.HasSuffix(typ, "3"):
		return fmt.Sprintf("metal::%s(%s[0], %s[1], %s[2])", typ, base, base, base)
	case strings.HasSuffix(typ, "2"):
		return fmt.Sprintf("metal::%s(%s[0], %s[1])", typ, base, base)
	}
	return fmt.Sprintf("(metal::%s)%s[0]", typ, base)
}

var reAttr = regexp.MustCompile(`[ \t]*\[\[[a-z_]+(\([^()]*\))?\]\]`)

// Strip removes every [[attribute]]; the parser has read them by then, and the
// word threadgroup inside [[threadgroup(0)]] would clash with the shim's macro.
func Strip(src string) string { return reAttr.ReplaceAllString(src, "") }
