package mask_test

import (
	"fmt"

	"weir/pii"
	"weir/pii/mask"
)

// A text goes out masked, and the reply comes back in pieces.
func Example() {
	book := mask.NewBook([32]byte{ /* the task's key */ }, nil)
	text := "Write to Jane Doe."
	spans := []pii.Span{{Start: 9, End: 17, Label: pii.PersonName}}
	masked, entries, err := book.Mask(text, spans, nil, mask.Taken(text))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(entries), masked != text)

	reply := book.Restorer().Stream(mask.Plain)
	token := entries[0].Token
	fmt.Print(reply.Write("Dear "+token[:9]), reply.Write(token[9:]+", hello"), reply.Flush())
	// Output:
	// 1 true
	// Dear Jane Doe, hello
}
