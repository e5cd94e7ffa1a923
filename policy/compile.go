package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/open-policy-agent/opa/v1/ast"
)

// compile parses and compiles modules, strictly and against the schemas of
// input and data, so that a misspelt member does not load. Calls of print are
// erased: a policy has nowhere to print to.
func compile(texts map[string]string) (*ast.Compiler, error) {
	modules, err := parse(texts)
	if err != nil {
		return nil, err
	}
	schemas, err := schemaSet()
	if err != nil {
		return nil, err
	}
	c := ast.NewCompiler().
		WithCapabilities(capabilities()).
		WithSchemas(schemas).
		WithUseTypeCheckAnnotations(true).
		WithStrict(true).
		WithEnablePrintStatements(false).
		WithDefaultRegoVersion(ast.RegoV1).
		WithPathConflictsCheck(func(p []string) (bool, error) {
			return strings.HasPrefix(strings.Join(p, ".")+".", "weir.settings."), nil
		})
	if c.Compile(modules); c.Failed() {
		return nil, compileErrors(c.Errors)
	}
	if len(c.GetRulesExact(ast.MustParseRef(entry))) == 0 {
		return nil, CompileErrors{{Code: "file_error", Message: "no module defines " + entry}}
	}
	return c, nil
}

func parse(texts map[string]string) (map[string]*ast.Module, error) {
	modules := make(map[string]*ast.Module, len(texts))
	var faults ast.Errors
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		m, err := ast.ParseModuleWithOpts(name, texts[name], ast.ParserOptions{
			Capabilities:      capabilities(),
			ProcessAnnotation: true,
			RegoVersion:       ast.RegoV1,
		})
		var many ast.Errors
		var one *ast.Error // for an empty module
		switch {
		case errors.As(err, &many):
			faults = append(faults, many...)
		case errors.As(err, &one):
			faults = append(faults, one)
		case err != nil:
			return nil, fmt.Errorf("parse policy %s: %w", name, err)
		default:
			modules[name] = m
		}
	}
	return modules, compileErrors(faults)
}

// schemaSet makes the schemas known to the type checker: of the input
// everywhere, of the data where an annotation asks for it.
func schemaSet() (*ast.SchemaSet, error) {
	set := ast.NewSchemaSet()
	for _, schema := range []struct {
		ref  ast.Ref
		file string
	}{
		{ast.SchemaRootRef, "input.v1.json"},
		{ast.SchemaRootRef.Append(ast.StringTerm("settings")), "data.v1.json"},
	} {
		text, err := fs.ReadFile(Schemas(), schema.file)
		if err != nil {
			return nil, fmt.Errorf("read schema: %w", err)
		}
		var doc map[string]any
		if err := json.Unmarshal(text, &doc); err != nil {
			return nil, fmt.Errorf("read schema %s: %w", schema.file, err)
		}
		// The checker knows older drafts only. What it reads of the documents,
		// properties and types, means the same in them.
		delete(doc, "$schema")
		set.Put(schema.ref, doc)
	}
	return set, nil
}
