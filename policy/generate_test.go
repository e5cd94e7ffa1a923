package policy_test

import (
	"pgregory.net/rapid"

	"weir/policy"
)

// The labels that generated findings have: one of each action, a
// quasi-identifier and one that no setting names.
func genLabel() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{"EMAIL_ADDRESS", "LOCATION", "HEALTH_DATA", "PAYMENT_CARD", "PASSWORD", "STAFF_BADGE"})
}

func genSource() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{"system", "user", "assistant", "tool", "tools", "schema", "metadata", "other"})
}

func genAnswer() *rapid.Generator[policy.Action] {
	return rapid.SampledFrom([]policy.Action{"", "", policy.Allow, policy.Mask, policy.KeepLocal, policy.Refuse})
}

func genFinding() *rapid.Generator[policy.Finding] {
	return rapid.Custom(func(t *rapid.T) policy.Finding {
		return policy.Finding{
			Label:    genLabel().Draw(t, "label"),
			Source:   genSource().Draw(t, "source"),
			Field:    rapid.SampledFrom([]string{"content", "arguments", "number"}).Draw(t, "field"),
			Tool:     rapid.SampledFrom([]string{"", "read_file", "日本\u2028\"<&"}).Draw(t, "tool"),
			Rule:     rapid.SampledFrom([]string{"", "tagger"}).Draw(t, "rule"),
			Score:    float64(rapid.IntRange(1, 100).Draw(t, "score")) / 100,
			Count:    rapid.IntRange(1, 1<<40).Draw(t, "count"),
			Direct:   rapid.Bool().Draw(t, "direct"),
			Settled:  rapid.Bool().Draw(t, "settled"),
			Answer:   genAnswer().Draw(t, "answer"),
			Maskable: rapid.Bool().Draw(t, "maskable"),
		}
	})
}

func genOpaque() *rapid.Generator[policy.Opaque] {
	return rapid.Custom(func(t *rapid.T) policy.Opaque {
		return policy.Opaque{
			Kind:    rapid.SampledFrom([]string{"image", "audio", "file", "encrypted", "unknown", "unexamined"}).Draw(t, "kind"),
			Source:  genSource().Draw(t, "source"),
			Count:   rapid.IntRange(1, 9).Draw(t, "count"),
			Settled: rapid.Bool().Draw(t, "settled"),
			Answer:  genAnswer().Draw(t, "answer"),
		}
	})
}

// genInput draws inputs that hold to the schema.
func genInput() *rapid.Generator[policy.Input] {
	return rapid.Custom(func(t *rapid.T) policy.Input {
		return policy.Input{
			Version: policy.InputVersion,
			Step: policy.Step{
				Kind:    rapid.SampledFrom([]string{"turn", "loop", "side"}).Draw(t, "kind"),
				Mode:    rapid.SampledFrom([]string{"auto", "cloud", "local"}).Draw(t, "mode"),
				Dialect: rapid.SampledFrom([]string{"chat", "responses", "messages", "scan"}).Draw(t, "dialect"),
				Model:   rapid.StringN(0, 20, -1).Draw(t, "model"),
			},
			Destination: policy.Destination{
				Upstream: rapid.SampledFrom([]string{"", "engine", "cloud"}).Draw(t, "upstream"),
				Kind:     rapid.SampledFrom([]string{"cloud", "cloud", "local"}).Draw(t, "destination"),
			},
			Caller: policy.Caller{Key: rapid.SampledFrom([]string{"anonymous", "ci"}).Draw(t, "key")},
			Task: policy.Task{
				Tainted: rapid.Bool().Draw(t, "tainted"),
				Answer:  genAnswer().Draw(t, "task answer"),
			},
			Sensitivity: policy.Sensitivity{
				Score: float64(rapid.IntRange(0, 100).Draw(t, "sensitivity")) / 100,
				Class: rapid.SampledFrom([]string{"none", "none", "personal", "sensitive"}).Draw(t, "class"),
			},
			Findings: rapid.SliceOfN(genFinding(), 0, 6).Draw(t, "findings"),
			Opaque:   rapid.SliceOfN(genOpaque(), 0, 3).Draw(t, "opaque"),
		}
	})
}
