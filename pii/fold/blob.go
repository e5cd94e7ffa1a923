package fold

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	minBase64 = 20 // characters; shorter runs hold no value worth hiding
	minHex    = 24
	sample    = 96 // encoded characters that are looked at before all is decoded
)

// Blob is a run of Base64 or hexadecimal that holds text.
type Blob struct {
	// Start and End are its place in the text that held it.
	Start, End int
	// Text is what it decodes to.
	Text string
}

// Blobs returns the encoded texts in s. Their decoded length is at most three
// quarters of that of s.
func Blobs(s string) []Blob {
	var out []Blob
	for i := 0; i < len(s); {
		if !blobByte[s[i]] {
			i++
			continue
		}
		end := i + 1
		for end < len(s) && blobByte[s[end]] {
			end++
		}
		padded := end
		for padded < len(s) && padded < end+2 && s[padded] == '=' {
			padded++
		}
		if end-i >= minBase64 {
			if text, ok := decode(s[i:end]); ok {
				out = append(out, Blob{i, padded, text})
			}
		}
		i = padded
	}
	return out
}

func decode(run string) (string, bool) {
	if len(run) >= minHex && len(run)%2 == 0 && isHex(run) {
		raw, err := hex.DecodeString(run)
		return string(raw), err == nil && readable(raw)
	}
	enc := base64.RawStdEncoding
	if strings.ContainsAny(run, "-_") {
		enc = base64.RawURLEncoding
		if strings.ContainsAny(run, "+/") {
			return "", false
		}
	}
	if len(run)%4 == 1 {
		return "", false
	}
	if len(run) > sample {
		head, err := enc.DecodeString(run[:sample])
		if err != nil || !readable(head[:len(head)-utf8.UTFMax]) {
			return "", false
		}
	}
	raw, err := enc.DecodeString(run)
	return string(raw), err == nil && readable(raw)
}

func isHex(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; !(c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f') {
			return false
		}
	}
	return true
}

// readable reports bytes that are text: at most one in thirty two is neither
// printable ASCII nor part of a character.
func readable(b []byte) bool {
	bad := 0
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 || r < ' ' && !visible(r) || r == 0x7f {
			bad++
		}
		i += n
	}
	return len(b) > 0 && bad*32 <= len(b)
}

var blobByte = func() (t [256]bool) {
	for _, c := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_" {
		t[c] = true
	}
	return t
}()

// Format prints the place and size of a blob, never its text.
func (b Blob) Format(s fmt.State, _ rune) {
	fmt.Fprintf(s, "blob %d:%d of %d bytes", b.Start, b.End, len(b.Text))
}
