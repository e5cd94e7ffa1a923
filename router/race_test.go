//go:build race

package router_test

// raceDetector says that the race detector is on, which makes all of this about
// ten times slower.
const raceDetector = true
