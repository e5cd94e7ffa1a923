// Package gpu runs the model on a device: it places the weights, keeps the
// states, and records what a decode step and a chunk of a prompt launch.
//
// Begin at [Load] and [Model.Extend]. decode.go is a step as a page, in model
// order, prefill.go a chunk.
//
// A decode step is one constant stream: position and token live on the device
// and are moved on by its last launch, so that it is recorded once for a range
// of lengths and played again and again, the next step started before this one
// has been looked at.
//
// Left to others: the kernels (metalsrc) and their launches (kernels), what
// must wait for what (device), files (checkpoint), choosing tokens by more
// than their logits, and what to do about a lost device (engine).
package gpu
