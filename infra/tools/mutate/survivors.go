package main

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
)

// survivorsFile lists the mutants that may live. A line is
// `<path>:<func> <mutation type> <reason>`; a line each, also for two of one function
// and type.
const survivorsFile = "infra/tools/mutate/survivors.txt"

// survivor is a line of survivorsFile.
type survivor struct {
	key    string // path:func type
	path   string
	reason string
}

func readSurvivors(at string) ([]survivor, error) {
	text, err := os.ReadFile(at)
	if err != nil {
		return nil, err
	}
	return parseSurvivors(string(text))
}

func parseSurvivors(text string) ([]survivor, error) {
	var all []survivor
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		place, rest, _ := strings.Cut(line, " ")
		typ, reason, _ := strings.Cut(strings.TrimSpace(rest), " ")
		file, fn, _ := strings.Cut(place, ":")
		if reason = strings.TrimSpace(reason); file == "" || fn == "" || typ == "" || reason == "" {
			return nil, fmt.Errorf("%s: %q is not `<path>:<func> <mutation type> <reason>`", survivorsFile, line)
		}
		all = append(all, survivor{key: place + " " + typ, path: file, reason: reason})
	}
	return all, nil
}

// explain gives each mutant that lived its reason, and returns what is wrong: the
// packages below their marks, survivors without a reason, and reasons without a
// survivor. Where all packages were run, a reason for any other is one too many; in a
// sample none is: its survivor may be left out.
func explain(results []result, list []survivor, all, sampled bool) []string {
	var findings []string
	list = slices.Clone(list)
	run := map[string]bool{}
	for i := range results {
		r := &results[i]
		run[r.Package] = true
		findings = append(findings, r.below()...)
		for j := range r.Mutants {
			m := &r.Mutants[j]
			if m.Status != statusLived {
				continue
			}
			key := fmt.Sprintf("%s/%s:%s %s", r.Package, m.File, m.Func, m.Type)
			at := slices.IndexFunc(list, func(s survivor) bool { return s.key == key })
			if at < 0 {
				findings = append(findings, fmt.Sprintf("%s/%s:%d: %s lived in %s without a reason", r.Package, m.File, m.Line, m.Type, m.Func))
				continue
			}
			m.Reason = list[at].reason
			list = slices.Delete(list, at, at+1)
		}
	}
	if sampled {
		return findings
	}
	for _, s := range list {
		if all || run[path.Dir(s.path)] {
			findings = append(findings, fmt.Sprintf("%s: %s is no longer needed: delete the line", survivorsFile, s.key))
		}
	}
	return findings
}
