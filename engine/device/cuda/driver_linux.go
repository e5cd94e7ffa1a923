//go:build amd64 || arm64

package cuda

import (
	"fmt"

	"github.com/ebitengine/purego"
)

// driver is the part of libcuda that is used.
// https://docs.nvidia.com/cuda/cuda-driver-api/
type driver struct {
	initialize, driverVersion, getErrorName                                proc
	deviceGet, deviceGetCount, deviceGetAttribute, deviceGetName           proc
	ctxCreate, ctxDestroy, ctxSetCurrent, memInfo                          proc
	memAlloc, memFree, memsetAsync, hostAlloc, hostFree                    proc
	copyIn, copyOut, copyAcross                                            proc
	streamCreate, streamSynchronize                                        proc
	eventCreate, eventDestroy, eventRecord, eventSynchronize, eventElapsed proc
	moduleLoad, moduleFunction                                             proc
	funcGet, funcSet, launch, launchEx                                     proc
	graphCreate, graphDestroy, graphAddKernel, graphAddEdges               proc
	graphInstantiate, graphUpload, graphLaunch, graphExecDestroy           proc
	funcParam                                                              proc // zero before CUDA 12.4
}

// loadDriver opens libcuda.
func loadDriver(path string) (*driver, error) {
	if path == "" {
		path = "libcuda.so.1"
	}
	h, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fmt.Errorf("NVIDIA's driver is not installed: %w", err)
	}
	d := &driver{}
	err = resolve(h, map[string]*proc{
		"cuInit": &d.initialize, "cuDriverGetVersion": &d.driverVersion, "cuGetErrorName": &d.getErrorName,
		"cuDeviceGet": &d.deviceGet, "cuDeviceGetCount": &d.deviceGetCount, "cuDeviceGetAttribute": &d.deviceGetAttribute,
		"cuDeviceGetName": &d.deviceGetName,
		"cuCtxCreate_v2":  &d.ctxCreate, "cuCtxDestroy_v2": &d.ctxDestroy, "cuCtxSetCurrent": &d.ctxSetCurrent,
		"cuMemGetInfo_v2": &d.memInfo,
		"cuMemAlloc_v2":   &d.memAlloc, "cuMemFree_v2": &d.memFree, "cuMemsetD8Async": &d.memsetAsync,
		"cuMemHostAlloc": &d.hostAlloc, "cuMemFreeHost": &d.hostFree,
		"cuMemcpyHtoDAsync_v2": &d.copyIn, "cuMemcpyDtoHAsync_v2": &d.copyOut, "cuMemcpyDtoDAsync_v2": &d.copyAcross,
		"cuStreamCreate": &d.streamCreate, "cuStreamSynchronize": &d.streamSynchronize,
		"cuEventCreate": &d.eventCreate, "cuEventDestroy_v2": &d.eventDestroy, "cuEventRecord": &d.eventRecord,
		"cuEventSynchronize": &d.eventSynchronize, "cuEventElapsedTime": &d.eventElapsed,
		"cuModuleLoadData": &d.moduleLoad, "cuModuleGetFunction": &d.moduleFunction,
		"cuFuncGetAttribute": &d.funcGet, "cuFuncSetAttribute": &d.funcSet,
		"cuLaunchKernel": &d.launch, "cuLaunchKernelEx": &d.launchEx,
		"cuGraphCreate": &d.graphCreate, "cuGraphDestroy": &d.graphDestroy, "cuGraphAddKernelNode_v2": &d.graphAddKernel,
		"cuGraphAddDependencies_v2":   &d.graphAddEdges,
		"cuGraphInstantiateWithFlags": &d.graphInstantiate, "cuGraphUpload": &d.graphUpload, "cuGraphLaunch": &d.graphLaunch,
		"cuGraphExecDestroy": &d.graphExecDestroy,
	})
	if err != nil {
		return nil, fmt.Errorf("NVIDIA's driver is older than CUDA 12.3: %w", err)
	}
	if p, err := purego.Dlsym(h, "cuFuncGetParamInfo"); err == nil {
		d.funcParam = proc(p)
	}
	return d, nil
}

// resolve looks names up.
func resolve(h uintptr, names map[string]*proc) error {
	for name, p := range names {
		a, err := purego.Dlsym(h, name)
		if err != nil {
			return err
		}
		*p = proc(a)
	}
	return nil
}
