package tidy

import (
	"fmt"
	"slices"
	"strings"
)

// versions: one workspace, one version of each direct dependency, one language
// version. No go.mod has a replace line, with which `go install` refuses a module. What
// one module requires of another is the working tree's by a line in go.work.
func versions(t *tree) []string {
	var findings []string
	work := parseModule("go.work", t.text["go.work"])
	first := map[string]string{} // dependency → version
	where := map[string]string{}
	language := ""
	for _, m := range t.mods {
		for _, r := range m.replaces {
			findings = append(findings, fmt.Sprintf("%s/go.mod: a replace line for %s: no one could install from this module; put it into go.work", m.dir, r.path))
		}
		if strings.HasPrefix(m.dir, "infra/tools/") {
			continue // tools are no part of the system
		}
		if language == "" {
			language = m.language
		}
		if m.language != language {
			findings = append(findings, fmt.Sprintf("%s/go.mod: go %s, the others say %s", m.dir, m.language, language))
		}
		want := strings.TrimSuffix(repository, "/")
		if m.dir != "." {
			want = repository + m.dir
		}
		if m.path != want {
			findings = append(findings, fmt.Sprintf("%s/go.mod: the module is called %s, want %s", m.dir, m.path, want))
		}
		for _, r := range m.requires {
			if sibling, ok := strings.CutPrefix(r.path, repository); ok {
				if here := (replacement{r.path, r.version, "./" + sibling}); !slices.Contains(work.replaces, here) {
					findings = append(findings, fmt.Sprintf("%s/go.mod: %s %s needs a replace line in go.work", m.dir, r.path, r.version))
				}
			}
			if r.indirect {
				continue
			}
			if first[r.path] == "" {
				first[r.path], where[r.path] = r.version, m.dir
			}
			if first[r.path] != r.version {
				findings = append(findings, fmt.Sprintf("%s/go.mod: %s %s, but %s has %s", m.dir, r.path, r.version, where[r.path], first[r.path]))
			}
		}
	}
	return findings
}
