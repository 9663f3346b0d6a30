package chaos_test

import (
	"context"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

const (
	// leaderEvery is how often a log is asked for its leader, leaderTimeout bounds one question: one without a
	// leader does not answer.
	leaderEvery, leaderTimeout = 100 * time.Millisecond, 300 * time.Millisecond
)

// watchLeaders notes until the workers stop when the log of each partition has a leader.
func (tr *traffic) watchLeaders() {
	tr.t.Helper()
	nc, err := nats.Connect(tr.cluster.URL(), nats.MaxReconnects(-1), nats.Timeout(within), nats.ReconnectWait(leaderEvery),
		nats.PingInterval(time.Second))
	testkit.NoError(tr.t, err)
	tr.t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	testkit.NoError(tr.t, err)
	streams := []string{topology.BucketStream(topology.CheckpointsBucket)}
	for p := range topology.DefaultPartitioning().History {
		streams = slices.Insert(streams, p, topology.HistoryStream(p))
	}
	for p, stream := range streams {
		tr.crew.Go(func() {
			for ; tr.working.Err() == nil; wait(tr.working, leaderEvery) {
				if tr.hasLeader(js, stream) {
					tr.pace.partitionMoved(p, time.Now(), leads)
				}
			}
		})
	}
}

// hasLeader asks a stream for its state, which its leader answers.
func (tr *traffic) hasLeader(js jetstream.JetStream, stream string) bool {
	ctx, cancel := context.WithTimeout(tr.working, leaderTimeout)
	defer cancel()
	_, err := js.Stream(ctx, stream)
	return err == nil
}
