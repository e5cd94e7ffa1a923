# What the tests share: settings of their own, so that they hold whatever stands
# in data.yaml, and inputs to vary.
package weir.gate_test

settings := {
	"actions": {
		"NAME": "mask", "PLACE": "mask", "STORY": "ask_user", "NUMBER": "keep_local", "SECRET": "refuse",
		"FREE": "allow",
	},
	"unknown_label": "keep_local",
	"sources": {},
	"keys": {},
	"opaque": {"image": "keep_local", "audio": "ask_user", "file": "allow", "encrypted": "refuse", "unknown": "mask"},
	"min_score": {},
	"quasi_alone": "allow",
	"settled": {"ask_user": "mask", "keep_local": "mask"},
	"tainted": "allow",
	"sensitivity": {"personal": "allow", "sensitive": "allow"},
	"styles": {},
	"ask": {"timeout_seconds": 60, "on_timeout": "refuse", "choices": ["mask", "keep_local", "allow", "refuse"]},
	"words": {"NAME": "name of a person", "image": "picture"},
	"custom": {},
}

# request is a turn that would go to the cloud.
request(findings, opaque) := {
	"version": 1,
	"step": {"kind": "turn", "mode": "auto", "dialect": "chat", "model": "auto"},
	"destination": {"upstream": "cloud", "kind": "cloud"},
	"caller": {"key": "anonymous"},
	"task": {"tainted": false, "answer": ""},
	"sensitivity": {"score": 0, "class": "none"},
	"findings": findings,
	"opaque": opaque,
}

# found is one direct, certain, maskable finding in a user message;
# changes says what is different.
found(label, changes) := object.union(
	{
		"label": label, "source": "user", "field": "content", "tool": "", "rule": "", "score": 0.9, "count": 1,
		"direct": true, "settled": false, "answer": "", "maskable": true,
	},
	changes,
)

# unread is one piece of opaque content in a user message.
unread(kind, changes) := object.union(
	{"kind": kind, "source": "user", "count": 1, "settled": false, "answer": ""},
	changes,
)

# with_settings is the settings with some of them replaced.
with_settings(changes) := object.union(settings, changes)
