package process

import (
	"runtime"
	"runtime/debug"
	"strings"
)

// Version of the services, as reported by micro's INFO. A release's tag is it, with a v before it.
const Version = "0.1.0"

// unknown stands for what the build did not know.
const unknown = "unknown"

// BuildInfo is what a program knows of how it was built.
type BuildInfo struct {
	// Version is that of the module as it was installed, such as v0.1.0, or Version and "-dev"
	// where it was built in a working tree without one.
	Version string `json:"version"`
	// Commit is the full hash; "unknown" where the build did not see the repository.
	Commit string `json:"commit"`
	// Changed tells that the working tree had changes that are in no commit.
	Changed bool `json:"changed,omitempty"`
	// Date is the commit's, in RFC 3339 and UTC, or "unknown".
	Date string `json:"date"`
	// Go is the version of Go, such as go1.26.0, and Platform such as linux/amd64.
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// ReadBuildInfo returns how this program was built.
func ReadBuildInfo() BuildInfo {
	info, _ := debug.ReadBuildInfo()
	return buildOf(info)
}

// buildOf is ReadBuildInfo of info, which is nil where there is none.
func buildOf(info *debug.BuildInfo) BuildInfo {
	b := BuildInfo{Version: "v" + Version + "-dev", Commit: unknown, Date: unknown, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info == nil {
		return b
	}
	if strings.HasPrefix(info.Main.Version, "v") { // else "(devel)"
		b.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Date = s.Value
		case "vcs.modified":
			b.Changed = s.Value == "true"
		}
	}
	return b
}

// revision is the commit the binary was built from, as far as the build knew it.
func revision() string {
	b := ReadBuildInfo()
	if b.Changed {
		return b.Commit + "+changes"
	}
	return b.Commit
}
