package repotest

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"slices"
	"strings"
)

// place is a file that may do what is otherwise forbidden, and why.
type place map[string]string

// dialers are the only files from which a connection can begin. Content leaves
// through the first; the others say what they connect to instead.
func dialers() place {
	return place{
		"engine/checkpoint/fetch.go":   "downloads the model's files, and sends nothing but their names",
		"router/upstream/transport.go": "the one transport through which content leaves, cleared or kept",
		"local/dial.go":                "connects to this machine, after judging each address",
		"cmd/weir/approvals.go":        "asks the running front door, at the configured listen address",
		"cmd/weir/doctor.go":           "asks the running front door whether it is there",
		"cmd/weir/demo_scenes.go":      "the demo's own client, asking the demo's own front door",
		"cmd/weir/bench.go":            "the benchmark's own client, against stand-ins of its own",
		"internal/weirtest/contract/":  "a suite for tests",
		"examples/":                    "a user's program",
	}
}

// environment lists the files that may read the environment.
func environment() place {
	return place{
		"internal/config/":          "the one reader of the environment",
		"engine/device/devicetest/": "tests are told by the environment which device to run on",
		"internal/seal/":            "a key may be referred to as env:VAR; whether a key store can answer shows in the environment",
		"examples/":                 "a user's program",
	}
}

// printers lists the files that may print to the process's own streams.
func printers() place {
	return place{"cmd/weir/": "commands talk to people", "internal/weirtest/leak/": "says why a test binary fails", "examples/": "a user's program", "engine/cpu/asmgen/": "a generator", "pii/tagger/train/": "a generator of training data"}
}

// gated are types whose values mean that something was done. Only the package
// that does it may write one.
func gated() map[string]string {
	return map[string]string{
		"weir/internal/gate.Cleared":  "internal/gate",
		"weir/internal/gate.Kept":     "internal/gate",
		"weir/internal/gate.Decided":  "internal/gate",
		"weir/internal/gate.Examined": "internal/gate",
		"weir/internal/audit.Receipt": "internal/audit",
	}
}

func has(p place, file string) bool {
	for prefix := range p {
		if prefix == file || strings.HasSuffix(prefix, "/") && strings.HasPrefix(file, prefix) {
			return true
		}
	}
	return false
}

// uses calls visit for each name of another package that a file mentions, as
// "net.Dial" with the package's import path.
func uses(f *File, visit func(pos token.Pos, name string)) {
	known := aliases(f.Syntax)
	ast.Inspect(f.Syntax, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if id, ok := sel.X.(*ast.Ident); ok {
				if pkg, ok := known[id.Name]; ok {
					visit(sel.Pos(), pkg+"."+sel.Sel.Name)
				}
			}
		}
		return true
	})
}

// dials says that a name opens connections or holds what does.
func dials(name string) bool {
	switch name {
	case "net.Dial", "net.DialTimeout", "net.DialTCP", "net.DialUDP", "net.DialIP", "net.DialUnix", "net.Dialer",
		"crypto/tls.Dial", "crypto/tls.DialWithDialer", "crypto/tls.Dialer",
		"net/http.Transport", "net/http.DefaultTransport", "net/http.Client", "net/http.DefaultClient",
		"net/http.Get", "net/http.Post", "net/http.PostForm", "net/http.Head",
		"net/http/httputil.ReverseProxy", "net/http/httputil.NewSingleHostReverseProxy", "net/smtp.Dial", "net/rpc.Dial",
		"syscall.Connect", "golang.org/x/sys/unix.Connect":
		return true
	}
	return false
}

// CheckDials finds connections that begin anywhere but in the listed places, and
// places that are listed and begin none.
func CheckDials(r *Repo) []Fault {
	used := map[string]bool{}
	out := r.forbid(dialers(), dials, "opens connections here; only these may: %s", used)
	for prefix := range dialers() {
		if !strings.HasSuffix(prefix, "/") && r.File(prefix) != nil && !used[prefix] {
			out = append(out, Fault{prefix, 0, "is listed as opening connections, and opens none"})
		}
	}
	// A type that is only mentioned in a field of the transport's own package
	// opens nothing.
	return slices.DeleteFunc(out, func(f Fault) bool {
		return strings.HasPrefix(f.Path, "router/upstream/") && strings.Contains(f.What, "net/http.Transport ")
	})
}

// CheckEnvironment finds reads of the environment outside their place.
func CheckEnvironment(r *Repo) []Fault {
	reads := func(name string) bool {
		switch name {
		case "os.Getenv", "os.LookupEnv", "os.Environ", "os.ExpandEnv", "os.Setenv", "os.Unsetenv", "os.Clearenv", "syscall.Getenv":
			return true
		}
		return false
	}
	return r.forbid(environment(), reads, "touches the environment; only these may: %s", nil)
}

// CheckPrints finds output that goes past the logger.
func CheckPrints(r *Repo) []Fault {
	prints := func(name string) bool {
		pkg, fn, _ := cutLast(name, ".")
		switch pkg {
		case "fmt":
			return fn == "Print" || fn == "Printf" || fn == "Println"
		case "log":
			return strings.HasPrefix(fn, "Print") || strings.HasPrefix(fn, "Fatal") || strings.HasPrefix(fn, "Panic") || fn == "Default"
		case "log/slog":
			return slices.Contains([]string{"Debug", "Info", "Warn", "Error", "Log", "LogAttrs", "Default", "SetDefault"}, fn)
		case "os":
			return fn == "Stdout" || fn == "Stderr"
		}
		return false
	}
	return r.forbid(printers(), prints, "goes past the injected logger; only these may: %s", nil)
}

func (r *Repo) forbid(allowed place, match func(string) bool, format string, used map[string]bool) []Fault {
	var out []Fault
	for _, f := range r.Shipped() {
		uses(f, func(pos token.Pos, name string) {
			if !match(name) {
				return
			}
			if generator(f.Dir()) {
				return
			}
			if has(allowed, f.Path) {
				if used != nil {
					used[f.Path] = true
				}
				return
			}
			out = append(out, r.at(f, pos, name+" "+format, strings.Join(slices.Sorted(maps.Keys(allowed)), ", ")))
		})
	}
	return out
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// CheckGated finds values of the gate's own types that were not made by the
// gate: literals, and memory of that type.
func CheckGated(r *Repo) []Fault {
	var out []Fault
	for _, f := range r.Shipped() {
		known := aliases(f.Syntax)
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			typ := made(n)
			sel, ok := typ.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			id, ok := sel.X.(*ast.Ident)
			if !ok {
				return true
			}
			name := known[id.Name] + "." + sel.Sel.Name
			if home, ok := gated()[name]; ok && f.Dir() != home {
				out = append(out, r.at(f, n.Pos(), "makes a %s; only %s may", name, home))
			}
			return true
		})
	}
	return out
}

// made returns the type of a value that a node makes from nothing, or nil.
func made(n ast.Node) ast.Expr {
	switch n := n.(type) {
	case *ast.CompositeLit:
		switch t := n.Type.(type) {
		case *ast.ArrayType:
			return t.Elt
		case *ast.MapType:
			return t.Value
		}
		return n.Type
	case *ast.CallExpr:
		if id, ok := n.Fun.(*ast.Ident); ok && (id.Name == "new" || id.Name == "make") && len(n.Args) > 0 {
			if t, ok := n.Args[0].(*ast.ArrayType); ok {
				return t.Elt
			}
			return n.Args[0]
		}
		return n.Fun // a conversion, as in gate.Cleared(x)
	case *ast.ValueSpec:
		return n.Type
	}
	return nil
}

// CheckHabits finds init functions, sleeping tests and tests that are skipped
// without a word.
func CheckHabits(r *Repo) []Fault {
	var out []Fault
	for _, f := range r.Go() {
		bubble := slices.Contains(slices.Collect(maps.Values(aliases(f.Syntax))), "testing/synctest")
		for _, d := range f.Syntax.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if fn.Recv == nil && fn.Name.Name == "init" {
				out = append(out, r.at(f, d.Pos(), "init runs unasked; make it a function that somebody calls"))
			}
			ast.Inspect(fn, func(n ast.Node) bool {
				if why := habit(f, fn, n, bubble); why != "" {
					out = append(out, r.at(f, n.Pos(), "%s", why))
				}
				return true
			})
		}
	}
	return out
}

// habit says what is wrong with a call. Within a bubble of testing/synctest,
// sleeping costs nothing; a fuzz target skips what is no input for it.
func habit(f *File, fn *ast.FuncDecl, n ast.Node, bubble bool) string {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return ""
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	x, _ := sel.X.(*ast.Ident)
	silent := sel.Sel.Name == "SkipNow" || sel.Sel.Name == "Skip" && len(call.Args) == 0
	switch {
	case x != nil && x.Name == "time" && sel.Sel.Name == "Sleep" && !bubble:
		return "sleeps; use testing/synctest, or wait for what is meant"
	case f.IsTest() && silent && !strings.HasPrefix(fn.Name.Name, "Fuzz"):
		return "skips without saying why"
	}
	return ""
}

// CheckGoDirectives finds tricks that undo what the types promise.
func CheckGoDirectives(r *Repo) []Fault {
	var out []Fault
	for _, f := range r.Go() {
		for _, group := range f.Syntax.Comments {
			for _, c := range group.List {
				if strings.HasPrefix(c.Text, "//go:linkname") {
					out = append(out, r.at(f, c.Pos(), "linkname reaches past a package's exports"))
				}
			}
		}
	}
	return out
}

// CheckLengths finds files that nobody reads to the end.
func CheckLengths(r *Repo) []Fault {
	var out []Fault
	for _, f := range r.Go() {
		limit := 500
		if f.IsTest() {
			limit = 700
		}
		if n := strings.Count(f.Text, "\n"); n > limit && !f.IsGenerated() {
			out = append(out, Fault{f.Path, 0, fmt.Sprintf("has %d lines, over %d: what are its parts called?", n, limit)})
		}
	}
	return out
}
