package policy

import (
	"cmp"
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
	Sensitivity  map[string]Action            `json:"sensitivity"`
	Styles       map[string]string            `json:"styles"`
	Ask          Ask                          `json:"ask"`
	Words        map[string]string            `json:"words"`
	Custom       map[string]any               `json:"custom"`
}

// settingError is a fault of one setting.
type settingError struct {
	path []string
	text string
}

func (e *settingError) Error() string { return strings.Join(e.path, ".") + ": " + e.text }

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
		if err == nil {
			mergeInto(merged, doc)
			// Checked after each layer, so that a fault is reported with the
			// file that brought it.
			err = checkData(merged, labels)
		}
		if err != nil {
			return nil, CompileErrors{dataError(l.dataFile, l.data, err)}
		}
	}
	return merged, nil
}

// parseData reads YAML, and so JSON, into JSON's types.
func parseData(text []byte) (map[string]any, error) {
	var doc any
	if err := yaml.UnmarshalWithOptions(text, &doc, yaml.Strict()); err != nil {
		return nil, err
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
	for _, key := range slices.Sorted(maps.Keys(out)) {
		if key == "custom" && out[key] != nil {
			continue // the user's own
		}
		if path, found := nullAt(out[key]); found {
			return nil, &settingError{append([]string{key}, path...), "no value"}
		}
	}
	return out, nil
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
			return &settingError{slices.Collect(bad.JSONPointer.Tokens()), "unknown key or wrong type"}
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
	if err := cmp.Or(
		checkMap([]string{"actions"}, s.Actions, known, Action.Valid),
		checkMaps("sources", s.Sources, isSource, orOpaque),
		checkMaps("keys", s.Keys, isName, orOpaque),
		checkMap([]string{"opaque"}, s.Opaque, isOpaqueKind, Action.Valid),
		checkMap([]string{"min_score"}, s.MinScore, known, func(x float64) bool { return x >= 0 && x <= 1 }),
		checkMap([]string{"settled"}, s.Settled, Action.Valid, Action.Valid),
		checkMap([]string{"sensitivity"}, s.Sensitivity, isSensitive, func(a Action) bool { return a.Valid() && a != Mask }),
		checkMap([]string{"styles"}, s.Styles, known, isStyle),
		checkMap([]string{"words"}, s.Words, orOpaque, isReason),
		checkAction("unknown_label", s.UnknownLabel),
		checkAction("quasi_alone", s.QuasiAlone),
		checkAction("tainted", s.Tainted),
	); err != nil {
		return err
	}
	if s.Tainted == Mask {
		return &settingError{[]string{"tainted"}, "there is nothing to mask"}
	}
	if err := s.Ask.check(); err != nil {
		return &settingError{[]string{"ask"}, err.Error()}
	}
	if !slices.Contains(s.Ask.Choices, KeepLocal) && !slices.Contains(s.Ask.Choices, Refuse) {
		// mask is taken out where it cannot be done: without these nothing
		// would be left, and a user must be able to say no.
		return &settingError{[]string{"ask", "choices"}, "neither keep_local nor refuse"}
	}
	return nil
}

func checkAction(name string, a Action) error {
	if !a.Valid() {
		return &settingError{[]string{name}, "no such value"}
	}
	return nil
}

// checkMaps checks maps of actions by label or kind.
func checkMaps(name string, m map[string]map[string]Action, key, inner func(string) bool) error {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if !key(k) {
			return &settingError{[]string{name, k}, "no such key"}
		}
		if err := checkMap([]string{name, k}, m[k], inner, Action.Valid); err != nil {
			return err
		}
	}
	return nil
}

// checkMap reports the first entry, by key, that does not hold.
func checkMap[K ~string, V any](path []string, m map[K]V, key func(K) bool, value func(V) bool) error {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		at := append(slices.Clone(path), string(k))
		if !key(k) {
			return &settingError{at, "no such key"}
		}
		if !value(m[k]) {
			return &settingError{at, "no such value"}
		}
	}
	return nil
}
