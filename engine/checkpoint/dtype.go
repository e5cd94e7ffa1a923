package checkpoint

// DType is the type of a tensor's elements, by its safetensors name.
type DType string

// The types that occur in the layout this engine accepts, and those that its
// tests and references use.
const (
	BF16 DType = "BF16"
	U32  DType = "U32"
	F32  DType = "F32"
	I32  DType = "I32"
)

// Size returns the bytes of one element, or 0 for a type that is not known.
func (d DType) Size() int {
	switch d {
	case "BOOL", "U8", "I8", "F8_E4M3", "F8_E5M2", "F8_E8M0":
		return 1
	case "U16", "I16", "F16", BF16:
		return 2
	case U32, I32, F32:
		return 4
	case "U64", "I64", "F64":
		return 8
	}
	return 0
}
