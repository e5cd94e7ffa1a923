// Package decode_test holds the kernels of a decode step against references in plain Go, on every
// device there is.
package decode_test
