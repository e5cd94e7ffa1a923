package config

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"weir/pii/custom"
)

// loader reads into a Config and collects what is wrong. It walks the types of
// Config by reflection, so that a key is declared once: its field. Reading a
// file this way and not through the YAML library's own decoder is what allows
// reporting every fault instead of the first, and none of the values.
type loader struct {
	cfg      Config
	src      Sources
	env      map[string]string
	doc      document // that is being read
	from     map[string]origin
	problems []*Problem
	// unread says that a file is not YAML. faulty are the keys that could not be
	// read, and the mappings with a key that nobody knows: check does not blame
	// them for what may have been meant there.
	unread bool
	faulty map[string]bool
}

// document is a file that is read.
type document struct {
	name string
	data []byte
}

// origin is where a key was set.
type origin struct {
	doc          document
	line, column int
	variable     string
}

func (l *loader) err() error {
	errs := make([]error, len(l.problems))
	for i, p := range l.problems {
		errs[i] = p
	}
	return errors.Join(errs...)
}

// at adds a problem of the file that is being read.
func (l *loader) at(key string, line, column int, message, hint string) {
	l.faulty[key] = true
	l.place(l.doc, key, line, column, message, hint)
}

func (l *loader) place(doc document, key string, line, column int, message, hint string) {
	l.problems = append(l.problems, &Problem{
		Key: key, File: doc.name, Line: line, Column: column, Message: message, Hint: hint,
		Excerpt: excerpt(doc.data, line, column),
	})
}

// problem adds a problem of a key, wherever it or what encloses it was set,
// unless that could not be read in the first place.
func (l *loader) problem(key, message, hint string) {
	if l.excused(key) {
		return
	}
	for k := key; k != ""; k = parent(k) {
		o, ok := l.from[k]
		switch {
		case ok && o.variable != "":
			l.problems = append(l.problems, &Problem{Key: o.variable, Message: message, Hint: hint})
			return
		case ok:
			l.place(o.doc, key, o.line, o.column, message, hint)
			return
		}
	}
	l.problems = append(l.problems, &Problem{Key: key, Message: message, Hint: hint})
}

// excused says that a key is not what its author wrote: it could not be read, or
// it is missing below a mapping with something in it that could not.
func (l *loader) excused(key string) bool {
	if l.faulty[key] {
		return true
	}
	if _, set := l.from[key]; set {
		return false
	}
	for key != "" {
		if key = parent(key); l.faulty[key] {
			return true
		}
	}
	return false
}

func parent(key string) string { return key[:max(strings.LastIndexAny(key, ".["), 0)] }

// yaml reads the file.
func (l *loader) yaml(name string, data []byte) {
	if body := l.parse(name, data); body != nil {
		l.node("", body, reflect.ValueOf(&l.cfg).Elem())
	}
}

// parse returns what a file holds, or nil.
func (l *loader) parse(name string, data []byte) ast.Node {
	l.doc = document{name, data}
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		l.unread = true
		l.syntax(err)
		return nil
	}
	var docs []*ast.DocumentNode
	for _, d := range file.Docs {
		if d.Body != nil && d.Body.Type() != ast.NullType && d.Body.Type() != ast.CommentType {
			docs = append(docs, d)
		}
	}
	switch len(docs) {
	case 0: // an empty file, or nothing but comments
	case 1:
		return docs[0].Body
	default:
		line, column := position(docs[1].Body)
		l.unread = true
		l.at("", line, column, "a second document in one file", "")
	}
	return nil
}

// quoted is what a parser's message cites.
var quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

func (l *loader) syntax(err error) {
	var y yaml.Error
	if !errors.As(err, &y) || y.GetToken() == nil {
		l.problems = append(l.problems, &Problem{File: l.doc.name, Message: "not valid YAML"})
		return
	}
	message := y.GetMessage()
	// Of a duplicate key the name is cited, else it may be a value.
	if !strings.HasPrefix(message, "mapping key ") || looksSecret(quoted.FindString(message)) {
		message = quoted.ReplaceAllString(message, "value")
	}
	pos := y.GetToken().Position
	l.at("", pos.Line, pos.Column, "not valid YAML: "+message, "")
}

// node reads a node into v, which is at path.
func (l *loader) node(path string, n ast.Node, v reflect.Value) {
	line, column := position(n)
	if path != "" {
		if _, ok := l.from[path]; !ok {
			l.from[path] = origin{doc: l.doc, line: line, column: column}
		}
	}
	switch n := n.(type) {
	case *ast.TagNode, *ast.AnchorNode, *ast.AliasNode:
		l.at(path, line, column, "anchors, aliases and tags are not used here", "write the value out")
		return
	case *ast.NullNode:
		return // a key without a value keeps its default
	case *ast.MappingNode:
		l.mapping(path, n.Values, v, n)
		return
	case *ast.MappingValueNode:
		l.mapping(path, []*ast.MappingValueNode{n}, v, n)
		return
	case *ast.SequenceNode:
		l.sequence(path, n, v)
		return
	}
	text, ok := scalar(n)
	if !ok || !isScalar(v.Type()) {
		l.at(path, line, column, "must be "+describe(v.Type()), "")
		return
	}
	if err := set(v, text); err != nil {
		l.at(path, line, column, err.Error(), hintFor(err))
	}
}

func hintFor(err error) string {
	if errors.Is(err, errLiteral) {
		return hintLiteral
	}
	return ""
}

func (l *loader) mapping(path string, entries []*ast.MappingValueNode, v reflect.Value, n ast.Node) {
	isStruct := v.Kind() == reflect.Struct && !isScalar(v.Type())
	if !isStruct && v.Kind() != reflect.Map {
		line, column := position(n)
		l.at(path, line, column, "must be "+describe(v.Type()), "")
		return
	}
	for _, e := range entries {
		line, column := position(e.Key)
		name, ok := scalar(e.Key)
		if !ok {
			l.at(path, line, column, "this kind of key is not used here", "")
			continue
		}
		key := join(path, name)
		if isStruct {
			i := field(v.Type(), name)
			if i < 0 {
				l.unknown(path, name, line, column, v.Type())
				continue
			}
			l.from[key] = origin{doc: l.doc, line: line, column: column}
			l.node(key, e.Value, v.Field(i))
			continue
		}
		l.from[key] = origin{doc: l.doc, line: line, column: column}
		elem := reflect.New(v.Type().Elem()).Elem()
		l.node(key, e.Value, elem)
		setMap(v, name, elem)
	}
}

func (l *loader) unknown(path, name string, line, column int, t reflect.Type) {
	shown := name
	if looksSecret(name) {
		shown = "…"
	}
	hint := ""
	if near := nearest(name, keys(t)); near != "" {
		hint = "did you mean " + near + "?"
	}
	l.at(join(path, shown), line, column, "unknown key", hint)
	l.faulty[path] = true
}

func (l *loader) sequence(path string, n *ast.SequenceNode, v reflect.Value) {
	if v.Kind() != reflect.Slice {
		line, column := position(n)
		l.at(path, line, column, "must be "+describe(v.Type()), "")
		return
	}
	// A list replaces its default; an empty one is not the same as none.
	list := reflect.MakeSlice(v.Type(), 0, len(n.Values))
	for i, item := range n.Values {
		elem := newElem(v.Type().Elem())
		l.node(fmt.Sprintf("%s[%d]", path, i), item, elem)
		list = reflect.Append(list, elem)
	}
	v.Set(list)
}

// newElem is an element with its defaults.
func newElem(t reflect.Type) reflect.Value {
	v := reflect.New(t).Elem()
	switch t {
	case reflect.TypeFor[Upstream]():
		v.Set(reflect.ValueOf(upstreamDefaults()))
	case reflect.TypeFor[custom.Recognizer]():
		v.Set(reflect.ValueOf(recognizerDefaults()))
	}
	return v
}

func setMap(m reflect.Value, key string, elem reflect.Value) {
	if m.IsNil() {
		m.Set(reflect.MakeMap(m.Type()))
	}
	m.SetMapIndex(reflect.ValueOf(key), elem)
}

// set reads text into a scalar. Its errors do not show the text.
func set(v reflect.Value, text string) error {
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return u.UnmarshalText([]byte(text))
	}
	switch {
	case v.Type() == reflect.TypeFor[time.Duration]():
		d, err := duration(text)
		if err != nil {
			return err
		}
		v.SetInt(int64(d))
	case v.Kind() == reflect.String:
		v.SetString(text)
	case v.Kind() == reflect.Bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return errors.New("must be true or false")
		}
		v.SetBool(b)
	case v.Kind() == reflect.Int:
		n, err := strconv.ParseInt(text, 10, 0)
		if err != nil {
			return errors.New("must be a whole number")
		}
		v.SetInt(n)
	case v.Kind() == reflect.Float64:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return errors.New("must be a number")
		}
		v.SetFloat(f)
	default:
		panic("config: a field has a type that set does not know: " + v.Type().String())
	}
	return nil
}

// duration reads what time.ParseDuration does, and days as 30d.
func duration(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, errors.New("must be a length of time, as in 30s, 10m, 24h or 7d")
	}
	return d, nil
}

// scalar returns the text of a node that is one value.
func scalar(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return strings.TrimRight(n.Value.Value, "\n"), true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NanNode, *ast.InfinityNode:
		return n.GetToken().Value, true
	}
	return "", false
}

func isScalar(t reflect.Type) bool {
	if reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return true
	}
	switch t.Kind() {
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int64, reflect.Float64:
		return true
	default:
		return false
	}
}

// describe says what a value of a type looks like.
func describe(t reflect.Type) string {
	switch {
	case isScalar(t):
		return "a single value"
	case t.Kind() == reflect.Slice:
		return "a list"
	}
	return "a mapping of keys to values"
}

func position(n ast.Node) (line, column int) {
	var tk *token.Token
	if n != nil {
		tk = n.GetToken()
	}
	if tk == nil || tk.Position == nil {
		return 0, 0
	}
	return tk.Position.Line, tk.Position.Column
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// field returns the index of the field with a key, or -1.
func field(t reflect.Type, key string) int {
	for i := range t.NumField() {
		if tag := t.Field(i).Tag.Get("yaml"); tag == key && tag != "" && tag != "-" {
			return i
		}
	}
	return -1
}

// keys returns the keys of a struct in order.
func keys(t reflect.Type) []string {
	var out []string
	for i := range t.NumField() {
		if tag := t.Field(i).Tag.Get("yaml"); tag != "" && tag != "-" {
			out = append(out, tag)
		}
	}
	return out
}
