//go:build !race

package router_test

const raceDetector = false
