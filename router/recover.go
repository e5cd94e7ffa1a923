package router

import (
	"fmt"
	"net/http"
	"runtime/debug"

	"weir/internal/wire"
)

// recover turns a panic into an error reply. The panic's value may hold content,
// so only its type and the stack are logged.
func (s *Server) recover(x *exchange) {
	v := recover()
	if v == nil {
		return
	}
	if v == http.ErrAbortHandler {
		panic(v)
	}
	s.Log.ErrorContext(x.r.Context(), "panic", "type", fmt.Sprintf("%T", v), "stack", string(debug.Stack()))
	s.fail(x, wire.Errorf(wire.CodeInternal, "internal error"))
}
