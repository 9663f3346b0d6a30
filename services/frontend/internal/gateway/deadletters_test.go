package gateway

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/call"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/operate"
)

// memLetters are dead letters in memory.
type memLetters struct {
	all  []operate.DeadLetter
	last uint64
}

func (m *memLetters) Last(context.Context) (uint64, error) { return m.last, nil }

func (m *memLetters) Page(_ context.Context, domain, tasklist string, after uint64, limit, _ int) (page []operate.DeadLetter, more bool, err error) {
	for _, l := range m.all {
		if l.Seq <= after || l.Record.Domain != domain || tasklist != "" && l.Record.Tasklist != tasklist {
			continue
		}
		if len(page) == limit {
			return page, true, nil
		}
		page = append(page, l)
	}
	return page, false, nil
}

func (m *memLetters) Find(_ context.Context, domain string, wanted []ids.TaskID) ([]*operate.DeadLetter, error) {
	found := make([]*operate.DeadLetter, len(wanted))
	for i, id := range wanted {
		for _, l := range m.all {
			if l.Record.Domain == domain && string(l.Record.Id) == string(id[:]) {
				found[i] = &l
			}
		}
	}
	return found, nil
}

func (m *memLetters) Get(ctx context.Context, domain string, id ids.TaskID) (*operate.DeadLetter, error) {
	found, err := m.Find(ctx, domain, []ids.TaskID{id})
	return found[0], err
}

func (m *memLetters) Delete(_ context.Context, letters []*operate.DeadLetter) (deleted int64, err error) {
	for _, drop := range letters {
		if drop != nil {
			m.all = slices.DeleteFunc(m.all, func(l operate.DeadLetter) bool { return l.Seq == drop.Seq })
			deleted++
		}
	}
	return deleted, nil
}

// die adds the letter of a task that died at a time.
func (m *memLetters) die(n int, domain, typ, errType string, atMS int64) ids.TaskID {
	id := ids.NewTaskID(time.UnixMilli(atMS), 0, uint64(n))
	m.last++
	m.all = append(m.all, operate.DeadLetter{Seq: m.last, Record: &logv1.Record{
		Id: id[:], Domain: domain, Tasklist: "mail", Type: typ, ErrorType: errType, FinishedAtMs: atMS, Parkings: 2, Failures: 3, Version: 3,
		Payload: []byte("{}"), Steps: []*logv1.Step{{Kind: 12}},
	}})
	return id
}

// withLetters is a rig whose domain has n letters of two types, and whose neighbour has one.
func withLetters(t *testing.T, n int) (*rig, *memLetters) {
	m := new(memLetters)
	at := time.Now().Add(-time.Hour).UnixMilli()
	m.die(99, "rival", "spy", "network", at)
	for i := range n {
		m.die(i+1, "shop", []string{"send", "bill"}[i%2], "network", at+int64(i)*1000)
	}
	return newRig(t, func(d *Deps) {
		d.DeadLetters = m
	}).running(t), m
}

// redrives are the events that were sent.
func (r *rig) redrives() (all []*logv1.Event) {
	for _, e := range r.bus.sentEvents() {
		all = append(all, e.batch.Events...)
	}
	return all
}

func ask[Req, Resp any](t *testing.T, r *rig, do func(call.Call, Req, call.Answer), req Req) (Resp, error) {
	answer, got := r.answers(t)
	do(r.call(), req, answer)
	synctest.Wait()
	for _, e := range r.bus.sentEvents()[r.answered:] { // the log applies all
		r.verdict(t, e, 0, len(e.batch.Events))
		r.answered++
	}
	o := <-got
	resp, _ := o.resp.(Resp)
	return resp, o.err
}

func TestDeadLettersAreListedAndCountedPageByPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, m := withLetters(t, 5)
		var seen []string
		for req := (&yardv1.ListDeadLettersRequest{Limit: 2}); ; {
			resp, err := ask[*yardv1.ListDeadLettersRequest, *yardv1.ListDeadLettersResponse](t, r, r.ListDeadLetters, req)
			testkit.NoError(t, err)
			for _, task := range resp.Tasks {
				if task.Domain != "shop" || task.Payload != nil || task.State != yardv1.TaskState_TASK_STATE_DEAD {
					t.Errorf("listed %v", task)
				}
				seen = append(seen, task.TaskId)
			}
			if len(seen) == 2 { // what dies later is not of this list
				m.die(50, "shop", "send", "network", time.Now().UnixMilli())
			}
			if req.Cursor = resp.NextCursor; req.Cursor == "" {
				break
			}
		}
		if len(seen) != 5 {
			t.Errorf("listed %v", seen)
		}
		counts, err := ask[*yardv1.CountDeadLettersRequest, *yardv1.CountDeadLettersResponse](t, r, r.CountDeadLetters,
			&yardv1.CountDeadLettersRequest{Filter: &yardv1.DeadLetterFilter{Type: "send"}})
		if err != nil || len(counts.Counts) != 1 || counts.Counts[0].Letters != 4 || counts.Counts[0].LastAtMs <= counts.Counts[0].FirstAtMs {
			t.Errorf("counted %v: %v", counts, err)
		}
		hours, err := ask[*yardv1.CountDeadLettersRequest, *yardv1.CountDeadLettersResponse](t, r, r.CountDeadLetters, &yardv1.CountDeadLettersRequest{PeriodMs: 2000})
		if err != nil || len(hours.Counts) < 5 {
			t.Errorf("counted by time %v: %v", hours, err)
		}
	})
}

func TestADeadLetterIsOfItsDomainOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, m := withLetters(t, 1)
		rival := ids.TaskID(m.all[0].Record.Id).String()
		_, err := ask[*yardv1.GetDeadLetterRequest, *yardv1.GetDeadLetterResponse](t, r, r.GetDeadLetter, &yardv1.GetDeadLetterRequest{TaskId: rival})
		wantCode(t, err, fault.NotFound)
		resp, err := ask[*yardv1.PurgeDeadLettersRequest, *yardv1.PurgeDeadLettersResponse](t, r, r.PurgeDeadLetters, &yardv1.PurgeDeadLettersRequest{TaskIds: []string{rival}})
		if err != nil || resp.Purged != 0 || len(m.all) != 2 {
			t.Errorf("purged %v, %d are left: %v", resp, len(m.all), err)
		}
		own := ids.TaskID(m.all[1].Record.Id).String()
		whole, err := ask[*yardv1.GetDeadLetterRequest, *yardv1.GetDeadLetterResponse](t, r, r.GetDeadLetter, &yardv1.GetDeadLetterRequest{TaskId: own})
		if err != nil || string(whole.Task.Payload.Data) != "{}" || len(whole.Task.Events) != 1 {
			t.Errorf("got %v: %v", whole, err)
		}
	})
}

func TestAPurgeOfLettersIsPreviewedAndStepped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, m := withLetters(t, 5)
		req := &yardv1.PurgeDeadLettersRequest{Filter: &yardv1.DeadLetterFilter{Type: "send"}, Limit: 2, Preview: true}
		resp, err := ask[*yardv1.PurgeDeadLettersRequest, *yardv1.PurgeDeadLettersResponse](t, r, r.PurgeDeadLetters, req)
		if err != nil || resp.Found != 1 || resp.Purged != 0 || len(m.all) != 6 {
			t.Fatalf("previewed %v, %d are left: %v", resp, len(m.all), err)
		}
		purged := int64(0)
		for req.Preview = false; ; {
			resp, err := ask[*yardv1.PurgeDeadLettersRequest, *yardv1.PurgeDeadLettersResponse](t, r, r.PurgeDeadLetters, req)
			testkit.NoError(t, err)
			purged += resp.Purged
			if req.Cursor = resp.NextCursor; req.Cursor == "" {
				break
			}
		}
		if purged != 3 || len(m.all) != 3 {
			t.Errorf("%d were purged, %d are left", purged, len(m.all))
		}
	})
}

func TestARedriveNamesItsLetterToTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, m := withLetters(t, 3)
		resp, err := ask[*yardv1.RedriveRequest, *yardv1.RedriveResponse](t, r, r.Redrive, &yardv1.RedriveRequest{
			Filter: &yardv1.DeadLetterFilter{}, Retry: &yardv1.RetryPolicy{MaxAttempts: 7}, By: "ann", Reason: "it is up",
		})
		if err != nil || resp.Found != 3 || resp.Redriven != 3 || len(resp.Verdicts) != 0 {
			t.Fatalf("redriven %v: %v", resp, err)
		}
		requests := map[uint64]bool{}
		for i, e := range r.redrives() {
			d := e.Redrive
			requests[d.Request] = true
			if d.Letter != m.all[i+1].Seq || d.Parkings != 2 || d.Tasklist != "mail" || d.Policy.MaxAttempts != 7 || e.Domain != "shop" || e.Message != "redriven by ann: it is up" {
				t.Errorf("event %v", e)
			}
		}
		if len(requests) != 3 || requests[0] {
			t.Errorf("requests %v", requests)
		}
	})
}

func TestARedriveOfATaskWithoutALetterAsksTheLogAllTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := withLetters(t, 1)
		id := ids.NewTaskID(time.Now(), 0, 77).String()
		resp, err := ask[*yardv1.RedriveRequest, *yardv1.RedriveResponse](t, r, r.Redrive, &yardv1.RedriveRequest{TaskIds: []string{id}})
		if err != nil || resp.Found != 0 || len(resp.Verdicts) != 1 || len(r.redrives()) != 1 || r.redrives()[0].Redrive.Letter != 0 {
			t.Errorf("redriven %v: %v", resp, err)
		}
		preview, err := ask[*yardv1.RedriveRequest, *yardv1.RedriveResponse](t, r, r.Redrive, &yardv1.RedriveRequest{TaskIds: []string{id}, Preview: true})
		if err != nil || preview.Verdicts[0].Code != string(fault.NotFound) || len(r.redrives()) != 1 {
			t.Errorf("previewed %v: %v", preview, err)
		}
	})
}

// A task is dead before its letter is stored: NOT_FOUND would tell a client to give up.
func TestADeadTaskThatIsBeingStoredIsNotMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, c := range map[string]struct {
			task *yardv1.Task
			want fault.Code
		}{
			"just dead":       {&yardv1.Task{State: yardv1.TaskState_TASK_STATE_DEAD, FinishedAtMs: time.Now().UnixMilli()}, fault.Unavailable},
			"purged long ago": {&yardv1.Task{State: yardv1.TaskState_TASK_STATE_DEAD, FinishedAtMs: time.Now().Add(-time.Minute).UnixMilli()}, fault.NotFound},
			"just completed":  {&yardv1.Task{State: yardv1.TaskState_TASK_STATE_COMPLETED, FinishedAtMs: time.Now().UnixMilli()}, fault.NotFound},
			"known to no one": {nil, fault.NotFound},
		} {
			r := newRig(t, func(d *Deps) {
				d.DeadLetters = new(memLetters)
				d.Owners.HistoryGet = func(context.Context, int, *rpcv1.GetTaskRequest) (*rpcv1.GetTaskResponse, error) {
					return &rpcv1.GetTaskResponse{Task: c.task}, nil
				}
			}).running(t)
			_, err := ask[*yardv1.GetDeadLetterRequest, *yardv1.GetDeadLetterResponse](t, r, r.GetDeadLetter,
				&yardv1.GetDeadLetterRequest{TaskId: ids.NewTaskID(time.Now(), 0, 77).String()})
			if fault.CodeOf(err) != c.want {
				t.Errorf("%s: %v, want %s", name, err, c.want)
			}
		}
	})
}

// TestARedriveOfNothingSendsNothing, and a purge of nothing deletes nothing.
func TestARedriveOfNothingSendsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, m := withLetters(t, 2)
		none := &yardv1.DeadLetterFilter{Type: "other"}
		resp, err := ask[*yardv1.RedriveRequest, *yardv1.RedriveResponse](t, r, r.Redrive, &yardv1.RedriveRequest{Filter: none})
		if err != nil || resp.Found != 0 || resp.NextCursor != "" || len(r.redrives()) != 0 {
			t.Errorf("redriven %v, %d events: %v", resp, len(r.redrives()), err)
		}
		purge, err := ask[*yardv1.PurgeDeadLettersRequest, *yardv1.PurgeDeadLettersResponse](t, r, r.PurgeDeadLetters, &yardv1.PurgeDeadLettersRequest{Filter: none})
		if err != nil || purge.Found != 0 || len(m.all) != 3 {
			t.Errorf("purged %v: %v", purge, err)
		}
	})
}

// TestALetterShowsItsOrderKey, which its task has no more once it comes back.
func TestALetterShowsItsOrderKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, m := withLetters(t, 1)
		m.all[1].Record.Order = &logv1.Order{Key: "account 7"}
		resp, err := ask[*yardv1.ListDeadLettersRequest, *yardv1.ListDeadLettersResponse](t, r, r.ListDeadLetters, &yardv1.ListDeadLettersRequest{})
		if err != nil || len(resp.Tasks) != 1 || resp.Tasks[0].OrderKey != "account 7" {
			t.Errorf("listed %v: %v", resp, err)
		}
	})
}

// TestALiveTaskIsShownAndNotItsEarlierEnd: history has the end that the archive has, the timer store has the task.
func TestALiveTaskIsShownAndNotItsEarlierEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(d *Deps) {
			d.Owners.HistoryGet = func(context.Context, int, *rpcv1.GetTaskRequest) (*rpcv1.GetTaskResponse, error) {
				return &rpcv1.GetTaskResponse{Task: &yardv1.Task{State: yardv1.TaskState_TASK_STATE_DEAD}}, nil
			}
			d.Owners.TimerGet = func(context.Context, int, *rpcv1.GetTaskRequest) (*rpcv1.GetTaskResponse, error) {
				return &rpcv1.GetTaskResponse{Task: &yardv1.Task{State: yardv1.TaskState_TASK_STATE_WAITING, Redrives: 1}}, nil
			}
		}).running(t)
		got := <-r.get(t, ids.NewTaskID(time.Now(), 1, 1), 0)
		if got.err != nil || got.resp.(*yardv1.GetResponse).Task.State != yardv1.TaskState_TASK_STATE_WAITING {
			t.Errorf("got %v: %v", got.resp, got.err)
		}
	})
}
