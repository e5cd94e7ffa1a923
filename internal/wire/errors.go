package wire

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
)

// Code is a stable machine-readable error code, the "code" of an error body.
type Code string

// The codes Weir itself answers with. An upstream's own errors pass through
// with the upstream's codes.
const (
	CodeInvalidJSON           Code = "invalid_json"
	CodeInvalidRequest        Code = "invalid_request"
	CodeContextLength         Code = "context_length_exceeded"
	CodeBodyTooLarge          Code = "body_too_large"
	CodeBodyTimeout           Code = "body_timeout"
	CodeUnsupportedMedia      Code = "unsupported_media_type"
	CodeInvalidAPIKey         Code = "invalid_api_key"
	CodeForbiddenHost         Code = "forbidden_host"
	CodeForbiddenOrigin       Code = "forbidden_origin"
	CodeNotFound              Code = "not_found"
	CodeMethodNotAllowed      Code = "method_not_allowed"
	CodeModelNotFound         Code = "model_not_found"
	CodePolicyRefused         Code = "policy_refused"
	CodeApprovalRequired      Code = "approval_required"
	CodeApprovalDenied        Code = "approval_denied"
	CodeApprovalConflict      Code = "approval_conflict"
	CodeLocalUnavailable      Code = "local_unavailable"
	CodeLocalNotConfigured    Code = "local_not_configured"
	CodeLocalUnable           Code = "local_unable"
	CodeCloudNotConfigured    Code = "cloud_not_configured"
	CodeClassifierUnavailable Code = "classifier_unavailable"
	CodePolicyUnavailable     Code = "policy_unavailable"
	CodeStoreUnavailable      Code = "store_unavailable"
	CodeUpstreamUnavailable   Code = "upstream_unavailable"
	CodeUpstreamTimeout       Code = "upstream_timeout"
	CodeUpstreamInvalid       Code = "upstream_invalid"
	CodeUpstreamInterrupted   Code = "upstream_interrupted"
	CodeLeakPrevented         Code = "leak_prevented"
	CodeRestoreFailed         Code = "restore_failed"
	CodeOverloaded            Code = "overloaded"
	CodeShuttingDown          Code = "shutting_down"
	CodeInternal              Code = "internal"
)

// CodeInfo is a row of the table of codes.
type CodeInfo struct {
	Code   Code
	Status int    // HTTP status of a plain reply
	Type   string // "type" of the error body, in the words of the chat dialect
	When   string // what happened, and what to do
}

// Codes returns the table of codes, sorted by code.
func Codes() []CodeInfo {
	out := slices.Clone(codes[:])
	slices.SortFunc(out, func(a, b CodeInfo) int { return cmp.Compare(a.Code, b.Code) })
	return out
}

const (
	typeRequest    = "invalid_request_error"
	typeAuth       = "authentication_error"
	typePermission = "permission_error"
	typePolicy     = "policy_error"
	typeServer     = "server_error"
	typeRate       = "rate_limit_error"
)

var codes = [...]CodeInfo{
	{CodeInvalidJSON, 400, typeRequest, "The body is not one strict JSON document: syntax, duplicate member names, invalid UTF-8 or excess depth. Mend the body; a retry will not help."},
	{CodeInvalidRequest, 400, typeRequest, "The body is JSON, but a member that Weir must understand is missing or of the wrong type; the message names it."},
	{CodeContextLength, 400, typeRequest, "The messages, or they and the reply, have more tokens than the local engine's context. Leave some out, or raise context_length of the upstream."},
	{CodeBodyTooLarge, 413, typeRequest, "The body is larger than limits.body_bytes."},
	{CodeBodyTimeout, 408, typeRequest, "The body did not arrive within limits.body_timeout."},
	{CodeUnsupportedMedia, 415, typeRequest, "The body's Content-Type is not application/json, or it is compressed."},
	{CodeInvalidAPIKey, 401, typeAuth, "Client keys are configured and the request carries none of them."},
	{CodeForbiddenHost, 403, typePermission, "The Host header is not in the allow-list, which stops web pages that rebind a name to this machine. Add the name under hosts."},
	{CodeForbiddenOrigin, 403, typePermission, "A web page sent the request and its origin is not listed under origins."},
	{CodeNotFound, 404, typeRequest, "There is nothing at this path."},
	{CodeMethodNotAllowed, 405, typeRequest, "The path does not take this method."},
	{CodeModelNotFound, 404, typeRequest, "No upstream or alias goes by this model name; the message lists those that do."},
	{CodePolicyRefused, 400, typePolicy, "Policy refuses this request. The message names the rule and the labels, never the values. Take the values out; a retry will not help."},
	{CodeApprovalRequired, 400, typePolicy, "The request waited for an answer that did not come. Answer it (weir approvals) and send the request again."},
	{CodeApprovalDenied, 400, typePolicy, "The user was asked and said no."},
	{CodeApprovalConflict, 409, typeRequest, "The question was answered before, or has expired."},
	{CodeLocalUnavailable, 503, typeServer, "The request must stay on this machine and no local upstream answers. Start it; nothing was sent to the cloud."},
	{CodeLocalNotConfigured, 400, typePolicy, "The request must stay on this machine and no local upstream is configured. Add one of kind local under upstreams."},
	{CodeLocalUnable, 400, typePolicy, "The request must stay on this machine, and the local upstream cannot serve it (tools, schema, images or context length)."},
	{CodeCloudNotConfigured, 400, typeRequest, "The request asks for a cloud model and no cloud upstream is configured."},
	{CodeClassifierUnavailable, 503, typeServer, "The text could not be examined, so it may not go to the cloud, and no local upstream could take it."},
	{CodePolicyUnavailable, 503, typeServer, "Policy gave no valid decision in time, so the request may not go to the cloud, and no local upstream could take it."},
	{CodeStoreUnavailable, 503, typeServer, "The decision could not be recorded, so nothing was sent."},
	{CodeUpstreamUnavailable, 502, typeServer, "The upstream could not be reached, or its circuit breaker is open."},
	{CodeUpstreamTimeout, 504, typeServer, "The upstream did not begin to answer in time."},
	{CodeUpstreamInvalid, 502, typeServer, "The upstream's answer breaks HTTP or is cut short."},
	{CodeUpstreamInterrupted, 502, typeServer, "The upstream broke off in the middle of its answer. In a stream this is the last event."},
	{CodeLeakPrevented, 500, typeServer, "The last check found a masked value in the bytes about to leave, and stopped them. This is a bug: please report it with the decision id."},
	{CodeRestoreFailed, 502, typeServer, "Private values could not be put back into the answer's tool call without breaking its JSON."},
	{CodeOverloaded, 429, typeRate, "More requests are in flight than limits.concurrent; Retry-After says when to try again."},
	{CodeShuttingDown, 503, typeServer, "Weir is shutting down and takes no new requests."},
	{CodeInternal, 500, typeServer, "A fault in Weir. Nothing was sent to the cloud after it."},
}

// Error is an error that a client is told of. Its message is written by us and
// never holds content.
type Error struct {
	Code    Code
	Message string
	// Param is the JSON pointer or name of the member at fault, or empty.
	Param string
	// RetryAfter, in seconds, is sent as a header when positive.
	RetryAfter int
	// Err is the cause, for logs.
	Err error
}

// Errorf makes an Error with a formatted message. The arguments must not be
// content.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

func (e *Error) Error() string {
	if e.Err != nil {
		return string(e.Code) + ": " + e.Err.Error()
	}
	return string(e.Code) + ": " + e.Message
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Status returns the HTTP status of the error's code.
func (e *Error) Status() int { return info(e.Code).Status }

func info(c Code) CodeInfo {
	for _, i := range codes {
		if i.Code == c {
			return i
		}
	}
	return CodeInfo{Code: c, Status: http.StatusInternalServerError, Type: typeServer}
}

// AsError returns err as an *Error: itself if it wraps one, else an internal
// error that keeps err as its cause and shows none of it.
func AsError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Code: CodeInternal, Message: "internal error", Err: err}
}

type errorBody struct {
	Error errorDetail `json:"error"`
}

type errorDetail struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    Code    `json:"code"`
}

// Body returns the error as the chat dialect writes it.
func (e *Error) Body() []byte {
	d := errorDetail{Message: e.Message, Type: info(e.Code).Type, Code: e.Code}
	if e.Param != "" {
		d.Param = &e.Param
	}
	b, err := json.Marshal(errorBody{d})
	if err != nil { // only invalid UTF-8 in a message could do this
		return []byte(`{"error":{"message":"internal error","type":"server_error","param":null,"code":"internal"}}`)
	}
	return b
}

// WriteError answers with err in the chat dialect. It is the one place where
// errors become HTTP.
func WriteError(w http.ResponseWriter, err error) {
	e := AsError(err)
	body := e.Body()
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if e.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(e.RetryAfter))
	}
	w.WriteHeader(e.Status())
	w.Write(body) //nolint:errcheck // the client may be gone; there is nobody to tell
}
