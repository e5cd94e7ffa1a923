package cpu

import "fmt"

// Level is an instruction set that kernels are written for.
type Level uint8

// The levels. AVX512 needs more of the processor than AVX2; NEON is for arm64.
const (
	Plain  Level = iota // Go alone
	AVX2                // AVX2 and FMA
	AVX512              // AVX-512 F, BW, VL, DQ and VNNI
	NEON                // NEON with dot products: the products and the delta rule
)

// String names the level as users see it.
func (l Level) String() string {
	switch l {
	case Plain:
		return "plain"
	case AVX2:
		return "avx2"
	case AVX512:
		return "avx512"
	case NEON:
		return "neon"
	}
	return fmt.Sprintf("level %d", uint8(l))
}

// Kernels is a set of kernels of one level. The zero value is plain Go.
type Kernels struct{ level Level }

// At returns the kernels of level l, or an error where the processor lacks its
// instructions.
func At(l Level) (Kernels, error) {
	if l != Plain && (l > best() || (l == NEON) != (best() == NEON)) {
		return Kernels{}, fmt.Errorf("kernels for %v: this processor has %v only", l, best())
	}
	return Kernels{l}, nil
}

// Named returns the kernels of the level with this name, or the best ones for
// an empty name.
func Named(name string) (Kernels, error) {
	if name == "" {
		return Best(), nil
	}
	for l := Plain; l <= NEON; l++ {
		if l.String() == name {
			return At(l)
		}
	}
	return Kernels{}, fmt.Errorf("no kernels are named %q: there are %v, %v, %v and %v", name, Plain, AVX2, AVX512, NEON)
}

// Best returns the fastest kernels that this processor runs.
func Best() Kernels { return Kernels{best()} }

// Level says what the kernels are written for.
func (k Kernels) Level() Level { return k.level }
