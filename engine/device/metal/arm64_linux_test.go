package metal_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// All tests of this package again, on an emulated arm64: its calling convention
// is the Mac's, with structs by value and the loop in assembly. Only CI must
// have what this needs.
func TestOnARM64(t *testing.T) {
	if runtime.GOARCH == "arm64" {
		t.Skip("this is arm64")
	}
	if testing.Short() {
		t.Skip("builds a test binary")
	}
	const cc, qemu = "aarch64-linux-gnu-gcc", "qemu-aarch64-static"
	for _, tool := range []string{cc, qemu} {
		if _, err := exec.LookPath(tool); err != nil {
			if os.Getenv("CI") != "" {
				t.Fatal(err)
			}
			t.Skip(err)
		}
	}
	dir := t.TempDir()
	so, bin := filepath.Join(dir, "fake.so"), filepath.Join(dir, "metal.test")
	if err := compileFake(cc, so); err != nil {
		t.Fatal(err)
	}
	run := func(env []string, name string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Env = append(os.Environ(), env...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	run([]string{"GOARCH=arm64", "CGO_ENABLED=0"}, "go", "test", "-c", "-o", bin, ".")
	run([]string{"WEIR_FAKE_METAL=" + so}, qemu, "-L", "/usr/aarch64-linux-gnu", bin, "-test.short")
}
