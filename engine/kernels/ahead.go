package kernels

import "weir/engine/device"

// Range is memory that a launch to come reads and no launch before it writes.
type Range struct {
	Arg   device.Arg
	Bytes int
}

// Of is a matrix as a range: all of it where its parts lie in one buffer behind one
// another, as its maker can see to, else its codes.
func Of(m Matrix) Range {
	if b := m.Codes.Buf; b == m.Scales.Buf && b == m.Biases.Buf && m.Codes.At < m.Scales.At && m.Scales.At < m.Biases.At {
		if n := m.Biases.End() - m.Codes.At; n < 2*(m.Codes.End()-m.Codes.At) {
			return Range{device.Part(b, m.Codes.At, n), int(n)}
		}
	}
	return Range{m.Codes, int(m.Codes.End() - m.Codes.At)}
}

// Ahead makes a launch ask for ranges, two at most, to be brought into the cache
// of the whole device while it works. Launches that cannot are left as they are.
func Ahead(c device.Command, ranges ...Range) device.Command {
	var bytes [2]uint32
	switch c.Kernel {
	case "tile4_norm", "tile4_add", "tile4_delta_out_add", "moe_in", "experts_gate_up", "experts_down_add", "delta_step":
	default:
		return c
	}
	n := len(c.Args)
	for i, r := range ranges {
		if r.Bytes == 0 {
			continue
		}
		c.Args[n-3+i], bytes[i] = r.Arg, uint32(r.Bytes)&^15
	}
	c.Args[n-1] = device.Value(bytes)
	return c
}

// nothingAhead completes the arguments of a launch that can ask ahead.
func nothingAhead(c device.Command) device.Command {
	var any device.Arg // nothing is read of it
	for _, a := range c.Args {
		if any.Buf == nil {
			any = a
		}
	}
	c.Args = append(c.Args, any, any, device.Value([2]uint32{}))
	return c
}
