package rules

import "slices"

// check tests a compact value: separators removed, letters in upper case.
type check func(s string) bool

// Valid reports whether value passes the named check. Separators are ignored.
// It is false for an unknown name.
func Valid(name, value string) bool {
	c, ok := checks()[name]
	if !ok {
		return false
	}
	var buf [64]byte
	return c(string(compact(buf[:0], value)))
}

// Checks lists the names that [Valid] knows.
func Checks() []string {
	var names []string
	for name := range checks() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// compact appends the letters and digits of s in upper case.
func compact(dst []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z':
			dst = append(dst, c-0x20)
		case c >= '0' && c <= '9', c >= 'A' && c <= 'Z':
			dst = append(dst, c)
		}
	}
	return dst
}

// checks is the table of all checks by name.
func checks() map[string]check {
	all := map[string]check{}
	for _, t := range []map[string]check{europeWest(), europeNorth(), europeEast(), americas(), asiaPacific(), international()} {
		for name, c := range t {
			all[name] = c
		}
	}
	return all
}

// digitsCheck guards a check against values that are not n digits.
func digitsCheck(n int, c check) check {
	return func(s string) bool { return len(s) == n && digitsOnly(s) && c(s) }
}

// shaped guards a check by a shape of d (digit), a (letter), x (either).
func shaped(shape string, c check) check {
	return func(s string) bool {
		if len(s) != len(shape) {
			return false
		}
		for i := 0; i < len(s); i++ {
			digit := s[i] <= '9'
			if shape[i] == 'd' && !digit || shape[i] == 'a' && digit {
				return false
			}
		}
		return c(s)
	}
}
