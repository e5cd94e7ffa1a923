package cpu

// Delta is one step of the gated delta rule on one head. s is the state, a row
// of len(v) values for each of the len(k) keys; k and q are normalised and q is
// scaled:
//
//	s = decay*s;  d = beta*(v - k·s);  s = s + k⊗d;  out = q·s
//
// The state is read twice and written once. For 128 keys and values that is 64
// KiB, which stays in the second-level cache over the steps of a chunk.
func (k Kernels) Delta(out, s, key, q, v []float32, decay, beta float32) {
	if k.hasDelta(len(v)) {
		k.delta(out, s, key, q, v, decay, beta)
		return
	}
	deltaPlain(out, s, key, q, v, decay, beta)
}

func deltaPlain(out, s, key, q, v []float32, decay, beta float32) {
	n := len(v)
	clear(out)
	for i, ki := range key { // out holds k·s first
		for j, x := range s[i*n : (i+1)*n] {
			out[j] = fma(ki, x, out[j])
		}
	}
	for j := range out { // then d
		out[j] = (v[j] - decay*out[j]) * beta
	}
	for i, ki := range key {
		for j, x := range s[i*n : (i+1)*n] {
			s[i*n+j] = fma(ki, out[j], decay*x)
		}
	}
	clear(out)
	for i, qi := range q {
		for j, x := range s[i*n : (i+1)*n] {
			out[j] = fma(qi, x, out[j])
		}
	}
}
