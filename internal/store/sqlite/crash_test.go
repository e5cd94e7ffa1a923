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

// step makes one decision and one vault entry, and returns a line for each that
// was acknowledged.
func (c *childStore) step(ctx context.Context, name string) (string, error) {
	r, err := c.log.Append(ctx, audit.Record{Caller: "c", Task: name, Action: "mask"})
	if err != nil {
		return "", err
	}
	line := "decision " + r.ID() + "\n"
	tk, err := c.tasks.Open(ctx, task.Ref{Caller: "c", Explicit: name})
	if err != nil {
		return line, err
	}
	value := plain + " " + name
	e, err := tk.Book().Issue(value, pii.PersonName, mask.StylePlaceholder, nil)
	if err != nil {
		return line, err
	}
	if err := tk.Commit(ctx, task.Update{}); err != nil {
		return line, err
	}
	return line + "value " + name + " " + e.Token + "\n", nil
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
				lines, err := c.step(ctx, fmt.Sprintf("%d-%d-%d", os.Getpid(), g, i))
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
		lines, err := c.step(ctx, fmt.Sprint(i))
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
	var acked []string
	for round := range 10 {
		cmd, lines := startChild(t, writeForever, path)
		// The moment is chosen by what was acknowledged: the child's other
		// goroutines are anywhere in their writes then.
		stop := len(acked) + 1 + rnd.IntN(300)
		for lines.Scan() {
			if acked = append(acked, lines.Text()); len(acked) == stop {
				must(t, cmd.Process.Kill())
			}
		}
		if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != -1 {
			t.Fatalf("round %d: the child ended by itself: %v", round, err)
		}
		wantAcked(t, path, acked)
	}
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
	for _, line := range acked {
		f := strings.Fields(line)
		switch {
		case f[0] == "decision":
			if _, err := c.log.Get(t.Context(), f[1]); err != nil {
				t.Errorf("%s: %v", line, err)
			}
		case f[0] == "value" && len(f) == 3:
			tk, err := c.tasks.Open(t.Context(), task.Ref{Caller: "c", Explicit: f[1]})
			must(t, err)
			if !hasEntry(tk.Book(), f[2], plain+" "+f[1]) {
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

func hasEntry(b *mask.Book, token, value string) bool {
	for _, e := range b.Entries() {
		if e.Token == token && e.Value == value {
			return true
		}
	}
	return false
}
