package grammar

import (
	"slices"
	"strconv"
	"strings"
)

// check holds that the keywords of a schema are understood and have values
// that make sense, each once.
func (c *compiler) check(v *value) error {
	if c.checked[v] {
		return nil
	}
	for i, name := range v.names {
		if err := checkKeyword(name, v.kids[i]); err != "" {
			return v.kids[i].bad(err)
		}
		if name == "format" {
			format := v.kids[i].text()
			if _, ok := formatBits(format); !ok && c.formats[format] == "" {
				return v.kids[i].bad("this format is not supported")
			}
		}
	}
	c.checked[v] = true
	return nil
}

// checkKeyword says what is wrong with a keyword, or nothing.
func checkKeyword(name string, v *value) string {
	switch name {
	case "type":
		return checkType(v)
	case "enum", "anyOf", "oneOf", "allOf":
		if v.kind() != '[' || len(v.kids) == 0 {
			return "this must be an array that is not empty"
		}
	case "const", "items", "additionalProperties":
		if name == "items" && v.kind() == '[' {
			return "items must be one schema; prefixItems has those of the first items"
		}
	case "$ref", "pattern", "format":
		if v.kind() != '"' {
			return "this must be a string"
		}
	case "properties":
		if v.kind() != '{' {
			return "properties must be an object"
		}
	case "required":
		if v.kind() != '[' || slices.ContainsFunc(v.kids, func(k *value) bool { return k.kind() != '"' }) {
			return "required must be an array of strings"
		}
	case "prefixItems":
		if v.kind() != '[' {
			return "prefixItems must be an array"
		}
	case "minLength", "maxLength", "minItems", "maxItems":
		if _, ok := count(v); !ok {
			return "this must be a whole number that is not negative"
		}
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf":
		return checkNumber(name, v)
	case "uniqueItems", "nullable":
		if v.kind() != 'f' {
			return "this keyword is supported as false only"
		}
	case "minProperties":
		if n, ok := count(v); !ok || n > 0 {
			return "this keyword is supported as 0 only"
		}
	default:
		if !annotation(name) {
			return "this keyword is not supported"
		}
	}
	return ""
}

// annotation reports a keyword that says nothing about what is valid, or only
// where it is referred to.
func annotation(name string) bool {
	switch name {
	case "title", "description", "default", "examples", "example", "$comment", "$schema", "$id", "deprecated",
		"readOnly", "writeOnly", "discriminator", "externalDocs", "contentMediaType", "contentEncoding", "$defs", "definitions":
		return true
	}
	return strings.HasPrefix(name, "x-")
}

func checkType(v *value) string {
	names := []*value{v}
	if v.kind() == '[' {
		names = v.kids
	}
	if len(names) == 0 || slices.ContainsFunc(names, func(k *value) bool { return k.kind() != '"' || typeNamed(k.text()) == 0 }) {
		return "type must be null, boolean, string, number, integer, array, object, or several of them"
	}
	return ""
}

func checkNumber(name string, v *value) string {
	if v.kind() != '0' {
		return "this must be a number"
	}
	d, ok := parseDecimal(string(v.raw))
	if !ok {
		return "this number has too many digits"
	}
	if name != "multipleOf" {
		return ""
	}
	if _, _, ok := divisorOf(d); !ok {
		return "multipleOf is supported for whole numbers up to " + strconv.Itoa(maxDivisor) + " and for 0.1, 0.01 and so on"
	}
	return ""
}

// divisorOf reads a multipleOf: a whole number, or a number of decimals.
func divisorOf(d decimal) (divisor, decimals int, ok bool) {
	switch {
	case d.neg || d.zero():
		return 0, 0, false
	case d.part == "":
		n, err := strconv.Atoi(d.whole)
		return n, -1, err == nil && n <= maxDivisor
	}
	return 0, len(d.part), d.whole == "" && len(d.part) <= maxDigits && strings.Trim(d.part, "0") == "1"
}

// count reads a whole number that is not negative; large ones are as good as
// the largest.
func count(v *value) (int32, bool) {
	if v.kind() != '0' {
		return 0, false
	}
	d, ok := parseDecimal(string(v.raw))
	if !ok || d.neg && !d.zero() || d.part != "" {
		return 0, false
	}
	if d.zero() {
		return 0, true
	}
	n, err := strconv.ParseInt(d.whole, 10, 32)
	if err != nil || n > 1<<30 {
		return 1 << 30, true
	}
	return int32(n), true
}
