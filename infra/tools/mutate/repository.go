package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// repositoryRoot is the directory of go.work, at or above the working directory.
func repositoryRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("no go.work here or above")
		}
		dir = up
	}
}

// choose returns the packages to mutate as slash paths below root: those asked
// for, or every core.
func choose(root string, asked []string) ([]string, error) {
	if len(asked) == 0 {
		return cores(root)
	}
	var chosen []string
	for _, a := range asked {
		p := path.Clean(filepath.ToSlash(a))
		if !fs.ValidPath(p) || !hasGo(filepath.Join(root, p)) {
			return nil, fmt.Errorf("%s is no package directory of this repository", a)
		}
		chosen = append(chosen, p)
	}
	return chosen, nil
}

func cores(root string) ([]string, error) {
	found, err := filepath.Glob(filepath.Join(root, "services", "*", "internal", "core", "*"))
	if err != nil {
		return nil, err
	}
	var all []string
	for _, dir := range found {
		if hasGo(dir) {
			rel, err := filepath.Rel(root, dir)
			if err != nil {
				return nil, err
			}
			all = append(all, filepath.ToSlash(rel))
		}
	}
	if len(all) == 0 {
		return nil, errors.New("there are no cores")
	}
	slices.Sort(all)
	return all, nil
}

func hasGo(dir string) bool {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	return err == nil && len(files) > 0
}

// skipped directories hold nothing that a module needs to build.
func skipped(name string) bool {
	return strings.HasPrefix(name, ".") || name == "node_modules" || name == "bin" || name == "data" || name == "tools"
}

// copyRepository copies the modules to dir, where each builds alone and from
// anywhere: what go.work replaces, each go.mod of the copy does, by a path from the root
// of the disk. Gremlins copies a module once more, without the workspace: a sibling
// that it does not find would make nothing build, and every mutant look killed.
func copyRepository(root, dir string) error {
	siblings, err := replaces(root, dir)
	if err != nil {
		return err
	}
	return filepath.WalkDir(root, func(from string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, from)
		if err != nil {
			return err
		}
		to := filepath.Join(dir, rel)
		switch {
		case entry.IsDir() && rel != "." && skipped(entry.Name()):
			return filepath.SkipDir
		case entry.IsDir():
			return os.MkdirAll(to, 0o755)
		case !entry.Type().IsRegular():
			return nil
		}
		data, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		if entry.Name() == "go.mod" {
			data = append(data, siblings...)
		}
		return os.WriteFile(to, data, 0o644)
	})
}

// replaces are the replace lines of root's go.work, for a copy in dir.
func replaces(root, dir string) (string, error) {
	work, err := os.ReadFile(filepath.Join(root, "go.work"))
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for line := range strings.Lines(string(work)) {
		head, target, ok := strings.Cut(line, "=> ")
		if ok && strings.HasPrefix(head, "replace ") {
			b.WriteString("\n" + head + "=> " + filepath.Join(dir, strings.TrimSpace(target)) + "\n")
		}
	}
	return b.String(), nil
}

// moduleDir is the directory of the go.mod at or above dir, not above root.
func moduleDir(root, dir string) (string, error) {
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == root || dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no go.mod above %s", dir)
		}
		dir = filepath.Dir(dir)
	}
}
