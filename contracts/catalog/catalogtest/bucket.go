// Package catalogtest has the config bucket in memory.
//
// Owns: what package catalog uses of a key-value bucket, and its failures. Never does: anything outside of tests. On failure: as the test says.
package catalogtest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/nats-io/nats.go/jetstream"
)

// KV is a key-value bucket in memory.
type KV struct {
	jetstream.KeyValue
	mu       sync.Mutex
	revision uint64
	entries  map[string]*entry
	watchers map[*watcher]bool
	// read are the revisions as they were read last: an option of Delete does not tell which it names.
	read    map[string]uint64
	watches int
	// Meanwhile is called after the next read: what somebody else does then.
	Meanwhile func()
	// Broken is what everything answers, if it is set.
	Broken error
	// Deaf: changes do not come to watchers, as after a restart of the server.
	Deaf bool
	// OnChange, which may be nil, is called with each change, while the bucket is locked.
	OnChange func(jetstream.KeyValueEntry)
}

// New returns an empty bucket.
func New() *KV {
	return &KV{entries: map[string]*entry{}, watchers: map[*watcher]bool{}, read: map[string]uint64{}}
}

type entry struct {
	jetstream.KeyValueEntry
	key      string
	value    []byte
	revision uint64
	deleted  bool
}

func (e *entry) Key() string      { return e.key }
func (e *entry) Value() []byte    { return e.value }
func (e *entry) Revision() uint64 { return e.revision }

func (e *entry) Operation() jetstream.KeyValueOp {
	if e.deleted {
		return jetstream.KeyValueDelete
	}
	return jetstream.KeyValuePut
}

// Store stores a value.
func (b *KV) Store(key, value string) {
	b.Locked(func() { b.set(key, []byte(value), false) })
}

// Forget stores that there is no value any more.
func (b *KV) Forget(key string) {
	b.Locked(func() { b.set(key, nil, true) })
}

// Stored are all keys that have a value, sorted.
func (b *KV) Stored() (keys []string) {
	b.Locked(func() {
		for _, key := range slices.Sorted(maps.Keys(b.entries)) {
			if !b.entries[key].deleted {
				keys = append(keys, key)
			}
		}
	})
	return keys
}

// Has reports whether a key has a value.
func (b *KV) Has(key string) bool { return slices.Contains(b.Stored(), key) }

// Revision is the last one given.
func (b *KV) Revision() (revision uint64) {
	b.Locked(func() { revision = b.revision })
	return revision
}

// Restart makes the bucket another one of the same name, without a revision.
func (b *KV) Restart() {
	b.Locked(func() {
		b.revision = 0
		clear(b.entries)
	})
}

// set stores a value, or that there is none.
func (b *KV) set(key string, value []byte, deleted bool) uint64 {
	b.revision++
	e := &entry{key: key, value: slices.Clone(value), revision: b.revision, deleted: deleted}
	b.entries[key] = e
	for w := range b.watchers {
		if !b.Deaf {
			w.updates <- e
		}
	}
	if b.OnChange != nil && !b.Deaf {
		b.OnChange(e)
	}
	return b.revision
}

func (b *KV) then() {
	if do := b.Meanwhile; do != nil {
		b.Meanwhile = nil
		do()
	}
}

// answer calls f while no one else uses the bucket, unless it is broken.
func answer[T any](b *KV, f func() (T, error)) (result T, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.Broken != nil {
		return result, b.Broken
	}
	return f()
}

func (b *KV) Get(_ context.Context, key string) (jetstream.KeyValueEntry, error) {
	defer b.then()
	return answer(b, func() (jetstream.KeyValueEntry, error) {
		e := b.entries[key]
		if e == nil || e.deleted {
			return nil, jetstream.ErrKeyNotFound
		}
		b.read[key] = e.revision
		return e, nil
	})
}

func (b *KV) Put(_ context.Context, key string, value []byte) (uint64, error) {
	return answer(b, func() (uint64, error) { return b.set(key, value, false), nil })
}

func (b *KV) Update(_ context.Context, key string, value []byte, revision uint64) (uint64, error) {
	return answer(b, func() (uint64, error) {
		if e := b.entries[key]; e == nil || e.revision != revision {
			return 0, jetstream.ErrKeyRevisionMismatch
		}
		return b.set(key, value, false), nil
	})
}

func (b *KV) Create(_ context.Context, key string, value []byte, _ ...jetstream.KVCreateOpt) (uint64, error) {
	return answer(b, func() (uint64, error) {
		if e := b.entries[key]; e != nil && !e.deleted {
			return 0, jetstream.ErrKeyExists
		}
		return b.set(key, value, false), nil
	})
}

func (b *KV) Delete(_ context.Context, key string, opts ...jetstream.KVDeleteOpt) error {
	_, err := answer(b, func() (uint64, error) {
		if len(opts) == 0 {
			return 0, errors.New("a delete must name the revision that it deletes")
		}
		if e := b.entries[key]; e == nil || e.revision != b.read[key] {
			return 0, jetstream.ErrKeyRevisionMismatch
		}
		return b.set(key, nil, true), nil
	})
	return err
}

type watcher struct {
	bucket  *KV
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

func (b *KV) watch(wanted func(*entry) bool) (jetstream.KeyWatcher, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.watches++
	if b.Broken != nil {
		return nil, b.Broken
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

func (b *KV) WatchAll(context.Context, ...jetstream.WatchOpt) (jetstream.KeyWatcher, error) {
	return b.watch(func(*entry) bool { return true })
}

// WatchFiltered is asked for live entries below prefixes, and for single keys.
func (b *KV) WatchFiltered(_ context.Context, keys []string, _ ...jetstream.WatchOpt) (jetstream.KeyWatcher, error) {
	defer b.then()
	return b.watch(func(e *entry) bool {
		return !e.deleted && slices.ContainsFunc(keys, func(k string) bool {
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

func (b *KV) Status(context.Context) (jetstream.KeyValueStatus, error) {
	return answer(b, func() (jetstream.KeyValueStatus, error) {
		return status{info: &jetstream.StreamInfo{State: jetstream.StreamState{LastSeq: b.revision}}}, nil
	})
}

// Locked calls f while no one else uses the bucket.
func (b *KV) Locked(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
}

// Begun is how often somebody began to watch.
func (b *KV) Begun() (n int) {
	b.Locked(func() { n = b.watches })
	return n
}

// EndWatches ends all watches, as a deleted stream does.
func (b *KV) EndWatches() {
	b.Locked(func() {
		for w := range b.watchers {
			w.end()
		}
	})
}

// Watchers is how many watch.
func (b *KV) Watchers() (n int) {
	b.Locked(func() { n = len(b.watchers) })
	return n
}
