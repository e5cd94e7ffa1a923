// Package tokenizer turns text into the ids of Qwen3.6's vocabulary and back,
// writes a conversation in the model's chat form, and reads its replies.
//
// Begin at [Load], which reads tokenizer.json:
//
//	t, err := tokenizer.Load(raw)
//	prompt, err := tokenizer.Chat{Messages: msgs}.Render() // the chat template
//	ids := t.AppendPrompt(nil, prompt)
//	d := t.NewDecoder()                        // ids back to text, as they come
//	r := t.NewReply(tokenizer.ReplyOptions{})  // or to reasoning, content, tool calls
//
// It promises that text from users never becomes a control token: a
// "<|im_end|>" in a message is tokenized as the letters it consists of
// ([Tokenizer.Append]), and only the chat template's own markup has control
// tokens; that decoding what was encoded gives the text in NFC, byte for byte;
// and that streamed text is cut between characters, and its pieces together
// are what decoding everything at once gives.
//
// A Tokenizer does not change after Load and is safe for concurrent use; a
// Decoder or a Reply belongs to one reply. Sampling, stop strings and the
// OpenAI wire are left to others.
package tokenizer
