package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// part is a file that is being fetched, in segments and in any order. The
// bytes go to NAME.part; NAME.part.state has a line that says which file and
// division it belongs to, and then one byte a segment, '1' when it is there.
// A state that promises more than the disk kept (after a power cut) is found
// by the digest in the end.
type part struct {
	want    PinnedFile
	dir     string
	segment int64

	data, state *os.File
	head        int64 // bytes of the state's first line

	whole sync.Mutex // held by the one who fetches the file without ranges

	mu   sync.Mutex
	done []bool
	left int // segments not done
}

// openPart opens or begins the fetching of a file.
func openPart(dir string, want PinnedFile, segment int64) (*part, error) {
	p := &part{want: want, dir: dir, segment: segment}
	p.left = int((want.Size + segment - 1) / segment)
	p.done = make([]bool, p.left)
	var err error
	if p.data, err = os.OpenFile(p.path(".part"), os.O_RDWR|os.O_CREATE, 0o644); err != nil {
		return nil, err
	}
	if p.state, err = os.OpenFile(p.path(".part.state"), os.O_RDWR|os.O_CREATE, 0o644); err != nil {
		return nil, errors.Join(err, p.data.Close())
	}
	if err := p.resume(); err != nil {
		return nil, errors.Join(fmt.Errorf("resume %s: %w", want.Name, err), p.close())
	}
	return p, nil
}

func (p *part) path(suffix string) string { return filepath.Join(p.dir, p.want.Name+suffix) }

// resume reads the state, or writes a new one if it is for something else.
func (p *part) resume() error {
	head := fmt.Appendf(nil, "weir pull 1 %s %d %d\n", p.want.SHA256, p.want.Size, p.segment)
	p.head = int64(len(head))
	info, err := p.data.Stat()
	if err != nil {
		return err
	}
	raw, err := io.ReadAll(io.LimitReader(p.state, p.head+int64(len(p.done))+1))
	if err != nil {
		return err
	}
	marks, ok := bytes.CutPrefix(raw, head)
	if !ok || len(marks) != len(p.done) || info.Size() != p.want.Size {
		return p.reset()
	}
	for i, m := range marks {
		if m == '1' {
			p.done[i] = true
			p.left--
		}
	}
	return nil
}

// reset forgets everything that was fetched.
func (p *part) reset() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = len(p.done)
	clear(p.done)
	head := fmt.Appendf(nil, "weir pull 1 %s %d %d\n", p.want.SHA256, p.want.Size, p.segment)
	return errors.Join(
		p.state.Truncate(0),
		p.data.Truncate(0),
		p.data.Truncate(p.want.Size),
		writeAt(p.state, append(head, bytes.Repeat([]byte{'0'}, len(p.done))...), 0),
	)
}

func writeAt(f *os.File, b []byte, at int64) error {
	_, err := f.WriteAt(b, at)
	return err
}

// bounds returns the bytes of segment i.
func (p *part) bounds(i int) (from, to int64) {
	return int64(i) * p.segment, min(int64(i+1)*p.segment, p.want.Size)
}

func (p *part) isDone(i int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.done[i]
}

// missing lists the segments that are not there.
func (p *part) missing() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []int
	for i, done := range p.done {
		if !done {
			list = append(list, i)
		}
	}
	return list
}

// have counts the bytes of finished segments.
func (p *part) have() int64 {
	var n int64
	for i := range p.done {
		if p.isDone(i) {
			from, to := p.bounds(i)
			n += to - from
		}
	}
	return n
}

// mark notes that a segment is there, and reports whether it was news.
func (p *part) mark(i int) (news bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done[i] {
		return false, nil
	}
	if err := writeAt(p.state, []byte{'1'}, p.head+int64(i)); err != nil {
		return false, err
	}
	p.done[i] = true
	p.left--
	return true, nil
}

// publish gives the finished file its name. The state goes first: a part
// without one is fetched anew, a state without a part means nothing.
func (p *part) publish() error {
	if err := p.data.Sync(); err != nil {
		return err
	}
	if err := os.Remove(p.path(".part.state")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Rename(p.path(".part"), p.path(""))
}

func (p *part) close() error { return errors.Join(p.data.Close(), p.state.Close()) }
