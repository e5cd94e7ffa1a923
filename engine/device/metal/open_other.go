//go:build !(darwin && arm64)

package metal

import (
	"fmt"
	"runtime"

	"weir/engine/device"
)

// Open says why there is no Metal here.
func Open(Options) (device.Device, error) { return nil, notHere() }

// Probe says why there is no Metal here.
func Probe(Options) Report { return Report{Err: notHere()} }

func notHere() error {
	return fmt.Errorf("open Metal: it is on Macs with Apple silicon, this is %s/%s", runtime.GOOS, runtime.GOARCH)
}
