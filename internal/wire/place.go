package wire

import "strings"

// region is what a container (object or array) is for.
type region uint8

const (
	inOther region = iota
	inRoot
	inMessages
	inMessage
	inParts // the array of content parts
	inPart
	inPartBody // an object within a part: image_url, input_audio, file
	inToolCalls
	inToolCall
	inFunction // the function of a tool call
	inTools
	inSchema
	inMetadata
)

type room struct {
	region  region
	source  Source
	message int
	tool    string
	opaque  bool // within a part that cannot be read
}

// placer works out the place of every leaf from the containers around it.
type placer struct {
	chat  *Chat
	rooms []room
	// What the leaves of a message or part say about their whole.
	roles     []string
	callNames map[string]string // tool call id -> function name
	resultOf  []string          // message -> tool call id
	partTypes map[int32]string
	parts     []span // of the body, in order
}

func newPlacer(c *Chat, parts []span) *placer {
	return &placer{
		chat: c, parts: parts, callNames: map[string]string{}, partTypes: map[int32]string{},
		roles: make([]string, len(c.Messages)), resultOf: make([]string, len(c.Messages)),
	}
}

func (p *placer) place() {
	d := p.chat.Doc
	p.rooms = make([]room, len(d.containers))
	for i := range d.containers {
		p.rooms[i] = p.roomOf(int32(i))
	}
	p.gather()
	p.attribute()
	p.chat.Places = make([]Place, len(d.leaves))
	for i := range d.leaves {
		p.chat.Places[i] = p.placeOf(int32(i))
	}
	for i := range p.chat.Messages {
		p.chat.Messages[i].Role = p.roles[i]
	}
	digestMessages(p.chat)
}

// roomOf derives a container's room from its parent's, which comes before it.
func (p *placer) roomOf(i int32) room {
	c := p.chat.containers[i]
	if c.parent < 0 {
		if c.doc == 0 {
			return room{region: inRoot, source: FromOther, message: -1}
		}
		// A document inside a string stands where the string stands.
		host := p.chat.inner[c.doc-1].host
		if host.parent < 0 {
			return room{region: inOther, source: FromOther, message: -1}
		}
		r := p.rooms[host.parent]
		if r.region == inRoot {
			r.source = topSource(host.Key)
		}
		r.region = inOther
		return r
	}
	r := p.rooms[c.parent]
	switch r.region {
	case inRoot:
		r.region, r.source = topRegion(c.name), topSource(c.name)
	case inMessages:
		r.region, r.message = inMessage, int(c.index)
	case inMessage:
		switch c.name {
		case "content":
			r.region = inParts
		case "tool_calls":
			r.region = inToolCalls
		case "function_call":
			r.region = inFunction
		default:
			r.region = inOther
		}
	case inParts:
		r.region = inPart
	case inPart, inPartBody:
		r.region = inPartBody
	case inToolCalls:
		r.region = inToolCall
	case inToolCall:
		r.region = inFunction
	}
	return r
}

func topRegion(name string) region {
	switch name {
	case "messages":
		return inMessages
	case "tools", "functions":
		return inTools
	case "response_format":
		return inSchema
	case "metadata":
		return inMetadata
	}
	return inOther
}

func topSource(name string) Source {
	switch name {
	case "tools", "functions":
		return FromTools
	case "response_format":
		return FromSchema
	case "metadata", "user", "prompt_cache_key", "safety_identifier":
		return FromMetadata
	}
	return FromOther
}

// gather reads the leaves that describe their message, call or part.
func (p *placer) gather() {
	var callID, callName string
	var call int32 = -1
	flush := func() {
		if call >= 0 && callID != "" {
			p.callNames[callID] = callName
		}
		callID, callName = "", ""
	}
	for i := range p.chat.leaves {
		l := &p.chat.leaves[i]
		if l.parent < 0 || l.Kind != String || l.doc != 0 {
			continue
		}
		r := p.rooms[l.parent]
		switch {
		case r.region == inRoot:
			p.topLevel(i, l)
		case r.region == inMetadata && strings.HasPrefix(l.Key, weirPrefix):
			if p.chat.Weir == nil {
				p.chat.Weir = map[string]string{}
			}
			p.chat.Weir[strings.TrimPrefix(l.Key, weirPrefix)] = l.Value
		case r.region == inMessage && l.Key == "role":
			p.roles[r.message] = l.Value
		case r.region == inMessage && l.Key == "tool_call_id":
			p.resultOf[r.message] = l.Value
		case r.region == inPart && l.Key == "type":
			p.partTypes[l.parent] = l.Value
		case r.region == inSchema && l.Key == "type":
			p.chat.Schema = l.Value == "json_schema" || l.Value == "json_object"
		case r.region == inToolCall && l.Key == "id":
			if call != l.parent {
				flush()
			}
			call, callID = l.parent, l.Value
		case r.region == inFunction && l.Key == "name":
			if parent := p.chat.containers[l.parent].parent; call != parent {
				flush()
				call = parent
			}
			callName = l.Value
			p.rooms[l.parent].tool = l.Value
		}
	}
	flush()
}

const weirPrefix = "weir_"

func (p *placer) topLevel(i int, l *Leaf) {
	switch l.Key {
	case "model":
		p.chat.Model, p.chat.ModelLeaf = l.Value, i
	case "prompt_cache_key":
		p.chat.PromptCacheKey = l.Value
	}
}

// attribute gives each message's containers their source and tool, and lists
// the parts that cannot be read.
func (p *placer) attribute() {
	part := 0
	for i := range p.rooms {
		r := &p.rooms[i]
		if r.message >= 0 && r.message < len(p.roles) {
			r.source = sourceOf(p.roles[r.message])
			if r.source == FromTool && r.tool == "" {
				r.tool = p.callNames[p.resultOf[r.message]]
			}
		}
		if r.region == inPart && p.chat.containers[i].doc == 0 {
			at := p.parts[part]
			part++
			if kind := partKind(p.partTypes[int32(i)]); kind != "" {
				r.opaque = kind != "unknown" // all text of an unknown part is examined
				p.chat.Opaque = append(p.chat.Opaque, Opaque{kind, r.source, r.message, -1, at.start, at.end})
			}
		}
		if parent := p.chat.containers[i].parent; parent >= 0 {
			up := &p.rooms[parent]
			r.opaque = r.opaque || up.opaque
			if r.tool == "" && up.message == r.message {
				r.tool = up.tool
			}
		} else if doc := p.chat.containers[i].doc; doc > 0 {
			if host := p.chat.inner[doc-1].host; host.parent >= 0 && r.tool == "" {
				r.tool = p.rooms[host.parent].tool
			}
		}
	}
}

func sourceOf(role string) Source {
	switch role {
	case "system", "developer":
		return FromSystem
	case "user":
		return FromUser
	case "assistant":
		return FromAssistant
	case "tool", "function":
		return FromTool
	}
	return FromOther
}

// partKind returns the kind of opaque content that a part type means, or "" for
// text. A type that is not known here is opaque: text in it is examined, and
// what else it may hold is for the policy.
func partKind(typ string) string {
	switch typ {
	case "text", "input_text", "output_text", "refusal", "thinking", "reasoning", "reasoning_text", "summary_text":
		return ""
	case "image_url", "input_image", "image", "image_file":
		return "image"
	case "input_audio", "audio", "output_audio":
		return "audio"
	case "file", "input_file", "document", "video_url", "input_video":
		return "file"
	case "encrypted", "redacted_thinking", "reasoning.encrypted":
		return "encrypted"
	}
	return "unknown"
}

func (p *placer) placeOf(i int32) Place {
	l := &p.chat.leaves[i]
	pl := Place{Source: FromOther, Field: "other", Message: -1, Maskable: true}
	r := room{region: inOther, source: FromOther, message: -1}
	if l.parent >= 0 {
		r = p.rooms[l.parent]
	}
	pl.Source, pl.Message, pl.Tool = r.source, r.message, r.tool
	if r.region == inRoot {
		pl.Source = topSource(l.Key)
	}
	pl.Field = field(l, r)
	embeddedText := l.doc != 0
	switch {
	case l.Kind == Number:
		pl.Maskable = embeddedText
	case pl.Field == "role", pl.Field == "model":
		pl.Maskable = false
	}
	p.payload(int(i), l, r, &pl)
	return pl
}

// payload marks leaves that are bytes in disguise, and lists the opaque content
// that stands outside parts.
func (p *placer) payload(i int, l *Leaf, r room, pl *Place) {
	if l.Kind != String {
		return
	}
	switch {
	case r.opaque && (strings.HasPrefix(l.Value, "data:") || l.Key == "data" || l.Key == "file_data"):
		pl.Payload = isBase64(l.Value)
	case encryptedKey(l.Key) && r.region != inRoot:
		pl.Payload = isBase64(l.Value)
		p.chat.Opaque = append(p.chat.Opaque, Opaque{"encrypted", pl.Source, pl.Message, i, 0, 0})
	case !r.opaque:
		if kind := inlineData(l.Value); kind != "" {
			p.chat.Opaque = append(p.chat.Opaque, Opaque{kind, pl.Source, pl.Message, i, 0, 0})
		}
	}
}

// isBase64 says that s is Base64 and nothing else, perhaps behind the head of a
// data URL. Text in the place of a payload is text.
func isBase64(s string) bool {
	if url, ok := strings.CutPrefix(s, "data:"); ok {
		var typ string
		if typ, s, ok = strings.Cut(url, ";base64,"); !ok || strings.Trim(typ, mediaType) != "" {
			return false
		}
	}
	return strings.Trim(s, base64Letters) == ""
}

const (
	base64Letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_=\r\n"
	mediaType     = "abcdefghijklmnopqrstuvwxyz0123456789/+-." // without parameters
)

func encryptedKey(key string) bool {
	return key == "encrypted_content" || key == "reasoning_encrypted"
}

// inlineData returns the kind of a base64 data URL within text, or "". Data of
// a text type is decoded and examined by the classifier instead.
func inlineData(s string) string {
	mark := strings.Index(s, ";base64,")
	if mark < 0 {
		return ""
	}
	head := s[max(0, mark-120):mark]
	at := strings.LastIndex(head, "data:")
	if at < 0 {
		return ""
	}
	switch typ, _, _ := strings.Cut(head[at+len("data:"):], "/"); typ {
	case "text":
		return ""
	case "image", "audio":
		return typ
	default:
		return "file"
	}
}

// field names the kind of place in fixed words.
func field(l *Leaf, r room) string {
	switch {
	case l.Kind == Name:
		return "key"
	case l.Kind == Number:
		return "number"
	case r.region == inRoot && l.Key == "model":
		return "model"
	case r.region == inMessage && l.Key == "role":
		return "role"
	case r.region == inFunction && l.Key == "arguments", l.doc != 0 && r.source == FromAssistant:
		return "arguments"
	case r.region == inMessage && l.Key == "content", r.region == inPart && (l.Key == "text" || l.Key == "refusal"), l.doc != 0 && r.source == FromTool:
		return "content"
	}
	switch l.Key {
	case "name", "description", "url":
		return l.Key
	case "id", "tool_call_id":
		return "id"
	}
	return "other"
}
