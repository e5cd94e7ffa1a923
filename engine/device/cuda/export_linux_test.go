//go:build amd64 || arm64

package cuda

import "weir/metalsrc"

// CompileUnit compiles a unit for an architecture with NVRTC alone, and returns
// the machine code with what the assembler said about each kernel.
func CompileUnit(nvrtc string, u metalsrc.Unit, arch int, overlap bool) (image []byte, log string, err error) {
	c, err := loadCompiler(nvrtc, 99)
	if err != nil {
		return nil, "", err
	}
	target, err := c.target(arch)
	if err != nil {
		return nil, "", err
	}
	text, err := Source(u)
	if err != nil {
		return nil, "", err
	}
	return c.build(u.Name, text, append(compileOptions(target, overlap), "--ptxas-options=-v"))
}

// FillCache compiles all units into a folder of compiled units.
func FillCache(nvrtc, dir string, arch int, overlap bool) error {
	c, err := loadCompiler(nvrtc, 99)
	if err != nil {
		return err
	}
	l, err := newLibrary(&Device{o: Options{Cache: dir}, rtc: c, arch: arch, overlap: overlap})
	if err != nil {
		return err
	}
	for _, u := range l.units {
		if _, err := l.image(u); err != nil {
			return err
		}
	}
	return nil
}
