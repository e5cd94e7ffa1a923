// Package metal is a device that plays streams on the GPU of a Mac with Apple
// silicon, through Metal, without cgo.
//
// Begin at [Open]; [Probe] is what to run first on a machine that is new. A
// program is recorded once as a list of message sends to a command encoder, so
// that playing it again costs a command buffer, one crossing into C, and what
// Metal itself does with the sends. Kernels are compiled from their text when a
// program needs them, before it is ready.
//
// It promises that a run's end is looked at: a command buffer that failed is an
// error, of the kinds of package device. It relies on Metal's own tracking of
// hazards between command buffers, and on package device's barriers within one.
//
// All that speaks to Metal goes through a table of a few functions (type
// objects), so that tests on other machines put a stand-in in its place, with
// the real calling convention. Only opening is for darwin/arm64 alone.
package metal
