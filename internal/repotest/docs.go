package repotest

import (
	"fmt"
	"go/ast"
	"go/token"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"weir/internal/wire"
	"weir/pii"
)

// Table writes rows as a Markdown table.
func table(head []string, rows [][]string) string {
	var b strings.Builder
	line := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	line(head)
	line(slices.Repeat([]string{"---"}, len(head)))
	for _, row := range rows {
		line(row)
	}
	return b.String()
}

// ErrorTable is the table of docs/errors.md.
func ErrorTable() string {
	var rows [][]string
	for _, c := range wire.Codes() {
		rows = append(rows, []string{"`" + string(c.Code) + "`", strconv.Itoa(c.Status), "`" + c.Type + "`", c.When})
	}
	return table([]string{"code", "status", "type", "what happened, and what to do"}, rows)
}

// LabelTable is the table of docs/labels.md.
func LabelTable() string {
	var rows [][]string
	for _, l := range pii.Labels() {
		direct := "by itself"
		if !l.Direct {
			direct = "with another"
		}
		rows = append(rows, []string{strconv.Itoa(l.ID), "`" + string(l.Label) + "`", "`" + l.Stem + "_…`", l.Text, direct})
	}
	return table([]string{"id", "label", "placeholder", "what it is", "identifies"}, rows)
}

// SensitivityTable is the table of docs/policy.md.
func SensitivityTable() string {
	var rows [][]string
	for _, t := range pii.Terms() {
		var labels []string
		for _, l := range t.Labels {
			labels = append(labels, "`"+string(l)+"`")
		}
		rows = append(rows, []string{t.Name, strconv.FormatFloat(t.Weight, 'g', -1, 64), strings.Join(labels, ", "), t.Source})
	}
	return table([]string{"term", "weight", "labels", "where the number comes from"}, rows)
}

// names are what a document must mention, and what of the code they were read
// from.
type names struct {
	doc   string
	words []string
}

// mentions finds words that a document lacks.
func (r *Repo) mentions(n names) []Fault {
	f := r.File(n.doc)
	if f == nil {
		return []Fault{{n.doc, 0, "is missing"}}
	}
	var out []Fault
	for _, w := range n.words {
		if !strings.Contains(f.Text, w) {
			out = append(out, Fault{n.doc, 0, fmt.Sprintf("does not mention %q, which the code has", w)})
		}
	}
	return out
}

var (
	routeCall  = regexp.MustCompile(`\br\.(Get|Post|Delete|Head|Put)\((?:"(/[^"]*)"|chatRoute)`)
	weirHeader = regexp.MustCompile(`"(X-(?:Weir|Upstream)-[A-Za-z-]+)"`)
	placeRule  = regexp.MustCompile(`"([a-z]+(?:_[a-z]+)*)"`)
	metricName = regexp.MustCompile(`"(weir_[a-z_]+)"`)
)

// CheckAPI holds docs/api.md against the routes, the headers and the rules of
// placement that the router has.
func CheckAPI(r *Repo) []Fault {
	n := names{doc: "docs/api.md"}
	for _, f := range r.Shipped() {
		if f.Dir() != "router" {
			continue
		}
		for _, m := range routeCall.FindAllStringSubmatch(f.Text, -1) {
			path := m[2]
			if path == "" {
				path = "/v1/chat/completions"
			}
			n.words = append(n.words, strings.ToUpper(m[1])+" "+strings.Replace(path, "/*", "/{id}", 1))
		}
		for _, m := range weirHeader.FindAllStringSubmatch(f.Text, -1) {
			n.words = append(n.words, "`"+m[1]+"`")
		}
		if strings.HasSuffix(f.Path, "/place.go") {
			for _, m := range placeRule.FindAllStringSubmatch(imports(f.Text), -1) {
				n.words = append(n.words, "`"+m[1]+"`")
			}
		}
	}
	return r.mentions(n)
}

// imports drops a file's imports, which are strings too.
func imports(text string) string {
	_, rest, _ := strings.Cut(text, "\n)\n")
	return rest
}

// CheckMetrics holds docs/metrics.md against the metrics there are.
func CheckMetrics(r *Repo) []Fault {
	n := names{doc: "docs/metrics.md"}
	for _, f := range r.Shipped() {
		if f.Dir() == "internal/telemetry" {
			for _, m := range metricName.FindAllStringSubmatch(f.Text, -1) {
				n.words = append(n.words, "`"+m[1]+"`")
			}
		}
	}
	return append(r.mentions(n), r.unfed()...)
}

// unfed finds methods of Metrics that nothing outside their package names: what
// they count would stay 0 for ever.
func (r *Repo) unfed() []Fault {
	var out []Fault
	for _, f := range r.Shipped() {
		if f.Dir() != "internal/telemetry" || f.Syntax == nil {
			continue
		}
		for _, d := range f.Syntax.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv == nil || !fn.Name.IsExported() || receiver(fn) != "Metrics" {
				continue
			}
			used := slices.ContainsFunc(r.Shipped(), func(o *File) bool {
				return o.Dir() != "internal/telemetry" && strings.Contains(o.Text, "."+fn.Name.Name)
			})
			if !used {
				out = append(out, r.at(f, fn.Pos(), "nothing calls %s", fn.Name.Name))
			}
		}
	}
	return out
}

// receiver is the name of a method's type.
func receiver(fn *ast.FuncDecl) string {
	t := fn.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	name, _ := t.(*ast.Ident)
	if name == nil {
		return ""
	}
	return name.Name
}

// CheckCLI holds docs/cli.md against the commands, flags and exit codes of
// cmd/weir.
func CheckCLI(r *Repo) []Fault {
	n := names{doc: "docs/cli.md"}
	structs := map[string]*ast.StructType{}
	for _, f := range r.Shipped() {
		if f.Dir() != "cmd/weir" {
			continue
		}
		ast.Inspect(f.Syntax, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.TypeSpec:
				if s, ok := node.Type.(*ast.StructType); ok {
					structs[node.Name.Name] = s
				}
			case *ast.ValueSpec:
				n.words = append(n.words, exitCodes(node)...)
			}
			return true
		})
	}
	n.words = append(n.words, commandWords("weir", structs["cli"], structs)...)
	return r.mentions(n)
}

// exitCodes returns rows of the table of exit codes.
func exitCodes(v *ast.ValueSpec) []string {
	if len(v.Names) != 1 || len(v.Values) != 1 || !strings.HasPrefix(v.Names[0].Name, "exit") {
		return nil
	}
	if lit, ok := v.Values[0].(*ast.BasicLit); ok && lit.Kind == token.INT {
		return []string{"| " + lit.Value + " |"}
	}
	return nil
}

// commandWords returns the commands and flags of a struct that kong reads.
func commandWords(command string, s *ast.StructType, structs map[string]*ast.StructType) []string {
	if s == nil {
		return nil
	}
	var out []string
	for _, field := range s.Fields.List {
		if field.Tag == nil || len(field.Names) != 1 {
			continue
		}
		text, err := strconv.Unquote(field.Tag.Value)
		if err != nil {
			continue
		}
		tag, name := reflect.StructTag(text), kebab(field.Names[0].Name)
		if _, ok := tag.Lookup("cmd"); ok {
			sub := command + " " + name
			out = append(out, "`"+sub)
			if id, ok := field.Type.(*ast.Ident); ok {
				out = append(out, commandWords(sub, structs[id.Name], structs)...)
			}
			continue
		}
		if _, ok := tag.Lookup("arg"); ok {
			continue
		}
		if _, ok := tag.Lookup("help"); ok {
			out = append(out, "`--"+name)
		}
	}
	return out
}

// kebab writes a Go name as kong writes a flag.
func kebab(name string) string {
	if strings.ToUpper(name) == name {
		return strings.ToLower(name)
	}
	var b strings.Builder
	for i, c := range name {
		if c >= 'A' && c <= 'Z' {
			if i > 0 {
				b.WriteByte('-')
			}
			c += 'a' - 'A'
		}
		b.WriteRune(c)
	}
	return b.String()
}

// Commands returns the commands of the README's section of that name, as CI runs
// them: the lines of the first shell block after the heading.
func Commands(readme, heading string) []string {
	_, rest, ok := strings.Cut(readme, "\n## "+heading+"\n")
	if !ok {
		return nil
	}
	_, rest, ok = strings.Cut(rest, "```sh\n")
	if !ok {
		return nil
	}
	block, _, ok := strings.Cut(rest, "```")
	if !ok {
		return nil
	}
	var out []string
	for line := range strings.Lines(block) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			out = append(out, line)
		}
	}
	return out
}
