package yard

import (
	"context"
	"runtime/debug"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// Poller is a worker that polled a tasklist in the last 5 minutes: all polls of one identity.
type Poller struct {
	// Worker is its identity (WithIdentity), empty if its polls name none; Version is that of its program (WithVersion).
	Worker, Version string
	// Types are the first 16 that its last poll accepts, of TypesCount; none = all.
	Types      []string
	TypesCount int
	// SeenAgo is how long ago that poll came.
	SeenAgo time.Duration
	// WaitingPolls counts its polls that wait now.
	WaitingPolls int
}

// Pollers are those of a tasklist.
type Pollers struct {
	// All are sorted by worker; those without a name come last.
	All []Poller
	// KnownFor is for how long the present owner of the tasklist's matching shard has served it. Below 5 minutes, workers may be
	// missing that have not polled since.
	KnownFor time.Duration
}

// TasklistPollers returns the workers that polled a tasklist in the last 5 minutes, as the owner of its matching shard remembers: 6144 of a
// domain at most. It asks for them page by page, so one that comes or goes meanwhile may be missing or included.
func (c *Client) TasklistPollers(ctx context.Context, tasklist string) (Pollers, error) {
	var knownFor time.Duration
	all, err := collect(pages(func(cursor string) ([]Poller, string, error) {
		resp, err := c.Wire().TasklistPollers(ctx, &yardv1.TasklistPollersRequest{Tasklist: tasklist, Cursor: cursor})
		knownFor = milliTime(resp.GetKnownForMs())
		return each(resp.GetPollers(), pollerOf), resp.GetNextCursor(), err
	}))
	return Pollers{all, knownFor}, err
}

func pollerOf(w *yardv1.Poller) Poller {
	return Poller{
		Worker: w.GetWorker(), Version: w.GetVersion(), Types: w.GetTypes(), TypesCount: int(w.GetTypesCount()),
		SeenAgo: milliTime(w.GetSeenAgoMs()), WaitingPolls: int(w.GetWaitingPolls()),
	}
}

// milliTime is a duration of the API.
func milliTime(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

// defaultVersion is what the program's build says of itself.
func defaultVersion() string {
	info, _ := debug.ReadBuildInfo()
	return versionOf(info)
}

// versionOf is the commit of a build, or its module's version where there is none; empty if neither is known.
func versionOf(info *debug.BuildInfo) string {
	if info == nil {
		return ""
	}
	setting := func(key string) string {
		if i := slices.IndexFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == key }); i >= 0 {
			return info.Settings[i].Value
		}
		return ""
	}
	if revision := setting("vcs.revision"); revision != "" {
		if setting("vcs.modified") == "true" {
			revision = clip(revision, versionBytesMax-len("+dirty")) + "+dirty"
		}
		return clip(revision, versionBytesMax)
	}
	if info.Main.Version == "(devel)" {
		return ""
	}
	return clip(info.Main.Version, versionBytesMax)
}
