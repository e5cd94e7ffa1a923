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
	return c.build(u.Name, Source(u), append(compileOptions(target, overlap), "--ptxas-options=-v"))
}
