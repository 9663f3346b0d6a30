package groupcommit

import (
	"testing"
	"testing/synctest"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

type item struct {
	domain string
	weight int
}

func (i item) Load() (string, int) { return i.domain, i.weight }

// TestI14_AQueueLeavesRoomForOthers: a domain may have three quarters of it, and what is flushed makes room.
func TestI14_AQueueLeavesRoomForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := make(chan struct{})
		var flushed []int
		q := New(func(string) int { return 1 }, 100, 40, 40, func(batch []item) {
			<-open
			flushed = append(flushed, len(batch))
		})
		q.Add(item{"plug", 1})
		synctest.Wait()
		for range 7 {
			if !q.Add(item{"flood", 10}) {
				t.Fatal("not even seven tenths")
			}
		}
		if q.Add(item{"flood", 10}) {
			t.Error("a domain has more than its share")
		}
		if !q.Add(item{"shop", 5}) {
			t.Error("another domain has no room")
		}
		close(open)
		synctest.Wait()
		testkit.Equal(t, "of seven and one, after the plug", flushed, []int{1, 4, 4})
		if !q.Add(item{"flood", 70}) {
			t.Error("what was flushed still takes room")
		}
		synctest.Wait()
	})
}
