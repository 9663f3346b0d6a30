package gateway

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/testkit"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/batches"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/intake"
)

// memBatches has no batch and no task that has ended, but a number of batches.
type memBatches struct{ count int }

func (m memBatches) Page(context.Context, int, string, uint64, int) ([]batches.Kept, bool, error) {
	return nil, false, nil
}

func (m memBatches) Count(context.Context, int, string) (int, error) { return m.count, nil }

func TestTooManyBatchesAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for count, want := range map[int]fault.Code{topology.BatchesMax - 1: "", topology.BatchesMax: fault.ResourceExhausted} {
			r := newKnowingRig(t, func(d *Deps) {
				d.Batches = memBatches{count}
			})
			_, err := asked(r, "shop", false, r.CreateBatch, &yardv1.CreateBatchRequest{BatchId: "a"})
			if fault.CodeOf(err) != want {
				t.Errorf("with %d batches: %v", count, err)
			}
		}
	})
}

func second[T any](_ T, err error) error { return err }

// TestR43_AFullLogTakesNoBatch, and no member of one; what is there is shown all the same.
func TestR43_AFullLogTakesNoBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newKnowingRig(t, func(d *Deps) {
			d.Batches = memBatches{}
		})
		testkit.NoError(t, testkit.Err(asked(r, "shop", false, r.CreateBatch, &yardv1.CreateBatchRequest{BatchId: "a"})))
		r.allFull(t, true)
		stored := r.log.messages()
		for _, err := range map[string]error{
			"another batch": second(asked(r, "shop", false, r.CreateBatch, &yardv1.CreateBatchRequest{BatchId: "b"})),
			"a member":      second(asked(r, "shop", false, r.Submit, &yardv1.SubmitRequest{Tasklist: "mail", Tasks: []*yardv1.NewTask{{Type: "a", BatchId: "a"}}})),
		} {
			wantLater(t, err, fault.ResourceExhausted)
		}
		if _, err := asked(r, "shop", false, r.CreateBatch, &yardv1.CreateBatchRequest{BatchId: "a"}); err != nil || r.log.messages() != stored {
			t.Errorf("the same again: %v, %d messages more", err, r.log.messages()-stored)
		}
	})
}

// countingLog counts the reads of batches.
type countingLog struct {
	intake.HistoryLog
	reads *atomic.Int64
}

func (l countingLog) LastFor(ctx context.Context, p int, subject string) (*natslog.Record, error) {
	if topology.DomainOfBatchHome(p, subject) != "" {
		l.reads.Add(1)
	}
	return l.HistoryLog.LastFor(ctx, p, subject)
}

// TestWaitsForABatchShareItsReads: many that wait cost the log two reads each, and one a second in all. All hear of its end, and of that of their time.
func TestWaitsForABatchShareItsReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Int64
		r := newKnowingRig(t, func(d *Deps) {
			d.Batches, d.History = memBatches{}, countingLog{d.History, &reads}
		})
		testkit.NoError(t, testkit.Err(asked(r, "shop", false, r.CreateBatch, &yardv1.CreateBatchRequest{BatchId: "a"})))
		const waiters, seconds = 100, 20
		wait := func(ms int64) (told []*yardv1.Batch) {
			var mu sync.Mutex
			var all sync.WaitGroup
			for range waiters {
				all.Go(func() {
					resp, err := asked(r, "shop", false, r.WaitBatch, &yardv1.WaitBatchRequest{BatchId: "a", WaitMs: ms})
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					defer mu.Unlock()
					told = append(told, resp.(*yardv1.WaitBatchResponse).Batch)
				})
			}
			all.Wait()
			return told
		}
		reads.Store(0)
		for _, b := range wait(seconds * 1000) {
			testkit.Equal(t, "it is", b.State, yardv1.BatchState_BATCH_STATE_OPEN)
		}
		if n := reads.Load(); n < seconds || n > 2*waiters+seconds+10 {
			t.Errorf("%d reads", n)
		}
		began := time.Now()
		go func() {
			time.Sleep(seconds * time.Second)
			testkit.Check(t, r.changeBatch("shop", "a", func(was *logv1.BatchHome) *logv1.BatchHome {
				over := was.CloneVT()
				over.EndedAtMs = 1
				return over
			}))
		}()
		for _, b := range wait(60_000) {
			testkit.Equal(t, "it is", b.State, yardv1.BatchState_BATCH_STATE_COMPLETED)
		}
		if late := time.Since(began) - seconds*time.Second; late > 2*time.Second {
			t.Errorf("they heard of it after %v", late)
		}
		time.Sleep(2 * time.Second)
		read := reads.Load()
		time.Sleep(time.Minute)
		testkit.Equal(t, "reads of a batch that no one waits for", reads.Load()-read, 0)
	})
}

// TestABatchOfBadTextIsRefused as any bad field is, though it cannot be encoded.
func TestABatchOfBadTextIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newKnowingRig(t, func(d *Deps) {
			d.Batches = memBatches{}
		})
		for path, req := range map[string]*yardv1.CreateBatchRequest{
			"/batch_id": {BatchId: "a\xff"}, "/callback/type": {BatchId: "a", Callback: &yardv1.NewTask{Type: "a\xff", Tasklist: "mail"}},
		} {
			_, err := asked(r, "shop", false, r.CreateBatch, req)
			if e := fault.From(err); e == nil || e.Code != fault.InvalidArgument || e.Path != path {
				t.Errorf("%s: %v", path, err)
			}
		}
	})
}

// changeBatch changes a batch in the log, as its keeper does.
func (r *rig) changeBatch(domain, id string, change func(was *logv1.BatchHome) *logv1.BatchHome) error {
	p := topology.BatchPartition(domain, id, topology.Partitioning{History: rigPartitions, Matching: rigShards})
	for {
		home, seq := r.batchHome(domain, id)
		data, err := change(home).MarshalVT()
		if err != nil {
			return err
		}
		_, _, err = r.log.Append(context.Background(), natslog.Msg{Subject: topology.BatchHome(p, domain, id), Data: data}.InPlace(time.Hour).Over(seq))
		if !errors.Is(err, natslog.ErrWrongLast) {
			return err
		}
	}
}

// batchHome is a batch as the log has it, and where.
func (r *rig) batchHome(domain, id string) (*logv1.BatchHome, uint64) {
	p := topology.BatchPartition(domain, id, topology.Partitioning{History: rigPartitions, Matching: rigShards})
	m, err := r.log.LastFor(context.Background(), p, topology.BatchHome(p, domain, id))
	home := &logv1.BatchHome{}
	if err == nil {
		err = home.UnmarshalVT(m.Data)
	}
	if err != nil {
		panic(err)
	}
	return home, m.Seq
}

// noSchedules has none.
type noSchedules struct{}

func (noSchedules) Names(context.Context, int, string) ([]string, error) { return nil, nil }
