package policy

// InputVersion is the version of the input document that this package writes.
const InputVersion = 1

// Input is the document that a policy sees. It holds labels, places and counts,
// never a value and never text of the conversation.
type Input struct {
	// Version is [InputVersion].
	Version     int         `json:"version"`
	Step        Step        `json:"step"`
	Destination Destination `json:"destination"`
	Caller      Caller      `json:"caller"`
	Task        Task        `json:"task"`
	// Sensitivity is that of all findings together.
	Sensitivity Sensitivity `json:"sensitivity"`
	// Findings is what was found, see [Aggregate].
	Findings []Finding `json:"findings"`
	// Opaque is what could not be examined.
	Opaque []Opaque `json:"opaque"`
}

// Step is the model call to be decided.
type Step struct {
	// Kind is "turn", "loop" (a request that ends in tool results) or "side"
	// (titles, tags, token counts).
	Kind string `json:"kind"`
	// Mode is what the client asked for: "auto", "cloud" or "local".
	Mode string `json:"mode"`
	// Dialect is "chat", "responses", "messages" or "scan".
	Dialect string `json:"dialect"`
	// Model is the model name that the client gave.
	Model string `json:"model"`
}

// Destination is where the step would go.
type Destination struct {
	// Upstream is the configured name.
	Upstream string `json:"upstream"`
	// Kind is "cloud" or "local".
	Kind string `json:"kind"`
}

// Caller is the client.
type Caller struct {
	// Key is the name of the client's key, never the key itself; "anonymous"
	// if it has none.
	Key string `json:"key"`
}

// Task is what is known of the task that the step belongs to.
type Task struct {
	// Tainted says that the step holds text which a local model derived from
	// content that was kept on the device.
	Tainted bool `json:"tainted"`
	// Answer is the action that the user chose when asked about the step as a
	// whole, or empty.
	Answer Action `json:"answer"`
}

// Sensitivity is how private the conversation is as a whole.
type Sensitivity struct {
	// Score is in [0,1].
	Score float64 `json:"score"`
	// Class is "none", "personal" or "sensitive".
	Class string `json:"class"`
}

// Finding is one or more findings that differ in nothing a policy may ask.
type Finding struct {
	// Label names the type of value, as "EMAIL_ADDRESS": upper-case letters,
	// digits and underscores.
	Label string `json:"label"`
	// Source is whose text it stands in: "system", "user", "assistant",
	// "tool" (a tool's result), "tools" (a tool's definition), "schema" (a
	// response format), "metadata" or "other".
	Source string `json:"source"`
	// Field is the kind of place in one lower-case word, as "content",
	// "arguments", "name", "description", "key" or "number".
	Field string `json:"field"`
	// Tool is the tool whose definition, arguments or result it is, or empty.
	Tool string `json:"tool"`
	// Rule names the recognizer, as "iban" or "tagger", or is empty.
	Rule string `json:"rule"`
	// Score is the greatest confidence among them, in (0,1].
	Score float64 `json:"score"`
	// Count is how many there are, at least 1.
	Count int `json:"count"`
	// Direct says that the value identifies a person by itself.
	Direct bool `json:"direct"`
	// Settled says that it stands in a turn that was already decided in an
	// earlier step of the task.
	Settled bool `json:"settled"`
	// Answer is the action that the user chose for it when asked, or empty.
	Answer Action `json:"answer"`
	// Maskable says that a placeholder can stand in its place.
	Maskable bool `json:"maskable"`
}

// Opaque is content that cannot be examined.
type Opaque struct {
	// Kind is "image", "audio", "file", "encrypted", "unknown" (a part of a
	// type that Weir does not know) or "unexamined" (text that could not be
	// examined within its budget).
	Kind string `json:"kind"`
	// Source is as in [Finding].
	Source string `json:"source"`
	// Count is how many there are, at least 1.
	Count int `json:"count"`
	// Settled is as in [Finding].
	Settled bool `json:"settled"`
	// Answer is as in [Finding].
	Answer Action `json:"answer"`
}
