package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"weir/router"
)

type approvalsCommand struct {
	As string `help:"Speak as this client, if client_keys are configured." placeholder:"NAME"`

	List    approvalsListCommand    `cmd:"" default:"withargs" help:"Show the open questions."`
	Answer  approvalsAnswerCommand  `cmd:"" help:"Answer a question."`
	Answers approvalsAnswersCommand `cmd:"" help:"List remembered answers."`
	Forget  approvalsForgetCommand  `cmd:"" help:"Forget a remembered answer."`
}

// client talks to the running front door.
type client struct {
	base, key string
	http      *http.Client
}

// newClient finds the running front door by the configuration. With client keys
// it speaks as the named client, or as the first by name.
func newClient(ctx context.Context, root *cli, as string) (*client, error) {
	cfg, err := loadConfig(root.Config)
	if err != nil {
		return nil, err
	}
	c := &client{base: doorURL(cfg.Listen), http: &http.Client{Timeout: 30 * time.Second}}
	if len(cfg.ClientKeys) == 0 {
		return c, nil
	}
	if as == "" {
		as = slices.Sorted(maps.Keys(cfg.ClientKeys))[0]
	}
	ref, ok := cfg.ClientKeys[as]
	if !ok {
		return nil, fmt.Errorf("no client key is named %s", as)
	}
	if c.key, err = cfg.Secret(ctx, ref); err != nil {
		return nil, fmt.Errorf("read client key: %w", err)
	}
	return c, nil
}

func (c *client) call(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("write request: %w", err)
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return hinted{fmt.Errorf("no front door answers at %s", c.base), "start it with: weir serve"}
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 16<<20))
	if err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	if resp.StatusCode >= 300 {
		var e struct {
			Error struct {
				Message string `json:"message"`
			} `json:"error"`
		}
		if json.Unmarshal(b, &e) != nil || e.Error.Message == "" {
			return fmt.Errorf("the front door answered %s", resp.Status)
		}
		return errors.New(e.Error.Message)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(b, out)
}

type approvalsListCommand struct {
	JSON bool `help:"Print JSON."`
}

type approvalList struct {
	Data []router.Approval `json:"data"`
}

// Run shows the open questions with the values in clear: it is for the user's
// own screen.
func (c approvalsListCommand) Run(ctx context.Context, io streams, root *cli) error {
	cl, err := newClient(ctx, root, root.Approvals.As)
	if err != nil {
		return err
	}
	var list approvalList
	if err := cl.call(ctx, http.MethodGet, "/v1/weir/approvals", nil, &list); err != nil {
		return err
	}
	if c.JSON {
		err := json.MarshalWrite(io.out, list, jsontext.WithIndent("  "))
		fmt.Fprintln(io.out)
		return err
	}
	if len(list.Data) == 0 {
		fmt.Fprintln(io.out, "no open questions")
		return nil
	}
	for _, a := range list.Data {
		printQuestion(io.out, a)
	}
	fmt.Fprintln(io.out, "answer with: weir approvals answer ID CHOICE [--scope once|task|always]")
	return nil
}

func printQuestion(w io.Writer, a router.Approval) {
	labels := make([]string, 0, len(a.Labels))
	for l, n := range a.Labels {
		labels = append(labels, fmt.Sprintf("%s×%d", l, n))
	}
	slices.Sort(labels)
	fmt.Fprintf(w, "%s  to %s: %s\n", a.ID, a.Destination, strings.Join(labels, " "))
	for _, e := range a.Excerpts {
		fmt.Fprintf(w, "    %s: …%s[%s]%s…\n", e.Label, clip(e.Before), clip(e.Text), clip(e.After))
	}
	fmt.Fprintf(w, "    choices: %s; without an answer by %s: %s\n", strings.Join(a.Choices, ", "), a.Until.Local().Format(time.TimeOnly), a.OnTimeout)
}

type approvalsAnswerCommand struct {
	ID     string `arg:"" help:"The question's id."`
	Choice string `arg:"" help:"mask, allow, keep_local or refuse."`
	Scope  string `default:"once" enum:"once,task,always" help:"How long the answer holds: once, task or always."`
}

// Run answers a question.
func (c approvalsAnswerCommand) Run(ctx context.Context, root *cli) error {
	cl, err := newClient(ctx, root, root.Approvals.As)
	if err != nil {
		return err
	}
	return cl.call(ctx, http.MethodPost, "/v1/weir/approvals", router.AnswerRequest{ID: c.ID, Choice: c.Choice, Scope: c.Scope}, nil)
}

type approvalsAnswersCommand struct{}

// Run lists what is remembered of the user's answers.
func (c approvalsAnswersCommand) Run(ctx context.Context, io streams, root *cli) error {
	cl, err := newClient(ctx, root, root.Approvals.As)
	if err != nil {
		return err
	}
	var list struct {
		Data []router.RememberedAnswer `json:"data"`
	}
	if err := cl.call(ctx, http.MethodGet, "/v1/weir/answers", nil, &list); err != nil {
		return err
	}
	if len(list.Data) == 0 {
		fmt.Fprintln(io.out, "nothing is remembered")
	}
	for _, a := range list.Data {
		where := "always"
		if a.Task != "" {
			where = "task " + a.Task
		}
		fmt.Fprintf(io.out, "%s  %s: %s (%s)\n", a.ID, a.Label, a.Choice, where)
	}
	return nil
}

type approvalsForgetCommand struct {
	ID string `arg:"" help:"The answer's id."`
}

// Run forgets a remembered answer.
func (c approvalsForgetCommand) Run(ctx context.Context, root *cli) error {
	cl, err := newClient(ctx, root, root.Approvals.As)
	if err != nil {
		return err
	}
	return cl.call(ctx, http.MethodDelete, "/v1/weir/answers/"+c.ID, nil, nil)
}
