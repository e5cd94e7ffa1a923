package tagger

import "math"

// The tags: 0 is outside; label id l has B, I, E, S at 1+4(l-1).
const (
	numLabels = 37
	numTags   = 1 + 4*numLabels

	tagB, tagI, tagE, tagS = 0, 1, 2, 3
)

// maxSegment bounds the tokens that are decoded together. A segment ends at a
// token that is surely outside, which the network gives every few tokens; in
// text without any, it is cut.
const maxSegment = 256

// found is a span of tokens [from,to] with a label and its probability.
type found struct {
	from, to int
	label    int     // id
	prob     float64 // of the label, the mean over the tokens
	inside   float64 // of any label, likewise
}

// decoder finds the best sequence of tags that is well formed.
type decoder struct {
	back  []int16   // for each token and state, the state before
	score []float32 // of the states at the last token
	next  []float32
}

// The states of decoding after a token: outside any span, or within one of a
// label.
const numStates = 1 + numLabels

// clearly is how far the output for being outside must lie above all others for
// the token to need no exact look: together they have less than a hundredth of
// its probability.
const clearly = 10

// logSoftmax turns a row of outputs into log-probabilities. For a token that is
// clearly outside it sets only the first, to 0.
func logSoftmax(row []float32) {
	top := float32(math.Inf(-1))
	for _, v := range row[1:] {
		top = max(top, v)
	}
	if row[0]-top > clearly {
		row[0] = 0
		return
	}
	top = max(top, row[0])
	sum := 0.0
	for _, v := range row {
		if d := v - top; d > -16 {
			sum += math.Exp(float64(d))
		}
	}
	shift := top + float32(math.Log(sum))
	for i := range row {
		row[i] -= shift
	}
}

// segment decodes n tokens whose log-probabilities are rows of p, stride apart,
// and appends its spans. bias is added to the tags of each label. Token numbers
// begin at at.
func (d *decoder) segment(p []float32, stride, n, at int, bias *[numLabels]float32, out []found) []found {
	d.back = growInts(d.back, n*numStates)
	d.score, d.next = grow(d.score, numStates), grow(d.next, numStates)
	const never = float32(-1e30)
	for s := range d.score {
		d.score[s] = never
	}
	d.score[0] = 0
	for i := range n {
		row := p[i*stride : i*stride+numTags]
		back := d.back[i*numStates : (i+1)*numStates]
		// Outside after this token: it was O, or the whole of a span, or its end.
		best, from := d.score[0]+row[0], int16(0)
		for l := range numLabels {
			tags := row[1+4*l : 5+4*l]
			if v := d.score[0] + tags[tagS] + bias[l]; v > best {
				best, from = v, int16(-1-l)
			}
			if v := d.score[1+l] + tags[tagE] + bias[l]; v > best {
				best, from = v, int16(1+l)
			}
			// Within a span after this token: begun here, or gone on.
			begun, on := d.score[0]+tags[tagB]+bias[l], d.score[1+l]+tags[tagI]+bias[l]
			if on > begun {
				d.next[1+l], back[1+l] = on, int16(1+l)
			} else {
				d.next[1+l], back[1+l] = begun, 0
			}
		}
		d.next[0], back[0] = best, from
		d.score, d.next = d.next, d.score
	}
	return d.trace(p, stride, n, at, out)
}

// trace reads the best way back. A segment ends outside of spans.
func (d *decoder) trace(p []float32, stride, n, at int, out []found) []found {
	first := len(out)
	for i := n - 1; i >= 0; i-- {
		from := d.back[i*numStates]
		switch {
		case from == 0:
			continue
		case from < 0:
			l := int(-from - 1)
			out = append(out, found{at + i, at + i, l + 1, prob(p, stride, i, i, l), inside(p, stride, i, i)})
			continue
		}
		l, end := int(from-1), i
		for i--; i > 0 && d.back[i*numStates+1+l] != 0; i-- {
		}
		out = append(out, found{at + i, at + end, l + 1, prob(p, stride, i, end, l), inside(p, stride, i, end)})
	}
	for i, j := first, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return out
}

// prob is the mean over a span's tokens of the probability that the token
// belongs to something of the label.
func prob(p []float32, stride, from, to, label int) float64 {
	sum := 0.0
	for i := from; i <= to; i++ {
		for _, v := range p[i*stride+1+4*label : i*stride+5+4*label] {
			sum += math.Exp(float64(v))
		}
	}
	return sum / float64(to-from+1)
}

// inside is the mean over a span's tokens of the probability that the token
// belongs to anything.
func inside(p []float32, stride, from, to int) float64 {
	sum := 0.0
	for i := from; i <= to; i++ {
		sum += 1 - math.Exp(float64(p[i*stride]))
	}
	return sum / float64(to-from+1)
}

func growInts(s []int16, n int) []int16 {
	if cap(s) < n {
		return make([]int16, n)
	}
	return s[:n]
}

// sure is the probability of being outside at which a segment may end.
const sure = -0.05
