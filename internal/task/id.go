package task

import (
	"crypto/subtle"
	"encoding/base32"
	"strings"
)

// A task id is made, not stored: 10 bytes from what names the task, then 5 bytes
// by which the id is known again as one that was issued to this caller. So a
// client can send back the id it was told, even one of which nothing was kept,
// while another caller who sends it gets a task of its own.
const (
	idPrefix  = "task_"
	seedBytes = 10
	tagBytes  = 5
)

func idText() *base32.Encoding { return base32.StdEncoding.WithPadding(base32.NoPadding) }

func (ts *Tasks) newID(caller, kind string, name []byte) string {
	seed := ts.keys.MAC("task id", []byte(caller), []byte(kind), name)
	raw := append(seed[:seedBytes:seedBytes], ts.tag(caller, seed[:seedBytes])...)
	return idPrefix + strings.ToLower(idText().EncodeToString(raw))
}

// issued says whether id was made for caller.
func (ts *Tasks) issued(caller, id string) bool {
	text, ok := strings.CutPrefix(id, idPrefix)
	if !ok || text != strings.ToLower(text) {
		return false
	}
	raw, err := idText().DecodeString(strings.ToUpper(text))
	if err != nil || len(raw) != seedBytes+tagBytes {
		return false
	}
	return subtle.ConstantTimeCompare(raw[seedBytes:], ts.tag(caller, raw[:seedBytes])) == 1
}

func (ts *Tasks) tag(caller string, seed []byte) []byte {
	t := ts.keys.MAC("task id tag", []byte(caller), seed)
	return t[:tagBytes]
}
