package kernels

import "weir/engine/device"

// Sampling is what a draw obeys, as the device has it: the host writes it
// before a run. TopK 0, TopP 0 or 1 and MinP 0 keep all tokens; a temperature
// below 1e-4 is greedy.
type Sampling struct {
	Temperature, TopP, MinP float32
	TopK                    uint32
	SeedLow, SeedHigh       uint32
}

// SamplingBytes is the size of a [Sampling].
const SamplingBytes = 24

// Words of the histograms of [Sample].
const (
	sampleHist = 2 * 2560
	sampleFine = 4 * 1024
	// SampleWords is how many 32-bit words of scratch Sample needs.
	SampleWords = sampleHist + sampleFine
)

type sampleArgs struct{ N, Groups uint32 }

// Sample ends a step as [ArgmaxFinal] does, with a token drawn at random: of
// those that top-k, then top-p, then min-p leave, by their weights at the
// temperature. best [groups] is of [HeadArgmax]; draws holds as many
// candidates, scratch SampleWords words at a multiple of 16 bytes. The draw
// depends on nothing but logits, the settings and the step's position.
func Sample(logits, best, how, step, ring, scratch, draws device.Arg, n, groups int) []device.Command {
	hist := device.Part(scratch.Buf, scratch.At, 4*sampleHist)
	fine := device.Part(scratch.Buf, scratch.At+4*sampleHist, 4*sampleFine)
	args := device.Value(sampleArgs{uint32(n), uint32(groups)})
	shares := min(groups, 128) // each writes a histogram
	over := func(kernel string, args ...device.Arg) device.Command {
		return device.Command{Kernel: kernel, Groups: [3]int{shares, 1, 1}, Threads: threads(256), Args: args}
	}
	return []device.Command{
		ZeroWords(device.Part(scratch.Buf, scratch.At, 4*SampleWords), SampleWords),
		over("sample_mass", logits, best, how, hist, args),
		over("sample_split", logits, best, how, hist, fine, args),
		over("sample_draw", logits, best, how, hist, fine, step, draws, args),
		ArgmaxFinal(draws, step, ring, shares),
	}
}
