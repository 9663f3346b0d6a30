package ownership

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/pace"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
)

// auditEvery is how often the keys of epochs are read, in case the watch went deaf, as it
// may for seconds when a node of NATS dies.
const auditEvery = 2 * time.Second

// Hold returns a ctx that ends, with ErrSuperseded as its cause, when a later owner has
// taken the epoch. Stop ends it and what watches for that.
func (t *Term) Hold(ctx context.Context, log *slog.Logger) (held context.Context, stop func()) {
	held, end := context.WithCancelCause(ctx)
	e := &Epochs{KV: t.kv, Keys: []string{t.key}, Log: log, Rose: func(_ int, now Epoch) {
		if now.Taken > t.number {
			end(ErrSuperseded)
		}
	}}
	var watching sync.WaitGroup
	watching.Go(func() { _ = e.Run(held) }) // it returns nil
	return held, func() {
		end(nil)
		watching.Wait()
	}
}

// Epochs follows the epochs of some keys. It is a part for lifecycle.Group.
type Epochs struct {
	// KV is the bucket, Keys the keys.
	KV   jetstream.KeyValue
	Keys []string
	// Rose is called when the epoch of Keys[i] has risen, and for each that is there at
	// the beginning; by one goroutine, and with rising numbers only.
	Rose func(i int, now Epoch)
	Log  *slog.Logger

	last []Epoch
}

// Run follows the epochs until ctx ends. It returns nil.
func (e *Epochs) Run(ctx context.Context) error {
	e.last = make([]Epoch, len(e.Keys))
	index := make(map[string]int, len(e.Keys))
	for i, key := range e.Keys {
		index[key] = i
	}
	for ctx.Err() == nil {
		if err := e.watch(ctx, index); err != nil && ctx.Err() == nil {
			e.Log.Debug("watching the epochs again", "reason", err)
		}
		backoff.Sleep(ctx, watchRetry)
	}
	return nil
}

// watch returns where the watch has ended, or has missed something.
func (e *Epochs) watch(ctx context.Context, index map[string]int) error {
	w, err := e.KV.WatchFiltered(ctx, slices.Clone(e.Keys)) // it writes into what it gets
	if err != nil {
		return err
	}
	defer stopWatch(w)
	audit := time.NewTicker(pace.Of(auditEvery))
	defer audit.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case entry, ok := <-w.Updates():
			if !ok {
				return errors.New("the watch ended")
			}
			if entry == nil || entry.Operation() != jetstream.KeyValuePut {
				continue
			}
			var now Epoch
			if err := json.Unmarshal(entry.Value(), &now); err != nil {
				e.Log.Error("an unreadable epoch was ignored", "key", entry.Key(), "error", err)
				continue
			}
			e.rise(index[entry.Key()], now)
		case <-audit.C:
			if err := e.audit(ctx); err != nil {
				return err
			}
		}
	}
}

// errDeaf: a read found what the watch has not reported.
var errDeaf = errors.New("an epoch changed, but the watch did not report it")

// audit reads the keys.
func (e *Epochs) audit(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, auditEvery)
	defer cancel()
	deaf := false
	for i, key := range e.Keys {
		now, _, err := readEpoch(ctx, e.KV, key)
		if err != nil {
			return err
		}
		deaf = e.rise(i, now) || deaf
	}
	if deaf {
		return errDeaf
	}
	return nil
}

// rise takes note of an epoch, and tells whether it was news.
func (e *Epochs) rise(i int, now Epoch) bool {
	last := &e.last[i]
	if now.Taken <= last.Taken && now.Open <= last.Open {
		return false
	}
	last.Taken, last.Open = max(last.Taken, now.Taken), max(last.Open, now.Open)
	e.Rose(i, *last)
	return true
}
