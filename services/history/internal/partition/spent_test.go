package partition_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/memhistory"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// overtakenStore is a timer store that another owner fences just before something is parked, if overtakes.
type overtakenStore struct {
	partition.TimerStore
	t         *testing.T
	overtakes bool
}

func (m overtakenStore) Park(ctx context.Context, bucket int64, batch []byte) (uint64, error) {
	if m.overtakes {
		data, err := (&logv1.Batch{Fence: true, Epoch: 2}).MarshalVT() // that of the owner that follows
		testkit.Check(m.t, err)
		if err := m.Fence(ctx, data); err != nil {
			return 0, err
		}
	}
	return m.TimerStore.Park(ctx, bucket, batch)
}

// TestLetterOutlivesAVoidStay: an owner that was overtaken parks a task that comes back, and that is void. Its letter stays for the owner that follows.
func TestLetterOutlivesAVoidStay(t *testing.T) {
	for _, overtakes := range []bool{false, true} {
		t.Run(fmt.Sprint(overtakes), func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *shell) {
				s.works(logv1.EventKind_EVENT_KIND_FAILED)
				d := s.deps("a")
				d.TimerStore = overtakenStore{d.TimerStore, t, overtakes}
				_, stop := ready(d)
				id := newID(1)
				s.submit(0, task(id, "shop"))
				letters := func() int {
					found, err := memhistory.Reader{World: s.world}.Letters(t.Context(), []replica.Search{{ID: id, Domain: "shop"}})
					testkit.NoError(t, err)
					if found[0] == nil {
						return 0
					}
					return 1
				}
				time.Sleep(5 * time.Second)
				if letters() != 1 {
					t.Fatal("the task is no dead letter")
				}
				s.event(&logv1.Event{
					Kind: logv1.EventKind_EVENT_KIND_REDRIVEN, TaskId: id[:], Domain: "shop", Redrive: &logv1.Redrive{Letter: 1, Tasklist: "mail", Request: 7},
				})
				time.Sleep(5 * time.Second)
				testkit.Equal(t, "the letter is there", letters() == 1, overtakes)
				testkit.Check(t, stop())
				s.mu.Lock()
				s.worker = nil
				s.mu.Unlock()
				_, stop = ready(s.deps("b"))
				time.Sleep(5 * time.Second)
				if letters() != 0 {
					t.Error("the next owner does not bring the task back")
				}
				testkit.Check(t, stop())
			})
		})
	}
}

// busyTimer is a timer store of which another owner makes use, once, just after it was looked into.
type busyTimer struct {
	partition.Timer
	then func()
}

func (b *busyTimer) FireEarly(ctx context.Context, wanted []replica.Search) (partition.Early, error) {
	early, err := b.Timer.FireEarly(ctx, wanted)
	if then := b.then; then != nil {
		b.then = nil
		then()
	}
	return early, err
}

// TestRedriveThatTheNextOwnerCarriedOut: an owner that was overtaken looks for the task while the next one parks it, and deletes its letter. It finds it in neither
// place, and says all the same what has become of it.
func TestRedriveThatTheNextOwnerCarriedOut(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		s.works(logv1.EventKind_EVENT_KIND_FAILED)
		d := s.deps("a")
		timer := &busyTimer{Timer: d.Timer}
		d.Timer = timer
		s.serves(d)
		id := newID(1)
		s.submit(0, task(id, "shop"))
		time.Sleep(time.Minute) // it is dead, and out of memory
		const request = 7
		timer.then = func() {
			back := task(id, "shop")
			back.Parkings, back.DueAtMs = 1, time.Now().Add(time.Hour).UnixMilli()
			back.Redriven = &logv1.Redriven{Count: 1, Seq: 1 << 40, Requests: []uint64{request}}
			data, err := (&logv1.Batch{Tasks: []*logv1.Record{back}}).MarshalVT()
			if err == nil {
				_, err = d.TimerStore.Park(t.Context(), back.DueAtMs/60_000, data)
			}
			if err == nil {
				err = d.Archive.DropDead(t.Context(), []replica.Letter{{Domain: "shop", Tasklist: "mail", ID: id, Seq: 1}})
			}
			testkit.Check(t, err)
		}
		s.event(&logv1.Event{
			Kind: logv1.EventKind_EVENT_KIND_REDRIVEN, TaskId: id[:], Domain: "shop", Redrive: &logv1.Redrive{Letter: 1, Tasklist: "mail", Request: request},
		})
		time.Sleep(time.Minute)
		if v := s.last(); timer.then != nil || v.Code != "" {
			t.Errorf("it gets %v", v)
		}
	})
}

// lateLetters is a reader that finds no dead letter the first time: it is being stored.
type lateLetters struct {
	partition.Reader
	asked *int
}

func (l lateLetters) Letters(ctx context.Context, wanted []replica.Search) ([]*partition.Letter, error) {
	if *l.asked++; *l.asked == 1 {
		return make([]*partition.Letter, len(wanted)), nil
	}
	return l.Reader.Letters(ctx, wanted)
}

// TestRedriveWhoseLetterIsStoredMeanwhile: it is stored before the archive knows the end, and so it is looked for behind that too.
func TestRedriveWhoseLetterIsStoredMeanwhile(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		s.works(logv1.EventKind_EVENT_KIND_FAILED)
		d := s.deps("a")
		asked := 0
		d.Reader = lateLetters{d.Reader, &asked}
		s.serves(d)
		id := newID(1)
		s.submit(0, task(id, "shop"))
		time.Sleep(time.Minute)
		s.event(&logv1.Event{
			Kind: logv1.EventKind_EVENT_KIND_REDRIVEN, TaskId: id[:], Domain: "shop", Redrive: &logv1.Redrive{Letter: 1, Tasklist: "mail", Request: 7},
		})
		time.Sleep(time.Minute)
		s.mu.Lock()
		for _, v := range s.verdicts {
			if v.Code != "" {
				t.Errorf("%v", v)
			}
		}
		s.mu.Unlock()
		testkit.Equal(t, "letters were asked for times", asked, 2)
	})
}
