package policy

import (
	"errors"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// encoder writes an input's JSON, which is both the document that the policy
// sees and, digested, the key of the remembered decision: one form, so that
// nothing the policy sees can be missing from the key. By hand, because a
// decision is looked up for every request and reflection would be most of the
// time it takes.
type encoder struct {
	buf []byte
	err error
}

// encode returns the JSON of in, whose numbers were checked.
func encode(in *Input) ([]byte, error) {
	e := encoder{buf: make([]byte, 0, 384+320*len(in.Findings)+128*len(in.Opaque))}
	e.raw(`{"version":`)
	e.int(in.Version)
	e.raw(`,"step":{"kind":`)
	e.string(in.Step.Kind)
	e.raw(`,"mode":`)
	e.string(in.Step.Mode)
	e.raw(`,"dialect":`)
	e.string(in.Step.Dialect)
	e.raw(`,"model":`)
	e.string(in.Step.Model)
	e.raw(`},"destination":{"upstream":`)
	e.string(in.Destination.Upstream)
	e.raw(`,"kind":`)
	e.string(in.Destination.Kind)
	e.raw(`},"caller":{"key":`)
	e.string(in.Caller.Key)
	e.raw(`},"task":{"tainted":`)
	e.bool(in.Task.Tainted)
	e.raw(`,"answer":`)
	e.string(string(in.Task.Answer))
	e.raw(`},"sensitivity":{"score":`)
	e.buf = strconv.AppendFloat(e.buf, in.Sensitivity.Score, 'g', -1, 64)
	e.raw(`,"class":`)
	e.string(in.Sensitivity.Class)
	e.raw(`},"findings":[`)
	for i := range in.Findings {
		e.comma(i)
		e.finding(&in.Findings[i])
	}
	e.raw(`],"opaque":[`)
	for i := range in.Opaque {
		e.comma(i)
		e.opaque(&in.Opaque[i])
	}
	e.raw(`]}`)
	if e.err != nil {
		return nil, errors.New("is not valid JSON") // the error may quote it
	}
	return e.buf, nil
}

func (e *encoder) finding(f *Finding) {
	e.raw(`{"label":`)
	e.string(f.Label)
	e.raw(`,"source":`)
	e.string(f.Source)
	e.raw(`,"field":`)
	e.string(f.Field)
	e.raw(`,"tool":`)
	e.string(f.Tool)
	e.raw(`,"rule":`)
	e.string(f.Rule)
	e.raw(`,"score":`)
	e.buf = strconv.AppendFloat(e.buf, f.Score, 'g', -1, 64)
	e.raw(`,"count":`)
	e.int(f.Count)
	e.raw(`,"direct":`)
	e.bool(f.Direct)
	e.raw(`,"settled":`)
	e.bool(f.Settled)
	e.raw(`,"answer":`)
	e.string(string(f.Answer))
	e.raw(`,"maskable":`)
	e.bool(f.Maskable)
	e.raw(`}`)
}

func (e *encoder) opaque(o *Opaque) {
	e.raw(`{"kind":`)
	e.string(o.Kind)
	e.raw(`,"source":`)
	e.string(o.Source)
	e.raw(`,"count":`)
	e.int(o.Count)
	e.raw(`,"settled":`)
	e.bool(o.Settled)
	e.raw(`,"answer":`)
	e.string(string(o.Answer))
	e.raw(`}`)
}

func (e *encoder) raw(s string) { e.buf = append(e.buf, s...) }
func (e *encoder) int(n int)    { e.buf = strconv.AppendInt(e.buf, int64(n), 10) }
func (e *encoder) bool(b bool)  { e.buf = strconv.AppendBool(e.buf, b) }

func (e *encoder) comma(i int) {
	if i > 0 {
		e.raw(",")
	}
}

func (e *encoder) string(s string) {
	buf, err := jsontext.AppendQuote(e.buf, s)
	if err != nil {
		e.err = err
		return
	}
	e.buf = buf
}
