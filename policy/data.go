package policy

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/goccy/go-yaml"
)

// settings is the data document, as data.yaml describes it. It is here to be
// checked: the rules read the merged document itself.
type settings struct {
	Actions      map[string]Action            `json:"actions"`
	UnknownLabel Action                       `json:"unknown_label"`
	Sources      map[string]map[string]Action `json:"sources"`
	Keys         map[string]map[string]Action `json:"keys"`
	Opaque       map[string]Action            `json:"opaque"`
	MinScore     map[string]float64           `json:"min_score"`
	QuasiAlone   Action                       `json:"quasi_alone"`
	Settled      map[Action]Action            `json:"settled"`
	Tainted      Action                       `json:"tainted"`
	Styles       map[string]string            `json:"styles"`
	Ask          Ask                          `json:"ask"`
	Words        map[string]string            `json:"words"`
	Custom       map[string]any               `json:"custom"`
}

// mergeData lays the layers' data over one another and checks each and the
// whole. Objects are merged member by member; anything else takes the place of
// what it stands over.
func mergeData(layers []layer, labels []string) (map[string]any, error) {
	merged := map[string]any{}
	for _, l := range layers {
		if l.dataFile == "" {
			continue
		}
		doc, err := parseData(l.data)
		if err != nil {
			return nil, CompileErrors{dataError(l.dataFile, "%v", err)}
		}
		for key, v := range doc {
			if key == "custom" && v != nil {
				continue // the user's own
			}
			if at := nullAt(v, "/"+key); at != "" {
				return nil, CompileErrors{dataError(l.dataFile, "%s: no value", dotted(at))}
			}
		}
		mergeInto(merged, doc)
		// Checked after each layer, so that a fault is reported with the file
		// that brought it.
		if err := checkData(merged, labels); err != nil {
			return nil, CompileErrors{dataError(l.dataFile, "%v", err)}
		}
	}
	return merged, nil
}

// parseData reads YAML, and so JSON, into JSON's types.
func parseData(text []byte) (map[string]any, error) {
	var doc any
	if err := yaml.UnmarshalWithOptions(text, &doc, yaml.Strict()); err != nil {
		return nil, errors.New(yaml.FormatError(err, false, false))
	}
	if doc == nil {
		return nil, nil // a file of comments
	}
	raw, err := json.Marshal(doc)
	if err != nil {
		return nil, fmt.Errorf("cannot be written as JSON: %w", err)
	}
	var out map[string]any
	if err := json.Unmarshal(raw, &out); err != nil {
		return nil, errors.New("is not a mapping")
	}
	return out, nil
}

// dotted turns a JSON pointer into the way that the other errors name settings.
func dotted(pointer string) string {
	return strings.ReplaceAll(strings.TrimPrefix(pointer, "/"), "/", ".")
}

func mergeInto(dst, src map[string]any) {
	for k, v := range src {
		from, fromOK := v.(map[string]any)
		into, intoOK := dst[k].(map[string]any)
		if fromOK && intoOK {
			mergeInto(into, from)
			continue
		}
		dst[k] = v
	}
}

func checkData(doc map[string]any, labels []string) error {
	raw, err := json.Marshal(doc)
	if err != nil {
		return fmt.Errorf("cannot be written as JSON: %w", err)
	}
	var s settings
	if err := json.Unmarshal(raw, &s, json.RejectUnknownMembers(true)); err != nil {
		var bad *json.SemanticError
		if errors.As(err, &bad) {
			return fmt.Errorf("%s: unknown key or wrong type", dotted(string(bad.JSONPointer)))
		}
		return err
	}
	known := func(label string) bool {
		return isLabel(label) && (labels == nil || slices.Contains(labels, label))
	}
	return s.check(known)
}

func (s *settings) check(known func(label string) bool) error {
	orOpaque := func(key string) bool { return known(key) || isOpaqueKind(key) }
	for _, key := range slices.Sorted(maps.Keys(s.Sources)) {
		if !isSource(key) {
			return fmt.Errorf("sources.%s: no such source", key)
		}
		if err := checkMap("sources."+key, s.Sources[key], orOpaque, Action.Valid); err != nil {
			return err
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s.Keys)) {
		if err := checkMap("keys."+key, s.Keys[key], orOpaque, Action.Valid); err != nil {
			return err
		}
	}
	for name, a := range map[string]Action{"unknown_label": s.UnknownLabel, "quasi_alone": s.QuasiAlone, "tainted": s.Tainted} {
		if !a.Valid() {
			return fmt.Errorf("%s: no such action", name)
		}
	}
	if s.Tainted == Mask {
		return errors.New("tainted: there is nothing to mask")
	}
	if err := s.Ask.check(); err != nil {
		return fmt.Errorf("ask: %w", err)
	}
	if !slices.Contains(s.Ask.Choices, KeepLocal) && !slices.Contains(s.Ask.Choices, Refuse) {
		// mask is taken out where it cannot be done: without these nothing
		// would be left, and a user must be able to say no.
		return errors.New("ask.choices: neither keep_local nor refuse")
	}
	return errors.Join(
		checkMap("actions", s.Actions, known, Action.Valid),
		checkMap("opaque", s.Opaque, isOpaqueKind, Action.Valid),
		checkMap("min_score", s.MinScore, known, func(x float64) bool { return x >= 0 && x <= 1 }),
		checkMap("settled", s.Settled, Action.Valid, Action.Valid),
		checkMap("styles", s.Styles, known, isStyle),
		checkMap("words", s.Words, orOpaque, isReason),
	)
}

// checkMap reports the first entry, by key, that does not hold.
func checkMap[K ~string, V any](name string, m map[K]V, key func(K) bool, value func(V) bool) error {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if !key(k) {
			return fmt.Errorf("%s.%s: no such key", name, k)
		}
		if !value(m[k]) {
			return fmt.Errorf("%s.%s: no such value", name, k)
		}
	}
	return nil
}
