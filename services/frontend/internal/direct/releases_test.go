package direct

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/poll"
)

// TestReleases: each attempt is handed back by its whole token.
func TestReleases(t *testing.T) {
	a := poll.Attempt{ID: ids.NewTaskID(time.UnixMilli(nowMS), 0, rand.Uint64()), Token: ids.Token{Position: ids.NewPosition(7, ids.LaneFirst).InShared(), Version: 1, Nonce: 9}}
	all := Releases("shop", []poll.Attempt{a})
	if len(all) != 1 || all[0].ID != a.ID {
		t.Fatalf("%+v", all)
	}
	e := all[0].Event
	testkit.Equal(t, "kind", e.Kind, logv1.EventKind_EVENT_KIND_RELEASED)
	testkit.Equal(t, "domain", e.Domain, "shop")
	testkit.Equal(t, "task", string(e.TaskId), string(a.ID[:]))
	testkit.Equal(t, "token", ids.Token{Position: ids.Position(e.Position), Version: e.Version, Nonce: e.Nonce}, a.Token)
}
