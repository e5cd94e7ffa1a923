// Package engine runs one model completely: Qwen3.6-35B-A3B, a mixture of
// experts whose layers mix tokens by a gated delta rule or by gated attention.
//
// Begin at [Open], which maps a checkpoint, and [Engine.Generate]. forward.go
// is the pass as a page, in model order. [Session] is one timeline: the state
// after a row of tokens, which can be extended and never taken back.
//
// Promises: the same tokens give the same logits to the last bit, however they
// were cut into calls, whatever the number of threads, and whether a part of
// them came out of the prefix cache. A cancelled call returns within one layer
// of a step. Nothing is allocated for a decoded token but its share of the
// key-value cache.
//
// Left to others: arithmetic (package cpu), files (package checkpoint), text
// (package tokenizer), queues and the chat interface (package local).
package engine
