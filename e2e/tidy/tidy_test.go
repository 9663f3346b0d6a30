package tidy

import "testing"

// rule looks at the whole tree and returns its findings, one line each.
type rule func(*tree) []string

// rules are all of them, by the name of their subtest.
func rules() map[string]rule {
	return map[string]rule{
		"the top level":                 topLevel,
		"modules depend downwards":      moduleDirection,
		"classes of packages":           packageClasses,
		"cores are pure":                corePurity,
		"test packages stay in tests":   testPackages,
		"size of files and functions":   sizes,
		"subjects have one home":        subjects,
		"packages say what they own":    packageComments,
		"package names":                 packageNames,
		"no init":                       noInit,
		"no sleeping on hope":           sleeps,
		"inboxes have their prefix":     inboxes,
		"log lines have known keys":     logKeys,
		"no loose ends":                 looseEnds,
		"plain words":                   plainWords,
		"links lead somewhere":          links,
		"feature index":                 featureIndex,
		"decisions":                     decisions,
		"changelog":                     changelog,
		"services introduce themselves": serviceReadmes,
		"versions agree":                versions,
		"as many tests as source":       moreTestsThanSource,
	}
}

func TestTidy(t *testing.T) {
	tree := parse(t, readRepository(t))
	modules, folders := shares(tree)
	t.Logf("modules %v\nfolders %v", modules, folders)
	for name, check := range rules() {
		t.Run(name, func(t *testing.T) {
			for _, finding := range check(tree) {
				t.Error(finding)
			}
		})
	}
}
