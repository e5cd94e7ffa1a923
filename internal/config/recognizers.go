package config

import (
	"errors"
	"fmt"
	"io/fs"
	"reflect"

	"github.com/goccy/go-yaml/ast"

	"weir/pii/custom"
)

// recognizerFiles reads the files of recognizers, behind those that stand in the
// configuration itself.
func (l *loader) recognizerFiles() {
	for i, name := range l.cfg.RecognizerFiles {
		key := indexed("recognizer_files", i)
		data, err := readFile(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			l.problem(key, "there is no such file", "a relative path lies beside the configuration")
			continue
		case err != nil:
			l.problem(key, "cannot be read, or is too long", "")
			continue
		}
		body := l.parse(name, data)
		if body == nil {
			continue
		}
		list, ok := body.(*ast.SequenceNode)
		if !ok {
			line, column := position(body)
			l.at("recognizers", line, column, "must be a list of recognizers", "begin the first with a hyphen, as - id: NAME")
			continue
		}
		for _, item := range list.Values {
			elem := newElem(reflect.TypeFor[custom.Recognizer]())
			l.node(indexed("recognizers", len(l.cfg.Recognizers)), item, elem)
			r, _ := elem.Interface().(custom.Recognizer)
			l.cfg.Recognizers = append(l.cfg.Recognizers, r)
		}
	}
}

// checkRecognizers compiles the recognizers, and returns the labels that they
// bring.
func (l *loader) checkRecognizers(c *Config) []string {
	set, err := custom.Compile(c.Recognizers)
	var faults custom.Faults
	if errors.As(err, &faults) {
		for _, f := range faults {
			key := indexed("recognizers", f.Index)
			if f.Field != "" {
				key += "." + f.Field
			}
			l.problem(key, f.Message, f.Hint)
		}
		l.faulty["recognizers"] = true
		return nil
	}
	if err != nil { // it promises nothing else
		panic(fmt.Sprintf("config: %T from recognizers", err))
	}
	var out []string
	for _, label := range set.Labels() {
		out = append(out, string(label))
	}
	return out
}
