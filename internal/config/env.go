package config

import (
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
)

// prefix begins the name of every variable that sets a key.
const prefix = "WEIR_"

// environ overlays the environment. A variable that sets no key is a fault, as
// an unknown key in a file is, unless something else is known to use it.
func (l *loader) environ() {
	for _, name := range slices.Sorted(maps.Keys(l.env)) {
		rest, ok := strings.CutPrefix(name, prefix)
		// Compose files pass on what they do not set as empty.
		if !ok || l.env[name] == "" || l.foreign(name) {
			continue
		}
		if !l.variable("", rest, name, reflect.ValueOf(&l.cfg).Elem(), "") {
			l.problems = append(l.problems, &Problem{
				Key: name, Message: "no key of this name",
				Hint: "variables that begin with WEIR_ set keys of the configuration; give others another name",
			})
		}
	}
}

// foreign says whether a variable is not meant as a key: the one that names the
// file, one that a secret refers to, and those that Kubernetes and Docker links
// set for a service called weir.
func (l *loader) foreign(name string) bool {
	if name == "WEIR_CONFIG" || name == "WEIR_PORT" || strings.HasPrefix(name, "WEIR_PORT_") || strings.HasPrefix(name, "WEIR_SERVICE_") {
		return true
	}
	found := false
	l.cfg.eachSecret(func(s *Secret) { found = found || s.scheme == schemeEnv && s.name == name })
	return found || l.referred(name)
}

// referred says whether another variable refers to this one as a secret.
func (l *loader) referred(name string) bool {
	for other, value := range l.env {
		if strings.HasPrefix(other, prefix) && value == schemeEnv+":"+name {
			return true
		}
	}
	return false
}

// variable sets the key that rest names below v, and says whether there is one.
// keyCase says how the keys of a map are written.
func (l *loader) variable(path, rest, name string, v reflect.Value, keyCase string) bool {
	switch {
	case isScalar(v.Type()):
		return rest == "" && l.setVariable(path, name, v)
	case v.Kind() == reflect.Struct:
		return l.structVariable(path, rest, name, v)
	case v.Kind() == reflect.Map:
		return l.mapVariable(path, rest, name, v, keyCase)
	case v.Type() == reflect.TypeFor[[]Upstream]():
		return l.upstreamVariable(path, rest, name, v)
	}
	// Recognizers are too long for a variable; the other slices are of strings.
	return rest == "" && v.Type() == reflect.TypeFor[[]string]() && l.setList(path, name, v)
}

func (l *loader) setVariable(path, name string, v reflect.Value) bool {
	l.from[path] = origin{variable: name}
	if err := set(v, l.env[name]); err != nil {
		l.faulty[path] = true
		l.problems = append(l.problems, &Problem{Key: name, Message: err.Error(), Hint: hintFor(err)})
	}
	return true
}

func (l *loader) setList(path, name string, v reflect.Value) bool {
	l.from[path] = origin{variable: name}
	list := []string{}
	for item := range strings.SplitSeq(l.env[name], ",") {
		if item = strings.TrimSpace(item); item != "" {
			list = append(list, item)
		}
	}
	v.Set(reflect.ValueOf(list))
	return true
}

func (l *loader) structVariable(path, rest, name string, v reflect.Value) bool {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		tag := f.Tag.Get("yaml")
		if tag == "" || tag == "-" {
			continue
		}
		below, ok := strings.CutPrefix(rest, strings.ToUpper(tag))
		if !ok || below != "" && below[0] != '_' {
			continue
		}
		if l.variable(join(path, tag), strings.TrimPrefix(below, "_"), name, v.Field(i), f.Tag.Get("env")) {
			return true
		}
	}
	return false
}

// mapVariable sets an entry of a map. An entry that is itself a struct is named
// by the shortest beginning after which a key follows.
func (l *loader) mapVariable(path, rest, name string, v reflect.Value, keyCase string) bool {
	if rest == "" {
		return false
	}
	elemType := v.Type().Elem()
	if isScalar(elemType) {
		key := mapKey(rest, keyCase)
		elem := reflect.New(elemType).Elem()
		l.setVariable(join(path, key), name, elem)
		setMap(v, key, elem)
		return true
	}
	for entry, below := range splits(rest) {
		key := existing(entry, v)
		elem := reflect.New(elemType).Elem()
		if old := v.MapIndex(reflect.ValueOf(key)); old.IsValid() {
			elem.Set(old)
		}
		if l.variable(join(path, key), below, name, elem, "") {
			setMap(v, key, elem)
			return true
		}
	}
	return false
}

// upstreamVariable sets a key of an upstream, which is made if the file has none
// of the name.
func (l *loader) upstreamVariable(path, rest, name string, v reflect.Value) bool {
	for entry, below := range splits(rest) {
		i := slices.IndexFunc(l.cfg.Upstreams, func(u Upstream) bool { return fold(u.Name) == fold(entry) })
		elem := newElem(v.Type().Elem())
		if i >= 0 {
			elem.Set(v.Index(i))
		} else {
			elem.FieldByName("Name").SetString(strings.ToLower(entry))
		}
		index := i
		if i < 0 {
			index = v.Len()
		}
		if !l.variable(indexed(path, index), below, name, elem, "") {
			continue
		}
		if i < 0 {
			v.Set(reflect.Append(v, elem))
		} else {
			v.Index(i).Set(elem)
		}
		return true
	}
	return false
}

// splits yields each way to cut a name in two at an underscore.
func splits(s string) func(yield func(string, string) bool) {
	return func(yield func(string, string) bool) {
		for i := 1; i < len(s)-1; i++ {
			if s[i] == '_' && !yield(s[:i], s[i+1:]) {
				return
			}
		}
	}
}

// existing returns the key of m that a variable means, or the one to make.
func existing(entry string, m reflect.Value) string {
	for _, k := range m.MapKeys() {
		if fold(k.String()) == fold(entry) {
			return k.String()
		}
	}
	return strings.ToLower(entry)
}

// fold makes a name comparable with one that can hold only letters, digits and
// underscores.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, name)
}

func mapKey(rest, keyCase string) string {
	switch keyCase {
	case "upper":
		return rest
	case "header":
		return http.CanonicalHeaderKey(strings.ReplaceAll(rest, "_", "-"))
	}
	return strings.ToLower(rest)
}
