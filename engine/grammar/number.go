package grammar

import (
	"cmp"
	"strconv"
	"strings"
)

// Bounds on numbers. Digits are bounded so that a number ends; within them
// every number fits a float64's range.
const (
	maxDigits      = 20
	maxBoundDigits = 40
	maxExponent    = 2 // digits
	maxDivisor     = 1000
	maxNumberArcs  = 100_000
)

// decimal is a number's digits: those of its whole part, without leading
// zeros, and those behind the point, without zeros at the end.
type decimal struct {
	neg         bool
	whole, part string
}

func (d decimal) zero() bool { return d.whole == "" && d.part == "" }

// parseDecimal reads a JSON number exactly.
func parseDecimal(raw string) (decimal, bool) {
	var d decimal
	raw, d.neg = strings.CutPrefix(raw, "-")
	mantissa, exponent, _ := strings.Cut(strings.ToLower(raw), "e")
	whole, part, _ := strings.Cut(mantissa, ".")
	shift := 0
	if exponent != "" {
		var err error
		if shift, err = strconv.Atoi(exponent); err != nil || shift > maxBoundDigits || shift < -maxBoundDigits {
			return d, false
		}
	}
	digits, point := whole+part, len(whole)+shift
	if point < 0 {
		digits, point = strings.Repeat("0", -point)+digits, 0
	}
	if point > len(digits) {
		digits += strings.Repeat("0", point-len(digits))
	}
	d.whole, d.part = strings.TrimLeft(digits[:point], "0"), strings.TrimRight(digits[point:], "0")
	return d, len(d.whole)+len(d.part) <= maxBoundDigits
}

// limit is a bound on numbers.
type limit struct {
	decimal
	strict bool // the bound itself is not allowed
}

// number is what is asked of a number.
type number struct {
	whole    bool
	lo, hi   []limit
	divisor  int // of whole numbers; zero if there is none
	decimals int // digits behind the point, -1 if only [maxDigits] bounds them
}

// numeral is how far a number is read: a state of the automaton for it.
type numeral struct {
	phase  uint8
	neg    bool
	some   bool // a digit that is not zero has come
	digits int16
	rest   int16 // modulo the divisor
	cmp    [2]int8
}

const (
	numberBegin = iota
	numberSign
	numberZero
	numberWhole
	numberPoint
	numberPart
	numberE
	numberESign
	numberExponent
)

// numerals is a number with its tightest bounds.
type numerals struct {
	number
	bound   [2]limit // lowest, highest
	bounded [2]bool
	room    [2]int16 // digits before and behind the point
}

// automaton accepts the numbers; nil if there are none. ok is false if it
// would be too large.
func (n number) automaton() (d *bytes, ok bool) {
	m := &numerals{number: n, room: [2]int16{maxDigits, maxDigits}}
	for side, all := range [][]limit{n.lo, n.hi} {
		for _, l := range all {
			if !m.bounded[side] || tighter(l, m.bound[side], side) {
				m.bound[side], m.bounded[side] = l, true
			}
			m.room[0] = max(m.room[0], int16(len(l.whole))+1)
			m.room[1] = max(m.room[1], int16(len(l.part))+1)
		}
	}
	if n.decimals >= 0 {
		m.room[1] = int16(n.decimals)
	}
	return explore(numeral{}, "+-.0123456789Ee", m.step, m.accept, maxNumberArcs)
}

// tighter compares two bounds of a side.
func tighter(a, b limit, side int) bool {
	c := compare(a.decimal, b.decimal)
	if side == 1 {
		c = -c
	}
	return c > 0 || c == 0 && a.strict
}

// compare orders two numbers.
func compare(a, b decimal) int {
	switch {
	case a.zero() && b.zero():
		return 0
	case a.zero():
		return -sign(b)
	case b.zero() || a.neg != b.neg:
		return sign(a)
	}
	c := cmp.Or(cmp.Compare(len(a.whole), len(b.whole)), cmp.Compare(a.whole, b.whole), cmp.Compare(a.part, b.part))
	return c * sign(a)
}

func sign(d decimal) int {
	switch {
	case d.zero():
		return 0
	case d.neg:
		return -1
	}
	return 1
}

// step reads a byte.
func (m *numerals) step(s numeral, b byte) (numeral, bool) {
	switch {
	case b >= '0' && b <= '9':
		return m.digit(s, b)
	case b == '-' && s.phase == numberBegin:
		s.phase, s.neg = numberSign, true
		return s, true
	case b == '.' && !m.whole && m.room[1] > 0 && (s.phase == numberZero || s.phase == numberWhole):
		for side := range s.cmp { // a number with more digits is greater
			s.cmp[side] = m.wholeCompare(s, side)
		}
		s.phase, s.digits = numberPoint, 0
		return s, true
	case b|0x20 == 'e' && m.free() && (s.phase == numberZero || s.phase == numberWhole || s.phase == numberPart):
		s.phase, s.digits = numberE, 0
		return s, true
	case (b == '+' || b == '-') && s.phase == numberE:
		s.phase = numberESign
		return s, true
	}
	return s, false
}

// free reports that nothing is asked that an exponent would hide.
func (m *numerals) free() bool {
	return !m.whole && !m.bounded[0] && !m.bounded[1] && m.decimals < 0
}

func (m *numerals) digit(s numeral, b byte) (numeral, bool) {
	s.some = s.some || b != '0' && s.phase < numberE
	switch s.phase {
	case numberBegin, numberSign:
		s.phase = numberWhole
		if b == '0' {
			s.phase = numberZero
			return s, true
		}
		return m.wholeDigit(s, b), true
	case numberWhole:
		return m.wholeDigit(s, b), s.digits < m.room[0]
	case numberPoint, numberPart:
		s.phase = numberPart
		for side := range s.cmp {
			if m.bounded[side] && s.cmp[side] == 0 {
				s.cmp[side] = int8(cmp.Compare(b, digitAt(m.bound[side].part, s.digits)))
			}
		}
		s.digits++
		return s, s.digits <= m.room[1]
	case numberE, numberESign, numberExponent:
		s.phase = numberExponent
		s.digits++
		return s, s.digits <= maxExponent
	}
	return s, false
}

func (m *numerals) wholeDigit(s numeral, b byte) numeral {
	for side := range s.cmp {
		if m.bounded[side] && s.cmp[side] == 0 && int(s.digits) < len(m.bound[side].whole) {
			s.cmp[side] = int8(cmp.Compare(b, m.bound[side].whole[s.digits]))
		}
	}
	if m.divisor > 0 {
		s.rest = int16((int(s.rest)*10 + int(b-'0')) % m.divisor)
	}
	s.digits++
	return s
}

func digitAt(digits string, i int16) byte {
	if int(i) < len(digits) {
		return digits[i]
	}
	return '0'
}

// wholeCompare compares the digits before the point with those of a bound.
func (m *numerals) wholeCompare(s numeral, side int) int8 {
	if !m.bounded[side] {
		return 0
	}
	if c := cmp.Compare(int(s.digits), len(m.bound[side].whole)); c != 0 {
		return int8(c)
	}
	return s.cmp[side]
}

func (m *numerals) accept(s numeral) bool {
	switch s.phase {
	case numberZero, numberWhole, numberPart, numberExponent:
	default:
		return false
	}
	if s.neg && !s.some || s.rest != 0 {
		return false // no -0
	}
	for side := range s.cmp {
		if !m.bounded[side] {
			continue
		}
		c := m.against(s, side)
		if side == 1 {
			c = -c
		}
		if c < 0 || c == 0 && m.bound[side].strict {
			return false
		}
	}
	return true
}

// against compares the number that was read with a bound.
func (m *numerals) against(s numeral, side int) int {
	b := m.bound[side]
	switch {
	case !s.some:
		return -sign(b.decimal)
	case b.zero() || s.neg != b.neg:
		if s.neg {
			return -1
		}
		return 1
	}
	c := int(s.cmp[side])
	if s.phase != numberPart {
		c = int(m.wholeCompare(s, side))
	}
	if read := s.digits; c == 0 && (s.phase != numberPart && b.part != "" || s.phase == numberPart && int(read) < len(b.part)) {
		c = -1 // the bound has digits left, and the last of them is not zero
	}
	if s.neg {
		c = -c
	}
	return c
}
