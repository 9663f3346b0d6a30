package natshistory

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

func anyTask(*logv1.Record) bool { return true }

func recent(t *testing.T, p archivePorts) {
	a := p.Archive()
	domain := func(i int) string { return []string{"shop", "media"}[i%2] }
	for range 20 {
		fileAll(t, a, many(5, domain, func(int) time.Time { return time.Now() }))
	}
	last := many(30, domain, func(i int) time.Time { return time.Now().Add(time.Duration(100+i) * time.Millisecond) })
	fileAll(t, a, last)
	for _, limit := range []int{0, 1, 15, 40} {
		got, err := p.Reader.Recent(t.Context(), "shop", limit, anyTask)
		if err != nil || len(got) != limit {
			t.Fatalf("recent %d: %d, %v", limit, len(got), err)
		}
		for i, r := range got[:min(limit, 15)] {
			if r.Domain != "shop" || ids.TaskID(r.Id) != last[28-2*i].ID {
				t.Errorf("place %d of %d has %v", i, limit, r)
			}
		}
	}
	// The newest of these end first, and one of them twice.
	reversed := many(40, shop, func(i int) time.Time { return time.Now().Add(time.Duration(200+i) * time.Millisecond) })
	slices.Reverse(reversed)
	for _, one := range reversed {
		fileAll(t, a, []*taskstate.Task{one})
	}
	again := *reversed[3]
	again.Parkings++
	fileAll(t, a, []*taskstate.Task{&again})
	got, err := p.Reader.Recent(t.Context(), "shop", 40, anyTask)
	if err != nil || !slices.EqualFunc(got, reversed, func(r *logv1.Record, t *taskstate.Task) bool { return ids.TaskID(r.Id) == t.ID }) {
		t.Errorf("those that ended in the order of their age: %v, %v", got, err)
	}
	for _, limit := range []int{1, 7} {
		var all []ids.TaskID
		for len(all) <= len(reversed) {
			got, err := p.Reader.Recent(t.Context(), "shop", limit, func(r *logv1.Record) bool {
				return (len(all) == 0 || bytes.Compare(r.Id, all[len(all)-1][:]) < 0) && bytes.Compare(r.Id, reversed[39].ID[:]) >= 0
			})
			if err != nil || len(got) == 0 {
				break
			}
			for _, r := range got {
				all = append(all, ids.TaskID(r.Id))
			}
		}
		if !slices.Equal(all, idsOf(reversed)) {
			t.Errorf("in pages of %d: %d tasks of %d", limit, len(all), len(reversed))
		}
	}
	older := func(r *logv1.Record) bool { return ids.TaskID(r.Id) == last[20].ID || ids.TaskID(r.Id) == last[4].ID }
	got, err = p.Reader.Recent(t.Context(), "shop", 5, older)
	if err != nil || len(got) != 2 || ids.TaskID(got[0].Id) != last[20].ID || ids.TaskID(got[1].Id) != last[4].ID {
		t.Errorf("the two that are wanted: %v, %v", got, err)
	}
	if got, err := p.Reader.Recent(t.Context(), "none", 5, anyTask); err != nil || len(got) != 0 {
		t.Errorf("tasks of a domain that has none: %v, %v", got, err)
	}
}
