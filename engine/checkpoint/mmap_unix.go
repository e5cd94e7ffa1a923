//go:build unix

package checkpoint

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// mapFile maps a whole file for reading. A file that is cut short by another
// process while it is mapped makes reads fault; the sizes were checked just
// before, and nothing can be promised beyond that without copying 20 GB.
func mapFile(f *os.File, size int64) ([]byte, error) {
	if int64(int(size)) != size {
		return nil, fmt.Errorf("%d bytes do not fit the address space", size)
	}
	return unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
}

func unmap(m []byte) error {
	if m == nil {
		return nil
	}
	return unix.Munmap(m)
}
