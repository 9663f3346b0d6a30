package tidy

import (
	"fmt"
	"path"
	"strings"
)

// versions: one workspace, one version of each direct dependency, one language
// version, and a replace line for every sibling, so that each module builds alone.
func versions(t *tree) []string {
	var findings []string
	first := map[string]string{} // dependency → version
	where := map[string]string{}
	language := ""
	for _, m := range t.mods {
		if strings.HasPrefix(m.dir, "infra/tools/") {
			continue // tools are no part of the system
		}
		if language == "" {
			language = m.language
		}
		if m.language != language {
			findings = append(findings, fmt.Sprintf("%s/go.mod: go %s, the others say %s", m.dir, m.language, language))
		}
		if want := repository + m.dir; m.path != want {
			findings = append(findings, fmt.Sprintf("%s/go.mod: the module is called %s, want %s", m.dir, m.path, want))
		}
		for _, r := range m.requires {
			if sibling, ok := strings.CutPrefix(r.path, repository); ok {
				if path.Join(m.dir, m.replaces[r.path]) != sibling {
					findings = append(findings, fmt.Sprintf("%s/go.mod: %s needs a replace line: the module does not build alone", m.dir, r.path))
				}
				continue
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
