package partition_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/dispatch"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/services/history/internal/queries"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// batch appends a message of shard 0.
func (s *shell) batch(epoch, request, delivered uint64, polls []*logv1.PollRef, events ...*logv1.Event) {
	data, err := (&logv1.EventBatch{
		ReplyTo: "asker", LogVersion: 1, Shard: 1, ShardEpoch: epoch, RequestId: request, Delivered: delivered,
		Polls: polls, Events: events,
	}).MarshalVT()
	testkit.Check(s.t, err)
	s.world.SendEvents(data)
}

func (s *shell) fence(epoch uint64) {
	s.batch(epoch, 1, 0, nil, &logv1.Event{Kind: logv1.EventKind_EVENT_KIND_FENCE})
}

// grab asks for the attempt of a task in lane 3 for the first poll of its batch.
func grab(id ids.TaskID, seq uint64, version uint32, limits ...string) *logv1.Event {
	return &logv1.Event{
		Kind: logv1.EventKind_EVENT_KIND_STARTED, TaskId: id[:], Position: uint64(ids.NewPosition(seq, 3)), Version: version, Nonce: 1,
		Poll: 1, Limits: limits,
	}
}

func inbox(name string) []*logv1.PollRef {
	return []*logv1.PollRef{{Worker: "worker-1", ReplyTo: name, Json: true, MaxTasks: 7}}
}

// last is the last verdict.
func (s *shell) last() *logv1.EventVerdict {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.verdicts[len(s.verdicts)-1]
}

// undelivered asks for all pages.
func (s *shell) undelivered(o *partition.Owner, epoch uint64) (grants []*rpcv1.UndeliveredGrant, pages int) {
	req := &rpcv1.UndeliveredRequest{Epoch: epoch}
	for {
		page, err := queries.Of(o).Undelivered(s.t.Context(), req)
		if err != nil || page.SizeVT() > 520<<10 {
			s.t.Fatalf("page %d has %d bytes: %v", pages, page.SizeVT(), err)
		}
		grants, pages = append(grants, page.Grants...), pages+1
		if req.Cursor = page.Cursor; len(req.Cursor) == 0 {
			return grants, pages
		}
	}
}

// TestR41UndeliveredGrantsAreToldAndBurnNothing: a new owner of a matching shard fences and learns what the one
// before may not have delivered, as its worker would have got it, once every event in the log is applied.
// What no one has received by the end of its lease is ready again, and no failure is counted.
func TestR41UndeliveredGrantsAreToldAndBurnNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		d := s.deps("a")
		o := s.serves(d)
		const n = 12
		var all []ids.TaskID
		var records []*logv1.Record
		for i := range uint64(n) {
			all = append(all, newID(i+1))
			r := task(all[i], "shop")
			r.Payload = make([]byte, 100<<10)
			records = append(records, r)
		}
		seq := s.submit(3, records...)
		synctest.Wait() // they are admitted
		for i, id := range all {
			s.batch(1, uint64(i+1), 0, inbox(fmt.Sprint("inbox-", i)), grab(id, seq, 1, "type/t"))
		}
		s.batch(1, n+1, 2, nil)
		s.fence(2)
		synctest.Wait()
		grants, pages := s.undelivered(o, 2)
		if len(grants) != n-2 || pages < 2 {
			t.Fatalf("%d grants in %d pages", len(grants), pages)
		}
		for i, g := range grants {
			var polled yardv1.PolledTask
			testkit.NoError(t, polled.UnmarshalVT(g.Task))
			token, err := d.Tokens.Read(all[i+2], polled.Token)
			if err != nil || token.Version != 1 || polled.TaskId != all[i+2].String() || g.Domain != "shop" || g.ReplyTo != fmt.Sprint("inbox-", i+2) || !g.Json || g.MaxTasks != 7 ||
				ids.TaskID(g.TaskId) != all[i+2] || g.Nonce != token.Nonce || g.Version != token.Version || g.Position != uint64(token.Position) ||
				polled.Attempt != 1 || polled.Failures != 0 || polled.TimeoutMs <= 0 || len(polled.Payload.GetData()) != 100<<10 {
				t.Errorf("grant %d: for %s, %v %v", i, g.ReplyTo, polled.TaskId, err)
			}
		}
		if v := s.last(); v.Code != "" || v.Fenced {
			t.Errorf("the fence: %v", v)
		}
		s.batch(1, n+2, 2, inbox("old"), grab(all[0], seq, 1))
		if v := s.last(); v.Code != "STALE" || !v.Fenced {
			t.Errorf("the old owner: %v", v)
		}
		s.mu.Lock()
		before := s.triggered[all[5]]
		s.mu.Unlock()
		time.Sleep(11 * time.Minute) // max_attempts is 1: what counts ends the task
		s.mu.Lock()
		dead := len(s.world.DeadTasks())
		again := s.triggered[all[5]] - before
		s.mu.Unlock()
		if dead != 2 || again == 0 {
			t.Errorf("%d tasks are dead, want 2; triggered %d times", dead, again)
		}
	})
}

// TestR39BookingsOfManyAttemptsFitIntoPages: 30,000 attempts of one limit, which are more than a message holds.
func TestR39BookingsOfManyAttemptsFitIntoPages(t *testing.T) {
	testkit.Slow(t, "stores many pages")
	inBubble(t, func(t *testing.T, s *shell) {
		d := s.deps("a")
		d.Config.WindowTasks = 100_000
		o := s.serves(d)
		const messages, each = 30, 1000
		for m := range uint64(messages) {
			var records []*logv1.Record
			var grabs []*logv1.Event
			for i := range uint64(each) {
				records = append(records, task(newID(m*each+i), "shop"))
			}
			seq := s.submit(3, records...)
			for i := range uint64(each) {
				grabs = append(grabs, grab(newID(m*each+i), seq, 1, "type/t"))
			}
			s.batch(1, m+1, 0, inbox("inbox"), grabs...)
		}
		synctest.Wait()
		seen := map[string]bool{}
		pages := 0
		for req := (&rpcv1.BookingsRequest{}); ; pages++ {
			page, err := queries.Of(o).Bookings(t.Context(), req)
			if err != nil || page.SizeVT() > 520<<10 {
				t.Fatalf("page %d has %d bytes: %v", pages, page.SizeVT(), err)
			}
			for _, g := range page.Groups {
				if g.Domain != "shop" || g.Tasklist == "" || g.Type != "t" || !slices.Equal(g.Limits, []string{"type/t"}) || g.DeadlineMs < time.Now().UnixMilli() {
					t.Errorf("a group of %s/%s in %v until %d", g.Domain, g.Type, g.Limits, g.DeadlineMs)
				}
				for b := g.Bookings; len(b) > 0; b = b[ids.BookingBytes:] {
					seen[string(b[:ids.BookingBytes])] = true
				}
			}
			if req.Cursor = page.Cursor; len(req.Cursor) == 0 {
				break
			}
		}
		if len(seen) != messages*each || pages == 0 {
			t.Errorf("%d attempts in %d pages", len(seen), pages+1)
		}
		if _, err := queries.Of(o).Bookings(t.Context(), &rpcv1.BookingsRequest{Cursor: []byte("forged")}); err == nil {
			t.Error("a cursor of no one's was taken")
		}
		none, err := queries.Of(o).Bookings(t.Context(), &rpcv1.BookingsRequest{Shard: 1})
		if err != nil || len(none.Groups)+len(none.Cursor) > 0 {
			t.Errorf("another shard has %v, %v", none, err)
		}
	})
}

// TestHoldersOfASlotAreTold: with what names the attempt, behind all grabs that are in the log; of so many limits and attempts at most.
func TestHoldersOfASlotAreTold(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		o := s.serves(s.deps("a"))
		first, second := newID(1), newID(2)
		seq := s.submit(3, task(first, "shop"), task(second, "shop"))
		s.batch(1, 1, 0, inbox("inbox"), grab(first, seq, 1, "type/t"))
		synctest.Wait()
		ask := func(most int32, limits int) (*rpcv1.BookingsResponse, error) {
			req := &rpcv1.BookingsRequest{Domain: "shop"}
			for i := range limits {
				req.Holders = append(req.Holders, &rpcv1.HoldersQuery{Limit: fmt.Sprint("other/", i), Most: most})
			}
			req.Holders[limits-1] = &rpcv1.HoldersQuery{Limit: "type/t", Most: most, Types: []string{"t"}, ReadyByMs: time.Now().UnixMilli()}
			return queries.Of(o).Bookings(t.Context(), req)
		}
		got, err := ask(dispatch.HoldersMax, dispatch.HoldersLimitsMax)
		if err != nil || len(got.Holders) != dispatch.HoldersLimitsMax || len(got.Groups) > 0 {
			t.Fatalf("%v %v", got, err)
		}
		h := got.Holders[dispatch.HoldersLimitsMax-1]
		if len(h.Oldest) != 1 || h.Leaving != 0 || h.Waiting != 1 || len(got.Holders[0].Oldest) > 0 {
			t.Fatalf("%v", h)
		}
		if one := h.Oldest[0]; !bytes.Equal(one.TaskId, first[:]) || one.Version != 1 || one.Position == 0 || one.StartedAtMs == 0 {
			t.Errorf("%v", one)
		}
		for _, c := range [][2]int{{0, 1}, {dispatch.HoldersMax + 1, 1}, {1, dispatch.HoldersLimitsMax + 1}} {
			if _, err := ask(int32(c[0]), c[1]); fault.CodeOf(err) != fault.InvalidArgument {
				t.Errorf("%d attempts of %d limits: %v", c[0], c[1], err)
			}
		}
	})
}

// TestI8AnOvertakenOwnerIsTold: with what runs, that it is another one's.
func TestI8AnOvertakenOwnerIsTold(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		o := s.serves(s.deps("a"))
		s.fence(2)
		s.last()
		for epoch, want := range map[uint64]bool{0: false, 1: true, 2: false, 3: false} {
			page, err := queries.Of(o).Bookings(t.Context(), &rpcv1.BookingsRequest{Epoch: epoch})
			if err != nil || page.Overtaken != want {
				t.Errorf("the owner of epoch %d: %v, %v", epoch, page, err)
			}
		}
		if page, err := queries.Of(o).Bookings(t.Context(), &rpcv1.BookingsRequest{Shard: 1, Epoch: 1}); err != nil || page.Overtaken {
			t.Errorf("of another shard: %v, %v", page, err)
		}
	})
}
