//go:build amd64 || arm64

package cuda

import "weir/metalsrc"

// CompileUnit compiles a unit for an architecture with NVRTC alone, and returns
// the machine code with what the assembler said about each kernel.
func CompileUnit(nvrtc string, u metalsrc.Unit, arch int, overlap bool) (image []byte, log string, err error) {
	text, err := Source(u)
	if err != nil {
		return nil, "", err
	}
	return compileAlone(nvrtc, u.Name, text, arch, overlap)
}

// CompileOwn compiles the kernels that measure a GPU.
func CompileOwn(nvrtc string, arch int) (log string, err error) {
	_, log, err = compileAlone(nvrtc, "measure", ownSource, arch, false)
	return log, err
}

func compileAlone(nvrtc, name, text string, arch int, overlap bool) ([]byte, string, error) {
	c, err := loadCompiler(nvrtc, 99)
	if err != nil {
		return nil, "", err
	}
	target, err := c.target(arch)
	if err != nil {
		return nil, "", err
	}
	return c.build(name, text, append(compileOptions(target, overlap), "--ptxas-options=-v"))
}

// FillCache compiles all kernels of units into a folder of compiled kernels.
func FillCache(nvrtc, dir string, units []metalsrc.Unit, arch int, overlap bool) error {
	c, err := loadCompiler(nvrtc, 99)
	if err != nil {
		return err
	}
	l, err := newLibrary(&Device{o: Options{Cache: dir, Units: units}, rtc: c, arch: arch})
	if err != nil {
		return err
	}
	for name := range l.units {
		if _, err := l.image(name, overlap); err != nil {
			return err
		}
	}
	return nil
}
