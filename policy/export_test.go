package policy

// What the tests hold against the schemas: the two ends of Decide.

// EncodeInput returns the JSON of in, or the error of an input that breaks its
// schema.
func EncodeInput(in Input) ([]byte, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	return encode(&in)
}

// DecodeDecision reads what a query returned.
func DecodeDecision(value any) (Decision, error) { return decode(value) }

// CheckData checks a document of settings to be laid over the shipped ones.
func CheckData(text []byte) error {
	_, err := read(Options{Data: text})
	return err
}

// Cached returns how many decisions p remembers, or -1 if it remembers none.
func (p *Policy) Cached() int {
	if p.cache == nil {
		return -1
	}
	p.cache.CleanUp()
	return p.cache.EstimatedSize()
}

// EncodeUnchecked is EncodeInput for an input that breaks its schema.
func EncodeUnchecked(in Input) ([]byte, error) { return encode(&in) }

// Callable returns the names of the builtins that a policy may call.
func Callable() []string {
	var names []string
	for _, b := range capabilities().Builtins {
		names = append(names, b.Name)
	}
	return names
}
