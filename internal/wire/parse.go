package wire

import (
	"bytes"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Limits bounds what [Parse] accepts. The zero value means the defaults.
type Limits struct {
	// Depth is the deepest nesting of objects and arrays; default 128.
	Depth int
	// Embedded is how many levels of JSON inside strings are looked into;
	// default 3. Deeper ones are plain text.
	Embedded int
	// Leaves is the largest number of pieces of text; default 500,000.
	Leaves int
}

func (l Limits) orDefaults() Limits {
	if l.Depth == 0 {
		l.Depth = 128
	}
	if l.Embedded == 0 {
		l.Embedded = 3
	}
	if l.Leaves == 0 {
		l.Leaves = 500_000
	}
	return l
}

// Errors of [Parse]. None of them holds text of the document.
var (
	ErrSyntax      = errors.New("not valid JSON")
	ErrDuplicate   = errors.New("an object has two members of the same name")
	ErrUTF8        = errors.New("not valid UTF-8")
	ErrTooDeep     = errors.New("nested too deep")
	ErrTooManyText = errors.New("too many pieces of text")
)

// Visitor is told of leaves as they are read. A nil Visitor is allowed.
type Visitor interface {
	// Open is called at an object or array of the root document, path ending
	// at it, start being its first byte.
	Open(path []Elem, start int)
	// Close is called at its end, end being the byte after it.
	Close(path []Elem, end int)
	// Scalar is called for each string, number, true, false and null of the
	// root document. A string or number is leaf number leaf before embedded
	// JSON is looked into; others have leaf -1 and their text in lit. Returning
	// false leaves it out of the document's leaves.
	Scalar(path []Elem, leaf *Leaf, lit string) (keep bool)
}

// Parse reads one JSON document strictly. Escaped lone surrogates, which
// JavaScript clients send when they cut a string in the middle of a character,
// are accepted (the original bytes stay as they are; in Leaf.Value they are
// U+FFFD). v may be nil.
func Parse(raw []byte, lim Limits, v Visitor) (*Doc, error) {
	if !utf8.Valid(raw) {
		return nil, ErrUTF8
	}
	p := parser{lim: lim.orDefaults(), doc: &Doc{raw: string(raw)}, visit: v}
	// A first guess, so that a chunk of a stream costs few allocations.
	p.doc.leaves = make([]Leaf, 0, min(len(raw)/12+4, 1024))
	p.doc.containers = make([]container, 0, 8)
	if err := p.document(raw, p.doc.raw, 0, 0); err != nil {
		return nil, err
	}
	return p.doc, nil
}

type parser struct {
	lim   Limits
	doc   *Doc
	visit Visitor
}

type frame struct {
	container int32
	object    bool
	name      string // member name being read
	count     int32  // elements or tokens seen
	nameAt    int32
}

// document reads text, which is document number id (0 is the root) at the given
// level of embedding. buf holds the same bytes; the decoder only reads them.
func (p *parser) document(buf []byte, text string, id int32, level int) error {
	r := reader{p: p, text: text, id: id, level: level, stack: make([]frame, 0, 8), path: make([]Elem, 0, 8)}
	r.dec = jsontext.NewDecoder(bytes.NewBuffer(buf),
		jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(id != 0))
	for {
		done, err := r.next()
		if err != nil {
			return err
		}
		if done {
			break
		}
	}
	if strings.Trim(text[r.dec.InputOffset():], " \t\r\n") != "" {
		return ErrSyntax
	}
	return nil
}

// reader walks one document.
type reader struct {
	p     *parser
	dec   *jsontext.Decoder
	text  string
	id    int32
	level int
	stack []frame
	path  []Elem
}

// next reads one token; done is true after the document's single value.
func (r *reader) next() (done bool, err error) {
	switch kind := r.dec.PeekKind(); kind {
	case '{', '[':
		return false, r.open(kind == '{')
	case '}', ']':
		return r.close()
	default:
		if kind == 0 {
			_, err := r.dec.ReadToken()
			return false, syntaxError(err)
		}
		return r.scalar(kind)
	}
}

func (r *reader) open(object bool) error {
	if _, err := r.dec.ReadToken(); err != nil {
		return syntaxError(err)
	}
	if len(r.stack) >= r.p.lim.Depth {
		return ErrTooDeep
	}
	c := container{parent: -1, index: -1, doc: r.id}
	if top := r.top(); top != nil {
		c.parent = top.container
		c.name, c.index = top.name, r.position(top)
		r.path = append(r.path, Elem{Name: c.name, Index: int(c.index)})
	}
	r.p.doc.containers = append(r.p.doc.containers, c)
	r.stack = append(r.stack, frame{container: int32(len(r.p.doc.containers) - 1), object: object})
	if r.id == 0 && r.p.visit != nil {
		r.p.visit.Open(r.path, int(r.dec.InputOffset())-1)
	}
	return nil
}

func (r *reader) close() (bool, error) {
	if _, err := r.dec.ReadToken(); err != nil {
		return false, syntaxError(err)
	}
	end := int32(r.dec.InputOffset())
	if r.id == 0 && r.p.visit != nil {
		r.p.visit.Close(r.path, int(end))
	}
	r.stack = r.stack[:len(r.stack)-1]
	if len(r.path) > 0 {
		r.path = r.path[:len(r.path)-1]
	}
	r.valueDone(end)
	return len(r.stack) == 0, nil
}

func (r *reader) scalar(kind jsontext.Kind) (bool, error) {
	raw, err := r.dec.ReadValue()
	if err != nil {
		return false, syntaxError(err)
	}
	end := int32(r.dec.InputOffset())
	start := end - int32(len(raw))
	top := r.top()
	if top != nil && top.object && !top.due() {
		return false, r.memberName(top, start, end)
	}
	leaf := Leaf{parent: -1, index: -1, start: start, end: end, doc: r.id}
	if top != nil {
		leaf.parent, leaf.index = top.container, r.position(top)
		leaf.Key = top.name
		if leaf.index >= 0 {
			leaf.Key = r.enclosingName()
		}
	}
	switch kind {
	case '"':
		leaf.Kind, leaf.Value = String, unquote(r.text[start:end])
	case '0':
		leaf.Kind, leaf.Value = Number, r.text[start:end]
	}
	if err := r.emit(leaf, kind, top); err != nil {
		return false, err
	}
	r.valueDone(end)
	return len(r.stack) == 0, nil
}

// emit adds a value leaf, or the leaves of the JSON document that it holds.
func (r *reader) emit(leaf Leaf, kind jsontext.Kind, top *frame) error {
	isText := kind == '"' || kind == '0'
	if r.id == 0 && r.p.visit != nil {
		path := r.path
		if top != nil {
			path = append(path, Elem{Name: top.name, Index: int(r.position(top))})
		}
		lit := ""
		if !isText {
			lit = r.text[leaf.start:leaf.end]
		}
		if !r.p.visit.Scalar(path, &leaf, lit) {
			return nil
		}
	}
	if !isText {
		return nil
	}
	if leaf.Kind == String && r.level < r.p.lim.Embedded && looksLikeJSON(leaf.Value) {
		if ok, err := r.embedded(leaf); ok || err != nil {
			return err
		}
	}
	return r.p.add(leaf)
}

// embedded reads the JSON document that stands in leaf's text. It reports false
// when the text is not one, which leaves it to be plain text.
func (r *reader) embedded(leaf Leaf) (bool, error) {
	d := r.p.doc
	leaves, containers, inner := len(d.leaves), len(d.containers), len(d.inner)
	d.inner = append(d.inner, embedded{host: leaf, text: leaf.Value})
	err := r.p.document([]byte(leaf.Value), leaf.Value, int32(len(d.inner)), r.level+1)
	switch {
	case err == nil && len(d.leaves) > leaves:
		return true, nil
	case errors.Is(err, ErrTooManyText):
		return false, err
	}
	d.leaves, d.containers, d.inner = d.leaves[:leaves], d.containers[:containers], d.inner[:inner]
	return false, nil
}

func (r *reader) memberName(top *frame, start, end int32) error {
	name := unquote(r.text[start:end])
	leaf := Leaf{Value: name, Kind: Name, parent: top.container, index: -1, start: start, end: end, doc: r.id}
	leaf.Key = r.enclosingName()
	top.name, top.nameAt = name, start
	top.count++
	return r.p.add(leaf)
}

// due says that a member's name has been read and its value has not.
func (f *frame) due() bool { return f.count%2 == 1 }

// valueDone notes that the value that ends at end is complete.
func (r *reader) valueDone(end int32) {
	top := r.top()
	if top == nil {
		return
	}
	top.count++
	if !top.object {
		return
	}
	if r.id == 0 && len(r.stack) <= 2 {
		m := member{start: top.nameAt, end: end}
		m.path[0] = top.name
		if len(r.stack) == 2 {
			m.path = [2]string{r.stack[0].name, top.name}
		}
		r.p.doc.members = append(r.p.doc.members, m)
	}
	top.name = ""
}

func (r *reader) top() *frame {
	if len(r.stack) == 0 {
		return nil
	}
	return &r.stack[len(r.stack)-1]
}

func (r *reader) position(top *frame) int32 {
	if top.object {
		return -1
	}
	return top.count
}

// enclosingName returns the nearest member name above the current value,
// looking out of an embedded document too.
func (r *reader) enclosingName() string {
	for i := len(r.stack) - 1; i >= 0; i-- {
		if f := &r.stack[i]; f.object && f.name != "" {
			return f.name
		}
	}
	if r.id != 0 {
		return r.p.doc.inner[r.id-1].host.Key
	}
	return ""
}

func (p *parser) add(l Leaf) error {
	if len(p.doc.leaves) >= p.lim.Leaves {
		return ErrTooManyText
	}
	p.doc.leaves = append(p.doc.leaves, l)
	return nil
}

func syntaxError(err error) error {
	switch {
	case err == nil:
		return ErrSyntax
	case errors.Is(err, jsontext.ErrDuplicateName):
		return ErrDuplicate
	default:
		// The library's text quotes the input: it must not travel on.
		return ErrSyntax
	}
}

func unquote(quoted string) string {
	body := quoted[1 : len(quoted)-1]
	if strings.IndexByte(body, '\\') < 0 {
		return body
	}
	out, err := jsontext.AppendUnquote(nil, quoted)
	if err != nil && len(out) == 0 {
		// Only lone surrogates get here, and they leave text behind; a string
		// that leaves none is examined in its escaped form.
		return body
	}
	return string(out)
}

// looksLikeJSON is a cheap test for text worth parsing as an object or array.
func looksLikeJSON(s string) bool {
	s = strings.TrimLeft(s, " \t\r\n")
	if len(s) < 2 || s[0] != '{' && s[0] != '[' {
		return false
	}
	s = strings.TrimRight(s, " \t\r\n")
	last := s[len(s)-1]
	return s[0] == '{' && last == '}' || s[0] == '[' && last == ']'
}
