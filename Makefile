# Each target is one line that you could type.
tool = go tool -modfile=internal/tools/go.mod

.PHONY: help build demo test kernels race fuzz lint format bench cross ci clean

help:      ## Show this.
	@sed -n 's/^\([a-z]*\): *## /\1\t/p' Makefile | expand -t 12

build:     ## The binary, for this machine.
	CGO_ENABLED=0 go build -trimpath -o weir ./cmd/weir

demo:      ## Watch it work.
	go run ./cmd/weir demo

test:      ## All tests, in random order.
	go test -shuffle=on ./...

kernels:   ## The GPU's kernels, on an emulator that watches every load and store.
	go test ./metalsrc/... ./engine/device/...

race:      ## The tests of what runs concurrently, with the race detector.
	go test -race ./internal/... ./router/... ./local/... ./pii ./pii/mask ./engine/device/...

fuzz:      ## One fuzz target for a minute: make fuzz in=./internal/wire target=FuzzSplice
	go test -run '^$$' -fuzz '^$(target)$$' -fuzztime 1m $(in)

lint:      ## Format, vet, staticcheck.
	test -z "$$($(tool) gofumpt -l .)" && go vet ./... && $(tool) staticcheck ./...

format:    ## Write all Go files as gofumpt wants them.
	$(tool) gofumpt -w .

bench:     ## What Weir adds to a request, beside a bare reverse proxy.
	go run ./cmd/weir bench

cross:     ## The three targets, without cgo.
	for t in linux/amd64 linux/arm64 darwin/arm64; do CGO_ENABLED=0 GOOS=$${t%/*} GOARCH=$${t#*/} go build -trimpath -o dist/$${t%/*}-$${t#*/}/weir ./cmd/weir || exit 1; done

ci:        ## What must pass before a change lands.
	.ci/run

clean:     ## Remove what was built.
	rm -rf weir dist
