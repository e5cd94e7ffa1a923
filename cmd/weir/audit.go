package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"weir/internal/audit"
	"weir/internal/store"
)

type auditCommand struct {
	List   auditListCommand   `cmd:"" default:"withargs" help:"List decisions, newest first."`
	Show   auditShowCommand   `cmd:"" help:"Explain one decision."`
	Verify auditVerifyCommand `cmd:"" help:"Check that the log was not changed."`
}

type auditListCommand struct {
	Task      string        `help:"Only decisions of this task."`
	Action    string        `help:"Only this action: allow, mask, ask_user, keep_local, refuse." enum:",allow,mask,ask_user,keep_local,refuse" default:""`
	Placement string        `help:"Only this place: local, cloud, cloud-masked." enum:",local,cloud,cloud-masked" default:""`
	Label     string        `help:"Only decisions that found this label."`
	Since     time.Duration `help:"Only the last while, as in 24h."`
	Limit     int           `default:"50" help:"At most so many."`
	JSON      bool          `help:"Print JSON, one decision a line."`
}

// Run lists decisions.
func (c auditListCommand) Run(ctx context.Context, io streams, root *cli) error {
	f := audit.Filter{Task: c.Task, Action: c.Action, Placement: c.Placement, Label: c.Label, Limit: c.Limit}
	if c.Since > 0 {
		f.Since = time.Now().Add(-c.Since)
	}
	return withStore(ctx, root, func(p *parts) error {
		entries, err := p.audit.List(ctx, f)
		if err != nil {
			return err
		}
		if c.JSON {
			return printLines(io.out, entries)
		}
		return printEntries(io.out, entries)
	})
}

func printLines(w io.Writer, entries []audit.Entry) error {
	for _, e := range entries {
		if err := json.MarshalWrite(w, e); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	return nil
}

func printEntries(w io.Writer, entries []audit.Entry) error {
	if len(entries) == 0 {
		_, err := fmt.Fprintln(w, "no decisions")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "TIME\tDECISION\tPLACE\tACTION\tRULE\tFOUND\tSTATUS")
	for _, e := range entries {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", e.Time.Local().Format(time.DateTime), e.ID,
			orDash(e.Placement), e.Action, e.Rule, orDash(found(e)), status(e))
	}
	return t.Flush()
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// found counts findings by label.
func found(e audit.Entry) string {
	var labels []string
	counts := map[string]int{}
	for _, f := range e.Findings {
		if counts[f.Label] == 0 {
			labels = append(labels, f.Label)
		}
		counts[f.Label] += f.Count
	}
	for kind, n := range e.Opaque {
		labels = append(labels, kind)
		counts[kind] += n
	}
	slices.Sort(labels)
	for i, l := range labels {
		labels[i] = fmt.Sprintf("%s×%d", l, counts[l])
	}
	return strings.Join(labels, " ")
}

func status(e audit.Entry) string {
	switch {
	case e.Outcome == nil:
		return "not finished"
	case e.Outcome.Status == 0:
		return e.Outcome.Code
	case e.Outcome.Code != "":
		return fmt.Sprintf("%d %s", e.Outcome.Status, e.Outcome.Code)
	}
	return fmt.Sprint(e.Outcome.Status)
}

type auditShowCommand struct {
	ID   string `arg:"" help:"The decision's id, from X-Weir-Decision or the list."`
	JSON bool   `help:"Print JSON."`
}

// Run explains a decision.
func (c auditShowCommand) Run(ctx context.Context, io streams, root *cli) error {
	return withStore(ctx, root, func(p *parts) error {
		e, err := p.audit.Get(ctx, c.ID)
		if errors.Is(err, store.ErrNotFound) {
			return errors.New("no decision has this id")
		}
		if err != nil {
			return err
		}
		if c.JSON {
			err := json.MarshalWrite(io.out, e, jsontext.WithIndent("  "))
			fmt.Fprintln(io.out)
			return err
		}
		explain(io.out, e)
		return nil
	})
}

func explain(w io.Writer, e audit.Entry) {
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(w, "%-12s %s\n", name, value)
		}
	}
	line("decision", e.ID)
	line("time", e.Time.Local().Format(time.RFC3339))
	line("task", e.Task)
	line("client", e.Caller)
	line("step", e.Kind+", mode "+e.Mode)
	line("place", orDash(e.Placement))
	line("upstream", e.Upstream)
	line("action", e.Action)
	line("rule", e.Rule)
	line("reason", e.Reason)
	for _, f := range e.Findings {
		line("found", fmt.Sprintf("%s ×%d in %s: %s (%s)", f.Label, f.Count, f.Source, f.Action, f.Rule))
	}
	if s := e.Sensitivity; s != nil {
		line("sensitivity", fmt.Sprintf("%s (%.2f)", s.Class, s.Score))
	}
	for kind, n := range e.Opaque {
		line("unreadable", fmt.Sprintf("%s ×%d", kind, n))
	}
	if a := e.Approval; a != nil {
		line("answer", strings.TrimSpace(a.Answer+" "+a.Scope+" "+a.Who))
	}
	line("policy", e.Policy)
	line("classifier", e.Classifier)
	if o := e.Outcome; o != nil {
		line("outcome", fmt.Sprintf("%s after %s", status(e), (time.Duration(o.Micros)*time.Microsecond).Round(time.Microsecond)))
		for label, n := range o.Restored {
			line("restored", fmt.Sprintf("%s ×%d", label, n))
		}
	}
}

type auditVerifyCommand struct {
	JSON bool `help:"Print JSON."`
}

// Run verifies the chain.
func (c auditVerifyCommand) Run(ctx context.Context, io streams, root *cli) error {
	return withStore(ctx, root, func(p *parts) error {
		rep, err := p.audit.Verify(ctx)
		if err != nil {
			return err
		}
		if c.JSON {
			if err := json.MarshalWrite(io.out, rep, jsontext.WithIndent("  ")); err != nil {
				return err
			}
			fmt.Fprintln(io.out)
		} else {
			printVerified(io.out, rep)
		}
		if !rep.OK() {
			return exitCode(exitTampered)
		}
		return nil
	})
}

func printVerified(w io.Writer, rep audit.Report) {
	if rep.OK() {
		fmt.Fprintf(w, "ok: %d rows, the chain holds\nhead: %s\n", rep.Rows, rep.Head)
		return
	}
	fmt.Fprintf(w, "TAMPERED: %d faults in %d rows\n", rep.Count, rep.Rows)
	for _, f := range rep.Faults {
		fmt.Fprintf(w, "  rows %d to %d: %s\n", f.From, f.To, f.Trouble)
	}
	fmt.Fprintln(w, "weir serve does not start on this log: move the store away to keep it as evidence")
}

// withStore opens the store alone, for commands that read it.
func withStore(ctx context.Context, root *cli, do func(*parts) error) error {
	cfg, err := loadConfig(root.Config)
	if err != nil {
		return err
	}
	p := &parts{cfg: cfg, log: slog.New(slog.DiscardHandler), metrics: newMetrics()}
	if err := p.openStore(ctx); err != nil {
		return errors.Join(err, p.close())
	}
	return errors.Join(do(p), p.close())
}
