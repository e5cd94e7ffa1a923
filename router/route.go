package router

import (
	"context"
	"path"
	"slices"
	"strings"

	"weir/internal/wire"
)

// Alias is a model name of the configuration. Cloud and Local are
// "upstream/model", either may be empty.
type Alias struct {
	Mode         Mode
	Cloud, Local string
}

// Routes knows which upstream a model name means. It is immutable.
type Routes struct {
	Clouds  []CloudUpstream
	Locals  []LocalUpstream
	Aliases map[string]Alias
	// DefaultCloud and DefaultLocal are for requests that name no upstream:
	// "upstream/model", or "upstream" for whatever model is named. Empty means
	// the first upstream of the kind.
	DefaultCloud, DefaultLocal string
}

// route is where a request may go.
type route struct {
	Mode       Mode
	cloud      *CloudUpstream
	cloudModel string
	local      *LocalUpstream
	localModel string
}

func (r route) cloudSide(down bool) Side {
	if r.cloud == nil {
		return Side{}
	}
	return side(r.cloud.Caps, r.cloud.Healthy() && !down)
}

func (r route) localSide(down bool) Side {
	if r.local == nil {
		return Side{}
	}
	return side(r.local.Caps, r.local.Healthy() && !down)
}

func side(c Caps, healthy bool) Side {
	return Side{Configured: true, Healthy: healthy, Tools: !c.NoTools, Schema: !c.NoSchema, Vision: !c.NoVision, Context: c.Context}
}

// resolve finds the route of a model name. In this order: auto, local, cloud and
// what begins with them; aliases; upstream/model; a model that a local upstream
// has; any other name is a model of the default cloud upstream, so that a client
// made for that vendor works unchanged.
func (rs *Routes) resolve(ctx context.Context, model, auth string) (route, error) {
	var r route
	r.cloud, r.cloudModel = rs.defaultCloud()
	r.local, r.localModel = rs.defaultLocal()
	head, rest, _ := strings.Cut(model, "/")
	switch alias, ok := rs.Aliases[model]; {
	case ok:
		return rs.alias(ctx, alias, auth)
	case model == "auto":
		r.Mode = Auto
	case head == "local":
		r.Mode = WantLocal
		if rest != "" {
			r.local, r.localModel = rs.splitLocal(rest)
		}
	case head == "cloud":
		r.Mode = WantCloud
		if rest != "" {
			r.cloud, r.cloudModel = rs.splitCloud(rest)
		}
	case rs.named(head):
		if l := rs.findLocal(head); l != nil {
			r.Mode, r.local, r.localModel = WantLocal, l, rest
		} else {
			r.Mode, r.cloud, r.cloudModel = WantCloud, rs.findCloud(head), rest
		}
	default:
		if l := rs.localWith(ctx, model, auth); l != nil {
			r.Mode, r.local, r.localModel = WantLocal, l, model
		} else {
			r.Mode, r.cloudModel = WantCloud, model
			if u := rs.cloudWith(model); u != nil {
				r.cloud = u
			}
		}
	}
	return r, rs.known(ctx, r, model, auth)
}

// known says that the route leads somewhere, or lists what would. Which model is
// meant, where none was named, is found out only when it is needed: it may take a
// call to the server.
func (rs *Routes) known(ctx context.Context, r route, model, auth string) error {
	if r.cloud == nil && r.local == nil || r.Mode == WantCloud && r.cloud == nil && r.cloudModel == model {
		return rs.notFound(ctx, auth)
	}
	return nil
}

func (rs *Routes) alias(ctx context.Context, a Alias, auth string) (route, error) {
	r := route{Mode: a.Mode}
	if a.Cloud != "" {
		r.cloud, r.cloudModel = rs.splitCloud(a.Cloud)
	}
	if a.Local != "" {
		r.local, r.localModel = rs.splitLocal(a.Local)
	} else {
		r.local, r.localModel = rs.defaultLocal()
	}
	if r.Mode == "" {
		switch {
		case r.cloud == nil:
			r.Mode = WantLocal
		case a.Local == "":
			r.Mode = WantCloud
		default:
			r.Mode = Auto
		}
	}
	return r, rs.known(ctx, r, "", auth)
}

// firstModel is the model for requests that name none: the first that is
// configured, else the first that the server lists.
func firstModel(ctx context.Context, u Upstream, c Caps, auth string) string {
	for _, m := range c.Models {
		if !strings.ContainsAny(m, "*?[") {
			return m
		}
	}
	models, err := u.Models(ctx, auth)
	if err != nil || len(models) == 0 {
		return "default"
	}
	return models[0].ID
}

// splitCloud reads "upstream/model", or "model" of the default upstream.
func (rs *Routes) splitCloud(name string) (*CloudUpstream, string) {
	head, rest, _ := strings.Cut(name, "/")
	if u := rs.findCloud(head); u != nil {
		return u, rest
	}
	u, _ := rs.defaultCloud()
	return u, name
}

func (rs *Routes) splitLocal(name string) (*LocalUpstream, string) {
	head, rest, _ := strings.Cut(name, "/")
	if u := rs.findLocal(head); u != nil {
		return u, rest
	}
	u, _ := rs.defaultLocal()
	return u, name
}

func (rs *Routes) named(name string) bool {
	return rs.findCloud(name) != nil || rs.findLocal(name) != nil
}

func (rs *Routes) findCloud(name string) *CloudUpstream {
	for i := range rs.Clouds {
		if rs.Clouds[i].Name() == name {
			return &rs.Clouds[i]
		}
	}
	return nil
}

func (rs *Routes) findLocal(name string) *LocalUpstream {
	for i := range rs.Locals {
		if rs.Locals[i].Name() == name {
			return &rs.Locals[i]
		}
	}
	return nil
}

// defaultCloud returns the upstream and model, if one is set, of requests that
// name none.
func (rs *Routes) defaultCloud() (*CloudUpstream, string) {
	if rs.DefaultCloud == "" {
		if len(rs.Clouds) == 0 {
			return nil, ""
		}
		return &rs.Clouds[0], ""
	}
	name, model, _ := strings.Cut(rs.DefaultCloud, "/")
	return rs.findCloud(name), model
}

func (rs *Routes) defaultLocal() (*LocalUpstream, string) {
	if rs.DefaultLocal == "" {
		if len(rs.Locals) == 0 {
			return nil, ""
		}
		return &rs.Locals[0], ""
	}
	name, model, _ := strings.Cut(rs.DefaultLocal, "/")
	return rs.findLocal(name), model
}

// serves says that one of an upstream's configured names is the model's, or a
// pattern that fits it: in "qwen3:*" the star stands for any text.
func (c Caps) serves(model string) bool {
	// path.Match keeps its star out of slashes, which model names may hold.
	plain := strings.NewReplacer("/", "\x00")
	return slices.ContainsFunc(c.Models, func(m string) bool {
		ok, err := path.Match(plain.Replace(m), plain.Replace(model))
		return err == nil && ok
	})
}

// cloudWith returns the cloud upstream that is configured for the model, or nil.
func (rs *Routes) cloudWith(model string) *CloudUpstream {
	for i := range rs.Clouds {
		if rs.Clouds[i].Caps.serves(model) {
			return &rs.Clouds[i]
		}
	}
	return nil
}

// localWith returns the local upstream that has the model, or nil.
func (rs *Routes) localWith(ctx context.Context, model, auth string) *LocalUpstream {
	for i := range rs.Locals {
		if rs.Locals[i].Caps.serves(model) {
			return &rs.Locals[i]
		}
	}
	if rs.cloudWith(model) != nil {
		return nil
	}
	for i := range rs.Locals {
		models, err := rs.Locals[i].Models(ctx, auth)
		if err == nil && slices.ContainsFunc(models, func(m Model) bool { return m.ID == model }) {
			return &rs.Locals[i]
		}
	}
	return nil
}

func (rs *Routes) notFound(ctx context.Context, auth string) error {
	names := make([]string, 0, 8)
	for _, m := range rs.list(ctx, auth) {
		names = append(names, m.ID)
		if len(names) == 20 {
			names = append(names, "...")
			break
		}
	}
	// The name itself is the client's text and is not repeated.
	e := wire.Errorf(wire.CodeModelNotFound, "no upstream serves this model; known names: %s", strings.Join(names, ", "))
	e.Param = "model"
	return e
}

// list returns all model names that resolve: the aliases, auto if it has a
// meaning, and the models of all upstreams that answer.
func (rs *Routes) list(ctx context.Context, auth string) []Model {
	var out []Model
	if len(rs.Clouds)+len(rs.Locals) > 0 {
		out = append(out, Model{ID: "auto", OwnedBy: "weir"})
	}
	for name := range rs.Aliases {
		out = append(out, Model{ID: name, OwnedBy: "weir"})
	}
	slices.SortFunc(out, func(a, b Model) int { return strings.Compare(a.ID, b.ID) })
	for i := range rs.Clouds {
		out = append(out, listed(ctx, "cloud", &rs.Clouds[i], rs.Clouds[i].Caps, len(rs.Clouds) > 1, auth)...)
	}
	for i := range rs.Locals {
		out = append(out, listed(ctx, "local", &rs.Locals[i], rs.Locals[i].Caps, len(rs.Locals) > 1, auth)...)
	}
	return out
}

// listed returns an upstream's models under the names that route to it.
func listed(ctx context.Context, kind string, u Upstream, c Caps, several bool, auth string) []Model {
	models, err := u.Models(ctx, auth)
	if err != nil {
		models = nil
		for _, m := range c.Models {
			if !strings.ContainsAny(m, "*?[") {
				models = append(models, Model{ID: m, OwnedBy: u.Name()})
			}
		}
	}
	out := make([]Model, len(models))
	for i, m := range models {
		out[i] = m
		out[i].ID = kind + "/" + m.ID
		if several {
			out[i].ID = kind + "/" + u.Name() + "/" + m.ID
		}
	}
	return out
}
