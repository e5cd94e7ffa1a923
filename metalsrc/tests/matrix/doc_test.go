// Package matrix_test holds the kernels of matrix products, routing and experts against references in plain Go, on every
// device there is.
package matrix_test
