package process

import "runtime/debug"

// Version of the services, as told by micro's INFO.
const Version = "0.1.0"

// revision is the commit the binary was built from, as far as the build knew it.
func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	commit, changed := "unknown", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = "+changes"
		}
	}
	return commit + changed
}
