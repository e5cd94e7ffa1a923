package policy

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

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

func dataError(file, format string, args ...any) *CompileError {
	return &CompileError{File: file, Code: "data_error", Message: fmt.Sprintf(format, args...)}
}
