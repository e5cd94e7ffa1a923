//go:build unix

package checkpoint

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// lockDir keeps a second pull out of a folder. The lock is on the folder
// itself: nothing is left behind, and it ends with the process.
func lockDir(dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("another download is working in %s", dir)
	}
	return func() { f.Close() }, nil
}

// checkSpace reports a disk that is too small before it is filled. One whose
// free space cannot be told is tried.
func checkSpace(dir string, need int64) error {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return nil
	}
	return enough(int64(st.Bavail)*int64(st.Bsize), need, dir)
}

func enough(free, need int64, dir string) error {
	if free >= need {
		return nil
	}
	return fmt.Errorf("%s has %.1f GB free, %.1f GB are still to be fetched: make room, or choose another folder",
		dir, float64(free)/1e9, float64(need)/1e9)
}
