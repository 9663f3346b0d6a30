package storage

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/pace"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
)

const (
	// lookEvery is how often the storage is looked at, unlimitedEvery that while it has no limit; lookTimeout bounds one look.
	lookEvery, unlimitedEvery = time.Second, 10 * time.Second
	lookTimeout               = 2 * time.Second
)

// Watch checks the storage of one stream, about once a second. It is a part for lifecycle.Group.
type Watch struct {
	// JetStream is asked about Stream and the account.
	JetStream jetstream.JetStream
	Stream    string
	Config    Config
	Log       *slog.Logger
	// Gauge is 1 while the stream has no room; it may be nil.
	Gauge *telemetry.Gauge

	why atomic.Pointer[string]
}

// Full tells why the stream has no room for further tasks, "" if it has. It is quick, and safe for
// concurrent use.
func (w *Watch) Full() string {
	if why := w.why.Load(); why != nil {
		return *why
	}
	return ""
}

// Run looks until ctx ends. It returns nil.
func (w *Watch) Run(ctx context.Context) error {
	defer w.gauge(false) // its next owner says what is
	var gate Gate
	for {
		every := lookEvery
		limits, err := w.limits(ctx)
		if err == nil {
			w.tell(gate.Look(w.Config, limits))
			if len(limits) == 0 {
				every = unlimitedEvery
			}
		} else if ctx.Err() == nil {
			w.Log.Debug("the storage cannot be checked; the last result stays valid", "stream", w.Stream, "error", err)
		}
		if !backoff.Sleep(ctx, pace.Of(every)) {
			return nil
		}
	}
}

func (w *Watch) tell(why string) {
	switch before := w.Full(); {
	case why != "" && before == "":
		w.Log.Error("the log's storage is full: no tasks are accepted until there is room; accepted tasks continue", "stream", w.Stream, "reason", why)
	case why == "" && before != "":
		w.Log.Info("the log has room again", "stream", w.Stream)
	}
	w.why.Store(&why)
	w.gauge(why != "")
}

func (w *Watch) gauge(full bool) {
	n := int64(0)
	if full {
		n = 1
	}
	if w.Gauge != nil {
		w.Gauge.Set(n)
	}
}

// limits are those that there are.
func (w *Watch) limits(ctx context.Context) ([]Limit, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	account, err := w.JetStream.AccountInfo(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask for the account: %w", err)
	}
	stream, err := w.JetStream.Stream(ctx, w.Stream)
	if err != nil {
		return nil, fmt.Errorf("ask for the stream: %w", err)
	}
	info := stream.CachedInfo()
	all := []Limit{
		{"the account", int64(account.Store), account.Limits.MaxStore},
		{"the storage (storage.bytes_max)", int64(account.Store), w.Config.BytesMax},
		{"the stream " + w.Stream, int64(info.State.Bytes), info.Config.MaxBytes},
	}
	if tier, ok := account.Tiers["R"+strconv.Itoa(info.Config.Replicas)]; ok {
		all = append(all, Limit{"the account's tier", int64(tier.Store), tier.Limits.MaxStore})
	}
	return slices.DeleteFunc(all, func(l Limit) bool { return l.Max <= 0 }), nil
}
