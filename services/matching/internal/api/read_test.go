package api

import (
	"reflect"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/arrival"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/match"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func TestReadHints(t *testing.T) {
	t.Parallel()
	trigger := ids.AppendTrigger(nil, ids.Trigger{ID: ids.NewTaskID(time.UnixMilli(1), 1, 1), Version: 1})
	booking := []byte(ids.Booking(ids.TaskID{}, 1))
	got, err := readHints(testkit.Encoded(t, &logv1.Hints{
		Triggers: []*logv1.TriggerBatch{
			{Domain: "d", Tasklist: "l", TasklistPartition: 3, Type: "a", Priority: 2, ReadyAtUs: 5, Triggers: trigger},
			{},
		},
		Releases: []*logv1.SlotRelease{
			{Domain: "d", Type: "a", Bookings: booking, Limits: []string{"domain", "type/a"}},
		},
	}))
	want := match.Hints{
		Triggers: []arrival.Triggers{
			{Tasklist: table.Tasklist{Domain: "d", Name: "l", Partition: 3}, Column: table.Column{Priority: 2, Type: "a"}, ReadyAt: 5, Packed: trigger},
			{}, // the core counts what cannot be meant
		},
		Releases: []match.Release{
			{Domain: "d", Type: "a", Path: []table.Ref{"domain", "type/a"}, Bookings: booking},
		},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%v\n got %v\nwant %v", err, got, want)
	}
	if _, err := readHints([]byte("\xff\xff")); err == nil {
		t.Error("noise was read")
	}
}
