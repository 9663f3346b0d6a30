package system

import (
	"debug/buildinfo"
	"runtime/debug"
)

// unknown is a version that a program does not say.
const unknown = "unknown"

// module is the version of a module that this program is built with.
func module(path string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return unknown
	}
	return moduleIn(info, path)
}

// moduleOf is the version of a module that another program is built with.
func moduleOf(program, path string) string {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return unknown
	}
	return moduleIn(info, path)
}

func moduleIn(info *debug.BuildInfo, path string) string {
	for _, m := range info.Deps {
		if m.Path == path {
			return m.Version
		}
	}
	return unknown
}
