package grammar

// enumeration makes the node of listed values that satisfy everything else.
func (c *compiler) enumeration(parts []part, ts types, raw bool) (int32, error) {
	var texts []string
	fits, err := c.fitting(parts, ts)
	if err != nil {
		return 0, err
	}
	for _, v := range listed(parts) {
		ok, err := fits(v)
		if err != nil {
			return 0, err
		}
		if !ok {
			continue
		}
		text := v.compact()
		if raw && v.kind() == '"' {
			text = v.text()
			if !c.vocab.free.dfa.matches(text) {
				return 0, v.bad("this value cannot be written in a tool call")
			}
		}
		if c.texts += len(text); c.texts > maxTexts {
			return 0, v.bad("the listed values are too long together")
		}
		texts = append(texts, text)
	}
	if len(texts) == 0 {
		return c.never, nil
	}
	return c.node(node{kind: kindBytes, bytes: words(texts)})
}

// fitting reports whether a listed value satisfies parts.
func (c *compiler) fitting(parts []part, ts types) (func(*value) (bool, error), error) {
	var lists []map[string]bool
	for _, p := range parts {
		if of := p.v.member("const"); of != nil {
			lists = append(lists, canonicals([]*value{of}))
		}
		if of := p.v.member("enum"); of != nil {
			lists = append(lists, canonicals(of.kids))
		}
	}
	var texts *runes
	if ts&stringType != 0 {
		var err error
		if texts, err = c.runes(parts); err != nil {
			return nil, err
		}
	}
	return func(v *value) (bool, error) {
		key := v.canonical()
		for _, l := range lists {
			if !l[key] {
				return false, nil
			}
		}
		switch v.kind() {
		case 'n':
			return ts&nullType != 0, nil
		case 't', 'f':
			return ts&boolType != 0, nil
		case '"':
			return texts != nil && texts.matches(v.text()), nil
		case '0':
			return holdsNumber(parts, ts, v)
		case '{':
			return ts&objectType != 0, bare(parts, "properties", "required", "additionalProperties")
		}
		return ts&arrayType != 0, bare(parts, "items", "prefixItems", "minItems", "maxItems")
	}, nil
}

// bare refuses keywords beside listed objects and arrays, which are not looked
// into.
func bare(parts []part, keywords ...string) error {
	for _, p := range parts {
		for _, name := range keywords {
			if v := p.v.member(name); v != nil {
				return v.bad("this keyword is not supported beside enum or const with objects or arrays")
			}
		}
	}
	return nil
}

func holdsNumber(parts []part, ts types, v *value) (bool, error) {
	d, ok := parseDecimal(string(v.raw))
	if !ok {
		return false, v.bad("this number has too many digits")
	}
	n, err := numberOf(parts, ts)
	if err != nil || ts&numberType == 0 || n.whole && d.part != "" || n.decimals >= 0 && len(d.part) > n.decimals {
		return false, err
	}
	for side, all := range [][]limit{n.lo, n.hi} {
		for _, l := range all {
			c := compare(d, l.decimal)
			if side == 1 {
				c = -c
			}
			if c < 0 || c == 0 && l.strict {
				return false, nil
			}
		}
	}
	rest := 0
	for _, digit := range []byte(d.whole) {
		rest = (rest*10 + int(digit-'0')) % max(n.divisor, 1)
	}
	return rest == 0, nil
}
