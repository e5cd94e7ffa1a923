package engine

import "weir/engine/cpu"

// weights are the model's tensors: matrices as views of the mapped files,
// vectors widened to float32.
type weights struct {
	embed cpu.Matrix // [vocab, hidden]
	layer []layer
	norm  []float32  // [hidden]
	head  cpu.Matrix // [vocab, hidden]
}

// layer has a delta rule or attention, never both.
type layer struct {
	inNorm, postNorm []float32 // [hidden]
	delta            *deltaWeights
	attention        *attentionWeights
	moe              moeWeights
}

type deltaWeights struct {
	qkv  cpu.Matrix // [keys+keys+values, hidden]
	z    cpu.Matrix // [values, hidden]
	b, a cpu.Matrix // [valueHeads, hidden]
	out  cpu.Matrix // [hidden, values]

	conv   [convTaps][]float32 // [channels] for each tap, oldest first
	decay  []float32           // [valueHeads]: exp(A_log)
	dtBias []float32           // [valueHeads]
	norm   []float32           // [valueDim]
}

type attentionWeights struct {
	q            cpu.Matrix // [heads*2*headDim, hidden]: of each head the query, then its gate
	k, v         cpu.Matrix // [kvHeads*headDim, hidden]
	out          cpu.Matrix // [hidden, heads*headDim]
	qNorm, kNorm []float32  // [headDim]
}

type moeWeights struct {
	router            cpu.Matrix   // [experts, hidden], 8-bit
	gate, up, down    []cpu.Matrix // one an expert: [width, hidden] twice, [hidden, width]
	sharedGate        cpu.Matrix   // [1, hidden], 8-bit: how much of the shared expert
	sGate, sUp, sDown cpu.Matrix   // the shared expert
}
