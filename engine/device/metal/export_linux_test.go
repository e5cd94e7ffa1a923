package metal

import "weir/engine/device"

// OpenWith opens a device of a stand-in's functions.
func OpenWith(f func(name string) uintptr, system string, opt Options) (*Device, error) {
	return open(newObjects(table(f)), system, opt)
}

// ProbeWith probes one.
func ProbeWith(f func(name string) uintptr, system string, opt Options) Report {
	return probe(newObjects(table(f)), system, opt)
}

func table(f func(name string) uintptr) entries {
	return entries{
		msgSend: f("fake_send"), registerName: f("fake_register"), getClass: f("fake_class"),
		poolPush: f("fake_push"), poolPop: f("fake_pop"), createDevice: f("fake_device"),
	}
}

// Selectors lists what is sent.
func Selectors() []string { return selectors() }

// Sends is how many sends a program makes each time it is started.
func Sends(p device.Program) int { return p.(*program).list.Len() }
