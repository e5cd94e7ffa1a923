package tokenizer

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// The model writes a call as
//
//	<tool_call>
//	<function=NAME>
//	<parameter=KEY>
//	VALUE
//	</parameter>
//	</function>
//	</tool_call>
//
// of which only the outer tags are tokens. A value may hold anything, also a
// line that reads </parameter>. It ends at the one behind which, after white
// space, there is another parameter, or the end of the function.
const (
	openFunction   = "<function="
	closeFunction  = "</function>"
	openParameter  = "<parameter="
	closeParameter = "</parameter>"
)

// callParser reads what stands in one <tool_call>, as it arrives.
type callParser struct {
	reply *Reply
	from  replyState // to return to if this is no call
	stage callStage
	buf   string // not consumed yet

	index   int
	any     bool // some function was named
	open    bool // and has not ended
	params  parameters
	seen    map[string]bool // keys so far
	members int             // values written

	key    string
	skip   bool // the key was there before: an object that names one twice is none
	begun  bool // the newline before the value is past
	opened bool // the value's opening quote is written
}

type callStage uint8

const (
	beforeFunction callStage = iota
	betweenParameters
	inValue
)

func (c *callParser) started() bool { return c.any }

func (c *callParser) emit(kind EventKind, text string) {
	c.reply.emit(Event{Kind: kind, Index: c.index, Text: text})
}

// text takes more of the call and goes as far as is certain.
func (c *callParser) text(s string) {
	c.buf += s
	for c.reply.call == c {
		before := len(c.buf)
		stage := c.stage
		switch c.stage {
		case beforeFunction:
			c.function()
		case betweenParameters:
			c.between()
		case inValue:
			c.value()
		}
		if c.stage == stage && len(c.buf) == before {
			return
		}
	}
}

// function looks for <function=NAME>.
func (c *callParser) function() {
	s := strings.TrimLeftFunc(c.buf, isPythonSpace)
	name, ok, possible := opening(s, openFunction)
	switch {
	case ok:
		c.buf = s[len(openFunction)+len(name)+1:]
		c.index, c.any, c.open, c.stage = c.reply.calls, true, true, betweenParameters
		c.reply.calls++
		c.seen, c.members, c.params = map[string]bool{}, 0, c.reply.schemas[name]
		c.emit(CallStart, name)
	case possible:
	case c.any:
		c.buf = "" // behind a function: nothing that means something
	default:
		c.reply.notACall()
	}
}

// between looks for a parameter or the end of the function.
func (c *callParser) between() {
	s := strings.TrimLeftFunc(c.buf, isPythonSpace)
	if rest, ok := strings.CutPrefix(s, closeFunction); ok {
		c.buf, c.stage = rest, beforeFunction
		c.close()
		return
	}
	key, ok, possible := opening(s, openParameter)
	switch {
	case ok:
		c.buf = s[len(openParameter)+len(key)+1:]
		c.stage, c.begun, c.opened = inValue, false, false
		c.key, c.skip = key, c.seen[key]
		c.seen[key] = true
	case possible || strings.HasPrefix(closeFunction, s):
	default:
		// Text where none belongs. Go on with the next tag.
		if i := strings.IndexByte(s[1:], '<'); i >= 0 {
			c.buf = s[1+i:]
		} else {
			c.buf = ""
		}
	}
}

// opening reads a tag like <function=NAME>. possible says that more text could
// make it one.
func opening(s, tag string) (name string, ok, possible bool) {
	rest, ok := strings.CutPrefix(s, tag)
	if !ok {
		return "", false, strings.HasPrefix(tag, s)
	}
	name, _, ok = strings.Cut(rest, ">")
	if strings.ContainsAny(name, "\n<") {
		return "", false, false
	}
	return name, ok && name != "", !ok
}

// value reads an argument up to its end, and writes what is certain of it.
func (c *callParser) value() {
	if !c.begun {
		if c.buf == "" {
			return
		}
		c.buf, c.begun = strings.TrimPrefix(c.buf, "\n"), true
	}
	end, after, sure := valueEnd(c.buf)
	if sure {
		value := c.buf[:end]
		c.buf, c.stage = c.buf[after:], betweenParameters
		c.finishValue(value)
		return
	}
	if c.streams() && end > 0 {
		c.writeString(c.buf[:end])
		c.buf = c.buf[end:]
	}
}

// valueEnd returns where a value ends and where what follows begins; or, when
// that is not known yet, how much certainly belongs to it.
func valueEnd(s string) (end, after int, sure bool) {
	for from := 0; ; {
		i := strings.Index(s[from:], closeParameter)
		if i < 0 {
			break
		}
		i += from
		rest := strings.TrimLeftFunc(s[i+len(closeParameter):], isPythonSpace)
		end = i
		if i > 0 && s[i-1] == '\n' {
			end--
		}
		if strings.HasPrefix(rest, openParameter) || strings.HasPrefix(rest, closeFunction) {
			return end, len(s) - len(rest), true
		}
		if strings.HasPrefix(openParameter, rest) || strings.HasPrefix(closeFunction, rest) {
			return end, 0, false
		}
		from = i + len(closeParameter)
	}
	// The last bytes may be the beginning of the end.
	for n := min(len(s), len(closeParameter)); n > 0; n-- {
		tail := s[len(s)-n:]
		if strings.HasPrefix("\n"+closeParameter, tail) || strings.HasPrefix(closeParameter, tail) {
			end := len(s) - n
			if tail[0] == '<' && end > 0 && s[end-1] == '\n' {
				end--
			}
			return end, 0, false
		}
	}
	return len(s), 0, false
}

// streams reports whether a value can be written before its end is known:
// whatever it says, it is a string.
func (c *callParser) streams() bool { return c.params.of(c.key) == stringKind }

// finishValue writes a value, or the rest of it.
func (c *callParser) finishValue(rest string) {
	if c.streams() {
		c.writeString(rest)
		c.write(`"`)
		return
	}
	c.member()
	c.write(c.params.of(c.key).json(rest))
}

// writeString writes a piece of a string, and before the first one its name.
func (c *callParser) writeString(s string) {
	if !c.opened {
		c.opened = true
		c.member()
		c.write(`"`)
	}
	q := quote(s)
	c.write(q[1 : len(q)-1])
}

// member writes what precedes a value.
func (c *callParser) member() {
	if c.skip {
		return
	}
	text := ","
	if c.members == 0 {
		text = "{"
	}
	c.members++
	c.write(text + quote(c.key) + ":")
}

func (c *callParser) write(s string) {
	if s != "" && !c.skip {
		c.emit(CallArguments, s)
	}
}

// end completes a call whose closing tags may be missing.
func (c *callParser) end() {
	if !c.open {
		return
	}
	if c.stage == inValue {
		s := c.buf
		if !c.begun {
			s = strings.TrimPrefix(s, "\n")
		}
		s = cutClosing(cutClosing(s, closeFunction), closeParameter)
		c.finishValue(strings.TrimSuffix(s, "\n"))
	}
	c.close()
}

// cutClosing removes a tag and white space behind it from the end of s.
func cutClosing(s, tag string) string {
	if rest, ok := strings.CutSuffix(strings.TrimRightFunc(s, isPythonSpace), tag); ok {
		return rest
	}
	return s
}

// close ends the function.
func (c *callParser) close() {
	c.skip, c.open = false, false
	if c.members == 0 {
		c.write("{")
	}
	c.write("}")
	c.emit(CallEnd, "")
}

// cut ends a call that was cut off.
func (c *callParser) cut() {
	if c.open {
		c.open = false
		c.emit(CallCut, "")
	}
}

// quote writes a string as JSON. Text from a Decoder is valid UTF-8; anything
// else would become U+FFFD.
func quote(s string) string {
	q, err := jsontext.AppendQuote(nil, strings.ToValidUTF8(s, replacement))
	if err != nil {
		panic("tokenizer: valid UTF-8 cannot be quoted")
	}
	return string(q)
}
