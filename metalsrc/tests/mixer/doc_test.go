// Package mixer_test holds the kernels of attention and of the delta rule over many rows against references in plain Go, on every
// device there is.
package mixer_test
