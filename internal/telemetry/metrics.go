package telemetry

import (
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// other is the label of what is not in its fixed set.
const other = "other"

// custom is the label of findings whose label is not built in.
const custom = "custom"

// Metrics are all metrics of Weir, in a registry of their own. Labels take
// values from fixed sets, so that nobody's text becomes one. It is safe for
// concurrent use.
type Metrics struct {
	registry *prometheus.Registry
	labels   map[string]bool

	requests     *prometheus.CounterVec
	inFlight     prometheus.Gauge
	gate         prometheus.Histogram
	findings     *prometheus.CounterVec
	scanned      prometheus.Counter
	scanCache    *prometheus.CounterVec
	upstream     *prometheus.HistogramVec
	broken       *prometheus.CounterVec
	breaker      *prometheus.GaugeVec
	restored     prometheus.Counter
	unknown      prometheus.Counter
	approvals    prometheus.Gauge
	storeCommit  prometheus.Histogram
	storeFailure prometheus.Counter
	enginePanic  prometheus.Counter
}

// NewMetrics registers the metrics. labels are the built-in labels of findings.
func NewMetrics(labels []string) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), labels: make(map[string]bool, len(labels))}
	for _, l := range labels {
		m.labels[l] = true
	}
	// From a tenth of a millisecond: the gate's aim is below one.
	fine := prometheus.ExponentialBuckets(0.0001, 2, 16)
	// To a quarter of an hour: a first byte may take ten minutes.
	coarse := []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 180, 600, 900}

	m.requests = m.counters("weir_requests_total", "Requests by route, placement and class of status.", "route", "placement", "status")
	m.inFlight = m.gauge("weir_requests_in_flight", "Requests being worked on.")
	m.gate = m.histogram("weir_gate_seconds", "Time from a whole request to the decision about it, without waiting for the user.", fine)
	m.findings = m.counters("weir_findings_total", "Findings by label and action.", "label", "action")
	m.scanned = m.counter("weir_scan_bytes_total", "Bytes of text examined.")
	m.scanCache = m.counters("weir_scan_cache_total", "Texts looked up among those examined before.", "result")
	m.upstream = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "weir_upstream_wait_seconds", Help: "Time until the headers of a reply or a failure, by server and outcome.", Buckets: coarse,
	}, []string{"upstream", "outcome"})
	m.registry.MustRegister(m.upstream)
	m.broken = m.counters("weir_upstream_broken_total", "Replies that broke off after they began.", "upstream", "class")
	m.breaker = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "weir_upstream_breaker", Help: "1 for the state that a server's breaker is in.",
	}, []string{"upstream", "state"})
	m.registry.MustRegister(m.breaker)
	m.restored = m.counter("weir_placeholder_restored_total", "Placeholders replaced in replies.")
	m.unknown = m.counter("weir_placeholder_unknown_total", "Words in replies that look like a placeholder of the task and are none.")
	m.approvals = m.gauge("weir_approvals_pending", "Questions that wait for the user.")
	m.storeCommit = m.histogram("weir_store_commit_seconds", "Time of a commit to the store.", fine)
	m.storeFailure = m.counter("weir_store_failures_total", "Commits that failed.")
	m.enginePanic = m.counter("weir_engine_panics_total", "Replies of a model within Weir that a fault of ours ended.")
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *Metrics) counter(name, help string) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	m.registry.MustRegister(c)
	return c
}

func (m *Metrics) counters(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	m.registry.MustRegister(c)
	return c
}

func (m *Metrics) gauge(name, help string) prometheus.Gauge {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	m.registry.MustRegister(g)
	return g
}

func (m *Metrics) histogram(name, help string, buckets []float64) prometheus.Histogram {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
	m.registry.MustRegister(h)
	return h
}

// Handler serves the metrics. Its own faults go to log.
func (m *Metrics) Handler(log *slog.Logger) http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{ErrorLog: promLog{log}, ErrorHandling: promhttp.ContinueOnError})
}

type promLog struct{ log *slog.Logger }

func (p promLog) Println(...any) { p.log.Warn("metrics not served whole") }

// Begin counts a request in; the function it returns counts it out.
func (m *Metrics) Begin() (end func()) {
	m.inFlight.Inc()
	return m.inFlight.Dec
}

// Request counts a finished request. Route is a route's pattern, placement what
// became of it.
func (m *Metrics) Request(route, placement string, status int) {
	m.requests.WithLabelValues(
		fold(route, routes()),
		fold(placement, []string{"cloud", "cloud-masked", "local", "mixed", "refused", "none"}),
		statusClass(status),
	).Inc()
}

func routes() []string {
	return []string{
		"/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages", "/v1/messages/count_tokens",
		"/v1/embeddings", "/v1/models", "/v1/models/{id}", "/v1/weir/check", "/v1/weir/decisions/{id}", "/v1/weir/tasks/{id}",
		"/v1/weir/approvals", "/health", "/readyz", "/metrics",
	}
}

// Gate records how long the gate took.
func (m *Metrics) Gate(d time.Duration) { m.gate.Observe(d.Seconds()) }

// Finding counts n findings of a label that ended in an action. Labels that are
// not built in are the user's own words, and counted as custom.
func (m *Metrics) Finding(label, action string, n int) {
	if !m.labels[label] {
		label = custom
	}
	m.findings.WithLabelValues(label, fold(action, []string{"allow", "mask", "ask_user", "keep_local", "refuse"})).Add(float64(n))
}

// Scanned counts bytes of text that were examined.
func (m *Metrics) Scanned(bytes int) { m.scanned.Add(float64(bytes)) }

// ScanCache counts a lookup among texts examined before.
func (m *Metrics) ScanCache(hit bool) {
	result := "miss"
	if hit {
		result = "hit"
	}
	m.scanCache.WithLabelValues(result).Inc()
}

// UpstreamAttempt records one attempt at a server of the configuration.
func (m *Metrics) UpstreamAttempt(upstream, outcome string, wait time.Duration) {
	m.upstream.WithLabelValues(upstream, fold(outcome, outcomes())).Observe(wait.Seconds())
}

func outcomes() []string {
	return []string{
		"1xx", "2xx", "3xx", "4xx", "5xx",
		"connect", "timeout", "breaker_open", "canceled", "protocol", "broken", "status",
	}
}

// UpstreamBroken counts a reply that broke off.
func (m *Metrics) UpstreamBroken(upstream, class string) {
	m.broken.WithLabelValues(upstream, fold(class, outcomes())).Inc()
}

// UpstreamBreaker records the state of a server's breaker.
func (m *Metrics) UpstreamBreaker(upstream, state string) {
	for _, s := range []string{"closed", "half-open", "open"} {
		v := 0.0
		if s == state {
			v = 1
		}
		m.breaker.WithLabelValues(upstream, s).Set(v)
	}
}

// Restored counts placeholders of a reply: those replaced, and those unknown.
func (m *Metrics) Restored(known, unknown int) {
	m.restored.Add(float64(known))
	m.unknown.Add(float64(unknown))
}

// ApprovalsPending sets how many questions wait.
func (m *Metrics) ApprovalsPending(n int) { m.approvals.Set(float64(n)) }

// StoreCommit records a commit to the store, and whether it failed.
func (m *Metrics) StoreCommit(d time.Duration, err error) {
	m.storeCommit.Observe(d.Seconds())
	if err != nil {
		m.storeFailure.Inc()
	}
}

// EnginePanic counts a reply of a model within Weir that a fault of ours ended.
func (m *Metrics) EnginePanic() { m.enginePanic.Inc() }

func statusClass(status int) string {
	switch {
	case status == 499:
		return "499" // the client left; not one of its errors
	case status >= 200 && status < 600:
		return string('0'+rune(status/100)) + "xx"
	}
	return other
}

func fold(value string, known []string) string {
	if slices.Contains(known, value) {
		return value
	}
	return other
}
