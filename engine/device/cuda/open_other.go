//go:build !linux || !(amd64 || arm64)

package cuda

import (
	"errors"

	"weir/engine/device"
)

// Open says that there is no CUDA here.
func Open(Options) (device.Device, error) {
	return nil, errors.New("CUDA devices are supported on Linux, on amd64 and arm64")
}
