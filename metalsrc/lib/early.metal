// On NVIDIA a launch can begin while the one before it still runs. A kernel with
// a line "//@early" above it loads first what no launch shortly before it
// writes (weights, the state of the last token), then calls this, and only then
// touches what the launch before it made. It must call it on every path.
inline void inputs_ready() {
#ifdef MSL_CUDA
  MSL_CUDA_BEGIN
#endif
}

// Whether inputs come late: then what does not wait for them is loaded first,
// else it is loaded after them, so that they are at hand when it arrives.
#ifdef MSL_OVERLAP
constant bool INPUTS_LATE = true;
#else
constant bool INPUTS_LATE = false;
#endif
