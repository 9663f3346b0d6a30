package gateway

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// slowLog is a log whose appends take a time, by partition.
type slowLog struct {
	*memLog
	mu   sync.Mutex
	took [rigPartitions]time.Duration
}

func (l *slowLog) Append(ctx context.Context, m natslog.Msg) (seq uint64, duplicate bool, err error) {
	l.mu.Lock()
	took := l.took[partitionOf(m.Subject)]
	l.mu.Unlock()
	time.Sleep(took)
	return l.memLog.Append(ctx, m)
}

func (l *slowLog) AppendEach(ctx context.Context, msgs []natslog.Msg, outcome func(i int, a natslog.Appended)) {
	for i, m := range msgs {
		seq, duplicate, err := l.Append(ctx, m)
		outcome(i, natslog.Appended{Seq: seq, Duplicate: duplicate, Err: err})
	}
}

func (l *slowLog) take(p int, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.took[p] = took
}

// onSlow runs a test on a rig whose appends take 2 ms, with metrics, after some submits.
func onSlow(t *testing.T, test func(t *testing.T, r *rig, l *slowLog)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := &slowLog{memLog: newMemLog(rigPartitions)}
		metrics, err := telemetry.NewMetrics()
		testkit.NoError(t, err)
		r := newRig(t, func(d *Deps) { d.History, d.Metrics = l, metrics }).running(t)
		for p := range rigPartitions {
			l.take(p, 2*time.Millisecond)
		}
		for range 20 {
			l.submitted(t, r)
		}
		test(t, r, l)
	})
}

// submitted submits one task and returns where it was stored.
func (l *slowLog) submitted(t *testing.T, r *rig) (partition int) {
	t.Helper()
	id, err := ids.ParseTaskID(accepted(t, <-r.submit(t, tasks(1)))[0])
	testkit.NoError(t, err)
	return id.Partition()
}

// seen is what operators see of a partition: its share in the answer of queues.list and as a metric, and the warnings.
func (r *rig) seen(t *testing.T, p int) (submits string, share float64, warning error) {
	t.Helper()
	answer, got := r.answers(t)
	r.Overview.ListQueues(r.call(), &yardv1.ListQueuesRequest{Partition: int32(p), Partitions: 1}, answer)
	values, err := r.metrics.Values()
	testkit.NoError(t, err)
	share, ok := values[fmt.Sprintf("yardmaster_submit_partition_share_ratio{partition=%q}", strconv.Itoa(p))]
	testkit.Equal(t, "the metric is there", ok, true)
	return (<-got).resp.(*yardv1.ListQueuesResponse).Partitions[0].Submits, share, r.Warn()
}

// A partition that gets slow gets fewer submits and then none, and all again when it is quick.
func TestASlowPartitionIsLeftAloneAndComesBack(t *testing.T) {
	onSlow(t, func(t *testing.T, r *rig, l *slowLog) {
		if submits, share, warning := r.seen(t, 1); submits != "full" || share != 1 || warning != nil {
			t.Errorf("before: %s, %v, %v", submits, share, warning)
		}
		l.take(1, 300*time.Millisecond)
		got := 0
		for range 1000 {
			if l.submitted(t, r) == 1 {
				got++
			}
		}
		if submits, share, warning := r.seen(t, 1); got > 10 || submits != "probes" || share != 0 || warning == nil {
			t.Errorf("it got %d of 1000 submits; seen are %s, %v, %v", got, submits, share, warning)
		}
		testkit.Equal(t, "changes", r.metrics.Counter(signals.PartitionShareChanges).Value() > 0, true)
		l.take(1, 2*time.Millisecond)
		for began, got := time.Now(), 0; got < 300 && time.Since(began) < time.Minute; {
			if l.submitted(t, r) == 1 {
				got++
			}
		}
		if submits, share, warning := r.seen(t, 1); submits != "full" || share != 1 || warning != nil {
			t.Errorf("after: %s, %v, %v", submits, share, warning)
		}
	})
}

// An append hangs: what waits behind it goes elsewhere long before the append is given up, but for what has one partition.
func TestWhatWaitsBehindAnAppendThatHangsGoesElsewhere(t *testing.T) {
	onSlow(t, func(t *testing.T, r *rig, l *slowLog) {
		const hangs, lasts = 1, time.Second
		l.take(hangs, lasts)
		var all []<-chan reply
		r.queued(t, 0, 5000)
		r.queued(t, 2, 5000)
		all = append(all, r.submit(t, tasks(1)))
		time.Sleep(10 * time.Millisecond)
		for range 20 {
			all = append(all, r.submit(t, tasks(1)))
		}
		fixed := r.submit(t, withID(ordered(keyIn(hangs)), true))
		began, late := time.Now(), 0
		for _, one := range all {
			o := <-one
			accepted(t, o)
			if o.at.Sub(began) > 200*time.Millisecond {
				late++
			}
		}
		testkit.Equal(t, "waited for the append that hangs", late, 1)
		o := <-fixed
		if id, err := ids.ParseTaskID(accepted(t, o)[0]); err != nil || id.Partition() != hangs || o.at.Sub(began) < lasts-50*time.Millisecond {
			t.Errorf("the task with an order key is %v after %v: %v", id, o.at.Sub(began), err)
		}
	})
}
