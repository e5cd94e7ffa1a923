package tagger

import (
	"strings"
	"testing"

	"weir/pii"
)

func BenchmarkClassify(b *testing.B) {
	tg, err := Load()
	if err != nil {
		b.Fatal(err)
	}
	for _, bb := range []struct{ name, text string }{
		{"prose2k", strings.Repeat("The committee met on a rainy afternoon to weigh two plans for the old harbour; neither side had read the whole report, and the talk went on until the lamps were lit. ", 13)[:2048]},
		{"mixed1k", strings.Repeat("Please reply to Ines Halvorsen <ines.halvorsen@lumen.example>, phone +44 20 7946 0958, who lives at 12 Mill Lane, Leeds. ", 9)[:1024]},
		{"code2k", strings.Repeat("for i := range rows { sum += weights[i] * float64(values[i].Count()) }\n", 30)[:2048]},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.SetBytes(int64(len(bb.text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := tg.Classify(b.Context(), pii.Text{Value: bb.text}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
