package checkpoint_test

import (
	"errors"
	"fmt"

	"weir/engine/checkpoint"
)

func ExampleOpen() {
	c, err := checkpoint.Open("testdata/tiny-a", checkpoint.Options{AnyDimensions: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	m, _ := c.Matrix("language_model.lm_head")
	row := make([]float32, m.Cols)
	checkpoint.Dequantize(row, m.Codes[:m.Cols*m.Bits/8], m.Scales[:m.Cols/checkpoint.GroupSize*2], m.Biases[:m.Cols/checkpoint.GroupSize*2], m.Bits)
	fmt.Println(c.Config().NumLayers(), "layers;", m.Rows, "x", m.Cols, "of", m.Bits, "bits")
	// Output: 4 layers; 512 x 128 of 4 bits
}

// A checkpoint that is not the right one is described in full.
func ExampleProblems() {
	_, err := checkpoint.Open("testdata/tiny-a", checkpoint.Options{})
	var p *checkpoint.Problems
	if errors.As(err, &p) {
		fmt.Println(p.List[0])
		fmt.Println(p.List[1])
	}
	// Output:
	// it is another model of the Qwen3.5 mixture-of-experts family, or a part of one: 4 layers of width 128 with 8 experts
	// config.json: hidden_size is 128, Qwen3.6-35B-A3B has 2048
}
