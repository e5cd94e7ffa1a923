package gpu

import (
	"weir/engine/checkpoint"
	"weir/engine/device"
)

// columns are where in a row of the joined projection before a mixer its parts
// begin, counted in numbers.
type columns struct {
	z, b, a int // of a delta layer; queries, keys and values are at 0
	k, v    int // of an attention layer; queries and gates are at 0
	width   int
}

func deltaColumns(c checkpoint.Config) columns {
	var at columns
	at.z = roundUp(c.ConvChannels(), rowUnit)
	at.b = at.z + roundUp(c.LinearValueHeads*c.LinearValueDim, rowUnit)
	at.a = at.b + roundUp(c.LinearValueHeads, rowUnit)
	at.width = at.a + roundUp(c.LinearValueHeads, rowUnit)
	return at
}

func attentionColumns(c checkpoint.Config) columns {
	var at columns
	at.k = roundUp(2*c.NumHeads*c.HeadDim, rowUnit)
	at.v = at.k + roundUp(c.NumKVHeads*c.HeadDim, rowUnit)
	at.width = at.v + roundUp(c.NumKVHeads*c.HeadDim, rowUnit)
	return at
}

// numbers is n numbers of a buffer from number at, size bytes each.
func numbers(b device.Buffer, at, n, size int) device.Arg {
	return device.Part(b, int64(at)*int64(size), int64(n)*int64(size))
}
