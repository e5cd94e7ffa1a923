package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Hub says where and how [Pull] fetches. The zero value is the public hub.
type Hub struct {
	// Endpoint is the address of a Hugging Face-compatible hub; empty means
	// https://huggingface.co.
	Endpoint string
	// Token is sent to the endpoint's host, and to no other.
	Token string
	// Transport carries the requests; nil means one of net/http's, with the
	// proxy of the environment.
	Transport http.RoundTripper
	// Connections is how many parts are fetched at a time; 0 means 8.
	Connections int
	// SegmentBytes is the size of a part; 0 means 32 MiB. Fetching that was
	// interrupted goes on with the parts that are missing, if this is the same.
	SegmentBytes int64
	// Stall is how long a connection may be silent; 0 means 30 s.
	Stall time.Duration
	// Backoff is the wait before the second try, doubled for each further one;
	// 0 means 1 s.
	Backoff time.Duration
	// Progress, if set, is told what has arrived. Bytes that must be fetched
	// again are taken back.
	Progress func(Progress)
}

const (
	defaultEndpoint    = "https://huggingface.co"
	defaultConnections = 8
	defaultSegment     = 32 << 20 // each costs the hub a redirect: 640 of them for the whole
	defaultStall       = 30 * time.Second
	defaultBackoff     = time.Second

	tries   = 6 // in a row without progress
	maxWait = 2 * time.Minute
)

// LogValue keeps the token out of logs.
func (h Hub) LogValue() slog.Value { return slog.StringValue(h.String()) }

// String names the endpoint, and not the token.
func (h Hub) String() string { return "hub " + orDefault(h.Endpoint, defaultEndpoint) }

// GoString is String.
func (h Hub) GoString() string { return h.String() }

// Pull fetches the files of a manifest into a folder, which it makes if need
// be. Files that are there already are compared and kept; one with other
// content is an error and is left alone. A file appears under its name only
// when its SHA-256 is the pinned one. When Pull fails or is cancelled, what
// has arrived stays in NAME.part, and the next call goes on from there.
func Pull(ctx context.Context, dir string, m Manifest, h Hub) error {
	f, err := newFetcher(h, m)
	if err != nil {
		return err
	}
	for _, file := range m.Files {
		if !filepath.IsLocal(file.Name) || filepath.Base(file.Name) != file.Name || file.Size < 0 {
			return fmt.Errorf("the manifest names %q, which is not a file of this folder", file.Name)
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	unlock, err := lockDir(dir)
	if err != nil {
		return err
	}
	defer unlock()
	p := &puller{dir: dir, hub: h, fetcher: f, meter: newMeter(m.Bytes(), h.Progress)}
	return diskError(p.run(ctx, m))
}

// diskError says what to do about a full disk.
func diskError(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("the disk is full (what has arrived is kept: make room, and fetch again): %w", err)
	}
	return err
}

type puller struct {
	dir     string
	hub     Hub
	fetcher *fetcher
	meter   *meter
}

func (p *puller) run(ctx context.Context, m Manifest) (err error) {
	todo, err := p.absent(ctx, m)
	if err != nil {
		return err
	}
	var parts []*part
	defer func() {
		for _, part := range parts {
			err = errors.Join(err, part.close())
		}
	}()
	var need int64
	for _, file := range todo {
		part, err := openPart(p.dir, file, orDefault(p.hub.SegmentBytes, defaultSegment))
		if err != nil {
			return err
		}
		parts = append(parts, part)
		need += file.Size - part.have()
		p.meter.add(file.Name, part.have())
	}
	if err := checkSpace(p.dir, need); err != nil {
		return err
	}
	wrong, err := p.round(ctx, parts)
	if err != nil || len(wrong) == 0 {
		return err
	}
	// A resumed part may have been damaged since: once more from the start.
	for _, part := range wrong {
		p.meter.add(part.want.Name, -part.want.Size)
		if err := part.reset(); err != nil {
			return err
		}
	}
	wrong, err = p.round(ctx, wrong)
	if err != nil || len(wrong) == 0 {
		return err
	}
	problems := &Problems{Dir: p.dir}
	for _, part := range wrong {
		problems.addf("%s: the hub sent other content than the pinned one, twice", part.want.Name)
	}
	return problems
}

// absent returns the files that are not there yet. One with the name and
// other content is somebody's: it is reported, not replaced.
func (p *puller) absent(ctx context.Context, m Manifest) ([]PinnedFile, error) {
	problems := &Problems{Dir: p.dir}
	var todo []PinnedFile
	for _, file := range m.Files {
		info, err := os.Stat(filepath.Join(p.dir, file.Name))
		if errors.Is(err, fs.ErrNotExist) {
			todo = append(todo, file)
			continue
		}
		if err != nil {
			return nil, err
		}
		same := info.Mode().IsRegular() && info.Size() == file.Size
		if same {
			sum, err := hashFile(ctx, filepath.Join(p.dir, file.Name), nil)
			if err != nil {
				return nil, err
			}
			same = sum == file.SHA256
		}
		if !same {
			problems.addf("%s is there with other content than the pinned one: remove it, or choose another folder", file.Name)
			continue
		}
		p.meter.add(file.Name, file.Size)
	}
	return todo, problems.err()
}

// round fetches what is missing of the parts and publishes those that are
// right. It returns those that are complete and wrong.
func (p *puller) round(ctx context.Context, parts []*part) (wrong []*part, err error) {
	type job struct {
		part    *part
		segment int
	}
	var jobs []job
	for _, part := range parts {
		for _, i := range part.missing() {
			jobs = append(jobs, job{part, i})
		}
	}
	err = parallel(ctx, len(jobs), orDefault(p.hub.Connections, defaultConnections), func(ctx context.Context, i int) error {
		if err := p.segment(ctx, jobs[i].part, jobs[i].segment); err != nil {
			return fmt.Errorf("fetch %s: %w", jobs[i].part.want.Name, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	right := make([]bool, len(parts))
	err = parallel(ctx, len(parts), hashers, func(ctx context.Context, i int) error {
		sum, err := hashFile(ctx, parts[i].path(".part"), nil)
		if err != nil {
			return err
		}
		if right[i] = sum == parts[i].want.SHA256; right[i] {
			return parts[i].publish()
		}
		return nil
	})
	for i, part := range parts {
		if !right[i] {
			wrong = append(wrong, part)
		}
	}
	return wrong, err
}

// segment fetches one segment, going on where a connection broke off. Only
// tries in a row without progress are counted.
func (p *puller) segment(ctx context.Context, part *part, i int) error {
	from, to := part.bounds(i)
	at, failed := from, 0
	for at < to {
		if part.isDone(i) { // by one who fetched the whole file
			p.meter.add(part.want.Name, from-at)
			return nil
		}
		w := &countedWriter{w: io.NewOffsetWriter(part.data, at), count: func(n int) { p.meter.add(part.want.Name, int64(n)) }}
		n, err := p.fetcher.get(ctx, part.want, at, to, false, w)
		at += n
		if errors.Is(err, errNoRanges) {
			p.meter.add(part.want.Name, from-at)
			return p.whole(ctx, part)
		}
		if n >= minProgress {
			failed = 0
		}
		if err != nil {
			if failed++; failed >= tries {
				return err
			}
			if err := p.wait(ctx, err, failed); err != nil {
				return err
			}
		}
	}
	_, err := part.mark(i)
	return err
}

// minProgress is what a connection must have brought to be no failure: a hub
// that sends a byte and hangs up must not keep us forever.
const minProgress = 64 << 10

// whole fetches a file from a hub that knows no ranges, from its start each
// time. One worker does it, the others wait and find their segments done.
func (p *puller) whole(ctx context.Context, part *part) error {
	part.whole.Lock()
	defer part.whole.Unlock()
	for failed := 0; len(part.missing()) > 0; {
		w := &markingWriter{part: part, meter: p.meter}
		_, err := p.fetcher.get(ctx, part.want, 0, part.want.Size, true, w)
		if err == nil {
			continue
		}
		if failed++; failed >= tries {
			return err
		}
		if err := p.wait(ctx, err, failed); err != nil {
			return err
		}
	}
	return nil
}

// wait pauses before another try, or returns the error if none is worth it.
func (p *puller) wait(ctx context.Context, err error, failed int) error {
	var t *transient
	if !errors.As(err, &t) {
		return err
	}
	pause := min(max(orDefault(p.hub.Backoff, defaultBackoff)<<(failed-1), t.after), maxWait)
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// countedWriter tells how much was written.
type countedWriter struct {
	w     io.Writer
	count func(int)
}

func (c *countedWriter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.count(n)
	return n, err
}

// markingWriter writes a file from its start and marks each segment that it
// completes.
type markingWriter struct {
	part  *part
	meter *meter
	at    int64
}

func (w *markingWriter) Write(b []byte) (int, error) {
	n, err := w.part.data.WriteAt(b, w.at)
	first := int(w.at / w.part.segment)
	w.at += int64(n)
	for i := first; i < len(w.part.done); i++ {
		from, to := w.part.bounds(i)
		if to > w.at {
			break
		}
		news, markErr := w.part.mark(i)
		if news {
			w.meter.add(w.part.want.Name, to-from)
		}
		if err == nil {
			err = markErr
		}
	}
	return n, err
}
