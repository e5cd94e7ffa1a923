package tokenizer

import (
	"iter"
	"strings"
)

// Tokenizer is a loaded vocabulary. It is safe for concurrent use.
type Tokenizer struct {
	tokens  []string // bytes of each id; empty for ids without a token
	bytes   [256]int32
	merges  *merges
	added   map[string]int32 // the texts of added tokens
	starts  [256]bool        // first bytes of added tokens
	longest int              // bytes of the longest added token
	kinds   []kind           // by id
	cache   cache
}

// kind is what an id is.
type kind uint8

const (
	ordinary kind = iota
	added         // found in markup, and text all the same: <think>
	special       // a control token, not part of the text: <|im_end|>
)

// Size returns the number of ids up to the highest that has a token. The
// model's output has more rows; those beyond are padding.
func (t *Tokenizer) Size() int { return len(t.tokens) }

// ID returns the id of an added token, as "<|im_end|>".
func (t *Tokenizer) ID(token string) (int32, bool) {
	id, ok := t.added[token]
	return id, ok
}

// Token returns the bytes that an id stands for, which need not be whole
// characters, or "" if it stands for none.
func (t *Tokenizer) Token(id int32) string {
	if id < 0 || int(id) >= len(t.tokens) {
		return ""
	}
	return t.tokens[id]
}

// IsSpecial reports a control token.
func (t *Tokenizer) IsSpecial(id int32) bool {
	return id >= 0 && int(id) < len(t.kinds) && t.kinds[id] == special
}

// Append appends the ids of text. Control tokens that the text spells are
// letters like others. Text that is not UTF-8 is kept byte for byte.
func (t *Tokenizer) Append(dst []int32, text string) []int32 {
	text = nfc(text)
	for len(text) > 0 {
		n := nextWord(text)
		dst = t.cache.append(dst, text[:n], t.appendWord)
		text = text[n:]
	}
	return dst
}

// AppendMarkup appends the ids of text in which added tokens stand for
// themselves. It is for text of our own; see [Tokenizer.Append] for others'.
func (t *Tokenizer) AppendMarkup(dst []int32, text string) []int32 {
	for plain, id := range t.splitMarkup(text) {
		dst = t.Append(dst, plain)
		if id >= 0 {
			dst = append(dst, id)
		}
	}
	return dst
}

// AppendPrompt appends the ids of a rendered conversation. Markup and content
// between two control tokens are tokenized as one text, as in training.
func (t *Tokenizer) AppendPrompt(dst []int32, p Prompt) []int32 {
	var text strings.Builder
	for _, piece := range p.pieces {
		if !piece.markup {
			text.WriteString(piece.text)
			continue
		}
		for plain, id := range t.splitMarkup(piece.text) {
			text.WriteString(plain)
			if id >= 0 {
				dst = append(t.Append(dst, text.String()), id)
				text.Reset()
			}
		}
	}
	return t.Append(dst, text.String())
}

// splitMarkup yields the pieces of text that end in an added token, each with
// that token's id, and the rest with -1. Of tokens at the same place the
// longest counts.
func (t *Tokenizer) splitMarkup(text string) iter.Seq2[string, int32] {
	return func(yield func(string, int32) bool) {
		from := 0
		for i := 0; i < len(text); i++ {
			if !t.starts[text[i]] {
				continue
			}
			for n := min(t.longest, len(text)-i); n > 0; n-- {
				id, ok := t.added[text[i:i+n]]
				if !ok {
					continue
				}
				if !yield(text[from:i], id) {
					return
				}
				from, i = i+n, i+n-1
				break
			}
		}
		if from < len(text) {
			yield(text[from:], -1)
		}
	}
}
