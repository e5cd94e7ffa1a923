//go:build !linux

package cpu

import "runtime"

// available numbers the cores; outside Linux there is no asking for them.
func available() []int {
	cores := make([]int, runtime.NumCPU())
	for i := range cores {
		cores[i] = i
	}
	return cores
}

// pin does nothing: the system places threads.
func pin(int) {}
