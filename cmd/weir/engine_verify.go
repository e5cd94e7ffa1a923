package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/go-json-experiment/json"

	"weir/engine"
	"weir/engine/checkpoint"
	"weir/engine/tokenizer"
)

type engineVerifyCommand struct {
	engineFlags `embed:""`

	Files     bool   `help:"Compare every file with the pinned digests instead of running the model."`
	Reference string `help:"Compare with a file that --write made, perhaps on another machine, instead of the goldens." type:"path" placeholder:"FILE"`
	Write     string `help:"Write such a file for --text." type:"path" placeholder:"FILE"`
	Text      string `help:"Text to run over for --write." type:"path" placeholder:"FILE"`
}

// Run compares the engine with what another implementation made of the same
// prompts, with a reference file, or the files with their digests.
func (c engineVerifyCommand) Run(ctx context.Context, io streams, root *cli) error {
	if (c.Write == "") != (c.Text == "") {
		return errors.New("--write and --text go together")
	}
	dir, err := c.dir(root)
	if err != nil {
		return err
	}
	if c.Files {
		return c.files(ctx, io, dir, checkpoint.Pinned())
	}
	e, err := c.open(root, io)
	if err != nil {
		return err
	}
	switch {
	case c.Write != "":
		err = c.write(ctx, e, dir)
	case c.Reference != "":
		err = c.reference(ctx, io, e)
	default:
		err = c.goldens(ctx, io, e)
	}
	return errors.Join(err, e.Close())
}

func (c engineVerifyCommand) files(ctx context.Context, io streams, dir string, m checkpoint.Manifest) error {
	bar := progress{w: io.err, start: time.Now()}
	err := checkpoint.Verify(ctx, dir, m, bar.files)
	bar.end()
	if err != nil {
		return hinted{err, "move what is wrong away, and fetch it again with: weir engine pull " + dir}
	}
	_, err = fmt.Fprintln(io.out, "ok: every file is that of the pinned revision")
	return err
}

// goldens are for the pinned checkpoint only.
func (c engineVerifyCommand) goldens(ctx context.Context, io streams, e *engine.Engine) error {
	if want := checkpoint.Full().VocabSize; e.Vocab() != want {
		return hinted{fmt.Errorf("the goldens are of a vocabulary of %d tokens, and this model has %d", want, e.Vocab()), "compare other checkpoints with --reference"}
	}
	all, err := engine.Goldens()
	if err != nil {
		return err
	}
	failed := false
	for _, g := range all {
		a, err := e.Check(ctx, g)
		if err != nil {
			return err
		}
		word := "ok  "
		if !a.Passed {
			word, failed = "FAIL", true
		}
		fmt.Fprintf(io.out, "%s  %-5s %d of %d tokens the same, %d of %d clear ones, probabilities off by at most %.3f nat\n",
			word, a.Name, a.Same, a.Steps, a.ClearOK, a.Clear, a.FarOff)
	}
	if failed {
		return exitCode(exitError)
	}
	return nil
}

func (c engineVerifyCommand) write(ctx context.Context, e *engine.Engine, dir string) error {
	raw, err := os.ReadFile(filepath.Join(dir, "tokenizer.json"))
	if err != nil {
		return fmt.Errorf("open tokenizer: %w", err)
	}
	t, err := tokenizer.Load(raw)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(c.Text)
	if err != nil {
		return err
	}
	rec, err := e.Record(ctx, t.Append(nil, string(text)))
	if err != nil {
		return err
	}
	out, err := json.Marshal(rec)
	if err != nil {
		return fmt.Errorf("write record: %w", err)
	}
	return writeNew(c.Write, out, false)
}

// Bounds within which a reference counts as met. Another order of sums, and
// activations in 8 or 16 bits, move a logit by about a tenth of a nat: tokens
// nearer than that may swap, and in ordinary text a few in a hundred are. What
// moves one way by chance moves the other way elsewhere, so that the mean, whose
// exponential is the perplexity, hardly moves. A fault does not look like that:
// a wrong layer, scale or position costs whole nats at every token. So the
// share of swapped tokens may be 5%, and the perplexity may change by 1%.
const (
	sameTopLeast   = 0.95
	perplexityMost = 0.01
)

func (c engineVerifyCommand) reference(ctx context.Context, io streams, e *engine.Engine) error {
	raw, err := os.ReadFile(c.Reference)
	if err != nil {
		return err
	}
	var was engine.Record
	if err := json.Unmarshal(raw, &was); err != nil {
		return fmt.Errorf("%s is not a reference file", c.Reference)
	}
	is, err := e.Record(ctx, was.Tokens)
	if err != nil {
		return err
	}
	d, err := engine.Compare(was, is)
	if err != nil {
		return err
	}
	fmt.Fprintf(io.out, "%d tokens: %.2f%% have the same most probable token; perplexity %.4f, was %.4f (%+.3f%%)\n",
		d.Tokens, 100*d.SameTop, d.PerplexityIs, d.PerplexityWas, 100*d.PerplexityGrew)
	if !(d.SameTop >= sameTopLeast && max(d.PerplexityGrew, -d.PerplexityGrew) <= perplexityMost) {
		fmt.Fprintf(io.out, "FAIL: asked for are %.0f%% and a change of at most %.0f%%\n", 100*sameTopLeast, 100*perplexityMost)
		return exitCode(exitError)
	}
	return nil
}
