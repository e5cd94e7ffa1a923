package policy

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/goccy/go-yaml"
	yamlast "github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/open-policy-agent/opa/v1/ast"
)

// CompileError is one fault of a policy's files.
type CompileError struct {
	// File is the path inside the policy's directory, or empty for a fault of
	// no single file.
	File string
	// Line and Col count from 1; they are 0 where the place is not known.
	Line, Col int
	// Code is OPA's, as "rego_type_error", or one of "data_error",
	// "file_error", "probe_error".
	Code string
	// Message says what is wrong.
	Message string
}

// Error formats e as file:line:col: code: message.
func (e *CompileError) Error() string {
	switch {
	case e.File == "":
		return fmt.Sprintf("%s: %s", e.Code, e.Message)
	case e.Line == 0:
		return fmt.Sprintf("%s: %s: %s", e.File, e.Code, e.Message)
	}
	return fmt.Sprintf("%s:%d:%d: %s: %s", e.File, e.Line, e.Col, e.Code, e.Message)
}

// CompileErrors is all that is wrong with a policy, in order of the files.
type CompileErrors []*CompileError

// Error lists the faults, one a line.
func (es CompileErrors) Error() string { return errors.Join(es.Unwrap()...).Error() }

// Unwrap returns the faults, for [errors.As].
func (es CompileErrors) Unwrap() []error {
	out := make([]error, len(es))
	for i, e := range es {
		out[i] = e
	}
	return out
}

// compileErrors turns OPA's errors into ours. It returns nil for no errors.
func compileErrors(errs ast.Errors) error {
	if len(errs) == 0 {
		return nil
	}
	out := make(CompileErrors, len(errs))
	for i, e := range errs {
		out[i] = &CompileError{Code: e.Code, Message: e.Message}
		if e.Location != nil {
			out[i].File = filepath.ToSlash(e.Location.File)
			out[i].Line, out[i].Col = e.Location.Row, e.Location.Col
		}
	}
	slices.SortStableFunc(out, func(a, b *CompileError) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
	return out
}

// dataError reports a fault of a file of data, with its place if that can be
// found.
func dataError(file string, text []byte, err error) *CompileError {
	out := &CompileError{File: file, Code: "data_error", Message: err.Error()}
	var inYAML yaml.Error
	var setting *settingError
	switch {
	case errors.As(err, &inYAML):
		out.Message = inYAML.GetMessage()
		if t := inYAML.GetToken(); t != nil && t.Position != nil {
			out.Line, out.Col = t.Position.Line, t.Position.Column
		}
	case errors.As(err, &setting):
		out.Line, out.Col = locate(text, setting.path)
	}
	return out
}

// locate finds the key that path leads to in YAML, or the last one on the way
// there.
func locate(text []byte, path []string) (line, col int) {
	file, err := parser.ParseBytes(text, 0)
	if err != nil || len(file.Docs) == 0 {
		return 0, 0
	}
	node := file.Docs[0].Body
	for _, name := range path {
		mapping, ok := node.(*yamlast.MappingNode)
		if !ok {
			break
		}
		i := slices.IndexFunc(mapping.Values, func(v *yamlast.MappingValueNode) bool {
			return v.Key.GetToken().Value == name
		})
		if i < 0 {
			break
		}
		at := mapping.Values[i].Key.GetToken().Position
		line, col, node = at.Line, at.Column, mapping.Values[i].Value
	}
	return line, col
}
