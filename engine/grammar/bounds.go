package grammar

import "strconv"

// number makes the node of numbers, of whole ones if ts has no others.
func (c *compiler) number(parts []part, ts types) (int32, error) {
	n, err := numberOf(parts, ts)
	if err != nil {
		return 0, err
	}
	d, ok := n.automaton()
	switch {
	case !ok:
		return 0, parts[0].v.bad("the bounds and the divisor of the number are too complex together")
	case d == nil:
		return c.never, nil
	}
	return c.node(node{kind: kindBytes, bytes: d})
}

// numberOf reads what parts ask of a number.
func numberOf(parts []part, ts types) (number, error) {
	n := number{whole: ts&brokenType == 0, decimals: -1}
	for _, p := range parts {
		for i, name := range []string{"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"} {
			v := p.v.member(name)
			if v == nil {
				continue
			}
			d, _ := parseDecimal(string(v.raw)) // check has read it
			side := &n.lo
			if i >= 2 {
				side = &n.hi
			}
			*side = append(*side, limit{d, i%2 == 1})
		}
		if v := p.v.member("multipleOf"); v != nil {
			d, _ := parseDecimal(string(v.raw))
			divisor, decimals, _ := divisorOf(d)
			switch {
			case divisor > 0:
				n.whole = true
				if n.divisor = lcm(max(n.divisor, 1), divisor); n.divisor > maxDivisor {
					return n, v.bad("the divisors are too large together")
				}
			case n.decimals < 0 || decimals < n.decimals:
				n.decimals = decimals
			}
		}
		if v := p.v.member("format"); v != nil {
			if bits, ok := formatBits(v.text()); ok && bits > 0 {
				n.within(bits)
			}
		}
	}
	return n, nil
}

// formatBits are the formats of numbers, which OpenAPI has, and how many bits
// they leave to a whole number beside its sign; zero is any number.
func formatBits(name string) (bits int, ok bool) {
	switch name {
	case "int32":
		return 31, true
	case "int64":
		return 63, true
	case "float", "double": // every number that comes is one
		return 0, true
	}
	return 0, false
}

// within bounds a number to so many bits.
func (n *number) within(bits int) {
	lo, _ := parseDecimal("-" + strconv.FormatUint(1<<bits, 10))
	hi, _ := parseDecimal(strconv.FormatUint(1<<bits-1, 10))
	n.lo, n.hi = append(n.lo, limit{decimal: lo}), append(n.hi, limit{decimal: hi})
}

func lcm(a, b int) int {
	x, y := a, b
	for y != 0 {
		x, y = y, x%y
	}
	return a / x * b
}
