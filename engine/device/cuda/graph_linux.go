//go:build amd64 || arm64

package cuda

import (
	"errors"
	"slices"
	"unsafe"

	"weir/engine/device"
)

// nodeParams is CUDA_KERNEL_NODE_PARAMS_v2.
type nodeParams struct {
	f             uintptr
	grid, threads [3]uint32
	shared        uint32
	params, extra uintptr
	kernel, ctx   uintptr
}

// edgeData is CUgraphEdgeData.
type edgeData struct {
	fromPort, toPort, kind uint8
	_                      [5]uint8
}

// graph makes a graph of launches, of which each waits for deps, and
// instantiates it.
func (d *Device) graph(ls []*launch, deps [][]int, overlap bool) (exec uintptr, err error) {
	var g uintptr
	if err := d.check("make a graph", d.cu.graphCreate.call(uintptr(unsafe.Pointer(&g)), 0)); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, d.check("drop a graph", d.cu.graphDestroy.call(g))) }()
	nodes := make([]uintptr, len(ls))
	for i, l := range ls {
		p := nodeParams{f: l.f, grid: l.grid, threads: l.threads, shared: l.shared, params: l.paramList()}
		if err := d.check("add kernel "+l.kernel+" to a graph", d.cu.graphAddKernel.call(
			uintptr(unsafe.Pointer(&nodes[i])), g, 0, 0, uintptr(unsafe.Pointer(&p)))); err != nil {
			return 0, err
		}
	}
	if err := d.edges(g, nodes, deps, overlap); err != nil {
		return 0, err
	}
	if err := d.check("instantiate a graph", d.cu.graphInstantiate.call(uintptr(unsafe.Pointer(&exec)), g, 0)); err != nil {
		return 0, err
	}
	// The first launch would do this, and be slow.
	if err := d.check("upload a graph", d.cu.graphUpload.call(exec, d.stream)); err != nil {
		return 0, errors.Join(err, d.check("drop a graph", d.cu.graphExecDestroy.call(exec)))
	}
	return exec, nil
}

// edges states what waits for what. Where a launch is the only one to wait for
// another and waits for no third, it may be started early if launches overlap.
func (d *Device) edges(g uintptr, nodes []uintptr, deps [][]int, overlap bool) error {
	var from, to []uintptr
	var data []edgeData
	followers := make([]int, len(nodes))
	for _, list := range deps {
		for _, j := range list {
			followers[j]++
		}
	}
	for i, list := range deps {
		for _, j := range list {
			from, to = append(from, nodes[j]), append(to, nodes[i])
			e := edgeData{}
			if overlap && len(list) == 1 && followers[j] == 1 {
				e.fromPort, e.kind = 1, 1 // the port of griddepcontrol.launch_dependents, programmatic
			}
			data = append(data, e)
		}
	}
	if len(from) == 0 {
		return nil
	}
	return d.check("connect a graph", d.cu.graphAddEdges.call(g, uintptr(unsafe.Pointer(&from[0])),
		uintptr(unsafe.Pointer(&to[0])), uintptr(unsafe.Pointer(&data[0])), uintptr(len(from))))
}

// narrow makes dependencies stricter, until at most width launches can run side
// by side: each branch of a graph costs the GPU more than a launch in line.
func narrow(deps [][]int, width int) [][]int {
	out := make([][]int, len(deps))
	var tails []int // the last launch of each branch
	for i, list := range deps {
		out[i] = slices.Clone(list)
		branch := -1
		for b, t := range tails {
			if slices.Contains(list, t) && (branch < 0 || t > tails[branch]) {
				branch = b
			}
		}
		switch {
		case branch >= 0:
		case len(tails) < width:
			tails = append(tails, i)
			continue
		default: // the branch that has been idle for longest
			branch = slices.Index(tails, slices.Min(tails))
			out[i] = append(out[i], tails[branch])
		}
		tails[branch] = i
	}
	return device.Reduce(out)
}
