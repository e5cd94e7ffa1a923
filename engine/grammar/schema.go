package grammar

import (
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Bounds on schemas. What people write has tens of nodes.
const (
	maxSchemaBytes = 512 << 10
	maxSchemaDepth = 100
	maxNodes       = 20_000 // of the grammar
	maxTexts       = 1 << 20
	maxMembers     = 2_000 // of one object
	maxItems       = 1 << 20
)

// Error says why a schema is not taken.
type Error struct {
	// Pointer is a JSON pointer to the place in the schema. It may hold names
	// that the schema's author chose, so it is no part of the message.
	Pointer string
	Reason  string
}

func (e *Error) Error() string { return e.Reason }

// value is a JSON value of a schema.
type value struct {
	parent *value
	name   string         // in parent
	raw    jsontext.Value // of an object or array, its bracket
	names  []string       // of an object's members, in order
	kids   []*value       // members or items
}

// pointer is where the value stands in its document.
func (v *value) pointer() string {
	if v.parent == nil {
		return ""
	}
	return v.parent.pointer() + "/" + strings.ReplaceAll(strings.ReplaceAll(v.name, "~", "~0"), "/", "~1")
}

func (v *value) kind() jsontext.Kind { return v.raw.Kind() }

// member is an object's member, nil if it has none of that name.
func (v *value) member(name string) *value {
	if i := slices.Index(v.names, name); i >= 0 {
		return v.kids[i]
	}
	return nil
}

// text is a string's text.
func (v *value) text() string {
	b, err := jsontext.AppendUnquote(nil, v.raw)
	if err != nil {
		return "" // it was read as JSON before
	}
	return string(b)
}

func (v *value) bad(reason string) *Error { return &Error{Pointer: v.pointer(), Reason: reason} }

// canonical is the value written without white space, strings and numbers in
// one form.
func (v *value) canonical() string {
	c := jsontext.Value(v.compact())
	if c.Canonicalize() != nil {
		return v.compact()
	}
	return string(c)
}

// compact is the value written without white space, numbers as they are.
func (v *value) compact() string {
	switch v.kind() {
	case '"':
		return quote(v.text())
	case '{':
		parts := make([]string, len(v.kids))
		for i, k := range v.kids {
			parts[i] = quote(v.names[i]) + ":" + k.compact()
		}
		return "{" + strings.Join(parts, ",") + "}"
	case '[':
		parts := make([]string, len(v.kids))
		for i, k := range v.kids {
			parts[i] = k.compact()
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	return string(v.raw)
}

// quote writes a JSON string in the canonical spelling.
func quote(s string) string {
	b, err := jsontext.AppendQuote(nil, s)
	if err != nil {
		return `""` // texts come out of JSON, so they are UTF-8
	}
	return string(b)
}

// readValue reads strict JSON.
func readValue(raw jsontext.Value) (*value, *Error) {
	if len(raw) > maxSchemaBytes {
		return nil, &Error{Reason: "the schema is larger than " + strconv.Itoa(maxSchemaBytes) + " bytes"}
	}
	if !raw.IsValid() {
		return nil, &Error{Reason: "the schema is not JSON"}
	}
	d := jsontext.NewDecoder(strings.NewReader(string(raw)))
	return readNext(d, &value{}, 0)
}

// readNext reads the next value into v.
func readNext(d *jsontext.Decoder, v *value, depth int) (*value, *Error) {
	const broken = "the schema is not JSON"
	if depth > maxSchemaDepth {
		return nil, v.bad("the schema is nested too deeply")
	}
	kind := d.PeekKind()
	if kind != '{' && kind != '[' {
		raw, err := d.ReadValue()
		if err != nil {
			return nil, v.bad(broken)
		}
		v.raw = slices.Clone(raw)
		return v, nil
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, v.bad(broken)
	}
	v.raw = jsontext.Value{byte(kind)}
	for d.PeekKind() != '}' && d.PeekKind() != ']' {
		name := strconv.Itoa(len(v.kids))
		if kind == '{' {
			t, err := d.ReadToken()
			if err != nil {
				return nil, v.bad(broken)
			}
			name = t.String()
			v.names = append(v.names, name)
		}
		k, bad := readNext(d, &value{parent: v, name: name}, depth+1)
		if bad != nil {
			return nil, bad
		}
		v.kids = append(v.kids, k)
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, v.bad(broken)
	}
	return v, nil
}

// resolve finds what a reference within the schema refers to.
func (v *value) resolve(ref string) *value {
	rest, ok := strings.CutPrefix(ref, "#")
	if !ok || rest != "" && rest[0] != '/' {
		return nil
	}
	for rest != "" {
		var part string
		part, rest = cutPointer(rest[1:])
		switch v.kind() {
		case '{':
			if v = v.member(part); v == nil {
				return nil
			}
		case '[':
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(v.kids) {
				return nil
			}
			v = v.kids[i]
		default:
			return nil
		}
	}
	return v
}

// cutPointer splits the first part off a pointer, which a reference may have
// written as in a URI.
func cutPointer(s string) (part, rest string) {
	part = s
	if i := strings.IndexByte(s, '/'); i >= 0 {
		part, rest = s[:i], s[i:]
	}
	var b strings.Builder
	for i := 0; i < len(part); i++ {
		if part[i] == '%' && i+2 < len(part) && isHex(part[i+1:i+3]) {
			hi, _ := hexDigit(part[i+1])
			lo, _ := hexDigit(part[i+2])
			b.WriteByte(hi<<4 | lo)
			i += 2
			continue
		}
		b.WriteByte(part[i])
	}
	return strings.ReplaceAll(strings.ReplaceAll(b.String(), "~1", "/"), "~0", "~"), rest
}
