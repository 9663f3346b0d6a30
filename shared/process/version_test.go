package process

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func TestBuild(t *testing.T) {
	setting := func(key, value string) debug.BuildSetting { return debug.BuildSetting{Key: key, Value: value} }
	here := BuildInfo{Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	for name, c := range map[string]struct {
		info *debug.BuildInfo
		want BuildInfo
	}{
		"nothing known": {nil, BuildInfo{Version: "v" + Version + "-dev", Commit: "unknown", Date: "unknown"}},
		"a test":        {&debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, BuildInfo{Version: "v" + Version + "-dev", Commit: "unknown", Date: "unknown"}},
		"installed":     {&debug.BuildInfo{Main: debug.Module{Version: "v0.3.1"}}, BuildInfo{Version: "v0.3.1", Commit: "unknown", Date: "unknown"}},
		"a working tree": {
			&debug.BuildInfo{Settings: []debug.BuildSetting{
				setting("vcs", "git"), setting("vcs.revision", "abc"), setting("vcs.time", "2026-11-22T10:00:00Z"), setting("vcs.modified", "true"),
			}},
			BuildInfo{Version: "v" + Version + "-dev", Commit: "abc", Date: "2026-11-22T10:00:00Z", Changed: true},
		},
	} {
		c.want.Go, c.want.Platform = here.Go, here.Platform
		testkit.Equal(t, name, buildOf(c.info), c.want)
	}
}
