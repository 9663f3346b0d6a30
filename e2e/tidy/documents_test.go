package tidy

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// linkTarget matches the target of a Markdown link.
var linkTarget = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// links finds relative links of documents that lead nowhere.
func links(t *tree) []string {
	dirs := map[string]bool{".": true}
	for _, p := range t.paths {
		for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
			dirs[dir] = true
		}
	}
	var findings []string
	for _, p := range t.paths {
		if path.Ext(p) != ".md" {
			continue
		}
		for _, m := range linkTarget.FindAllStringSubmatch(t.text[p], -1) {
			target, _, _ := strings.Cut(m[1], "#")
			if target == "" || strings.Contains(target, ":") {
				continue
			}
			target = path.Join(path.Dir(p), target)
			// Files that are not text, and the licence, are not in the tree.
			_, known := t.text[target]
			if !known && !dirs[target] && isText(target) {
				findings = append(findings, fmt.Sprintf("%s: %s does not exist", p, target))
			}
		}
	}
	return findings
}

// section returns the lines of a Markdown document below a heading, up to the
// next one of the same depth.
func section(text, heading string) (string, bool) {
	_, rest, ok := strings.Cut("\n"+text, "\n"+heading+"\n")
	if !ok {
		return "", false
	}
	depth, _, _ := strings.Cut(heading, " ")
	body, _, _ := strings.Cut(rest, "\n"+depth+" ")
	return body, true
}

// features is the page of the feature index.
const features = "contracts/docs/features.md"

// featureEntry is one feature of the index: what it is, the files that decide about it, and the tests that show it.
var featureEntry = regexp.MustCompile(`^\*\*[^*]+\.\*\* [^\n]*\.\n  - decides: (\[[^]]+\]\([^)]+\)(,\s+)?)+\n  - shows: (\[[^]]+_test\.go\]\([^)]+_test\.go\)(,\s+)?)+\n$`)

// featureIndex: each feature has an entry there with the file that decides
// about it and the test that shows it; links checks that they exist.
func featureIndex(t *tree) []string {
	body, ok := section(t.text[features], "## Feature index")
	if !ok {
		return []string{features + ": there is no `## Feature index`"}
	}
	var findings []string
	entries := strings.Split(body, "\n- ")[1:]
	for _, entry := range entries {
		if !featureEntry.MatchString(strings.TrimSpace(entry) + "\n") {
			name, _, _ := strings.Cut(entry, "\n")
			findings = append(findings, fmt.Sprintf(
				features+": `- %s` is not `- **Name.** Sentence.`, `  - decides: [file](…)` and `  - shows: [x_test.go](…)`", name))
		}
	}
	if len(entries) == 0 {
		findings = append(findings, features+": the feature index is empty")
	}
	return findings
}

// decisionLinesMax keeps a decision readable in two minutes.
const decisionLinesMax = 60

// decisions: each has the four parts, and none is long.
func decisions(t *tree) []string {
	name := regexp.MustCompile(`^contracts/decisions/(\d{4})-[a-z0-9-]+\.md$`)
	number := map[string]string{}
	var findings []string
	for _, p := range t.paths {
		if path.Dir(p) != "contracts/decisions" {
			continue
		}
		m := name.FindStringSubmatch(p)
		if m == nil {
			findings = append(findings, p+": a decision is called 0001-what-was-decided.md")
			continue
		}
		if other := number[m[1]]; other != "" {
			findings = append(findings, fmt.Sprintf("%s: the number is taken by %s", p, other))
		}
		number[m[1]] = p
		if n := lines(t.text[p]); n > decisionLinesMax {
			findings = append(findings, fmt.Sprintf("%s has %d lines, at most %d are allowed", p, n, decisionLinesMax))
		}
		findings = append(findings, missingHeadings(p, t.text[p], "Context", "Decision", "Rejected", "How we would know it is wrong")...)
	}
	return findings
}

// released is the heading of a release in the changelog.
var released = regexp.MustCompile(`^## \[(\d+)\.(\d+)\.(\d+)\] - \d{4}-\d{2}-\d{2}$`)

// changelog holds CHANGELOG.md to the form of Keep a Changelog: Unreleased first, then the releases, the newest
// first, with sections of six names.
func changelog(t *tree) []string {
	const file = "CHANGELOG.md"
	sections := []string{"### Added", "### Changed", "### Deprecated", "### Removed", "### Fixed", "### Security"}
	var findings []string
	unreleased, newer := false, []int(nil)
	for line := range strings.Lines(t.text[file]) {
		line = strings.TrimSpace(line)
		m := released.FindStringSubmatch(line)
		switch {
		case strings.HasPrefix(line, "### "):
			if !slices.Contains(sections, line) {
				findings = append(findings, fmt.Sprintf("%s: %q is none of %q", file, line, sections))
			}
		case line == "## [Unreleased]" && newer == nil:
			unreleased = true
		case m != nil:
			version := make([]int, 3)
			for i := range version {
				version[i], _ = strconv.Atoi(m[i+1]) // digits, by the pattern
			}
			if newer != nil && slices.Compare(newer, version) <= 0 {
				findings = append(findings, fmt.Sprintf("%s: %q is not below the release before it", file, line))
			}
			newer = version
		case strings.HasPrefix(line, "## "):
			findings = append(findings, fmt.Sprintf("%s: %q is not `## [1.2.3] - 2026-12-31`", file, line))
		}
	}
	if !unreleased {
		findings = append(findings, file+": there is no `## [Unreleased]` before the releases")
	}
	return findings
}

// serviceReadmes: a reader of one knows where to look in the others.
func serviceReadmes(t *tree) []string {
	var findings []string
	services := map[string]bool{}
	for _, p := range t.paths {
		if words := strings.Split(p, "/"); words[0] == "services" {
			services[words[1]] = true
		}
	}
	for name := range services {
		p := "services/" + name + "/README.md"
		if text, ok := t.text[p]; ok {
			findings = append(findings, missingHeadings(p, text, "What it owns", "Picture", "States", "On failure", "Read in this order")...)
		} else {
			findings = append(findings, p+" does not exist")
		}
	}
	return findings
}

// missingHeadings are those of want that text lacks, or has in another order.
func missingHeadings(p, text string, want ...string) []string {
	var have []string
	for line := range strings.Lines(text) {
		if heading, ok := strings.CutPrefix(line, "## "); ok && slices.Contains(want, strings.TrimSpace(heading)) {
			have = append(have, strings.TrimSpace(heading))
		}
	}
	if !slices.Equal(have, want) {
		return []string{fmt.Sprintf("%s: the headings are %q, want %q in this order", p, have, want)}
	}
	return nil
}
