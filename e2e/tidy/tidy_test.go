package tidy

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
		"size of types and packages":    rooms,
		"subjects have one home":        subjects,
		"packages say what they own":    packageComments,
		"package names":                 packageNames,
		"no init":                       noInit,
		"no sleeping on hope":           sleeps,
		"inboxes have their prefix":     inboxes,
		"log lines have known keys":     logKeys,
		"no loose ends":                 looseEnds,
		"plain words":                   plainWords,
		"plain names":                   plainNames,
		"lines of documents":            documentLines,
		"links lead somewhere":          links,
		"feature index":                 featureIndex,
		"decisions":                     decisions,
		"changelog":                     changelog,
		"services introduce themselves": serviceReadmes,
		"versions agree":                versions,
	}
}
