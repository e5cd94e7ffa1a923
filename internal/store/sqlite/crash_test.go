//go:build unix

package sqlite_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"weir/internal/audit"
	"weir/internal/seal"
	"weir/internal/store"
	"weir/internal/store/sqlite"
	"weir/internal/task"
	"weir/pii"
	"weir/pii/mask"
)

// The tests here run a second process, which is this test binary with one of
// these variables naming the database.
const (
	writeForever = "WEIR_TEST_WRITE_FOREVER"
	writeToLimit = "WEIR_TEST_WRITE_TO_LIMIT"
	// plain is in every value that the child puts into a vault.
	plain = "Plain-Value-Of-Test"
)

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(writeForever) != "":
		exit(childForever(context.Background(), os.Getenv(writeForever)))
	case os.Getenv(writeToLimit) != "":
		exit(childToLimit(context.Background(), os.Getenv(writeToLimit)))
	}
	os.Exit(m.Run())
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

type childStore struct {
	db    *sqlite.DB
	log   *audit.Log
	tasks *task.Tasks
}

func openChild(ctx context.Context, path string) (*childStore, error) {
	keys, err := seal.New([seal.Size]byte{42})
	if err != nil {
		return nil, err
	}
	db, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		return nil, err
	}
	log, err := audit.New(ctx, db, keys)
	if err != nil {
		return nil, err
	}
	return &childStore{db, log, task.New(db, keys, task.Options{})}, nil
}

// step makes one decision and one entry in the vault of name, and returns a line
// for each that was acknowledged.
func (c *childStore) step(ctx context.Context, name string, i int) (string, error) {
	r, err := c.log.Append(ctx, audit.Record{Caller: "c", Task: name, Action: "mask"})
	if err != nil {
		return "", err
	}
	line := "decision " + r.ID() + "\n"
	tk, err := c.tasks.Open(ctx, task.Ref{Caller: "c", Explicit: name})
	if err != nil {
		return line, err
	}
	e, err := tk.Book().Issue(fmt.Sprint(plain, " ", i), pii.PersonName, mask.StylePlaceholder, nil)
	if err != nil {
		return line, err
	}
	if err := tk.Commit(ctx, task.Update{}); err != nil {
		return line, err
	}
	return line + fmt.Sprintln("value", name, i, e.Token), nil
}

// childForever writes until it is killed.
func childForever(ctx context.Context, path string) error {
	c, err := openChild(ctx, path)
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	for g := range 6 {
		wg.Go(func() {
			for i := 0; ; i++ {
				lines, err := c.step(ctx, fmt.Sprintf("%d-%d", os.Getpid(), g), i)
				if err != nil {
					exit(err)
				}
				// One write per step: a pipe takes so few bytes whole.
				if _, err := io.WriteString(os.Stdout, lines); err != nil {
					exit(err)
				}
			}
		})
	}
	wg.Wait()
	return nil
}

// childToLimit writes until the system gives no more room, and a while after.
func childToLimit(ctx context.Context, path string) error {
	c, err := openChild(ctx, path)
	if err != nil {
		return err
	}
	signal.Ignore(syscall.SIGXFSZ) // so that the write fails instead
	limit := syscall.Rlimit{Cur: 3 << 20, Max: 3 << 20}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	failed := 0
	for i := 0; failed < 20; i++ {
		if i > 5000 {
			return fmt.Errorf("no limit met")
		}
		lines, err := c.step(ctx, "limited", i)
		if err != nil {
			failed++
		}
		if _, err := io.WriteString(os.Stdout, lines); err != nil {
			return err
		}
	}
	return nil
}

func startChild(t *testing.T, variable, path string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), variable+"="+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	return cmd, bufio.NewScanner(out)
}

// A process killed at any moment loses nothing that it acknowledged.
func TestKill(t *testing.T) {
	t.Parallel()
	const seed = 7
	rnd := rand.New(rand.NewPCG(seed, seed))
	path := filepath.Join(t.TempDir(), "weir.db")
	var all []string
	for round := range 10 {
		cmd, lines := startChild(t, writeForever, path)
		// The moment is chosen by what was acknowledged: the child's other
		// goroutines are anywhere in their writes then. Two rounds are long
		// enough for the log to be moved into the file.
		stop := 1 + rnd.IntN(200)
		if round%5 == 4 {
			stop += 1200
		}
		var acked []string
		for lines.Scan() {
			if acked = append(acked, lines.Text()); len(acked) == stop {
				must(t, cmd.Process.Kill())
			}
		}
		if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != -1 {
			t.Fatalf("round %d: the child ended by itself: %v", round, err)
		}
		wantAcked(t, path, acked)
		all = append(all, acked...)
	}
	wantAcked(t, path, all)
}

// A full disk is an error to the caller and no loss.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "weir.db")
	cmd, lines := startChild(t, writeToLimit, path)
	var acked []string
	for lines.Scan() {
		acked = append(acked, lines.Text())
	}
	must(t, cmd.Wait())
	if len(acked) < 20 {
		t.Errorf("only %d acknowledged before the limit", len(acked))
	}
	wantAcked(t, path, acked)
}

// wantAcked checks that every line's fact is in the database, that the log
// verifies, and that no file shows a value.
func wantAcked(t *testing.T, path string, acked []string) {
	t.Helper()
	if inFiles(t, path, []byte(plain)) {
		t.Error("a value stands in a file")
	}
	c, err := openChild(t.Context(), path)
	must(t, err)
	defer c.db.Close()
	rep, err := c.log.Verify(t.Context())
	must(t, err)
	if !rep.OK() {
		t.Errorf("log does not verify: %+v", rep.Faults)
	}
	decisions := decisionIDs(t, c.db)
	vaults := map[string]map[string]string{}
	for _, line := range acked {
		switch f := strings.Fields(line); {
		case f[0] == "decision":
			if !decisions[f[1]] {
				t.Errorf("%s: not in the log", line)
			}
		case f[0] == "value" && len(f) == 4:
			if vaults[f[1]] == nil {
				vaults[f[1]] = vault(t, c.tasks, f[1])
			}
			if vaults[f[1]][f[3]] != plain+" "+f[2] {
				t.Errorf("%s: not in the vault", line)
			}
		default:
			t.Errorf("line cut short: %q", line)
		}
	}
	if inFiles(t, path, []byte(plain)) {
		t.Error("a value stands in a file after reopening")
	}
}

func decisionIDs(t *testing.T, db *sqlite.DB) map[string]bool {
	t.Helper()
	rows, err := db.AuditRows(t.Context(), store.AuditQuery{Limit: 1 << 20})
	must(t, err)
	out := map[string]bool{}
	for _, r := range rows {
		out[r.ID] = true
	}
	return out
}

// vault returns a task's values by token.
func vault(t *testing.T, tasks *task.Tasks, name string) map[string]string {
	t.Helper()
	tk, err := tasks.Open(t.Context(), task.Ref{Caller: "c", Explicit: name})
	must(t, err)
	out := map[string]string{}
	for _, e := range tk.Book().Entries() {
		out[e.Token] = e.Value
	}
	return out
}
