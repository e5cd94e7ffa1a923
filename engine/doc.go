// Package engine will run one language model on this machine.
//
// It is a place kept, not an implementation: there is no code here yet, and a
// local model is reached as an HTTP server by package weir/router/upstream. When
// it comes, begin at Engine, which is what is loaded, and at Session, which is
// one timeline of tokens.
//
// It will promise that nothing it is given leaves the process, and that the same
// session fed the same tokens gives the same logits on every device, within a
// tolerance stated per kernel. It will know no word of the OpenAI API: package
// weir/router takes it as one more Local upstream, and knows no tensor. It will
// import the standard library, golang.org/x/sys, purego and package metalsrc,
// and nothing else of ours.
package engine
