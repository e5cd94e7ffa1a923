package emulator

import (
	"cmp"
	"slices"
	"unsafe"
)

// bind sets a buffer argument.
func (l *launch) bind(i int, p []byte) {
	if len(p) > 0 {
		l.buf[i], l.buflen[i] = unsafe.Pointer(&p[0]), uint64(len(p))
	}
}

// region is memory that arguments of a launch share: ranges that overlap are
// one, so that what is written through one argument is seen through another.
type region struct {
	p       unsafe.Pointer
	n       uint64
	args    []int
	written bool
}

func (r *region) end() uintptr { return uintptr(r.p) + uintptr(r.n) }

// crowded returns the regions of a launch that lie too near to one another for
// the checker to see a step from one into the next, or nil if none do.
func crowded(l *launch, written [31]bool) []region {
	var all []region
	for i, p := range l.buf {
		if p != nil {
			all = append(all, region{p, l.buflen[i], []int{i}, written[i]})
		}
	}
	slices.SortFunc(all, func(a, b region) int { return cmp.Compare(uintptr(a.p), uintptr(b.p)) })
	var merged []region
	for _, r := range all {
		if n := len(merged); n > 0 && uintptr(r.p) < merged[n-1].end() {
			last := &merged[n-1]
			last.n = max(last.n, uint64(r.end()-uintptr(last.p)))
			last.args = append(last.args, r.args...)
			last.written = last.written || r.written
			continue
		}
		merged = append(merged, r)
	}
	var near []region
	for i, r := range merged {
		before := i > 0 && uintptr(r.p)-merged[i-1].end() < zone
		after := i+1 < len(merged) && uintptr(merged[i+1].p)-r.end() < zone
		if before || after {
			near = append(near, r)
		}
	}
	return near
}

// move gives the launch copies of regions, zones around them. The function it
// returns brings back what was written.
func move(l *launch, regions []region) (back func()) {
	n := uint64(zone)
	for _, r := range regions {
		n += (r.n+255)&^255 + zone
	}
	room := make([]byte, n+256)
	at := uint64(-addr(room)&255) + zone
	copies := make([][]byte, len(regions))
	for i, r := range regions {
		copies[i] = room[at : at+r.n : at+r.n]
		copy(copies[i], unsafe.Slice((*byte)(r.p), r.n))
		for _, a := range r.args {
			l.buf[a] = unsafe.Pointer(&copies[i][uintptr(l.buf[a])-uintptr(r.p)])
		}
		at += (r.n+255)&^255 + zone
	}
	return func() {
		for i, r := range regions {
			if r.written {
				copy(unsafe.Slice((*byte)(r.p), r.n), copies[i])
			}
		}
	}
}
