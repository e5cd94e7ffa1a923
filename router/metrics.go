package router

import (
	"time"

	"weir/pii"
)

// Metrics is told what happens. All names are from small fixed sets.
// Implementations are safe for concurrent use.
type Metrics interface {
	// Request counts a model request. Mode is auto, cloud, local or none,
	// placement cloud, cloud-masked, local or empty.
	Request(mode, placement string, status int, took time.Duration)
	// Examined counts the examination of a request.
	Examined(bytes int, took time.Duration, failed bool)
	// Finding counts findings of one label and action.
	Finding(label, action string, n int)
	// Restored counts placeholders put back, and those that stand for nothing.
	Restored(byLabel map[pii.Label]int, unknown int)
	// Asked counts questions to the user.
	Asked()
	// StreamBroken counts streams that an upstream broke off.
	StreamBroken()
	// Panic counts requests that ended in one.
	Panic()
}

type noMetrics struct{}

func (noMetrics) Request(string, string, int, time.Duration) {}
func (noMetrics) Examined(int, time.Duration, bool)          {}
func (noMetrics) Finding(string, string, int)                {}
func (noMetrics) Restored(map[pii.Label]int, int)            {}
func (noMetrics) Asked()                                     {}
func (noMetrics) StreamBroken()                              {}
func (noMetrics) Panic()                                     {}
