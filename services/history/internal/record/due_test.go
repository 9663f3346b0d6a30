package record

import (
	"fmt"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func TestDueCounts(t *testing.T) {
	at := time.UnixMilli(1e12)
	id := ids.NewTaskID(at.Add(-time.Second), 0, 1)
	of := func(domain, tasklist string, due, within int64) *logv1.Record {
		return &logv1.Record{Id: id[:], Domain: domain, Tasklist: tasklist, DueAtMs: due, WithinMs: within}
	}
	grouped := func(group string) *logv1.Record {
		r := of("a", "y", 0, 0)
		r.Group = group
		return r
	}
	data, err := (&logv1.Batch{Tasks: []*logv1.Record{
		of("a", "x", 0, 0), of("a", "x", 1e12, 1000), of("a", "x", 1e12+1, 0), of("a", "x", 0, 999), // not due, and void
		grouped("g"), grouped("g"), grouped("h"),
		of("a", "y", 0, 0), of("b", "y", 5, 0), of("b", "y", 1e13, 0), of("b", "y", 0, 0), of("a", "x", 1e13, 0),
	}}).MarshalVT()
	testkit.NoError(t, err)
	d := NewDecoder()
	for range 2 {
		var got []string
		err = d.Due(data, at, func(domain, tasklist, group string, tasks, bytes int) {
			got = append(got, fmt.Sprint(domain, tasklist, group, tasks, " ", bytes == len(data)*tasks/12))
		})
		if err != nil || fmt.Sprint(got) != "[ax2 true ayg2 true ayh1 true ay1 true by2 true]" {
			t.Errorf("%v %v", got, err)
		}
	}
	if err := d.Due([]byte{10, 9}, at, nil); err == nil {
		t.Error("what is cut off is a batch")
	}
}
