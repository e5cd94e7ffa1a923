package router_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"weir/internal/weirtest"
	"weir/internal/wire"
	"weir/router"
)

// errorOf reads an error body in the form that clients know, and fails if it
// has another.
func errorOf(t testing.TB, a answer) (code, param string) {
	t.Helper()
	var body struct {
		Error struct {
			Message string  `json:"message"`
			Type    string  `json:"type"`
			Param   *string `json:"param"`
			Code    string  `json:"code"`
		} `json:"error"`
	}
	if err := json.Unmarshal([]byte(a.body), &body, json.RejectUnknownMembers(true)); err != nil || body.Error.Message == "" || body.Error.Type == "" {
		t.Errorf("not an error body (%v): %d %.300s", err, a.status, a.body)
		return "", ""
	}
	if body.Error.Param != nil {
		param = *body.Error.Param
	}
	if typ := a.header.Get("Content-Type"); typ != "application/json" {
		t.Errorf("content type %q", typ)
	}
	return body.Error.Code, param
}

// Bodies that are not a chat request: a clear error, and nothing is sent.
func TestBadBodies(t *testing.T) {
	t.Parallel()
	h := open(t, plan{cloud: echo(), local: echo(), options: router.Options{Limits: router.Limits{BodyBytes: 1 << 20}}})
	ok := message("user", email)
	for name, tc := range map[string]struct {
		body, code, param string
	}{
		"empty":                    {"", "invalid_json", ""},
		"spaces":                   {" \n ", "invalid_json", ""},
		"cut":                      {`{"model":"gpt-x","messages":[{"role":"user","content":"` + email, "invalid_json", ""},
		"garbage":                  {email, "invalid_json", ""},
		"trailing garbage":         {chat(ok) + email, "invalid_json", ""},
		"two documents":            {chat(ok) + chat(ok), "invalid_json", ""},
		"trailing comma":           {`{"model":"gpt-x","messages":[` + ok + `],}`, "invalid_json", ""},
		"comment":                  {`/* ` + email + ` */` + chat(ok), "invalid_json", ""},
		"byte order mark":          {"\ufeff" + chat(ok), "invalid_json", ""},
		"invalid UTF-8":            {chat(message("user", email+"\xff")), "invalid_json", ""},
		"UTF-16":                   {"\xff\xfe{\x00}\x00", "invalid_json", ""},
		"control character":        {chat(message("user", email+"\x00")), "invalid_json", ""},
		"bad escape":               {chat(message("user", email+`\x`)), "invalid_json", ""},
		"bad number":               {`{"model":"gpt-x","n":01,"messages":[` + ok + `]}`, "invalid_json", ""},
		"not a number":             {`{"model":"gpt-x","n":NaN,"messages":[` + ok + `]}`, "invalid_json", ""},
		"duplicate member":         {`{"model":"gpt-x","messages":[` + message("user", "hi") + `],"messages":[` + ok + `]}`, "invalid_json", ""},
		"duplicate by escape":      {`{"model":"gpt-x","messages":[` + message("user", "hi") + `],"m\u0065ssages":[` + ok + `]}`, "invalid_json", ""},
		"duplicate deep":           {chat(`{"role":"user","content":"hi","content":"` + email + `"}`), "invalid_json", ""},
		"deep arrays":              {`{"model":"gpt-x","messages":[` + ok + `],"x":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`, "invalid_json", ""},
		"deep objects":             {`{"model":"gpt-x","messages":[` + ok + `],"x":` + strings.Repeat(`{"a":`, 10_000) + "1" + strings.Repeat("}", 10_000) + `}`, "invalid_json", ""},
		"deep and open":            {strings.Repeat("[", 500_000), "invalid_json", ""},
		"an array":                 {`[` + chat(ok) + `]`, "invalid_request", "messages"},
		"a string":                 {`"` + email + `"`, "invalid_request", ""},
		"null":                     {`null`, "invalid_request", ""},
		"number":                   {`7512349080`, "invalid_request", ""},
		"empty object":             {`{}`, "invalid_request", "messages"},
		"no model":                 {`{"messages":[` + ok + `]}`, "invalid_request", "model"},
		"model null":               {`{"model":null,"messages":[` + ok + `]}`, "invalid_request", "model"},
		"model number":             {`{"model":7,"messages":[` + ok + `]}`, "invalid_request", "model"},
		"model object":             {`{"model":{"a":"` + email + `"},"messages":[` + ok + `]}`, "invalid_request", "model"},
		"no messages":              {`{"model":"gpt-x"}`, "invalid_request", "messages"},
		"messages empty":           {`{"model":"gpt-x","messages":[]}`, "invalid_request", "messages"},
		"messages object":          {`{"model":"gpt-x","messages":{"0":` + ok + `}}`, "invalid_request", "messages"},
		"messages string":          {`{"model":"gpt-x","messages":"` + email + `"}`, "invalid_request", "messages"},
		"messages null":            {`{"model":"gpt-x","messages":null}`, "invalid_request", "messages"},
		"message string":           {chat(`"` + email + `"`), "invalid_request", "messages[0]"},
		"message null":             {chat(ok, `null`), "invalid_request", "messages[1]"},
		"message array":            {chat(`[` + ok + `]`), "invalid_request", "messages[0]"},
		"no role":                  {chat(`{"content":"` + email + `"}`), "invalid_request", "messages[0].role"},
		"role number":              {chat(`{"role":1,"content":"` + email + `"}`), "invalid_request", "messages[0].role"},
		"role object":              {chat(`{"role":{},"content":"` + email + `"}`), "invalid_request", "messages[0].role"},
		"message in an object":     {`{"model":"gpt-x","messages":{"a":` + ok + `}}`, "invalid_request", "messages"},
		"content number":           {chat(`{"role":"user","content":7512349080}`), "invalid_request", "messages[0].content"},
		"content object":           {chat(`{"role":"user","content":{"text":"` + email + `"}}`), "invalid_request", "messages[0].content"},
		"content true":             {chat(`{"role":"user","content":true}`), "invalid_request", "messages[0].content"},
		"part string":              {chat(`{"role":"user","content":["` + email + `"]}`), "invalid_request", "messages[0].content[0]"},
		"stream number":            {`{"model":"gpt-x","stream":1,"messages":[` + ok + `]}`, "invalid_request", "stream"},
		"stream string":            {`{"model":"gpt-x","stream":"true","messages":[` + ok + `]}`, "invalid_request", "stream"},
		"too many pieces":          {`{"model":"gpt-x","messages":[` + ok + `],"x":[` + strings.Repeat("1,", 500_000) + `1]}`, "body_too_large", ""},
		"larger than the limit":    {chat(message("user", email+strings.Repeat("x", 1<<20))), "body_too_large", ""},
		"other case of a member":   {`{"model":"gpt-x","Messages":[` + ok + `]}`, "invalid_request", "messages"},
		"a mode that is none":      {`{"model":"gpt-x","metadata":{"weir_mode":"` + email + `"},"messages":[` + ok + `]}`, "invalid_request", "X-Weir-Mode"},
		"escaped name of a member": {`{"mod\u0065l":7,"messages":[` + ok + `]}`, "invalid_request", "model"},
		"content object empty":     {chat(`{"role":"user","content":{"type":{"a":"` + email + `"}}}`), "invalid_request", "messages[0].content"},
		"content object of parts":  {chat(`{"role":"user","content":{"type":"image_url","image_url":{"url":"https://x.example/` + email + `"}}}`), "invalid_request", "messages[0].content"},
		"empty role":               {chat(message("", email)), "invalid_request", "messages[0].role"},
	} {
		a := h.post(tc.body)
		code, param := errorOf(t, a)
		if code != tc.code || param != tc.param || a.status < 400 || a.status > 499 {
			t.Errorf("%s: %d code %q param %q: %.300s", name, a.status, code, param, a.body)
		}
		checkReply(t, name, a, email)
	}
	if n := chats(h.cloud) + chats(h.local); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
	h.checkSinks(map[string]label{email: ""})
}

func chat(messages ...string) string {
	return `{"model":"gpt-x","messages":[` + strings.Join(messages, ",") + `]}`
}

func message(role, content string) string {
	return `{"role":"` + role + `","content":"` + content + `"}`
}

// Names of members may be written with escapes: they mean the same, and are
// examined the same.
func TestEscapedMemberNames(t *testing.T) {
	t.Parallel()
	h := open(t, plan{cloud: echo(), noLocal: true})
	a := h.post(`{"mod\u0065l":"gpt-x","m\u0065ssages":[{"rol\u0065":"user","cont\u0065nt":"to ann.lee\u0040fjord.example"}],"us\u0065r":"\u0061nn.lee@fjord.example"}`)
	if a.status != 200 || whole(t, a.body).Content != "to "+email {
		t.Errorf("%d %s", a.status, a.body)
	}
	if got := received(h.cloud); strings.Contains(got, "fjord") || !strings.Contains(got, `"cont\u0065nt":"to EMAIL_`) {
		t.Errorf("the cloud got %s", got)
	}
}

func TestBadHeaders(t *testing.T) {
	t.Parallel()
	h := open(t, plan{cloud: echo(), noLocal: true, options: router.Options{
		Hosts: []string{"weir.lan"}, Origins: []string{"http://ui.example"},
		Keys: []router.ClientKey{{Name: "ci", Digest: sha256.Sum256([]byte("key-ci"))}, {Name: "me", Digest: sha256.Sum256([]byte("key-me"))}},
	}})
	good := http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer key-ci"}}
	for name, tc := range map[string]struct {
		set    []string
		status int
		code   string
	}{
		"good":                   {nil, 200, ""},
		"with a charset":         {[]string{"Content-Type", "application/json; charset=utf-8"}, 200, ""},
		"identity":               {[]string{"Content-Encoding", "identity"}, 200, ""},
		"text":                   {[]string{"Content-Type", "text/plain"}, 415, "unsupported_media_type"},
		"form":                   {[]string{"Content-Type", "application/x-www-form-urlencoded"}, 415, "unsupported_media_type"},
		"no type":                {[]string{"Content-Type", ""}, 415, "unsupported_media_type"},
		"a type that is none":    {[]string{"Content-Type", ";;"}, 415, "unsupported_media_type"},
		"gzip":                   {[]string{"Content-Encoding", "gzip"}, 415, "unsupported_media_type"},
		"encodings":              {[]string{"Content-Encoding", "identity, gzip"}, 415, "unsupported_media_type"},
		"rebound name":           {[]string{"Host", "evil.example"}, 403, "forbidden_host"},
		"rebound with a port":    {[]string{"Host", "evil.example:8080"}, 403, "forbidden_host"},
		"name that begins right": {[]string{"Host", "localhost.evil.example"}, 403, "forbidden_host"},
		"name that ends right":   {[]string{"Host", "evillocalhost"}, 403, "forbidden_host"},
		"address elsewhere":      {[]string{"Host", "192.0.2.7"}, 403, "forbidden_host"},
		"user in the host":       {[]string{"Host", "localhost@evil.example"}, 403, "forbidden_host"},
		"localhost":              {[]string{"Host", "LOCALHOST:99"}, 200, ""},
		"loopback 6":             {[]string{"Host", "[::1]:99"}, 200, ""},
		"below localhost":        {[]string{"Host", "weir.localhost"}, 200, ""},
		"configured host":        {[]string{"Host", "WEIR.lan:1"}, 200, ""},
		"foreign page":           {[]string{"Origin", "https://evil.example"}, 403, "forbidden_origin"},
		"page without origin":    {[]string{"Origin", "null"}, 403, "forbidden_origin"},
		"page of this machine":   {[]string{"Origin", "http://localhost:3000"}, 403, "forbidden_origin"},
		"other scheme":           {[]string{"Origin", "https://ui.example"}, 403, "forbidden_origin"},
		"configured page":        {[]string{"Origin", "http://ui.example"}, 200, ""},
		"no key":                 {[]string{"Authorization", ""}, 401, "invalid_api_key"},
		"other key":              {[]string{"Authorization", "Bearer key-no"}, 401, "invalid_api_key"},
		"key as a prefix":        {[]string{"Authorization", "Bearer key-ci2"}, 401, "invalid_api_key"},
		"key by its own header":  {[]string{"Authorization", "Bearer sk-vendor", "X-Weir-Key", "key-me"}, 200, ""},
		"wrong key there":        {[]string{"X-Weir-Key", "nope"}, 401, "invalid_api_key"},
		"mode":                   {[]string{"X-Weir-Mode", "loud"}, 400, "invalid_request"},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.http.URL+"/v1/chat/completions", strings.NewReader(user("gpt-x", "hi")))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = good.Clone()
		for i := 0; i < len(tc.set); i += 2 {
			switch {
			case tc.set[i] == "Host":
				req.Host = tc.set[i+1]
			case tc.set[i+1] == "":
				req.Header.Del(tc.set[i])
			default:
				req.Header.Set(tc.set[i], tc.set[i+1])
			}
		}
		before := chats(h.cloud)
		a := h.do(req)
		code := ""
		if a.status != 200 {
			code, _ = errorOf(t, a)
		}
		if a.status != tc.status || code != tc.code {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
		if sent := chats(h.cloud) - before; sent != 0 != (tc.status == 200) {
			t.Errorf("%s: %d requests were sent", name, sent)
		}
	}
	for _, key := range []string{"key-ci", "key-me"} {
		if c, _ := h.cloud.Received(key); c != nil {
			t.Errorf("a client key went to the cloud: %s", c.Bytes())
		}
	}
	if c, _ := h.cloud.Received("Bearer sk-vendor"); c == nil {
		t.Error("the vendor's key did not go to the cloud")
	}
}

func (h *house) do(req *http.Request) answer {
	h.t.Helper()
	resp, err := h.http.Client().Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(b)}
}

func TestPreflight(t *testing.T) {
	t.Parallel()
	h := open(t, plan{cloud: echo(), noLocal: true, options: router.Options{Origins: []string{"http://ui.example"}}})
	for origin, want := range map[string]int{"http://ui.example": 204, "http://evil.example": 403} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodOptions, h.http.URL+"/v1/chat/completions", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Origin", origin)
		req.Header.Set("Access-Control-Request-Method", "POST")
		a := h.do(req)
		if a.status != want || (a.header.Get("Access-Control-Allow-Origin") == origin) != (want == 204) {
			t.Errorf("%s: %d %v", origin, a.status, a.header)
		}
	}
}

func TestCompressedBodyIsNotRead(t *testing.T) {
	t.Parallel()
	h := open(t, plan{cloud: echo(), noLocal: true})
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, user("gpt-x", email)) //nolint:errcheck // a buffer does not fail
	z.Close()
	for _, header := range [][]string{{"Content-Encoding", "gzip"}, nil} {
		a := h.postTo("/v1/chat/completions", b.String(), header...)
		if a.status != 415 && a.status != 400 || chats(h.cloud) != 0 {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
}

// A body of 50 MB is refused, before it is read if the client says its length.
func TestHugeBody(t *testing.T) {
	t.Parallel()
	h := open(t, plan{cloud: echo(), noLocal: true})
	for _, declared := range []bool{true, false} {
		body := io.MultiReader(strings.NewReader(`{"model":"gpt-x","messages":[{"role":"user","content":"`), io.LimitReader(letters{}, 50<<20))
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.http.URL+"/v1/chat/completions", body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		if declared {
			req.ContentLength = 50<<20 + 55
		}
		a := h.do(req)
		if code, _ := errorOf(t, a); code != "body_too_large" || a.status != 413 {
			t.Errorf("declared %t: %d %s", declared, a.status, a.body)
		}
	}
	if chats(h.cloud) != 0 {
		t.Error("it was sent")
	}
}

type letters struct{}

func (letters) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// Clients that send their body byte by byte, or stop, are let go.
func TestSlowBody(t *testing.T) {
	t.Parallel()
	h := open(t, plan{cloud: echo(), noLocal: true, options: router.Options{Limits: router.Limits{BodyTimeout: 50 * time.Millisecond}}})
	for _, tc := range []struct{ head, body, code string }{
		{"", "", "body_timeout"},
		{"", `{"model":"gpt-x",`, "body_timeout"},
		{"Origin: http://evil.example\r\n", `{"model":`, "forbidden_origin"},
	} {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", h.http.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 500\r\n%s\r\n%s", tc.head, tc.body)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		conn.Close()
		if code, _ := errorOf(t, answer{resp.StatusCode, resp.Header, string(b)}); code != tc.code {
			t.Errorf("%d %s", resp.StatusCode, b)
		}
	}
	// A body that comes in time is not cut off later.
	if a := h.post(user("gpt-x", "hi")); a.status != 200 {
		t.Errorf("%d %s", a.status, a.body)
	}
	if chats(h.cloud) != 1 {
		t.Error("half a body was sent")
	}
}

// A client that leaves in the middle of its body is nobody's failure.
func TestClientLeavesInItsBody(t *testing.T) {
	t.Parallel()
	h := open(t, plan{cloud: echo(), noLocal: true})
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", h.http.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{\"model\":")
	conn.Close()
	h.http.Close() // waits for the handler
	if chats(h.cloud) != 0 || strings.Contains(h.logged(), "level=ERROR") {
		t.Errorf("log: %s", h.logged())
	}
}

// Requests over the limit are told to come back; those under way are served.
func TestConcurrencyLimit(t *testing.T) {
	t.Parallel()
	pace := make(chan struct{})
	slow := weirtest.Options{Default: weirtest.Behaviour{Reply: weirtest.EchoLast, Pace: pace}}
	h := open(t, plan{cloud: slow, noLocal: true, options: router.Options{Limits: router.Limits{Concurrent: 2}}})
	replies := make(chan answer, 2)
	for range 2 {
		go func() { replies <- h.post(user("gpt-x", "hi")) }()
	}
	for seen := 0; seen < 2; {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		if _, err := h.cloud.Await(ctx, seen); err != nil {
			t.Fatal(err)
		}
		cancel()
		seen++
	}
	a := h.post(user("gpt-x", "hi"))
	if code, _ := errorOf(t, a); code != string(wire.CodeOverloaded) || a.status != 429 || a.header.Get("Retry-After") == "" {
		t.Errorf("%d %v %s", a.status, a.header, a.body)
	}
	close(pace)
	for range 2 {
		if a := <-replies; a.status != 200 {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	if a := h.post(user("gpt-x", "hi")); a.status != 200 {
		t.Errorf("afterwards: %d %s", a.status, a.body)
	}
}

func TestUnknownPathsAndMethods(t *testing.T) {
	t.Parallel()
	h := open(t, plan{cloud: echo(), noLocal: true})
	for target, want := range map[string]string{
		"POST /v1/completions": "not_found", "GET /": "method_not_allowed", "GET /v1/chat/completions": "method_not_allowed",
		"DELETE /v1/chat/completions": "method_not_allowed", "POST /v1/chat/completions/": "not_found", "POST //v1/chat/completions": "not_found",
		"GET /v1/models/none": "model_not_found", "GET /v1/weir/decisions/x": "not_found", "DELETE /v1/weir/tasks/x": "not_found",
		"POST /v1/chat/../chat/completions": "not_found", "DELETE /v1/weir/answers/x": "not_found",
	} {
		method, path, _ := strings.Cut(target, " ")
		req, err := http.NewRequestWithContext(t.Context(), method, h.http.URL+path, strings.NewReader(user("gpt-x", "hi")))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		if code, _ := errorOf(t, h.do(req)); code != want {
			t.Errorf("%s: code %q", target, code)
		}
	}
	if chats(h.cloud) != 0 {
		t.Error("something was sent")
	}
}
