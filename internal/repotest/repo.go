// Package repotest holds tests about the repository itself: who may import whom,
// what may open a connection, that documents say what the code does.
//
// Begin at [Load], which reads the tree once; every check takes a [Repo] and
// returns its [Fault] list. The tests run each check twice: over this repository,
// where it must find nothing, and over a small planted one, where it must find
// what was planted. A check that cannot fail would be worse than none.
//
// It promises to name the file and the line of a fault, and the reason of the
// rule that it breaks. What a linter can say is left to the linter, see
// .ci/run.
package repotest

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// module is the path that imports of our own begin with.
const module = "weir"

// Fault is a rule that the repository breaks.
type Fault struct {
	Path string
	Line int // 0 means the file as a whole
	What string
}

// String returns the fault as compilers write theirs.
func (f Fault) String() string {
	if f.Line == 0 {
		return f.Path + ": " + f.What
	}
	return fmt.Sprintf("%s:%d: %s", f.Path, f.Line, f.What)
}

// File is a text file of the repository.
type File struct {
	// Path is relative to the root, with slashes.
	Path string
	Text string
	// Syntax is nil unless it is a Go file.
	Syntax *ast.File
}

// Dir is the folder that the file lies in; the root is ".".
func (f *File) Dir() string { return path.Dir(f.Path) }

// IsTest says that the file is compiled into tests only.
func (f *File) IsTest() bool { return strings.HasSuffix(f.Path, "_test.go") }

// IsGenerated says that a program wrote the file.
func (f *File) IsGenerated() bool { return f.Syntax != nil && ast.IsGenerated(f.Syntax) }

// Repo is the tree, read once.
type Repo struct {
	// Files are in order of their paths. What is not text is left out.
	Files []*File
	// Fset places the syntax.
	Fset *token.FileSet
	// Paths names all files and folders, also those that are not text.
	Paths map[string]bool
}

// maxText is the size of the largest file that is read as text.
const maxText = 4 << 20

// Load reads the tree at root: everything that is not ignored by habit.
func Load(root fs.FS) (*Repo, error) {
	r := &Repo{Fset: token.NewFileSet(), Paths: map[string]bool{}}
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && skipped(d.Name()):
			return fs.SkipDir
		case name == ".git": // a file, in a tree that shares another's history
			return nil
		}
		r.Paths[name] = true
		if d.IsDir() || !d.Type().IsRegular() {
			return nil
		}
		return r.read(root, name)
	})
	if err != nil {
		return nil, fmt.Errorf("read the tree: %w", err)
	}
	return r, nil
}

// skipped names folders that hold nothing of ours.
func skipped(dir string) bool { return dir == ".git" || dir == "node_modules" || dir == "dist" }

var errTooLarge = errors.New("larger than a text of ours should be")

func (r *Repo) read(root fs.FS, name string) error {
	info, err := fs.Stat(root, name)
	if err != nil {
		return err
	}
	if info.Size() > maxText {
		if strings.HasSuffix(name, ".go") || strings.HasSuffix(name, ".md") {
			return fmt.Errorf("%s: %w", name, errTooLarge)
		}
		return nil
	}
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return err
	}
	if !utf8.Valid(text) || slices.Contains(text, 0) {
		return nil
	}
	f := &File{Path: name, Text: string(text)}
	if strings.HasSuffix(name, ".go") && !strings.Contains(name, "testdata/") {
		if f.Syntax, err = parser.ParseFile(r.Fset, name, text, parser.ParseComments|parser.SkipObjectResolution); err != nil {
			return err
		}
	}
	r.Files = append(r.Files, f)
	return nil
}

// Go returns the Go files.
func (r *Repo) Go() []*File {
	return slices.DeleteFunc(slices.Clone(r.Files), func(f *File) bool { return f.Syntax == nil })
}

// Shipped returns the Go files that are not tests.
func (r *Repo) Shipped() []*File {
	return slices.DeleteFunc(r.Go(), (*File).IsTest)
}

// File returns the file of the given path, or nil.
func (r *Repo) File(name string) *File {
	i := slices.IndexFunc(r.Files, func(f *File) bool { return f.Path == name })
	if i < 0 {
		return nil
	}
	return r.Files[i]
}

// at makes a fault at a place in a Go file.
func (r *Repo) at(f *File, pos token.Pos, format string, args ...any) Fault {
	return Fault{f.Path, r.Fset.Position(pos).Line, fmt.Sprintf(format, args...)}
}

// lineOf returns the line of an offset in a text, from 1.
func lineOf(text string, offset int) int { return strings.Count(text[:offset], "\n") + 1 }
