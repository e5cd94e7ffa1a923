package policy_test

import (
	"testing"

	"weir/policy"
)

// BenchmarkDecide measures the two cases that matter: the input that was seen
// before, and the one that was not.
func BenchmarkDecide(b *testing.B) {
	p, err := policy.Load(b.Context(), policy.Options{})
	if err != nil {
		b.Fatal(err)
	}
	clean := request()
	mixed := request(
		finding("EMAIL_ADDRESS", "user"), finding("PERSON_NAME", "user"), finding("IBAN", "tool"),
		finding("PERSON_NAME", "assistant"), finding("PHONE_NUMBER", "tool"), finding("LOCATION", "user"),
	)
	large := request()
	for i := range 200 {
		f := finding("EMAIL_ADDRESS", "tool")
		f.Count = i + 1
		large.Findings = append(large.Findings, f)
	}
	for name, in := range map[string]policy.Input{"clean": clean, "mixed": mixed, "large": large} {
		b.Run(name+"/cached", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.Decide(b.Context(), in); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/uncached", func(b *testing.B) {
			b.ReportAllocs()
			n := 0
			in := in
			in.Findings = append([]policy.Finding{finding("USERNAME", "other")}, in.Findings...)
			for b.Loop() {
				n++
				in.Findings[0].Count = n // another input each time
				if _, err := p.Decide(b.Context(), in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
