package provision

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
)

// unlimited is JetStream's word for no limit.
const unlimited = -1

// bucketDuplicates is the dedupe window nats.go gives buckets.
const bucketDuplicates = 2 * time.Minute

// configs is every stream of a cluster, those behind the buckets too.
func configs(n topology.Partitioning, replicas int) []jetstream.StreamConfig {
	var all []jetstream.StreamConfig
	for _, s := range topology.Streams(n) {
		all = append(all, streamConfig(s, replicas))
	}
	for _, b := range topology.Buckets() {
		all = append(all, bucketConfig(b, replicas))
	}
	return all
}

func streamConfig(s topology.Stream, replicas int) jetstream.StreamConfig {
	cfg := jetstream.StreamConfig{
		Name: s.Name, Subjects: s.Subjects,
		MaxConsumers: unlimited, MaxMsgs: unlimited, MaxMsgSize: unlimited, MaxMsgsPerSubject: unlimited,
		MaxBytes: unlimited, MaxAge: s.AgeMax,
		Storage: jetstream.FileStorage, Replicas: replicas,
		Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardNew,
		Duplicates:  s.DedupeWindow,
		AllowDirect: true, AllowRollup: true,
		AllowMsgTTL: s.MessageTTL, AllowAtomicPublish: s.AtomicBatch,
	}
	if s.Memory { // hints: replicated too, or the loss of a server stops the shards that it has
		cfg.Storage = jetstream.MemoryStorage
	}
	if s.WorkQueue {
		cfg.Retention = jetstream.WorkQueuePolicy
	}
	if s.DiscardOld {
		cfg.Discard = jetstream.DiscardOld
	}
	if s.PerSubject > 0 {
		cfg.MaxMsgsPerSubject = s.PerSubject
	}
	if s.BytesMax > 0 {
		cfg.MaxBytes = s.BytesMax
	}
	return cfg
}

// bucketConfig is the stream behind a KV bucket, as nats.go makes it, but for one
// thing: there are no direct gets. A follower may answer those, and who takes a
// partition over must not read an old checkpoint.
//
// All buckets are files, the heartbeats' too: a single server forgets what is in
// memory when it restarts, the bucket itself included.
func bucketConfig(bucket string, replicas int) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: topology.BucketStream(bucket), Subjects: []string{topology.BucketSubject(bucket, ">")},
		MaxConsumers: unlimited, MaxMsgs: unlimited, MaxMsgSize: unlimited, MaxMsgsPerSubject: 1,
		MaxBytes: unlimited, Storage: jetstream.FileStorage, Replicas: replicas,
		Discard: jetstream.DiscardNew, Duplicates: bucketDuplicates,
		AllowRollup: true, DenyDelete: true,
	}
}

// correct compares the settings that are ours. It returns got with our settings
// and the names of those that changed, or an error that names the one that cannot
// be changed on a server that has data.
func correct(got, want jetstream.StreamConfig) (update jetstream.StreamConfig, changes []string, err error) {
	for _, fixed := range []struct {
		name      string
		got, want any
	}{
		{"storage", got.Storage, want.Storage},
		{"retention", got.Retention, want.Retention},
		{"sealed", got.Sealed, false},
		{"deny_delete", got.DenyDelete, want.DenyDelete},
		{"deny_purge", got.DenyPurge, false},
	} {
		if fixed.got != fixed.want {
			return got, nil, fmt.Errorf("stream %s has %s %v, wanted is %v, and that cannot be changed", want.Name, fixed.name, fixed.got, fixed.want)
		}
	}
	if got.AllowMsgTTL && !want.AllowMsgTTL {
		want.AllowMsgTTL = true // cannot be switched off, and does no harm
	}
	if want.MaxBytes == unlimited {
		want.MaxBytes = got.MaxBytes // the operator's
	}
	want.Replicas = max(want.Replicas, got.Replicas)
	update = got
	set := func(name string, into, value any) {
		field, v := reflect.ValueOf(into).Elem(), reflect.ValueOf(value)
		if !reflect.DeepEqual(field.Interface(), value) {
			field.Set(v)
			changes = append(changes, name)
		}
	}
	if !slices.Equal(slices.Sorted(slices.Values(got.Subjects)), slices.Sorted(slices.Values(want.Subjects))) {
		set("subjects", &update.Subjects, want.Subjects)
	}
	set("discard", &update.Discard, want.Discard)
	set("max_bytes", &update.MaxBytes, want.MaxBytes)
	set("max_age", &update.MaxAge, want.MaxAge)
	set("max_msgs", &update.MaxMsgs, want.MaxMsgs)
	set("max_msgs_per_subject", &update.MaxMsgsPerSubject, want.MaxMsgsPerSubject)
	set("num_replicas", &update.Replicas, want.Replicas)
	set("duplicate_window", &update.Duplicates, want.Duplicates)
	set("allow_rollup_hdrs", &update.AllowRollup, want.AllowRollup)
	set("allow_direct", &update.AllowDirect, want.AllowDirect)
	set("allow_msg_ttl", &update.AllowMsgTTL, want.AllowMsgTTL)
	set("allow_atomic", &update.AllowAtomicPublish, want.AllowAtomicPublish)
	return update, changes, nil
}
