package provision_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/provision"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/natskit"
)

var two = topology.Partitioning{History: 2, Matching: 1}

func connect(t *testing.T, srv *natskit.Server) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(srv.Connect(t))
	testkit.NoError(t, err)
	return js
}

func apply(t *testing.T, js jetstream.JetStream, p topology.Partitioning) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	return provision.Apply(ctx, js, p, provision.Options{})
}

// cluster is a server with a cluster of two partitions.
func cluster(t *testing.T) jetstream.JetStream {
	t.Helper()
	js := connect(t, natskit.Run(t))
	testkit.NoError(t, apply(t, js, two))
	return js
}

func config(t *testing.T, js jetstream.JetStream, stream string) jetstream.StreamConfig {
	t.Helper()
	s, err := js.Stream(t.Context(), stream)
	testkit.NoError(t, err)
	return s.CachedInfo().Config
}

func TestSeveralServicesCreateTheClusterAtOnce(t *testing.T) {
	t.Parallel()
	srv := natskit.Run(t)
	js := connect(t, srv)
	if _, err := provision.Partitioning(t.Context(), js); !errors.Is(err, provision.ErrNotProvisioned) {
		t.Errorf("before: %v", err)
	}
	var services sync.WaitGroup
	for range 4 {
		mine := connect(t, srv)
		services.Go(func() {
			testkit.Check(t, apply(t, mine, two))
		})
	}
	services.Wait()
	if p, err := provision.Partitioning(t.Context(), js); err != nil || p != two {
		t.Errorf("%+v %v", p, err)
	}
	for _, s := range topology.Streams(two) {
		cfg := config(t, js, s.Name)
		if (cfg.Storage == jetstream.MemoryStorage) != s.Memory || cfg.AllowAtomicPublish != s.AtomicBatch ||
			cfg.AllowMsgTTL != s.MessageTTL || cfg.Duplicates != s.DedupeWindow || !cfg.AllowDirect {
			t.Errorf("%s: %+v", s.Name, cfg)
		}
	}
	for _, b := range topology.Buckets() {
		kv, err := js.KeyValue(t.Context(), b)
		testkit.NoError(t, err)
		testkit.Check(t, testkit.Err(kv.Put(t.Context(), "a.b", []byte("1"))))
		if e, err := kv.Get(t.Context(), "a.b"); err != nil || string(e.Value()) != "1" {
			t.Errorf("%s: %v", b, err)
		}
	}
}

func TestAnotherPartitioningIsRefused(t *testing.T) {
	t.Parallel()
	js := cluster(t)
	err := apply(t, js, topology.Partitioning{History: 8, Matching: 1})
	if err == nil || !strings.Contains(err.Error(), "the cluster was created with 2 history partitions, this service is configured with 8") {
		t.Errorf("%v", err)
	}
	if _, err := js.Stream(t.Context(), topology.HistoryStream(7)); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Errorf("a refused service created a stream: %v", err)
	}
	err = apply(t, js, topology.Partitioning{History: 2, Matching: 3})
	if err == nil || !strings.Contains(err.Error(), "matching shards") {
		t.Errorf("%v", err)
	}
	for _, p := range []topology.Partitioning{{}, {History: 1, Matching: topology.PartitionsMax + 1}} {
		if err := apply(t, js, p); err == nil {
			t.Errorf("%+v was taken", p)
		}
	}
}

func TestDriftIsCorrectedOrNamed(t *testing.T) {
	t.Parallel()
	js := cluster(t)
	drifted := config(t, js, topology.HistoryStream(0))
	want := drifted
	drifted.Duplicates, drifted.AllowAtomicPublish, drifted.Discard = time.Second, false, jetstream.DiscardOld
	drifted.MaxBytes, drifted.Metadata = 1<<30, map[string]string{"owner": "operator"}
	testkit.NoError(t, testkit.Err(js.UpdateStream(t.Context(), drifted)))
	testkit.NoError(t, apply(t, js, two))
	got := config(t, js, topology.HistoryStream(0))
	if got.Duplicates != want.Duplicates || !got.AllowAtomicPublish || got.Discard != want.Discard {
		t.Errorf("not corrected: %+v", got)
	}
	if got.MaxBytes != 1<<30 || got.Metadata["owner"] != "operator" {
		t.Errorf("the operator's settings were undone: %+v", got)
	}

	name := topology.TimerStream(1)
	subjects := config(t, js, name).Subjects
	testkit.NoError(t, js.DeleteStream(t.Context(), name))
	testkit.NoError(t, testkit.Err(js.CreateStream(t.Context(), jetstream.StreamConfig{Name: name, Subjects: subjects, Storage: jetstream.MemoryStorage})))
	err := apply(t, js, two)
	if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "storage") {
		t.Errorf("%v", err)
	}
}

func TestApplyWaitsForTheServer(t *testing.T) {
	t.Parallel()
	srv := natskit.Run(t)
	srv.Stop()
	nc, err := nats.Connect(srv.URL, nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond), nats.ReconnectBufSize(-1))
	testkit.NoError(t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	testkit.NoError(t, err)
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := provision.Apply(short, js, two, provision.Options{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	done := make(chan error)
	go func() { done <- apply(t, js, two) }()
	srv.Restart(t)
	testkit.Check(t, <-done)
}

func TestReplicasNeedACluster(t *testing.T) {
	t.Parallel()
	js := connect(t, natskit.Run(t))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	err := provision.Apply(ctx, js, two, provision.Options{Replicas: 3})
	if err == nil || errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "replicas") {
		t.Errorf("%v", err)
	}
	if err := provision.Apply(t.Context(), js, two, provision.Options{Replicas: 2}); err == nil {
		t.Error("two replicas were taken")
	}
}
