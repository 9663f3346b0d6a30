package natsgate

import (
	"context"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/provision"
)

// meanwhile is a bucket where somebody else does something after the next read.
type meanwhile struct {
	jetstream.KeyValue
	then func()
}

func (m *meanwhile) Get(ctx context.Context, key string) (jetstream.KeyValueEntry, error) {
	e, err := m.KeyValue.Get(ctx, key)
	if then := m.then; then != nil {
		m.then = nil
		then()
	}
	return e, err
}

// Only a pause that is over is deleted, on a real bucket: not one that holds, nor one that was put in its place meanwhile.
func TestAPauseThatIsOverIsDeleted(t *testing.T) {
	_, js := connect(t)
	bucket, err := provision.Bucket(t.Context(), js, topology.ConfigBucket, nil)
	if err != nil {
		t.Fatal(err)
	}
	kv := &meanwhile{KeyValue: bucket}
	c, err := WatchCatalog(t.Context(), kv)
	if err != nil {
		t.Fatal(err)
	}
	const now = 10_000
	key := topology.TypePauseKey("shop", "email.send")
	put := func(until int64) {
		t.Helper()
		if err := c.PutPause(t.Context(), key, &yardv1.Pause{SinceMs: 1, UntilMs: until}); err != nil {
			t.Fatal(err)
		}
	}
	deleted := func(what string, want bool) {
		t.Helper()
		if err := c.DeletePauseOver(t.Context(), key, now); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := bucket.Get(t.Context(), key); (err != nil) != want {
			t.Errorf("%s: read afterwards: %v", what, err)
		}
	}
	deleted("none", true)
	put(0)
	deleted("without an end", false)
	put(now + 1)
	deleted("it holds for 1 ms more", false)
	put(now)
	deleted("it ends now", true)
	put(now - 1)
	kv.then = func() { put(0) }
	deleted("put again meanwhile", false)
	put(now - 1)
	kv.then = func() {
		if err := bucket.Delete(t.Context(), key); err != nil {
			t.Error(err)
		}
	}
	deleted("deleted meanwhile", true)

	if err := js.DeleteKeyValue(t.Context(), topology.ConfigBucket); err != nil {
		t.Fatal(err)
	}
	if err := c.DeletePauseOver(t.Context(), key, now); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("without a bucket: %v", err)
	}
}
