package install

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/shared/process"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// within bounds one go command: it compiles everything where the build cache is cold.
const within = 9 * time.Minute

// visitor is a machine that has Go and nothing of ours.
type visitor struct {
	t    *testing.T
	path string // GOPATH
	env  []string
}

// TestInstall is one visitor that does all of it, one step after the other: modules are unpacked once, and each step
// begins in a folder of its own.
func TestInstall(t *testing.T) {
	testkit.Slow(t, "has the go command install modules")
	modules, err := readModules()
	testkit.NoError(t, err)
	s := newVisitor(t, modules)
	t.Run("the command", func(t *testing.T) { s.of(t).installsTheCommand(modules) })
	t.Run("a program that uses the SDK", func(t *testing.T) { s.of(t).usesTheSDK(modules) })
	t.Run("every module names what it needs", func(t *testing.T) { s.of(t).namesWhatItNeeds(modules) })
}

// newVisitor is one whose proxy has the modules.
func newVisitor(t *testing.T, modules []published) visitor {
	t.Helper()
	proxy := t.TempDir()
	testkit.NoError(t, newProxy(proxy, modules))
	cache, err := exec.Command("go", "env", "GOMODCACHE").Output()
	testkit.NoError(t, err)
	for _, m := range modules {
		fill(t, m, modules)
	}
	others := filepath.Join(strings.TrimSpace(string(cache)), "cache", "download")
	s := visitor{t: t, path: t.TempDir()}
	s.env = append(
		os.Environ(), "GOPATH="+s.path, "GOMODCACHE="+filepath.Join(s.path, "pkg", "mod"), "GOBIN="+filepath.Join(s.path, "bin"),
		"GOPROXY=file://"+filepath.ToSlash(proxy)+",file://"+filepath.ToSlash(others),
		"GOWORK=off", "GOENV=off", "GOTOOLCHAIN=local", "GOSUMDB=off", "GONOSUMDB=", "GOPRIVATE=", "GONOPROXY=", "GOVCS=*:off",
		// Writable, so that the folder can be removed; without paths, so that the build cache knows what did not change; without what debuggers read,
		// for a shorter link.
		"GOFLAGS=-modcacherw -trimpath -ldflags=-w",
	)
	return s
}

// of is the visitor in a further test.
func (s visitor) of(t *testing.T) visitor {
	s.t = t
	return s
}

// fill has the module cache hold what a module needs when it is alone, as a build of it would: in the
// workspace others may raise the versions. It has the other modules from here. It is the one step for which the machine's own proxy is asked,
// if something is missing.
func fill(t *testing.T, m published, modules []published) {
	t.Helper()
	if m.Path == repository {
		return // it requires all others, and this test is built with it
	}
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	alone := copyOf(t, m)
	for _, other := range modules {
		from, err := filepath.Abs(filepath.Join(root, other.dir))
		testkit.NoError(t, err)
		if out, err := exec.CommandContext(ctx, "go", "mod", "edit", "-replace", other.Path+"="+from, alone).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", m.dir, err, out)
		}
	}
	cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-mod=mod", "-modfile="+alone, "./...")
	cmd.Dir, cmd.Env = filepath.Join(root, m.dir), append(os.Environ(), "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", m.dir, err, out)
	}
}

// copyOf is the path of a copy of a module's go.mod, beside one of its go.sum.
func copyOf(t *testing.T, m published) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(root, m.dir, name))
		testkit.NoError(t, err)
		testkit.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o644))
	}
	return filepath.Join(dir, "go.mod")
}

// run runs a program in dir and returns what it wrote to its output.
func (s visitor) run(dir, name string, args ...string) string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), within)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, s.env
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		s.t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, errs.String())
	}
	return string(out)
}

// installsTheCommand installs the command and a service by path and version, outside of the repository.
func (s visitor) installsTheCommand(modules []published) {
	t := s.t
	at := slices.IndexFunc(modules, func(m published) bool { return m.Path == repository })
	if at < 0 {
		t.Fatal("go.work does not use the module at the root")
	}
	version := modules[at].Version
	s.run(t.TempDir(), "go", "install", repository+"/infra/yard@"+version, repository+"/services/history/cmd/history@"+version)
	program := func(name string) string { return filepath.Join(s.path, "bin", name+exe()) }
	s.run(t.TempDir(), program("history"), "--help")
	var told struct{ Version string }
	testkit.NoError(t, json.Unmarshal([]byte(s.run(t.TempDir(), program("yard"), "version", "--output", "json")), &told))
	if told.Version != version || version != "v"+process.Version {
		t.Errorf("the command says that it is %s, its module was asked for as %s, and the services say %s", told.Version, version, process.Version)
	}
}

// usesTheSDK builds a program of somebody who requires nothing but the SDK's module.
func (s visitor) usesTheSDK(modules []published) {
	t := s.t
	at := slices.IndexFunc(modules, func(m published) bool { return strings.HasSuffix(m.Path, "/contracts") })
	if at < 0 {
		t.Fatal("go.work does not use contracts")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":  fmt.Sprintf("module example.com/program\n\ngo 1.26.0\n\nrequire %s %s\n", modules[at].Path, modules[at].Version),
		"main.go": "package main\n\nimport \"" + modules[at].Path + "/yard\"\n\nfunc main() { _ = yard.Task{} }\n",
	} {
		testkit.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	s.run(dir, "go", "build", "-mod=mod", "-o", os.DevNull, ".")
	// What the engine needs is not forced upon those who only call it.
	if needs := s.run(dir, "go", "mod", "graph"); strings.Contains(needs, "nats-server") || strings.Contains(needs, "redis") {
		t.Errorf("a program with the SDK requires\n%s", needs)
	}
}

// namesWhatItNeeds finds all packages of each module without the workspace, and builds those that people use alone: its go.mod names every module that they
// need, in a version that will do. The one at the root is installed above, and has the versions of the workspace, since it requires all others.
func (s visitor) namesWhatItNeeds(modules []published) {
	t := s.t
	for _, m := range modules {
		alone := copyOf(t, m) // the archive of a module of ours has no sum before it is published
		dir := filepath.Join(root, m.dir)
		find := []string{"list", "-deps"}
		if m.Path != repository {
			find = []string{"build"}
		}
		s.run(dir, "go", append(find, "-mod=mod", "-modfile="+alone, "./...")...)
		var before, after struct {
			Require []struct{ Path, Version string }
		}
		for file, into := range map[string]any{filepath.Join(dir, "go.mod"): &before, alone: &after} {
			testkit.NoError(t, json.Unmarshal([]byte(s.run(".", "go", "mod", "edit", "-json", file)), into))
		}
		if !slices.Equal(before.Require, after.Require) {
			t.Errorf("%s lacks requirements: it has %v, its packages want %v", filepath.Join(m.dir, "go.mod"), before.Require, after.Require)
		}
	}
}

// exe is the ending of a program's file.
func exe() string {
	if runtime.GOOS == "windows" {
		return ".exe"
	}
	return ""
}
