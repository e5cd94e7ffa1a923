// Package metalsrc will hold the Metal kernels of package engine and the one Go
// file that embeds, lists and joins them.
//
// It is a place kept: there is no kernel here yet. When they come, begin at the
// table of kernels. It will promise that the set is closed (each kernel has a
// dispatch, an argument struct mirrored in Go, a plain Go twin and a test that
// holds the two together), that sources are embedded and never read from the
// working directory, and that a compiler's error names the file it means.
// Dispatching them is left to package engine.
package metalsrc
