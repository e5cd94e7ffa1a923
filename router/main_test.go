package router_test

import (
	"testing"

	"weir/internal/weirtest/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }
