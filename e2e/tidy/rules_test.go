package tidy

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// offence is a small tree that breaks a rule once, or does not.
type offence struct {
	name string
	rule rule
	src  source
	want string // is in the only finding; empty = there is none
}

// TestRulesBite shows each rule an offence: a rule that finds nothing is
// indistinguishable from a clean tree.
func TestRulesBite(t *testing.T) {
	for _, o := range slices.Concat(importOffences(), codeOffences(), documentOffences()) {
		t.Run(o.name, func(t *testing.T) {
			got := o.rule(parse(t, o.src))
			if o.want == "" && len(got) == 0 || o.want != "" && len(got) == 1 && strings.Contains(got[0], o.want) {
				return
			}
			t.Errorf("found %q, want %q", got, o.want)
		})
	}
}

// inCore is a file of a core.
const inCore = "services/history/internal/core/window/w.go"

// importOffences are against who may import what, and in which version.
func importOffences() []offence {
	ids := repository + "contracts/ids"
	return []offence{
		{"a folder more", topLevel, source{"tools/x/x.go": "package x\n", "tools/y.md": ""}, "tools: the top level"},
		{"the layers", topLevel, source{".ci/run": "", "infra/x.sh": "", "README.md": ""}, ""},
		{"back", moduleDirection, source{"contracts/a/a.go": importing(repository + "shared/batcher")}, "contracts may not import shared/batcher"},
		{"sideways", moduleDirection, source{"services/timer/t_test.go": importing(repository + "services/history")}, "never back or sideways"},
		{"down", moduleDirection, source{"services/timer/t.go": importing(repository+"shared/batcher", ids)}, ""},
		{"core knows context", packageClasses, source{inCore: importing("context")}, "values in, values out"},
		{"core knows a library", packageClasses, source{inCore: importing("github.com/redis/go-redis/v9")}, "standard library only"},
		{"core knows a request", packageClasses, source{inCore: importing(repository + "contracts/gen/yardv1")}, "translated outside"},
		{"core on messages knows one", packageClasses, source{"services/frontend/internal/core/gather/g.go": importing(repository + "contracts/gen/yardv1")}, ""},
		{"core on messages knows a file", packageClasses, source{"services/frontend/internal/core/gather/g.go": importing("os")}, "values in, values out"},
		{"core knows a core on messages", packageClasses, source{
			"services/frontend/internal/core/idle/i.go": importing(repository + "services/frontend/internal/core/gather"),
		}, "is for shells"},
		{"core knows another core", packageClasses, source{inCore: importing(ids, repository+"services/history/internal/core/deadline")}, ""},
		{"shell knows NATS", packageClasses, source{"services/timer/internal/firing/f.go": importing("github.com/nats-io/nats.go")}, "ports"},
		{"shell knows its adapter", packageClasses, source{"services/matching/internal/shard/s.go": importing(repository + "services/matching/internal/redistable")}, "does not know its adapters"},
		{"adapter knows another library", packageClasses, source{"services/matching/internal/redistable/r.go": importing("github.com/nats-io/nats.go")}, "the library in its name"},
		{"memory knows a library", packageClasses, source{"services/matching/internal/memtable/m.go": importing("github.com/redis/go-redis/v9")}, "the library in its name"},
		{"adapter knows its own", packageClasses, source{"services/matching/internal/redistable/r.go": importing("github.com/redis/go-redis/v9")}, ""},
		{"leaf knows Redis", packageClasses, source{"shared/batcher/b.go": importing("github.com/redis/go-redis/v9")}, "wraps no client library"},
		{"an exception", packageClasses, source{
			inCore: importing("context"), "e2e/tidy/testdata/imports.txt": "services/history/internal/core/window→context 1 because\n",
		}, ""},
		{"an exception too many", packageClasses, source{"e2e/tidy/testdata/imports.txt": "a→b 1 because\n"}, "no longer needed"},
		{"an exception without a reason", packageClasses, source{"e2e/tidy/testdata/imports.txt": "a→b 1\n"}, "is not `<key>"},
		{"test package", testPackages, source{"infra/yard/y.go": importing(repository + "shared/testkit")}, "for tests only"},
		{"simulator", testPackages, source{"services/history/history.go": importing(repository + "services/history/historysim")}, "for tests only"},
		{"simulator in a simulation", testPackages, source{"e2e/simulation/world_test.go": importing(repository + "services/history/historysim")}, ""},
		{"two versions", versions, source{
			"contracts/go.mod": "module " + repository + "contracts\ngo 1.26.0\nrequire a.b/c v1.0.0\n",
			"shared/go.mod":    "module " + repository + "shared\ngo 1.26.0\nrequire (\n\ta.b/c v1.1.0\n\ta.b/d v1.0.0 // indirect\n)\n",
		}, "contracts has v1.0.0"},
		{"a replace line", versions, source{"infra/tools/x/go.mod": "replace a.b/c => ../c\n"}, "no one could install"},
		{"a sibling from elsewhere", versions, source{
			"go.mod":  "module " + strings.TrimSuffix(repository, "/") + "\nrequire " + repository + "contracts v0.2.0\n",
			"go.work": "use (\n\t.\n)\nreplace " + repository + "contracts v0.1.0 => ./contracts\n",
		}, "needs a replace line in go.work"},
		{"a sibling from here", versions, source{
			"go.mod":  "module " + strings.TrimSuffix(repository, "/") + "\nrequire " + repository + "contracts v0.1.0\n",
			"go.work": "replace (\n\t" + repository + "contracts v0.1.0 => ./contracts\n)\n",
		}, ""},
	}
}

// codeOffences are inside of files.
func codeOffences() []offence {
	long := "package x\n\nfunc f() {\n" + strings.Repeat("\tg()\n", functionLinesMax) + "}\n"
	return []offence{
		{"clock", corePurity, source{inCore: "package x\nimport \"time\"\nvar t = time.Now()\n"}, "time.Now"},
		{"clock by another name", corePurity, source{inCore: "package x\nimport clock \"time\"\nvar t = clock.Now\n"}, "time.Now"},
		{"dice", corePurity, source{inCore: "package x\nimport \"math/rand/v2\"\nvar n = rand.IntN(6)\n"}, "rand.IntN"},
		{"seeded dice", corePurity, source{inCore: "package x\nimport \"math/rand/v2\"\nfunc f(r *rand.Rand) int { return r.IntN(6) }\n"}, ""},
		{"goroutine", corePurity, source{inCore: "package x\nfunc f() { go f() }\n"}, "no goroutine"},
		{"long function", sizes, source{"shared/x/x.go": long}, "f has 72 lines"},
		{"longer than granted", sizes, source{"shared/x/x.go": long, "e2e/tidy/testdata/sizes.txt": "shared/x/x.go:f 71 because\n"}, "f has 72 lines"},
		{"as granted", sizes, source{"shared/x/x.go": long, "e2e/tidy/testdata/sizes.txt": "shared/x/x.go:f 72 because\n"}, ""},
		{"shorter than granted", sizes, source{"shared/x/x.go": long, "e2e/tidy/testdata/sizes.txt": "shared/x/x.go:f 80 because\n"}, "lower the number"},
		{"a type of many methods", rooms, source{"shared/x/x.go": "package x\n" + many(methodsMax+1, "func (t *T[K]) m%d() {}\n")}, "shared/x.T has 41 methods"},
		{"a struct of many fields", rooms, source{"shared/x/x.go": "package x\ntype T struct {\n" + many(fieldsMax+1, "a%d int\n") + "}\n"}, "T has 26 fields"},
		{"a package of many lines", rooms, source{"shared/x/x.go": "package x\n" + strings.Repeat("\n", packageLinesMax)}, "shared/x has 3001 lines"},
		{"a package as granted", rooms, source{
			"shared/x/x.go": "package x\n" + strings.Repeat("\n", packageLinesMax), "e2e/tidy/testdata/ratchets.txt": "shared/x 3100 because\n",
		}, ""},
		{"a package of many files", rooms, manyFiles(packageFilesMax+1, "package x\n"), "shared/x has 26 files"},
		{"files in circles", rooms, manyFiles(6, "package x\n\nvar v%d, w%[1]d = v0 + v1 + v2 + v3 + v4 + v5, 0\n"), "15 of 30 references between its files run back up"},
		{"files in layers", rooms, manyFiles(8, "package x\n\nvar v%d = 1\n\nvar w%[1]d = v%[1]d\n"), ""},
		{"generated", sizes, source{"shared/x/x.go": "// Code generated by x. DO NOT EDIT.\n" + long}, ""},
		{"long file", sizes, source{"shared/x/x.lua": strings.Repeat("return\n", fileLinesMax+1)}, "has 501 lines"},
		{"long main", sizes, source{"services/timer/cmd/timer/main.go": "package main\n" + strings.Repeat("\n", mainLinesMax)}, "has 61 lines"},
		{"subject", subjects, source{"services/timer/t.go": "package timer\nconst s = \"yard.timer.0.1\"\n"}, "contracts/topology"},
		{"attribute", subjects, source{"services/timer/t.go": "package timer\nconst s = \"yard.tasklist\"\n"}, ""},
		{"an image in a name", plainNames, source{"shared/x/x.go": "package x\ntype T struct{ aYonderID int }\n", namesFile: "yonder → there\n"}, `"yonder": write: there`},
		{"a word in its right place", plainNames, source{"shared/x/x.go": "package x\nfunc deadLetters() {}\n", namesFile: "letters? but dead letters? → dead letter\n"}, ""},
		{"part of a name", plainNames, source{"shared/x/x.go": "package x\nfunc yonderly() {}\n", namesFile: "yonder → there\n"}, ""},
		{"no comment", packageComments, source{"shared/x/x.go": "package x\n"}, "has no comment"},
		{"empty name", packageNames, source{"shared/util/x.go": "package util\n"}, "says nothing"},
		{"init", noInit, source{"shared/x/x.go": "package x\nfunc init() {}\n"}, "no init"},
		{"inbox of no one", inboxes, source{"shared/x/x.go": "package x\nimport \"github.com/nats-io/nats.go\"\nvar s = nats.NewInbox()\n"}, "NewInbox of the connection"},
		{"inbox of a connection", inboxes, source{"shared/x/x.go": "package x\nimport \"github.com/nats-io/nats.go\"\nfunc f(nc *nats.Conn) string { return nc.NewInbox() }\n"}, ""},
		{"log key of its own", logKeys, source{
			"shared/x/x.go": "package x\nfunc f() { s.Log.Warn(\"text\", \"task\", 1) }\n", keysFile: "package signals\nconst TaskID = \"task_id\"\n",
		}, "log key \"task\""},
		{"known log keys", logKeys, source{
			"shared/x/x.go": "package x\nfunc f() { log.With(\"task_id\", 1).Info(\"task\"); t.Error(\"x\", \"task\") }\n",
			keysFile:        "package signals\nconst TaskID = \"task_id\"\n",
		}, ""},
		{"sleep", sleeps, source{"shared/x/x_test.go": "package x\nimport \"time\"\nfunc f() { time.Sleep(1) }\n"}, "time.Sleep"},
		{"sleep in a bubble", sleeps, source{
			"shared/x/x_test.go": "package x\nimport (\n\"time\"\n\"testing/synctest\"\n)\nfunc f() { synctest.Test(nil, func() { time.Sleep(1) }) }\n",
		}, ""},
	}
}

// documentOffences are in what people read.
func documentOffences() []offence {
	return []offence{
		{"promise", looseEnds, source{"shared/x.md": "TO" + "DO: more\n"}, "open an issue"},
		{"a long line", documentLines, source{"shared/x.md": "| " + strings.Repeat("x", documentColumnsMax) + "\n"}, "has 122 characters"},
		{"dead link", links, source{"shared/README.md": "[x](gone/x.go)\n"}, "shared/gone/x.go does not exist"},
		{"live link", links, source{"shared/README.md": "[x](x.go#L1) [y](https://y.md)\n", "shared/x.go": "package x\n"}, ""},
		{"no index", featureIndex, source{}, "no `## Feature index`"},
		{"no test in the index", featureIndex, source{features: "## Feature index\n\n- **A.** It is.\n  - decides: [b.go](b.go)\n  - shows: [c.go](c.go)\n"}, "`- **A.** It is.` is not"},
		{"long decision", decisions, source{
			"contracts/decisions/0001-x.md": "## Context\n## Decision\n## Rejected\n## How we would know it is wrong\n" + strings.Repeat("\n", 60),
		}, "has 64 lines"},
		{"decision without reason", decisions, source{"contracts/decisions/0001-x.md": "## Decision\n"}, "the headings are"},
		{"no changelog", changelog, source{}, "no `## [Unreleased]`"},
		{"changelog", changelog, source{"CHANGELOG.md": "## [Unreleased]\n### Added\n## [0.10.0] - 2026-12-01\n## [0.9.1] - 2026-11-30\n"}, ""},
		{"changelog upside down", changelog, source{"CHANGELOG.md": "## [Unreleased]\n## [0.9.1] - 2026-11-30\n## [0.10.0] - 2026-12-01\n"}, "is not below"},
		{"a release without a day", changelog, source{"CHANGELOG.md": "## [Unreleased]\n## [0.9.1]\n"}, "is not `## [1.2.3] - 2026-12-31`"},
		{"a section of its own", changelog, source{"CHANGELOG.md": "## [Unreleased]\n### News\n"}, "News"},
		{"antique word in a document", plainWords, avoids("yonder → there", "README.md", "It Yonder run.\n"), `README.md:1: "Yonder": write: there`},
		{"part of a word", plainWords, avoids("yonder → there", "README.md", "A yonderow copy.\n"), ""},
		{"in the name of a file", plainWords, avoids("yonder → there", "README.md", "[x](yonder-we.md)\n"), ""},
		{"in a comment", plainWords, avoids("yonder → there", "shared/x/x.go", "package x\n\n// f yonder\n// run.\nfunc f() {}\n"), "shared/x/x.go:3"},
		{"in a text", plainWords, avoids("yonder → there", "shared/x/x.go", "package x\n\nconst s = `it\nyonder run`\n"), "shared/x/x.go:4"},
		{"a name that is a string", plainWords, avoids("yonder → there", "shared/x/x.go", "package x\n\nconst s = \"yonder\"\n"), ""},
		{"a word without its replacement", plainWords, avoids("yonder", "README.md", ""), "is not `<regular expression>"},
		{"silent service", serviceReadmes, source{"services/x/x.go": "package x\n"}, "README.md does not exist"},
	}
}

// avoids is a file beside a list of words.
func avoids(words, path, text string) source { return source{wordsFile: words + "\n", path: text} }

// many is n lines, numbered from 0.
func many(n int, line string) string {
	var all strings.Builder
	for i := range n {
		fmt.Fprintf(&all, line, i)
	}
	return all.String()
}

// manyFiles is a package of n files; text may have a number.
func manyFiles(n int, text string) source {
	src := source{}
	for i := range n {
		numbered := text
		if strings.Contains(text, "%") {
			numbered = fmt.Sprintf(text, i)
		}
		src[fmt.Sprintf("shared/x/x%02d.go", i)] = numbered
	}
	return src
}

// importing is a file that imports paths.
func importing(paths ...string) string {
	return "package x\n\nimport (\n\t_ \"" + strings.Join(paths, "\"\n\t_ \"") + "\"\n)\n"
}
