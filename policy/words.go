package policy

import (
	"slices"
	"unicode/utf8"
)

// maxName bounds the names that clients and configuration bring into an input:
// models, tools, keys, labels. Longer ones are not names.
const maxName = 256

// maxAskSeconds bounds how long a question stays open: a day.
const maxAskSeconds = 86400

func oneOf(s string, words ...string) bool { return slices.Contains(words, s) }

func isSource(s string) bool {
	return oneOf(s, "system", "user", "assistant", "tool", "tools", "schema", "metadata", "other")
}

func isOpaqueKind(s string) bool {
	return oneOf(s, "image", "audio", "file", "encrypted", "unknown", "unexamined")
}

// isAnswer reports whether a may stand as the user's answer.
func isAnswer(a Action) bool { return a == "" || a.Valid() && a != AskUser }

// isOnTimeout reports whether a may stand for an answer that never came.
func isOnTimeout(a Action) bool { return a == Mask || a == KeepLocal || a == Refuse }

// isSensitive reports whether s is a class of conversations that an action can be
// set for.
func isSensitive(s string) bool { return oneOf(s, "personal", "sensitive") }

func isStyle(s string) bool { return s == StylePlaceholder || s == StyleSurrogate }

// isName reports whether s may stand as a name that Weir did not choose. It may
// be empty.
func isName(s string) bool {
	return utf8.ValidString(s) && utf8.RuneCountInString(s) <= maxName
}

// isLabel reports whether s is upper-case words: [A-Z][A-Z0-9_]*.
func isLabel(s string) bool { return isIdent(s, 'A', 'Z') }

// isWord reports whether s is lower-case words: [a-z][a-z0-9_]*.
func isWord(s string) bool { return isIdent(s, 'a', 'z') }

func isIdent(s string, lo, hi byte) bool {
	if s == "" || len(s) > maxName || s[0] < lo || s[0] > hi {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if (c < lo || c > hi) && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return true
}

// isReason reports whether s can be shown to a user as one line.
func isReason(s string) bool {
	return s != "" && utf8.ValidString(s) && utf8.RuneCountInString(s) <= 1000 && !slices.ContainsFunc([]byte(s), func(c byte) bool {
		return c < ' ' || c == 0x7f
	})
}
