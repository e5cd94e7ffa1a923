package config

import (
	"reflect"
	"regexp"
	"testing"

	"weir/pii/custom"
)

// Every key of the struct is in the example.
func TestExampleIsComplete(t *testing.T) {
	t.Parallel()
	l := &loader{cfg: Default(), from: make(map[string]origin), faulty: make(map[string]bool)}
	l.yaml("weir.yaml", Example())
	if err := l.err(); err != nil {
		t.Fatal(err)
	}
	shown := make(map[string]bool)
	for key := range l.from {
		shown[generic(key)] = true
	}
	for _, key := range allKeys("", reflect.TypeFor[Config]()) {
		if !shown[generic(key)] {
			t.Errorf("examples/weir.yaml does not show %s", key)
		}
	}
}

var entry = regexp.MustCompile(`\[\d*\]|^models\.[^.]+`)

func generic(key string) string { return entry.ReplaceAllString(key, "*") }

// allKeys returns the paths of all keys below a type.
func allKeys(path string, t reflect.Type) []string {
	switch {
	case isScalar(t):
		return []string{path}
	case t.Kind() == reflect.Struct:
		var out []string
		for _, key := range keys(t) {
			out = append(out, allKeys(join(path, key), t.Field(field(t, key)).Type)...)
		}
		return out
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct && !isScalar(t.Elem()):
		return allKeys(path+"[]", t.Elem())
	case t.Kind() == reflect.Map && !isScalar(t.Elem()):
		return allKeys(path+".x", t.Elem())
	}
	return []string{path}
}

// Every field has a key, so that none is set in code alone.
func TestEveryFieldHasAKey(t *testing.T) {
	t.Parallel()
	for _, typ := range []reflect.Type{
		reflect.TypeFor[Config](), reflect.TypeFor[Upstream](), reflect.TypeFor[Profile](), reflect.TypeFor[Engine](), reflect.TypeFor[Alias](), reflect.TypeFor[Policy](),
		reflect.TypeFor[Mask](), reflect.TypeFor[Store](), reflect.TypeFor[Approvals](), reflect.TypeFor[Limits](), reflect.TypeFor[Log](), reflect.TypeFor[custom.Recognizer](),
	} {
		for i := range typ.NumField() {
			if f := typ.Field(i); f.IsExported() && f.Tag.Get("yaml") == "" {
				t.Errorf("%s.%s has no key", typ, f.Name)
			}
		}
	}
}
