package yard

import (
	"reflect"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/internal/checktest"
)

func TestAVersionIsThatOfTheBuild(t *testing.T) {
	revision := strings.Repeat("0123456789", 4)
	long := strings.Repeat("x", versionBytesMax)
	build := func(version string, settings ...string) *debug.BuildInfo {
		info := &debug.BuildInfo{Main: debug.Module{Version: version}}
		for i := 0; i < len(settings); i += 2 {
			info.Settings = append(info.Settings, debug.BuildSetting{Key: settings[i], Value: settings[i+1]})
		}
		return info
	}
	for name, c := range map[string]struct {
		info *debug.BuildInfo
		want string
	}{
		"no build info": {nil, ""},
		"nothing known": {build("(devel)"), ""},
		"a module":      {build("v1.2.3"), "v1.2.3"},
		"a commit":      {build("(devel)", "vcs.revision", revision, "vcs.modified", "false"), revision},
		"changed":       {build("v1.2.3", "vcs.modified", "true", "vcs.revision", revision), revision + "+dirty"},
		"long":          {build(long + "y"), long},
		"long, changed": {build("", "vcs.modified", "true", "vcs.revision", long), long[:versionBytesMax-6] + "+dirty"},
	} {
		checktest.Equal(t, name, versionOf(c.info), c.want)
	}
}

// What the API tells of pollers and of limits in use, the SDK's types tell.
func TestPollersAndTopLimitsHaveAllThatTheAPITells(t *testing.T) {
	var poller yardv1.Poller
	fill(poller.ProtoReflect())
	if missing := unset(reflect.ValueOf(pollerOf(&poller)), "Poller"); len(missing) > 0 {
		t.Errorf("not filled: %v", missing)
	}
	var live yardv1.LiveWorker
	fill(live.ProtoReflect())
	if missing := unset(reflect.ValueOf(liveWorkerOf(&live)), "LiveWorker"); len(missing) > 0 {
		t.Errorf("not filled: %v", missing)
	}
	var top yardv1.TopLimitsResponse
	fill(top.ProtoReflect())
	if missing := unset(reflect.ValueOf(topLimitsOf(&top)), "TopLimits"); len(missing) > 0 {
		t.Errorf("not filled: %v", missing)
	}
	for name, c := range map[string]struct{ own, api int }{
		"Poller":      {reflect.TypeFor[Poller]().NumField(), poller.ProtoReflect().Descriptor().Fields().Len()},
		"LiveWorker":  {reflect.TypeFor[LiveWorker]().NumField(), live.ProtoReflect().Descriptor().Fields().Len()},
		"LiveAttempt": {reflect.TypeFor[LiveAttempt]().NumField(), new(yardv1.LiveAttempt).ProtoReflect().Descriptor().Fields().Len()},
		"TopLimits":   {reflect.TypeFor[TopLimits]().NumField(), top.ProtoReflect().Descriptor().Fields().Len()},
		"LimitUse":    {reflect.TypeFor[LimitUse]().NumField(), new(yardv1.LimitUse).ProtoReflect().Descriptor().Fields().Len()},
		"SlotHolder":  {reflect.TypeFor[SlotHolder]().NumField(), new(yardv1.SlotHolder).ProtoReflect().Descriptor().Fields().Len()},
		"SlotWaiter":  {reflect.TypeFor[SlotWaiter]().NumField(), new(yardv1.SlotWaiter).ProtoReflect().Descriptor().Fields().Len()},
		"ShardSlots":  {reflect.TypeFor[ShardSlots]().NumField(), new(yardv1.ShardSlots).ProtoReflect().Descriptor().Fields().Len()},
	} {
		if c.own != c.api {
			t.Errorf("%s has %d fields, the API's %d", name, c.own, c.api)
		}
	}
}
