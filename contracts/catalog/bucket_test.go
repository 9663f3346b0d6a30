package catalog

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// bucket is a key-value bucket in memory, with what this package uses of one.
type bucket struct {
	jetstream.KeyValue
	mu       sync.Mutex
	revision uint64
	entries  map[string]*entry
	watchers map[*watcher]bool
	// read are the revisions as they were read last: an option of Delete does not tell which it names.
	read map[string]uint64
	// meanwhile is called after each read, once: what somebody else does then.
	meanwhile func()
	// broken is what everything answers, if it is set.
	broken error
	// deaf: changes do not come to watchers, as after a restart of the server.
	deaf    bool
	watches int
}

func newBucket() *bucket {
	return &bucket{entries: map[string]*entry{}, watchers: map[*watcher]bool{}, read: map[string]uint64{}}
}

type entry struct {
	jetstream.KeyValueEntry
	key      string
	value    []byte
	revision uint64
	gone     bool
}

func (e *entry) Key() string      { return e.key }
func (e *entry) Value() []byte    { return e.value }
func (e *entry) Revision() uint64 { return e.revision }

func (e *entry) Operation() jetstream.KeyValueOp {
	if e.gone {
		return jetstream.KeyValueDelete
	}
	return jetstream.KeyValuePut
}

var errBroken = errors.New("the server is away")

// set stores a value, or that there is none.
func (b *bucket) set(key string, value []byte, gone bool) uint64 {
	b.revision++
	e := &entry{key: key, value: slices.Clone(value), revision: b.revision, gone: gone}
	b.entries[key] = e
	for w := range b.watchers {
		if !b.deaf {
			w.updates <- e
		}
	}
	return b.revision
}

func (b *bucket) then() {
	if do := b.meanwhile; do != nil {
		b.meanwhile = nil
		do()
	}
}

func (b *bucket) Get(_ context.Context, key string) (jetstream.KeyValueEntry, error) {
	defer b.then()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.broken != nil {
		return nil, b.broken
	}
	e := b.entries[key]
	if e == nil || e.gone {
		return nil, jetstream.ErrKeyNotFound
	}
	b.read[key] = e.revision
	return e, nil
}

func (b *bucket) Put(_ context.Context, key string, value []byte) (uint64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.broken != nil {
		return 0, b.broken
	}
	return b.set(key, value, false), nil
}

func (b *bucket) Update(_ context.Context, key string, value []byte, revision uint64) (uint64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.broken != nil {
		return 0, b.broken
	}
	if e := b.entries[key]; e == nil || e.revision != revision {
		return 0, jetstream.ErrKeyRevisionMismatch
	}
	return b.set(key, value, false), nil
}

func (b *bucket) Create(_ context.Context, key string, value []byte, _ ...jetstream.KVCreateOpt) (uint64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.broken != nil {
		return 0, b.broken
	}
	if e := b.entries[key]; e != nil && !e.gone {
		return 0, jetstream.ErrKeyExists
	}
	return b.set(key, value, false), nil
}

func (b *bucket) Delete(_ context.Context, key string, opts ...jetstream.KVDeleteOpt) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.broken != nil {
		return b.broken
	}
	if len(opts) == 0 {
		return errors.New("a delete must name the revision that it deletes")
	}
	if e := b.entries[key]; e == nil || e.revision != b.read[key] {
		return jetstream.ErrKeyRevisionMismatch
	}
	b.set(key, nil, true)
	return nil
}

type watcher struct {
	bucket  *bucket
	updates chan jetstream.KeyValueEntry
}

func (w *watcher) Updates() <-chan jetstream.KeyValueEntry { return w.updates }

func (w *watcher) Stop() error {
	w.bucket.mu.Lock()
	defer w.bucket.mu.Unlock()
	w.end()
	return nil
}

func (w *watcher) end() {
	if w.bucket.watchers[w] {
		delete(w.bucket.watchers, w)
		close(w.updates)
	}
}

func (b *bucket) watch(wanted func(*entry) bool) (jetstream.KeyWatcher, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.watches++
	if b.broken != nil {
		return nil, b.broken
	}
	w := &watcher{bucket: b, updates: make(chan jetstream.KeyValueEntry, 10_000)}
	b.watchers[w] = true
	for _, key := range slices.Sorted(maps.Keys(b.entries)) {
		if e := b.entries[key]; wanted(e) {
			b.read[key] = e.revision
			w.updates <- e
		}
	}
	w.updates <- nil
	return w, nil
}

func (b *bucket) WatchAll(context.Context, ...jetstream.WatchOpt) (jetstream.KeyWatcher, error) {
	return b.watch(func(*entry) bool { return true })
}

// WatchFiltered is asked for live entries below prefixes, and for single keys.
func (b *bucket) WatchFiltered(_ context.Context, keys []string, _ ...jetstream.WatchOpt) (jetstream.KeyWatcher, error) {
	defer b.then()
	return b.watch(func(e *entry) bool {
		return !e.gone && slices.ContainsFunc(keys, func(k string) bool {
			prefix := strings.TrimRight(k, ">*")
			return e.key == k || prefix != k && strings.HasPrefix(e.key, prefix)
		})
	})
}

type status struct {
	jetstream.KeyValueStatus
	info *jetstream.StreamInfo
}

func (s status) StreamInfo() *jetstream.StreamInfo { return s.info }

func (b *bucket) Status(context.Context) (jetstream.KeyValueStatus, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.broken != nil {
		return nil, b.broken
	}
	return status{info: &jetstream.StreamInfo{State: jetstream.StreamState{LastSeq: b.revision}}}, nil
}

// locked calls f while no one else uses the bucket.
func (b *bucket) locked(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
}

// begun is how often somebody began to watch.
func (b *bucket) begun() (n int) {
	b.locked(func() { n = b.watches })
	return n
}

// endWatches ends all watches, as a deleted stream does.
func (b *bucket) endWatches() {
	b.locked(func() {
		for w := range b.watchers {
			w.end()
		}
	})
}

// Watchers wait at most this long for what they missed, in the time of a bubble.
const noticed = lagCheckEvery*2 + rewatchWaitLast + time.Second
