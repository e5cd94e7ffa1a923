package tokenizer

type Prompt struct{ pieces []piece }
type piece struct {
	text   string
	markup bool
}
