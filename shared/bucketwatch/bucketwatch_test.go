package bucketwatch_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/shared/bucketwatch"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/natskit"
)

const soon = 60 * time.Second

func TestMain(m *testing.M) { natskit.VerifyTestMain(m) }

// bucket is an empty bucket on a server of its own.
func bucket(t *testing.T) (*natskit.Server, jetstream.JetStream, jetstream.KeyValue) {
	t.Helper()
	srv := natskit.Run(t)
	js, err := jetstream.New(srv.Connect(t))
	testkit.NoError(t, err)
	kv, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "SOME"})
	testkit.NoError(t, err)
	return srv, js, bucketwatch.Of(js, kv, nil)
}

// hear returns the next n changes, "end" for the end of what was there.
func hear(t *testing.T, w jetstream.KeyWatcher, n int) (all []string) {
	t.Helper()
	for range n {
		select {
		case e, ok := <-w.Updates():
			switch {
			case !ok:
				return append(all, "closed")
			case e == nil:
				all = append(all, "end")
			default:
				all = append(all, fmt.Sprintf("%s=%s %v", e.Key(), e.Value(), e.Operation()))
			}
		case <-time.After(soon):
			t.Fatalf("nothing comes after %v", all)
		}
	}
	return all
}

func put(t *testing.T, kv jetstream.KeyValue, key, value string) {
	t.Helper()
	testkit.NoError(t, testkit.Err(kv.PutString(t.Context(), key, value)))
}

// A watch has the last value of each key, then the end of these, and then each change, until it is stopped.
func TestAWatchHasWhatIsThereAndThenEachChange(t *testing.T) {
	t.Parallel()
	_, _, kv := bucket(t)
	put(t, kv, "a", "1")
	put(t, kv, "b", "2")
	put(t, kv, "a", "3")
	testkit.NoError(t, kv.Delete(t.Context(), "b"))
	w, err := kv.WatchAll(t.Context())
	testkit.NoError(t, err)
	testkit.Equal(t, "at first", hear(t, w, 3), []string{"a=3 KeyValuePutOp", "b= KeyValueDeleteOp", "end"})
	put(t, kv, "c", "4")
	testkit.NoError(t, kv.Purge(t.Context(), "a"))
	testkit.Equal(t, "then", hear(t, w, 2), []string{"c=4 KeyValuePutOp", "a= KeyValuePurgeOp"})
	testkit.NoError(t, w.Stop())
	testkit.Equal(t, "at last", hear(t, w, 1), []string{"closed"})
}

// An entry has the bucket, the revision and the time that a read of the key has.
func TestAnEntryIsThatOfARead(t *testing.T) {
	t.Parallel()
	_, _, kv := bucket(t)
	put(t, kv, "a", "1")
	read, err := kv.Get(t.Context(), "a")
	testkit.NoError(t, err)
	w, err := kv.Watch(t.Context(), "a")
	testkit.NoError(t, err)
	e := <-w.Updates()
	if e.Bucket() != read.Bucket() || e.Revision() != read.Revision() || !e.Created().Equal(read.Created()) || e.Delta() != 0 {
		t.Errorf("%+v is not %+v", e, read)
	}
}

// A watch of some keys does not have the others. If none of them is there, that is said at once.
func TestAWatchOfSomeKeys(t *testing.T) {
	t.Parallel()
	_, _, kv := bucket(t)
	put(t, kv, "other", "1")
	w, err := kv.WatchFiltered(t.Context(), []string{"a.*", "b"})
	testkit.NoError(t, err)
	testkit.Equal(t, "at first", hear(t, w, 1), []string{"end"})
	put(t, kv, "other", "2")
	put(t, kv, "b", "3")
	put(t, kv, "a.x", "4")
	testkit.Equal(t, "then", hear(t, w, 2), []string{"b=3 KeyValuePutOp", "a.x=4 KeyValuePutOp"})
}

// A server that restarts loses no change, and reports none twice.
func TestAWatchSurvivesTheServer(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "restarts a server")
	srv, _, kv := bucket(t)
	put(t, kv, "a", "1")
	w, err := kv.WatchAll(t.Context())
	testkit.NoError(t, err)
	testkit.Equal(t, "before", hear(t, w, 2), []string{"a=1 KeyValuePutOp", "end"})
	srv.Stop()
	srv.Restart(t)
	testkit.Eventually(t, soon, func() error { return testkit.Err(kv.PutString(t.Context(), "a", "2")) })
	testkit.Equal(t, "after", hear(t, w, 1), []string{"a=2 KeyValuePutOp"})
}

// A watch with options reads once, by nats.go.
func TestAWatchWithOptions(t *testing.T) {
	t.Parallel()
	_, _, kv := bucket(t)
	put(t, kv, "a", "1")
	put(t, kv, "b", "2")
	testkit.NoError(t, kv.Delete(t.Context(), "b"))
	w, err := kv.WatchAll(t.Context(), jetstream.IgnoreDeletes(), jetstream.MetaOnly())
	testkit.NoError(t, err)
	testkit.Equal(t, "all", hear(t, w, 2), []string{"a= KeyValuePutOp", "end"})
	testkit.NoError(t, w.Stop())
}

// The watch of a bucket that does not exist ends.
func TestAWatchOfNothingEnds(t *testing.T) {
	t.Parallel()
	_, js, kv := bucket(t)
	testkit.NoError(t, js.DeleteKeyValue(t.Context(), "SOME"))
	w, err := kv.WatchAll(t.Context())
	testkit.NoError(t, err)
	testkit.Equal(t, "it", hear(t, w, 1), []string{"closed"})
}
