package checkpoint_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"weir/engine/checkpoint"
)

func pinned(t *testing.T, name string) checkpoint.PinnedFile {
	t.Helper()
	for _, f := range checkpoint.Pinned().Files {
		if f.Name == name {
			return f
		}
	}
	t.Fatalf("%s is not pinned", name)
	return checkpoint.PinnedFile{}
}

func wantDigest(t *testing.T, raw []byte, name string) {
	t.Helper()
	sum := sha256.Sum256(raw)
	want := pinned(t, name)
	if int64(len(raw)) != want.Size || hex.EncodeToString(sum[:]) != want.SHA256 {
		t.Errorf("%s has %d bytes and SHA-256 %x, the published one %d and %s", name, len(raw), sum, want.Size, want.SHA256)
	}
}

// The configuration of the published revision, to the byte, must be accepted
// without flags and read as Full.
func TestPinnedConfig(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/pinned/config.json")
	if err != nil {
		t.Fatal(err)
	}
	wantDigest(t, raw, "config.json")
	c, err := checkpoint.ReadConfig("testdata/pinned", false)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(checkpoint.Full(), c); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// The published index lists every tensor with its shard. Made from our layout
// and the sizes of its tensors, it must come out to the byte: the digest
// proves all 1,757 names, their order and their sizes.
func TestPinnedIndex(t *testing.T) {
	t.Parallel()
	const vision, limit = 893_142_496, 5 << 30
	files := map[string]string{}
	shard, size, language, total := 1, int64(vision), 0, int64(vision)
	name := func() string { return fmt.Sprintf("model-%05d-of-00004.safetensors", shard) }
	for _, tensor := range visionTensors() {
		files[tensor] = name()
	}
	for s := range checkpoint.Full().Tensors() {
		n := int64(s.DType.Size())
		for _, d := range s.Shape {
			n *= int64(d)
		}
		if size+n > limit {
			shard, size = shard+1, 0
		}
		files[s.Name] = name()
		size, total, language = size+n, total+n, language+1
	}
	if language != 1757 || len(files) != 2090 || shard != 4 {
		t.Errorf("%d language tensors, %d in all, in %d shards", language, len(files), shard)
	}
	raw, err := json.Marshal(struct {
		Metadata map[string]int64  `json:"metadata"`
		Files    map[string]string `json:"weight_map"`
	}{map[string]int64{"total_size": total}, files}, json.Deterministic(true), jsontext.WithIndent("    "))
	if err != nil {
		t.Fatal(err)
	}
	wantDigest(t, raw, "model.safetensors.index.json")
}

// visionTensors lists the names of the vision tower, which are in the index
// although we skip them.
func visionTensors() []string {
	list := []string{"vision_tower.pos_embed.weight"}
	both := func(name string) { list = append(list, name+".weight", name+".bias") }
	for i := range 27 {
		for _, part := range strings.Fields("attn.proj attn.qkv mlp.linear_fc1 mlp.linear_fc2 norm1 norm2") {
			both(fmt.Sprintf("vision_tower.blocks.%d.%s", i, part))
		}
	}
	for _, part := range strings.Fields("merger.linear_fc1 merger.linear_fc2 merger.norm patch_embed.proj") {
		both("vision_tower." + part)
	}
	return list
}

func TestPinnedSizes(t *testing.T) {
	t.Parallel()
	var sum int64
	for _, f := range checkpoint.Pinned().Files {
		if len(f.SHA256) != 64 || strings.Trim(f.SHA256, "0123456789abcdef") != "" {
			t.Errorf("%s has no SHA-256", f.Name)
		}
		sum += f.Size
	}
	if sum != checkpoint.Pinned().Bytes() {
		t.Errorf("the sizes add up to %d, not %d", sum, checkpoint.Pinned().Bytes())
	}
}
