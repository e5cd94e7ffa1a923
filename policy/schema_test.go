package policy_test

import (
	"bytes"
	"io/fs"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"weir/policy"
)

func schema(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	text, err := fs.ReadFile(policy.Schemas(), name)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("weir:"+name, doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("weir:" + name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// instance is v as the schema's checker and OPA see it.
func instance(tb rapid.TB, v any) any {
	tb.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		tb.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		tb.Fatal(err)
	}
	return doc
}

// fill sets every field to something that is not zero, so that a field which
// was forgotten somewhere shows.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0))
		fill(v.Index(1))
	case reflect.String:
		v.SetString("x\u00e9\"\\<\u2028")
	case reflect.Int:
		v.SetInt(math.MaxInt64)
	case reflect.Float64:
		v.SetFloat(0.07)
	case reflect.Bool:
		v.SetBool(true)
	default:
		panic("no filling for " + v.Kind().String())
	}
}

func TestTheInputsJSONIsWhatItsTypesSay(t *testing.T) {
	t.Parallel()
	check := func(tb rapid.TB, in policy.Input, encode func(policy.Input) ([]byte, error)) {
		got, err := encode(in)
		if err != nil {
			tb.Fatal(err)
		}
		want, err := json.Marshal(in)
		if err != nil {
			tb.Fatal(err)
		}
		for _, v := range []*[]byte{&got, &want} {
			if err := (*jsontext.Value)(v).Canonicalize(); err != nil {
				tb.Fatal(err)
			}
		}
		if !bytes.Equal(got, want) {
			tb.Fatalf("got %s\nwant %s", got, want)
		}
	}
	var in policy.Input
	fill(reflect.ValueOf(&in).Elem())
	check(t, in, policy.EncodeUnchecked)
	rapid.Check(t, func(t *rapid.T) { check(t, genInput().Draw(t, "input"), policy.EncodeInput) })
}

func TestGoAndSchemaAgreeOnInputs(t *testing.T) {
	t.Parallel()
	s := schema(t, "input.v1.json")
	refused := 0
	rapid.Check(t, func(t *rapid.T) {
		in := genInput().Draw(t, "input")
		if err := s.Validate(instance(t, in)); err != nil {
			t.Fatalf("the schema refuses a sound input: %v", err)
		}
		spoil(t, reflect.ValueOf(&in).Elem())
		_, goErr := policy.EncodeInput(in)
		schemaErr := s.Validate(instance(t, in))
		if (goErr == nil) != (schemaErr == nil) {
			t.Fatalf("Go says %v, the schema %v", goErr, schemaErr)
		}
		if goErr != nil {
			refused++
		}
	})
	if refused == 0 {
		t.Error("nothing was refused")
	}
}

// spoil sets one field, somewhere, to something that it may not be able to be.
func spoil(t *rapid.T, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		spoil(t, v.Field(rapid.IntRange(0, v.NumField()-1).Draw(t, "field")))
	case reflect.Slice:
		if v.Len() > 0 {
			spoil(t, v.Index(rapid.IntRange(0, v.Len()-1).Draw(t, "index")))
		}
	case reflect.String:
		v.SetString(rapid.SampledFrom([]string{
			"", "x", "X", "X_1", "_x", "1x", "x y", "x\n", "ask_user", "é", strings.Repeat("x", 256), strings.Repeat("é", 256),
			strings.Repeat("x", 257), strings.Repeat("X", 257),
		}).Draw(t, "string"))
	case reflect.Int:
		v.SetInt(rapid.SampledFrom([]int64{-1, 0, 1, 2}).Draw(t, "int"))
	case reflect.Float64:
		v.SetFloat(rapid.SampledFrom([]float64{-0.1, 0, 0.5, 1, 1.1}).Draw(t, "float"))
	}
}

func TestGoAndSchemaAgreeOnDecisions(t *testing.T) {
	t.Parallel()
	s := schema(t, "decision.v1.json")
	p := load(t, policy.Options{Data: []byte("styles: {EMAIL_ADDRESS: surrogate}")})
	refused, accepted := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		d, err := p.Decide(t.Context(), genInput().Draw(t, "input"))
		if err != nil {
			t.Fatal(err)
		}
		doc := instance(t, d)
		if err := s.Validate(doc); err != nil {
			t.Fatalf("the schema refuses a decision: %v", err)
		}
		if _, err := policy.DecodeDecision(doc); err != nil {
			t.Fatalf("a decision does not read back: %v", err)
		}
		doc = mutate(t, doc)
		schemaErr := s.Validate(doc)
		_, goErr := policy.DecodeDecision(doc)
		if (goErr == nil) != (schemaErr == nil) {
			t.Fatalf("Go says %v, the schema %v", goErr, schemaErr)
		}
		if goErr != nil {
			refused++
		} else {
			accepted++
		}
	})
	if refused == 0 || accepted == 0 {
		t.Errorf("%d refused, %d accepted", refused, accepted)
	}
}

// mutate changes one thing in a JSON document: it takes something out, puts
// something in, or replaces something.
func mutate(t *rapid.T, doc any) any {
	other := rapid.SampledFrom([]any{
		nil, true, "", "mask", "allow", "ask_user", "surrogate", "a rule", "two\nlines", strings.Repeat("x", 1001),
		instance(t, -1), instance(t, 0), instance(t, 1), instance(t, 86401), instance(t, 0.5),
		[]any{},
		map[string]any{},
		[]any{"mask", "mask"},
		[]any{"ask_user"},
		[]any{"refuse"},
		map[string]any{"timeout_seconds": instance(t, 1), "on_timeout": "mask", "choices": []any{"allow"}},
	}).Draw(t, "other")
	switch v := doc.(type) {
	case map[string]any:
		keys := slices.Sorted(maps.Keys(v))
		if len(keys) == 0 {
			return other
		}
		key := rapid.SampledFrom(keys).Draw(t, "key")
		switch rapid.IntRange(0, 5).Draw(t, "edit") {
		case 0:
			delete(v, key)
		case 1:
			v[rapid.SampledFrom([]string{"Action", "extra", "style", "ask", "index"}).Draw(t, "new")] = other
		default:
			v[key] = mutate(t, v[key])
		}
		return v
	case []any:
		if len(v) == 0 {
			return other
		}
		i := rapid.IntRange(0, len(v)-1).Draw(t, "i")
		v[i] = mutate(t, v[i])
		return v
	}
	return other
}

func TestGoAndSchemaAgreeOnSettings(t *testing.T) {
	t.Parallel()
	s := schema(t, "data.v1.json")
	shipped := shippedSettings(t)
	refused := 0
	rapid.Check(t, func(t *rapid.T) {
		doc := instance(t, shipped)
		if err := s.Validate(doc); err != nil {
			t.Fatalf("the schema refuses the shipped settings: %v", err)
		}
		doc = mutate(t, doc)
		if _, ok := doc.(map[string]any); !ok {
			return
		}
		raw, err := json.Marshal(plain(doc))
		if err != nil {
			t.Fatal(err)
		}
		goErr, schemaErr := policy.CheckData(raw), s.Validate(doc)
		if (goErr == nil) != (schemaErr == nil) {
			t.Fatalf("Go says %v, the schema %v, of %s", goErr, schemaErr, raw)
		}
		if goErr != nil {
			refused++
		}
	})
	if refused == 0 {
		t.Error("nothing was refused")
	}
}

// plain turns the numbers of an instance into ones that json.Marshal writes as
// numbers.
func plain(doc any) any {
	switch v := doc.(type) {
	case map[string]any:
		for k := range v {
			v[k] = plain(v[k])
		}
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	case interface{ Float64() (float64, error) }:
		f, err := v.Float64()
		if err != nil {
			panic(err)
		}
		return f
	}
	return doc
}
