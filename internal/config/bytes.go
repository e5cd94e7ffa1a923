package config

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// Bytes is a size, written as 33554432, 32MiB or 32MB.
type Bytes int64

var sizeUnits = [...]struct {
	suffix string
	factor int64
}{
	// Longer suffixes first: each ends in the last.
	{"KiB", 1 << 10},
	{"MiB", 1 << 20},
	{"GiB", 1 << 30},
	{"kB", 1e3},
	{"KB", 1e3},
	{"MB", 1e6},
	{"GB", 1e9},
	{"B", 1},
}

// UnmarshalText reads a size.
func (b *Bytes) UnmarshalText(text []byte) error {
	s, factor := string(text), int64(1)
	for _, u := range sizeUnits {
		if rest, ok := strings.CutSuffix(s, u.suffix); ok {
			s, factor = strings.TrimSpace(rest), u.factor
			break
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/factor {
		return errors.New("must be a size, as in 32MiB")
	}
	*b = Bytes(n * factor)
	return nil
}

// String returns the size in the largest unit that divides it.
func (b Bytes) String() string {
	for _, u := range []struct {
		suffix string
		shift  uint
	}{{"GiB", 30}, {"MiB", 20}, {"KiB", 10}} {
		if b != 0 && b%(1<<u.shift) == 0 {
			return strconv.FormatInt(int64(b>>u.shift), 10) + u.suffix
		}
	}
	return strconv.FormatInt(int64(b), 10)
}
