// Package cpu is the arithmetic of the engine on an ordinary processor: products
// of 4-bit and 8-bit affine matrices with activation vectors, the gated delta
// rule, softmax attention, norms, and the pool of threads they share.
//
// Begin at [Matrix] and [Input], whose product [Kernels.Mul] is nine tenths of
// the work, then [Pool], whose workers all run the same function and meet at
// [Worker.Sync].
//
// Promises: weights are read where they lie, at any alignment, never copied.
// A vector's result does not depend on which other vectors share its batch nor
// on how many workers there are, to the last bit: a prompt may be cut anywhere.
// Every vector kernel has a plain Go twin that tests hold it to. Nothing here
// allocates once a model is loaded.
//
// Left to others: what is computed, in which order (package engine), and where
// weights come from (package checkpoint).
package cpu
