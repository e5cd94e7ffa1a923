// Package checkpoint reads, checks, fetches and makes the weights of the one
// model that the engine runs: Qwen3.6-35B-A3B in MLX's affine 4-bit layout.
//
// Begin at [Open]. It maps the shards, holds everything they say against
// [Config.Tensors] and returns a [Checkpoint] only when all of it agrees:
//
//	c, err := checkpoint.Open(dir, checkpoint.Options{})
//	cfg := c.Config()                     // dimensions, layer kinds, stop ids
//	t, ok := c.Tensor("language_model.model.norm.weight")
//	                                      // Tensor{DType, Shape, Data []byte}
//	m, ok := c.Matrix("language_model.lm_head")
//	                                      // Matrix{Rows, Cols, Bits, Codes, Scales, Biases}
//	defer c.Close()                       // Data is part of the mapping: not valid afterwards
//
// It promises that a checkpoint which opens has exactly the tensors, shapes,
// types and bits of its configuration, each backed by bytes that are in the
// file; that a checkpoint which does not open is described completely in one
// error (see [Problems]), or named for what it is when it is another format
// (see [FormatError]); and that [Pull] leaves only files whose SHA-256 is the
// pinned one.
//
// Data is little-endian and not aligned: MLX writes its header without
// padding, so a tensor may begin at any byte, and the three parts of a
// quantized matrix may lie in different shards. Read it by bytes
// ([Tensor.Float32s], encoding/binary, unaligned vector loads), never by
// casting it to a wider slice.
//
// The other parts: [OpenFile] reads any safetensors file, [Verify] compares a
// folder with the pinned revision, [Synth] writes a checkpoint with random
// weights, [Quantize] and [Dequantize] are the affine format. What the weights
// mean is left to package weir/engine, text to weir/engine/tokenizer.
package checkpoint
