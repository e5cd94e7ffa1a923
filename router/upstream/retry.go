package upstream

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"weir/local"
)

// Retry says how often and how soon a request is sent again. Only failures that
// came before any byte of a reply was handed out are tried again: no connection,
// a connection that ended unanswered, and the statuses 429, 502, 503 and 504.
type Retry struct {
	// Attempts is the most that a request is sent; 0 is [DefaultAttempts], 1
	// never repeats.
	Attempts int
	// Base is the wait before the second attempt, doubled for each further one,
	// and shortened at random by up to half; 0 is 250 ms.
	Base time.Duration
	// MaxWait is the longest wait a server may ask for with Retry-After. If it
	// asks for more its reply is handed to the client, which may wait; 0 is 5 s.
	MaxWait time.Duration
}

func (r Retry) withDefaults() Retry {
	r.Attempts = or(r.Attempts, DefaultAttempts)
	r.Base = or(r.Base, 250*time.Millisecond)
	r.MaxWait = or(r.MaxWait, 5*time.Second)
	return r
}

// next says whether to try again after the n-th attempt, and after how long.
func (r Retry) next(n int, resp *Response, err *Error) (time.Duration, bool) {
	if n >= r.Attempts {
		return 0, false
	}
	wait := r.backoff(n)
	if err != nil {
		return wait, err.Class == ClassConnect && !errors.Is(err, local.ErrNotLocal)
	}
	if resp.Status != http.StatusTooManyRequests && !unavailable(resp.Status) {
		return 0, false
	}
	if asked, ok := retryAfter(resp.Header, time.Now()); ok {
		return max(asked, wait), asked <= r.MaxWait
	}
	return wait, true
}

func (r Retry) backoff(n int) time.Duration {
	d := min(r.Base<<min(n-1, 16), r.MaxWait)
	return d - rand.N(d/2+1)
}

// retryAfter reads how long a server asks to be left alone: milliseconds as
// OpenAI sends them, or seconds or a date as RFC 9110 section 10.2.3 has it.
func retryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	if ms, err := strconv.ParseUint(h.Get("Retry-After-Ms"), 10, 31); err == nil {
		return time.Duration(ms) * time.Millisecond, true
	}
	v := h.Get("Retry-After")
	if s, err := strconv.ParseUint(v, 10, 31); err == nil {
		return time.Duration(s) * time.Second, true
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(at.Sub(now), 0), true
	}
	return 0, false
}
