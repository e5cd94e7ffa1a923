package router

import "time"

// Metrics is told what happens. Implementations are safe for concurrent use.
type Metrics interface {
	// Begin counts a model request in; what it returns counts it out.
	Begin() (end func())
	// Request counts a finished request by route, placement (cloud,
	// cloud-masked, local or none) and status.
	Request(route, placement string, status int)
	// Gate takes the time that the examination of a request took.
	Gate(took time.Duration)
	// Scanned counts bytes of text that were examined.
	Scanned(bytes int)
	// Finding counts findings of one label and action.
	Finding(label, action string, n int)
	// Restored counts placeholders put back, and those that stand for nothing.
	Restored(known, unknown int)
	// ApprovalsPending is told how many questions wait for the user.
	ApprovalsPending(n int)
}

type noMetrics struct{}

func (noMetrics) Begin() func()               { return func() {} }
func (noMetrics) Request(string, string, int) {}
func (noMetrics) Gate(time.Duration)          {}
func (noMetrics) Scanned(int)                 {}
func (noMetrics) Finding(string, string, int) {}
func (noMetrics) Restored(int, int)           {}
func (noMetrics) ApprovalsPending(int)        {}
