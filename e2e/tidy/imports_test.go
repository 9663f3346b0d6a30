package tidy

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Modules import downwards only: e2e → infra → services → shared → contracts.
// Tests obey this too, else a module would not build alone.
func moduleDirection(t *tree) []string {
	var findings []string
	for _, f := range t.code {
		for _, i := range f.imports {
			target, ours := strings.CutPrefix(i.path, repository)
			if !ours {
				continue
			}
			from, to := moduleOf(f.path), moduleOf(target)
			if from != to && rank(to) >= rank(from) {
				findings = append(findings, fmt.Sprintf("%s:%d: %s may not import %s: modules depend downwards (e2e, infra, services, shared, contracts), never back or sideways",
					f.path, i.line, from, target))
			}
		}
	}
	return findings
}

// topLevel: a person who opens the repository sees the layers, and nothing beside them.
func topLevel(t *tree) []string {
	var findings []string
	seen := map[string]bool{}
	for _, p := range t.paths {
		top, _, below := strings.Cut(p, "/")
		if !below || seen[top] || rank(top) >= 0 || strings.HasPrefix(top, ".") {
			continue
		}
		seen[top] = true
		findings = append(findings, fmt.Sprintf("%s: the top level is contracts, shared, services, infra, e2e and files", top))
	}
	return findings
}

// moduleOf is the module of a slash path: `services/history`.
func moduleOf(p string) string {
	first, rest, _ := strings.Cut(p, "/")
	if first == "services" || first == "infra" {
		second, _, _ := strings.Cut(rest, "/")
		return first + "/" + second
	}
	return first
}

func rank(module string) int {
	top, _, _ := strings.Cut(module, "/")
	return slices.Index([]string{"contracts", "shared", "services", "infra", "e2e"}, top)
}

// class is what the path of a package says about its purity.
type class int

const (
	leaf    class = iota // contracts and shared
	core                 // pure
	shell                // everything in a service that has no other word
	adapter              // nats…, redis…, mem…, api
	wiring               // a service's root and cmd: they put the parts together
	bench                // …test, …sim: suites and machines that tests share
	outside              // infra, e2e
)

func classOf(dir string) class {
	name := path.Base(dir)
	switch {
	case isTestPackage(dir):
		return bench
	case !strings.HasPrefix(dir, "services/"):
		if strings.HasPrefix(dir, "contracts/") || strings.HasPrefix(dir, "shared/") {
			return leaf
		}
		return outside
	case strings.Contains(dir, "/internal/core/"):
		return core
	case !strings.Contains(dir, "/internal/"):
		return wiring
	case name == "api" || libraryOf(dir) != "" || strings.HasPrefix(name, "mem"):
		return adapter
	}
	return shell
}

// isTestPackage tells whether a package is for tests only: suites that tests share, and the
// services' simulators, by which e2e reaches their cores.
func isTestPackage(dir string) bool {
	name := path.Base(dir)
	return strings.HasSuffix(name, "test") || dir == "shared/testkit" || strings.HasPrefix(dir, "shared/testkit/") || dir == "services/"+strings.TrimSuffix(name, "sim")+"/"+name
}

// The client libraries that only adapters touch.
const (
	libraryNATS  = "github.com/nats-io/"
	libraryRedis = "github.com/redis/"
)

// libraryOf is the library that a package of this name is an adapter of.
func libraryOf(dir string) string {
	switch name := path.Base(dir); {
	case strings.HasPrefix(name, "nats"), name == "api":
		return libraryNATS
	case strings.HasPrefix(name, "redis"):
		return libraryRedis
	}
	return ""
}

// leavesOnNATS are the packages of contracts and shared that wrap NATS.
var leavesOnNATS = []string{
	"contracts/catalog", "contracts/outbox", "contracts/yard", "contracts/yard/events",
	"shared/natsrpc", "shared/natslog", "shared/bucketwatch", "shared/quarantine", "shared/provision", "shared/ownership", "shared/storage", "shared/process",
}

// packageClasses holds who may import what, by class.
func packageClasses(t *tree) []string {
	allowed := exceptionsOf(t, "imports")
	findings := []string{}
	seen := map[string]bool{}
	for _, f := range t.code {
		if f.test {
			continue
		}
		for _, i := range f.imports {
			why := forbidden(f.dir(), i.path)
			key := f.dir() + "→" + strings.TrimPrefix(i.path, repository)
			if why == "" || seen[key] {
				continue
			}
			seen[key] = true
			findings = append(findings, allowed.compare(key, 1, 0, fmt.Sprintf("%s:%d: %s: %s", f.path, i.line, i.path, why))...)
		}
	}
	return append(findings, allowed.rest()...)
}

// forbidden says why a package in dir may not import target, or "".
func forbidden(dir, target string) string {
	ours, isOurs := strings.CutPrefix(target, repository)
	onNATS, onRedis := strings.HasPrefix(target, libraryNATS), strings.HasPrefix(target, libraryRedis)
	switch classOf(dir) {
	case leaf:
		if onRedis || onNATS && !slices.Contains(leavesOnNATS, dir) {
			return "this package wraps no client library"
		}
	case core:
		return forbiddenInCore(dir, target, ours, isOurs)
	case shell:
		if onNATS || onRedis {
			return "a shell talks to its ports (ports.go); the library belongs into an adapter"
		}
		if isOurs && classOf(ours) == adapter {
			return "a shell does not know its adapters; the service's root puts them together"
		}
	case adapter:
		if wraps := libraryOf(dir); (onNATS || onRedis) && (wraps == "" || !strings.HasPrefix(target, wraps)) {
			return "an adapter touches the library in its name only"
		}
		if isOurs && classOf(ours) == adapter && ours != dir {
			return "adapters do not know each other"
		}
		if isOurs && classOf(ours) == wiring {
			return "an adapter does not know what it is put into"
		}
	}
	return ""
}

// pure are values and nothing else: any core may use them.
var pure = []string{"contracts/ids", "contracts/fault", "shared/fair", "shared/heap", "shared/iwrr"}

// onMessages are cores whose subject is the messages of the API: what a request may say, and how several answers make one. A type of their
// own for each message would write the API down a second time. They are as pure as others, and other cores do not import them.
var onMessages = []string{"services/frontend/internal/core/gather", "services/frontend/internal/core/validate"}

// messagePure are what these may import besides: messages, and functions of messages.
var messagePure = []string{
	"contracts/busiest", "contracts/codec", "contracts/gen/logv1", "contracts/gen/rpcv1", "contracts/gen/yardv1", "contracts/topology",
	"shared/paging", "shared/schedule", "shared/terms",
}

func forbiddenInCore(dir, target, ours string, isOurs bool) string {
	if slices.Contains(onMessages, dir) && (slices.Contains(messagePure, ours) || target == "google.golang.org/protobuf/proto") {
		return ""
	}
	if slices.Contains(onMessages, ours) && !slices.Contains(onMessages, dir) {
		return "a core that reads messages is for shells: other cores know no message"
	}
	if !isOurs {
		first, _, _ := strings.Cut(target, "/")
		switch {
		case strings.Contains(first, "."):
			return "a core uses the standard library only"
		case slices.Contains([]string{"context", "net", "os", "sync", "log", "syscall", "unsafe", "io"}, first):
			return "a core is values in, values out: no waiting, no sharing, no outside world"
		}
		return ""
	}
	switch {
	case slices.Contains(pure, ours):
		return ""
	case classOf(ours) == core && moduleOf(ours) == moduleOf(dir):
		return ""
	}
	return "a core imports contracts/ids, contracts/fault, shared/fair, shared/heap, shared/iwrr and other cores of its service; requests and records are translated outside"
}

// testPackages are imported by tests and by each other only.
func testPackages(t *tree) []string {
	var findings []string
	for _, f := range t.code {
		if f.test || isTestPackage(f.dir()) || strings.HasPrefix(f.path, "e2e/") {
			continue
		}
		for _, i := range f.imports {
			if ours, ok := strings.CutPrefix(i.path, repository); ok && isTestPackage(ours) {
				findings = append(findings, fmt.Sprintf("%s:%d: %s is for tests only", f.path, i.line, ours))
			}
		}
	}
	return findings
}
