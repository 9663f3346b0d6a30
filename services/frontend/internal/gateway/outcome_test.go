package gateway

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/call"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/groupcommit"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/outcome"
)

// completion is one of task n in partition p.
func completion(p int, n uint64) *yardv1.Completion {
	id := ids.NewTaskID(time.UnixMilli(5), p, n)
	return &yardv1.Completion{
		TaskId: id.String(), Token: rigTokens.Print(id, ids.Token{Nonce: n}),
		Result: &yardv1.Payload{Data: []byte(`1`)},
	}
}

func (r *rig) complete(t *testing.T, entries ...*yardv1.Completion) <-chan reply {
	got := sent(t, r, r.Complete, &yardv1.CompleteRequest{Tasks: entries})
	return got
}

// verdict answers a batch: each event with its nonce as the message, so that a
// mix-up shows.
func (r *rig) verdict(t *testing.T, e sentEvents, from, to int) {
	t.Helper()
	b := &logv1.VerdictBatch{RequestId: e.id, First: uint32(from)}
	for _, event := range e.batch.Events[from:to] {
		b.Verdicts = append(b.Verdicts, &logv1.EventVerdict{Message: string(rune('a' + event.Nonce)), LeaseUntilMs: time.Now().UnixMilli() + int64(event.Nonce) + 1})
	}
	r.TakeVerdicts(testkit.Encoded(t, b))
}

func verdicts(t *testing.T, o reply) []*yardv1.Verdict {
	t.Helper()
	if o.err != nil {
		t.Fatalf("refused: %v", o.err)
	}
	return o.resp.(interface{ GetVerdicts() []*yardv1.Verdict }).GetVerdicts()
}

func TestVerdictsReachTheirEntries(t *testing.T) {
	onRunning(t, func(t *testing.T, r *rig) {
		// Entries of two partitions, one of none, and one task twice.
		entries := []*yardv1.Completion{completion(1, 1), completion(0, 2), completion(1, 3), completion(9, 4), completion(1, 1)}
		got := r.complete(t, entries...)
		synctest.Wait()
		sent := r.bus.sentEvents()
		testkit.MustEqual(t, "batches", len(sent), 2)
		for _, e := range sent {
			if e.batch.ReplyTo != "here" || e.batch.RequestId != e.id {
				t.Errorf("batch %v", e.batch)
			}
			for _, event := range e.batch.Events {
				if event.Domain != "shop" || event.Kind != logv1.EventKind_EVENT_KIND_COMPLETED || string(event.Data) != "1" {
					t.Errorf("event %v", event)
				}
			}
			r.verdict(t, e, 0, len(e.batch.Events))
		}
		for i, v := range verdicts(t, <-got) {
			if v.TaskId != entries[i].TaskId {
				t.Errorf("entry %d is of task %s", i, v.TaskId)
			}
			want := string(rune('a' + []uint64{1, 2, 3, 4, 1}[i]))
			if i == 3 {
				if v.Code != string(fault.NotFound) {
					t.Errorf("an id of no partition: %v", v)
				}
			} else if v.Code != "OK" || v.Message != want {
				t.Errorf("entry %d: %v", i, v)
			}
		}
	})
}

// R7: an id of no partition, or dated where no clock can be, is not delivered, whatever
// the verb. JSON knows no year beyond 9999, which is where the owners failed.
func TestIDsOutOfRangeAreNotFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(d *Deps) {
			d.Owners.HistoryGet = func(context.Context, int, *rpcv1.GetTaskRequest) (*rpcv1.GetTaskResponse, error) {
				t.Error("an owner was asked")
				return &rpcv1.GetTaskResponse{}, nil
			}
		}).running(t)
		now := time.Now()
		for _, id := range []ids.TaskID{
			{},
			ids.NewTaskID(now, rigPartitions, 1),
			ids.NewTaskID(now, 1<<16-1, 1),
			ids.NewTaskID(now.Add(clockSkewMax+time.Millisecond), 0, 1),
			ids.NewTaskID(time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC), 0, 1),
			ids.NewTaskID(time.UnixMilli(1<<48-1), 0, 1),
		} {
			token, id := rigTokens.Print(id, ids.Token{Nonce: 1}), id.String()
			for verb, send := range map[string]func(call.Answer){
				"complete":  sends(r, r.Complete, &yardv1.CompleteRequest{Tasks: []*yardv1.Completion{{TaskId: id, Token: token}}}),
				"fail":      sends(r, r.Fail, &yardv1.FailRequest{Tasks: []*yardv1.Failure{{TaskId: id, Token: token}}}),
				"heartbeat": sends(r, r.Heartbeat, &yardv1.HeartbeatRequest{Tasks: []*yardv1.Beat{{TaskId: id, Token: token}}}),
				"update":    sends(r, r.Update, &yardv1.UpdateRequest{Tasks: []*yardv1.TaskUpdate{{TaskId: id, Priority: 1}}}),
				"redrive":   sends(r, r.Redrive, &yardv1.RedriveRequest{TaskIds: []string{id}}),
				"cancel":    sends(r, r.Cancel, &yardv1.CancelRequest{TaskIds: []string{id}}),
			} {
				answer, got := r.answers(t)
				send(answer)
				if v := verdicts(t, <-got); v[0].Code != string(fault.NotFound) || v[0].TaskId != id {
					t.Errorf("%s of %s: %v", verb, id, v)
				}
			}
			got := sent(t, r, r.Get, &yardv1.GetRequest{TaskId: id})
			wantCode(t, (<-got).err, fault.NotFound)
		}
		testkit.Equal(t, "batches of events were sent", len(r.bus.sentEvents()), 0)
		r.Cancel(r.call(), &yardv1.CancelRequest{TaskIds: []string{ids.NewTaskID(now.Add(clockSkewMax), 0, 1).String()}}, func(codec.Message, error) {})
		synctest.Wait()
		testkit.Equal(t, "an id a day ahead batches", len(r.bus.sentEvents()), 1)
	})
}

// R6: a token of another task or of another cluster is answered as an unknown task is,
// and nothing is appended for it; the entries beside it are carried out.
func TestForgedTokensReachNobody(t *testing.T) {
	onRunning(t, func(t *testing.T, r *rig) {
		swapped, forged := completion(1, 1), completion(1, 2)
		swapped.Token = completion(1, 3).Token
		forged.Token = ids.NewTokens([ids.TokenSecretBytes]byte{2}).Print(ids.NewTaskID(time.UnixMilli(5), 1, 2), ids.Token{Nonce: 2})
		got := sent(t, r, r.Complete, &yardv1.CompleteRequest{Tasks: []*yardv1.Completion{swapped, completion(1, 4), forged, completion(1, 5)}})
		synctest.Wait()
		sent := r.bus.sentEvents()
		if len(sent) != 1 || len(sent[0].batch.Events) != 2 {
			t.Fatalf("sent %v", sent)
		}
		b := &logv1.VerdictBatch{RequestId: sent[0].id, Verdicts: []*logv1.EventVerdict{{}, {Code: string(fault.NotFound), Message: "of another domain"}}}
		r.TakeVerdicts(testkit.Encoded(t, b))
		all := verdicts(t, <-got)
		for _, i := range []int{0, 2, 3} {
			if all[i].Code != string(fault.NotFound) || all[i].Message != noSuchTask {
				t.Errorf("entry %d: %v", i, all[i])
			}
		}
		if all[1].Code != outcome.CodeOK {
			t.Errorf("the good entry: %v", all[1])
		}
		for verb, send := range map[string]func(call.Answer){
			"fail":      sends(r, r.Fail, &yardv1.FailRequest{Tasks: []*yardv1.Failure{{TaskId: forged.TaskId, Token: forged.Token}}}),
			"heartbeat": sends(r, r.Heartbeat, &yardv1.HeartbeatRequest{Tasks: []*yardv1.Beat{{TaskId: forged.TaskId, Token: forged.Token}}}),
		} {
			answer, got := r.answers(t)
			send(answer)
			if v := verdicts(t, <-got)[0]; v.Code != string(fault.NotFound) || v.Message != noSuchTask {
				t.Errorf("%s: %v", verb, v)
			}
		}
		testkit.Equal(t, "batches of events were sent", len(r.bus.sentEvents()), 1)
	})
}

func TestRequestsShareABatchAndGetTheirOwnVerdicts(t *testing.T) {
	onRunning(t, func(t *testing.T, r *rig) {
		var got []<-chan reply
		for n := range uint64(20) { // two batches are in flight, the rest gathers behind
			got = append(got, r.complete(t, completion(1, n)))
		}
		answered := 0
		for range 4 {
			synctest.Wait()
			sent := r.bus.sentEvents()
			for _, e := range sent[answered:] {
				n := len(e.batch.Events)
				r.verdict(t, e, n/2, n) // in two messages, the later half first, one of them twice
				r.verdict(t, e, n/2, n)
				r.verdict(t, e, 0, n/2)
			}
			answered = len(sent)
		}
		for n, a := range got {
			if v := verdicts(t, <-a)[0]; v.Message != string(rune('a'+n)) || v.LeaseMs != int64(n)+1 {
				t.Errorf("request %d got %v", n, v)
			}
		}
		if answered > 4 {
			t.Errorf("%d batches for 20 requests", answered)
		}
	})
}

// TestAPartOfTheVerdictsAnswersWhoHasAll: one task that history has to search for delays neither the
// requests that share its batch nor the batches behind.
func TestAPartOfTheVerdictsAnswersWhoHasAll(t *testing.T) {
	onRunning(t, func(t *testing.T, r *rig) {
		var got []<-chan reply
		for n := range uint64(5) {
			got = append(got, r.complete(t, completion(1, n), completion(1, n+10)))
		}
		synctest.Wait()
		var slow []sentEvents
		for answered := 0; answered < len(r.bus.sentEvents()); {
			sent := r.bus.sentEvents()
			for _, e := range sent[answered:] {
				slow = append(slow, e)
				r.verdict(t, e, 1, len(e.batch.Events)) // all but the first one
			}
			answered = len(sent)
			synctest.Wait()
		}
		missing := 0
		for n, a := range got {
			select {
			case o := <-a:
				if v := verdicts(t, o); v[0].Message != string(rune('a'+n)) || v[1].Message != string(rune('a'+n+10)) {
					t.Errorf("request %d got %v", n, v)
				}
			default:
				missing++
			}
		}
		if missing != len(slow) || len(slow) > 3 {
			t.Errorf("%d requests wait, in %d batches", missing, len(slow))
		}
		next := r.complete(t, completion(1, 20))
		synctest.Wait()
		sent := r.bus.sentEvents()
		r.verdict(t, sent[len(sent)-1], 0, 1)
		verdicts(t, <-next)
		for _, e := range slow {
			r.verdict(t, e, 0, 1)
			r.verdict(t, e, 0, 1)
		}
	})
}

func TestMissingVerdictsAreAskedForWithTheSameEvents(t *testing.T) {
	onRunning(t, func(t *testing.T, r *rig) {
		got := r.complete(t, completion(1, 1), completion(1, 2))
		time.Sleep(5 * time.Second)
		synctest.Wait()
		sent := r.bus.sentEvents()
		if len(sent) != 3 { // at 0, 2 and 4 s
			t.Fatalf("sent %d times", len(sent))
		}
		if sent[0].data != sent[1].data || sent[1].data != sent[2].data {
			t.Error("a repeat differs")
		}
		r.verdict(t, sent[0], 0, 2) // however late
		for _, v := range verdicts(t, <-got) {
			if v.Code != "OK" {
				t.Errorf("got %v", v)
			}
		}
	})
}

// TestUpdatesAreAskedForMoreAndMoreRarely: history looks for their tasks, which is slow where it has much to do.
func TestUpdatesAreAskedForMoreAndMoreRarely(t *testing.T) {
	onRunning(t, func(t *testing.T, r *rig) {
		go func() {
			_, _ = asked(r, "shop", false, r.Cancel, &yardv1.CancelRequest{TaskIds: []string{ids.NewTaskID(time.Now(), 1, 1).String()}}) // it ends with the rig
		}()
		for at, want := range []int{0: 1, 1: 1, 3: 2, 5: 2, 7: 3, 9: 3} {
			synctest.Wait()
			if n := len(r.bus.sentEvents()); want > 0 && n != want {
				t.Errorf("after %d s it is sent %d times, want %d", at, n, want)
			}
			time.Sleep(time.Second)
		}
	})
}

func TestNoVerdictByTheDeadlineIsUnknown(t *testing.T) {
	onRunning(t, func(t *testing.T, r *rig) {
		began := time.Now()
		got := <-r.complete(t, completion(0, 1), completion(1, 1))
		for _, v := range verdicts(t, got) {
			if v.Code != string(fault.Unknown) || v.Message == "" {
				t.Errorf("got %v", v)
			}
		}
		testkit.Equal(t, "it took", got.at.Sub(began), r.config.RequestTimeout)
		r.verdict(t, r.bus.sentEvents()[0], 0, 1) // too late, and no harm
	})
}

func TestRefusedEventsAreSentAgainSoon(t *testing.T) {
	onRunning(t, func(t *testing.T, r *rig) {
		r.bus.down = true
		got := r.complete(t, completion(1, 1))
		time.Sleep(time.Second)
		r.bus.mu.Lock()
		r.bus.down = false
		r.bus.mu.Unlock()
		time.Sleep(refusedPause)
		synctest.Wait()
		sent := r.bus.sentEvents()
		testkit.MustEqual(t, "sent", len(sent), 1)
		r.EventsRefused(sent[0].id, "the log is full")
		time.Sleep(refusedPause)
		synctest.Wait()
		testkit.MustEqual(t, "sent after a refusal", len(r.bus.sentEvents()), 2)
		r.verdict(t, sent[0], 0, 1)
		verdicts(t, <-got)
	})
}

func TestLargeOutcomesAreCut(t *testing.T) {
	onRunning(t, func(t *testing.T, r *rig) {
		var entries []*yardv1.Completion
		for n := range uint64(4) {
			c := completion(1, n)
			c.Result = &yardv1.Payload{Data: make([]byte, 200<<10), Encoding: yardv1.Encoding_ENCODING_BINARY}
			entries = append(entries, c)
		}
		got := r.complete(t, entries...)
		answered := 0
		for range 4 {
			synctest.Wait()
			sent := r.bus.sentEvents()
			for _, e := range sent[answered:] {
				if len(e.data) > groupcommit.MessageBytesMax+1024 {
					t.Errorf("a batch of %d bytes", len(e.data))
				}
				r.verdict(t, e, 0, len(e.batch.Events))
			}
			answered = len(sent)
		}
		for n, v := range verdicts(t, <-got) {
			if v.Message != string(rune('a'+n)) {
				t.Errorf("entry %d: %v", n, v)
			}
		}
	})
}

func TestFailHeartbeatAndCancelBecomeEvents(t *testing.T) {
	onRunning(t, func(t *testing.T, r *rig) {
		c := completion(0, 1)
		for kind, send := range map[logv1.EventKind]func(call.Answer){
			logv1.EventKind_EVENT_KIND_RELEASED:  sends(r, r.Fail, &yardv1.FailRequest{Tasks: []*yardv1.Failure{{TaskId: c.TaskId, Token: c.Token, NotStarted: true}}}),
			logv1.EventKind_EVENT_KIND_HEARTBEAT: sends(r, r.Heartbeat, &yardv1.HeartbeatRequest{Tasks: []*yardv1.Beat{{TaskId: c.TaskId, Token: c.Token}}}),
			logv1.EventKind_EVENT_KIND_CANCEL:    sends(r, r.Cancel, &yardv1.CancelRequest{TaskIds: []string{c.TaskId}, Reason: "why"}),
		} {
			before := len(r.bus.sentEvents())
			answer, got := r.answers(t)
			send(answer)
			synctest.Wait()
			sent := r.bus.sentEvents()[before:]
			if len(sent) != 1 || sent[0].batch.Events[0].Kind != kind || sent[0].batch.Events[0].Domain != "shop" {
				t.Fatalf("sent %v, want one %v", sent, kind)
			}
			r.verdict(t, sent[0], 0, 1)
			verdicts(t, <-got)
		}
	})
}

func TestNonsenseVerdictsAreIgnored(t *testing.T) {
	onRunning(t, func(t *testing.T, r *rig) {
		got := r.complete(t, completion(1, 1))
		synctest.Wait()
		e := r.bus.sentEvents()[0]
		r.TakeVerdicts([]byte("nonsense"))
		for _, b := range []*logv1.VerdictBatch{
			{RequestId: e.id + 1, Verdicts: []*logv1.EventVerdict{{}}},
			{RequestId: e.id, First: 1, Verdicts: []*logv1.EventVerdict{{}}},
			{RequestId: e.id, First: 1 << 31, Verdicts: []*logv1.EventVerdict{{}}},
			{RequestId: e.id, Verdicts: []*logv1.EventVerdict{{}, {}}},
		} {
			r.TakeVerdicts(testkit.Encoded(t, b))
		}
		synctest.Wait()
		select {
		case o := <-got:
			t.Fatalf("answered %v", o)
		default:
		}
		r.verdict(t, e, 0, 1)
		verdicts(t, <-got)
	})
}
