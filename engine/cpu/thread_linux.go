package cpu

import "golang.org/x/sys/unix"

// available lists the cores this process may use.
func available() []int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return []int{0}
	}
	var cores []int
	for c := range len(set) * 64 {
		if set.IsSet(c) {
			cores = append(cores, c)
		}
	}
	return cores
}

// pin keeps the calling thread on one core. Where the system refuses, the
// thread runs anywhere: slower, not wrong.
func pin(core int) {
	var set unix.CPUSet
	set.Set(core)
	_ = unix.SchedSetaffinity(0, &set)
}
