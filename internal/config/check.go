package config

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"weir/local"
	"weir/pii"
)

// Words that keys may have as their value.
func modes() []string      { return []string{"auto", "local", "cloud"} }
func actions() []string    { return []string{"allow", "mask", "ask_user", "keep_local", "refuse"} }
func styles() []string     { return []string{"placeholder", "surrogate"} }
func capable() []string    { return []string{"tools", "schema", "vision"} }
func levels() []string     { return []string{"debug", "info", "warn", "error"} }
func formats() []string    { return []string{"text", "json"} }
func syncs() []string      { return []string{SyncNormal, SyncFull} }
func kinds() []string      { return []string{KindCloud, KindLocal} }
func tokenNames() []string { return []string{"", "max_tokens", "max_completion_tokens"} }

// check looks at what the keys say, alone and together.
func (l *loader) check() {
	c := &l.cfg
	l.checkListen(c)
	l.checkOrigins(c)
	l.checkKeys(c)
	for i := range c.Upstreams {
		l.checkUpstream(c, i)
	}
	l.checkModels(c)
	l.checkPolicy(c, l.checkRecognizers(c))
	l.checkStore(c)
	l.oneOf("log.level", c.Log.Level, levels())
	l.oneOf("log.format", c.Log.Format, formats())
	for key, n := range map[string]int{
		"limits.body_bytes": int(c.Limits.BodyBytes), "limits.concurrent": c.Limits.Concurrent, "limits.depth": c.Limits.Depth,
	} {
		if n <= 0 {
			l.problem(key, "must be more than 0", "")
		}
	}
	for key, d := range map[string]time.Duration{
		"policy.timeout": c.Policy.Timeout, "approvals.timeout": c.Approvals.Timeout, "store.retention": c.Store.Retention,
		"limits.header_timeout": c.Limits.HeaderTimeout, "limits.body_timeout": c.Limits.BodyTimeout, "limits.scan_timeout": c.Limits.ScanTimeout,
	} {
		if d <= 0 {
			l.problem(key, "must be longer than 0", "")
		}
	}
}

// sort puts the problems in the order of their places.
func (l *loader) sort() {
	slices.SortStableFunc(l.problems, func(a, b *Problem) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), strings.Compare(a.Key, b.Key))
	})
}

func (l *loader) oneOf(key, value string, words []string) {
	if slices.Contains(words, value) {
		return
	}
	hint := ""
	if near := nearest(value, words); near != "" {
		hint = "did you mean " + near + "?"
	}
	shown := slices.DeleteFunc(slices.Clone(words), func(w string) bool { return w == "" })
	l.problem(key, "must be one of "+strings.Join(shown, ", "), hint)
}

func (l *loader) checkListen(c *Config) {
	host, port, err := net.SplitHostPort(c.Listen)
	if err != nil {
		l.problem("listen", "must be an address and a port, as in 127.0.0.1:8642", "")
		return
	}
	if n, err := net.LookupPort("tcp", port); err != nil || n < 0 {
		l.problem("listen", "the port is not one", "")
	}
	if loopback(host) {
		return
	}
	if !c.AllowRemote {
		l.problem("listen", "other machines could reach this address", "use 127.0.0.1, or set allow_remote: true")
	}
	if len(c.ClientKeys) == 0 {
		l.problem("client_keys", "must be set when other machines can reach Weir", "add client_keys: {laptop: env:WEIR_LAPTOP_KEY}")
	}
}

func loopback(host string) bool {
	if a, err := netip.ParseAddr(host); err == nil {
		return a.Unmap().IsLoopback()
	}
	return host == "localhost"
}

func (l *loader) checkOrigins(c *Config) {
	for i, h := range c.Hosts {
		if h == "" || strings.ContainsAny(h, "*/ ") {
			l.problem(indexed("hosts", i), "must be one host name or address, without wildcard", "")
		}
	}
	for i, o := range c.Origins {
		u, err := url.Parse(o)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.Path != "" || u.User != nil || u.RawQuery != "" || strings.Contains(o, "*") {
			l.problem(indexed("origins", i), "must be scheme and host of a page, as in https://app.example", "")
		}
	}
}

func indexed(key string, i int) string { return fmt.Sprintf("%s[%d]", key, i) }

func (l *loader) checkKeys(c *Config) {
	for _, name := range slices.Sorted(maps.Keys(c.ClientKeys)) {
		key := join("client_keys", name)
		if s := c.ClientKeys[name]; s.IsZero() || s.Client() || s.Auto() {
			l.problem(key, errLiteral.Error(), hintLiteral)
		}
		if !upstreamName.MatchString(name) {
			l.problem(key, "a name has small letters, digits, - and _ only", "")
		}
	}
}

var upstreamName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)

func (l *loader) checkUpstream(c *Config, i int) {
	u, key := &c.Upstreams[i], indexed("upstreams", i)
	l.checkName(c, i)
	l.oneOf(key+".kind", u.Kind, kinds())
	if u.Engine.Checkpoint != "" {
		l.checkEngine(u, key)
	} else {
		l.checkBaseURL(u, key)
	}
	switch {
	case u.APIKey.Auto():
		l.problem(key+".api_key", "auto is not a key that a server knows", hintLiteral)
	case u.APIKey.Client() && len(c.ClientKeys) > 0:
		l.problem(key+".api_key", "must be set: with client_keys the header of a client holds its key for Weir, not for the server", hintLiteral)
	}
	if u.Timeout <= 0 {
		l.problem(key+".timeout", "must be longer than 0", "")
	}
	if u.ContextLength < 0 {
		l.problem(key+".context_length", "must not be negative", "")
	}
	for j, h := range u.AllowHosts {
		if err := local.CheckAllowHost(h); err != nil {
			l.problem(indexed(key+".allow_hosts", j), "must be one host on the private network, without port or wildcard", "")
		}
	}
	for j, v := range u.Capabilities {
		l.oneOf(indexed(key+".capabilities", j), v, capable())
	}
	for name, v := range u.Headers {
		l.checkHeader(join(key+".headers", name), name, v)
	}
	l.oneOf(key+".profile.max_tokens_field", u.Profile.MaxTokensField, tokenNames())
	for j, d := range u.Profile.Drop {
		if slices.Contains([]string{"model", "messages", "input", "stream"}, d) {
			l.problem(indexed(key+".profile.drop", j), "a request makes no sense without this", "")
		}
	}
}

func (l *loader) checkName(c *Config, i int) {
	u, key := c.Upstreams[i], indexed("upstreams", i)
	name := key + ".name"
	switch {
	case u.Name == "":
		l.problem(key, "has no name", "")
	case !upstreamName.MatchString(u.Name):
		l.problem(name, "a name has small letters, digits, - and _ only", "")
	case u.Name == "auto" || u.Name == "hybrid":
		l.problem(name, "this name asks Weir to choose a server", "")
	case (u.Name == KindCloud || u.Name == KindLocal) && u.Name != u.Kind:
		l.problem(name, "a server of this name must be of this kind", "")
	case slices.IndexFunc(c.Upstreams, func(o Upstream) bool { return fold(o.Name) == fold(u.Name) }) < i:
		l.problem(name, "another server has this name", "")
	}
}

// checkEngine checks an upstream that is no server.
func (l *loader) checkEngine(u *Upstream, key string) {
	if u.Kind != KindLocal {
		l.problem(key+".kind", "a model that runs within Weir must be of kind local", "")
	}
	if u.BaseURL != "" {
		l.problem(key+".base_url", "must not be set beside engine.checkpoint", "an upstream is a server or a model within Weir")
	}
	if !slices.Contains(Backends(), u.Engine.Backend) {
		l.problem(key+".engine.backend", "must be auto, cpu, cuda or metal", "")
	}
	if u.Engine.Threads < 0 {
		l.problem(key+".engine.threads", "must not be negative", "")
	}
	if u.Engine.Cache <= 0 {
		l.problem(key+".engine.cache", "must be more than 0", "")
	}
}

func (l *loader) checkBaseURL(u *Upstream, key string) {
	if u.BaseURL == "" {
		l.problem(key+".base_url", "must be set", "as in https://api.openai.com/v1")
		return
	}
	key += ".base_url"
	if u.Kind == KindLocal {
		if err := local.CheckURL(u.BaseURL, u.AllowHosts); err != nil {
			// The error names the host and never the whole URL.
			l.problem(key, err.Error(), "a host of your own network that you trust goes into allow_hosts")
		}
		return
	}
	b, err := url.Parse(u.BaseURL)
	switch {
	case err != nil || b.Host == "" || b.Scheme != "https" && b.Scheme != "http":
		l.problem(key, "must begin with https:// and name a host", "")
	case b.User != nil:
		l.problem(key, "must not hold a user name or password", "use api_key or headers")
	case b.Scheme == "http" && !loopback(b.Hostname()) && !slices.Contains(u.AllowHosts, b.Hostname()):
		l.problem(key, "plain http would show keys and prompts to the network", "use https, or name the host in allow_hosts")
	}
}

// secretHeader finds headers whose value is a credential by their name.
var secretHeader = regexp.MustCompile(`(?i)authorization|cookie|key|token|secret|password`)

func (l *loader) checkHeader(key, name string, v Value) {
	switch {
	case !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(v.text):
		l.problem(key, "not a header that HTTP allows", "")
	case secretHeader.MatchString(name) && v.ref.IsZero():
		l.problem(key, errLiteral.Error(), hintLiteral)
	case v.ref.Client() || v.ref.Auto():
		l.problem(key, errLiteral.Error(), hintLiteral)
	}
}

func (l *loader) checkModels(c *Config) {
	for _, name := range slices.Sorted(maps.Keys(c.Models)) {
		a, key := c.Models[name], join("models", name)
		if a.Cloud == "" && a.Local == "" {
			l.problem(key, "names no model: give cloud, local or both", "")
		}
		l.checkTarget(c, key+".cloud", a.Cloud, KindCloud)
		l.checkTarget(c, key+".local", a.Local, KindLocal)
		if a.Mode != "" {
			l.oneOf(key+".mode", a.Mode, modes())
		}
		switch {
		case a.Mode == "local" && a.Local == "":
			l.problem(key+".mode", "local, and no local model is named", "")
		case a.Mode == "cloud" && a.Cloud == "":
			l.problem(key+".mode", "cloud, and no cloud model is named", "")
		}
	}
	l.checkTarget(c, "default_cloud", c.DefaultCloud, KindCloud)
	l.checkTarget(c, "default_local", c.DefaultLocal, KindLocal)
}

// checkTarget checks upstream/model. It never shows the kind of a mistake that
// would send to the cloud what was meant to stay.
func (l *loader) checkTarget(c *Config, key, target, kind string) {
	if target == "" || l.below("upstreams") {
		return
	}
	name, _, _ := strings.Cut(target, "/")
	i := slices.IndexFunc(c.Upstreams, func(u Upstream) bool { return u.Name == name })
	switch {
	case i < 0:
		names := make([]string, len(c.Upstreams))
		for j, u := range c.Upstreams {
			names[j] = u.Name
		}
		hint := "write upstream/model; there is no upstream yet"
		if len(names) > 0 {
			hint = "write upstream/model; the upstreams are " + strings.Join(names, ", ")
		}
		l.problem(key, "names no upstream", hint)
	case c.Upstreams[i].Kind != kind:
		l.problem(key, "the upstream is not a "+kind+" one", "")
	}
}

// below says that something at key or below it could not be read.
func (l *loader) below(key string) bool {
	for k := range l.faulty {
		if k == key || strings.HasPrefix(k, key+".") || strings.HasPrefix(k, key+"[") {
			return true
		}
	}
	return false
}

// checkPolicy checks the policy's keys; own are the labels of the user's
// recognizers.
func (l *loader) checkPolicy(c *Config, own []string) {
	labels := own
	for _, i := range pii.Labels() {
		labels = append(labels, string(i.Label))
	}
	for _, label := range slices.Sorted(maps.Keys(c.Policy.Actions)) {
		if !slices.Contains(opaqueKinds(), label) {
			l.checkLabel(join("policy.actions", label), label, labels)
		}
		l.oneOf(join("policy.actions", label), c.Policy.Actions[label], actions())
	}
	for _, label := range slices.Sorted(maps.Keys(c.Policy.Styles)) {
		l.checkLabel(join("policy.styles", label), label, labels)
		l.oneOf(join("policy.styles", label), c.Policy.Styles[label], styles())
	}
}

// opaqueKinds are the kinds of content that cannot be examined, as keys of
// policy.actions. Text that was not examined in time is not among them: what is
// done with that is for a policy of one's own.
func opaqueKinds() []string { return []string{"IMAGE", "AUDIO", "FILE", "ENCRYPTED", "UNKNOWN"} }

func (l *loader) checkLabel(key, label string, labels []string) {
	if slices.Contains(labels, label) || l.below("recognizers") {
		return
	}
	hint := "labels are written as PERSON_NAME or IBAN; one of your own needs a recognizer"
	if near := nearest(label, labels); near != "" {
		hint = "did you mean " + near + "?"
	}
	l.problem(key, "no label of this name", hint)
}

func (l *loader) checkStore(c *Config) {
	l.oneOf("store.sync", c.Store.Sync, syncs())
	switch {
	case c.Store.Key.Client() || c.Store.Key.IsZero():
		l.problem("store.key", "must be auto or a reference to a key", hintLiteral)
	case c.Store.Path == "":
		l.problem("store.path", "must be set: this system names no place for data", "set data_dir")
	}
}
