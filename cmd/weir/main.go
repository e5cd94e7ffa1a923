// Command weir is a front door for language models on your own machine: it
// speaks the API that clients already use, sends each request to the cloud or to
// a model on this machine, and lets nothing private out that the policy keeps.
//
// Begin at [run]; each command has a file of its own, and wiring.go puts the
// parts together. Only this package reads flags and exits.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

// Exit codes, documented in docs/cli.md.
const (
	exitOK       = 0
	exitError    = 1 // the command failed
	exitUsage    = 2 // flags or arguments are wrong
	exitFindings = 3 // scan: something would be masked or asked about
	exitBlocked  = 4 // scan: something would be kept local or refused
	exitTampered = 5 // audit verify: the log was changed
)

// streams are what a command reads and writes.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

type cli struct {
	Config string `short:"c" help:"Configuration file." type:"path" placeholder:"FILE"`

	Demo      demoCommand      `cmd:"" help:"Watch Weir do its job, against stand-ins on this machine. Needs no key."`
	Serve     serveCommand     `cmd:"" help:"Run the front door."`
	Init      initCommand      `cmd:"" help:"Write a commented configuration file, and the policy on request."`
	Doctor    doctorCommand    `cmd:"" help:"Check keys, upstreams, policy and store, and say how to mend them."`
	Scan      scanCommand      `cmd:"" help:"Show what is private in a file, and what would happen to it."`
	Audit     auditCommand     `cmd:"" help:"List, explain and verify the log of decisions."`
	Approvals approvalsCommand `cmd:"" help:"Answer the questions that requests wait for."`
	PII       piiCommand       `cmd:"" name:"pii" help:"Measure, compare and explain the recognizers of private values."`
	Bench     benchCommand     `cmd:"" help:"Measure what Weir adds to a request, beside a bare reverse proxy."`
	Engine    engineCommand    `cmd:"" help:"Fetch, check, measure and serve the model that runs within Weir."`
	Version   versionCommand   `cmd:"" help:"Print the version."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	code := run(ctx, os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr})
	stop()
	os.Exit(code)
}

// run executes one command line and returns the exit code.
func run(ctx context.Context, args []string, io streams) int {
	var c cli
	exited := -1
	parser, err := kong.New(&c, kong.Name("weir"), kong.UsageOnError(), kong.Writers(io.out, io.err),
		kong.Description("Hybrid compute for everyone: one door to models in the cloud and on this machine."),
		kong.Exit(func(code int) { exited = code }),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(io, &c))
	if err != nil {
		fmt.Fprintln(io.err, "error:", err)
		return exitError
	}
	k, err := parser.Parse(args)
	if exited >= 0 { // --help
		return exited
	}
	if err != nil {
		fmt.Fprintln(io.err, "error:", err)
		return exitUsage
	}
	return report(io.err, k.Run())
}

// exitCode is an error that a command ends with on purpose.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// hinted is an error with words on what to do about it.
type hinted struct {
	error
	hint string
}

func (h hinted) Unwrap() error { return h.error }

func report(w io.Writer, err error) int {
	if err == nil {
		return exitOK
	}
	if code, ok := errors.AsType[exitCode](err); ok {
		return int(code)
	}
	fmt.Fprintln(w, "error:", err)
	if h, ok := errors.AsType[hinted](err); ok {
		fmt.Fprintln(w, "hint:", h.hint)
	}
	return exitError
}
