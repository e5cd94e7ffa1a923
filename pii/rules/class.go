package rules

// class is a group of phrases with one meaning, as all ways to say "passport
// number". Zero is no class.
type class uint8

// maxClasses bounds the classes of the vocabulary.
const maxClasses = 64 * len(classSet{})

// classSet is a set of classes.
type classSet [3]uint64

func (s *classSet) add(c class) { s[c>>6] |= 1 << (c & 63) }

func (s classSet) has(c class) bool { return s[c>>6]&(1<<(c&63)) != 0 }

func (s classSet) meets(t classSet) bool { return s[0]&t[0]|s[1]&t[1]|s[2]&t[2] != 0 }

func (s *classSet) join(t classSet) {
	s[0] |= t[0]
	s[1] |= t[1]
	s[2] |= t[2]
}

func (s classSet) empty() bool { return s == classSet{} }
