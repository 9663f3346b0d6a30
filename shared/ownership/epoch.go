package ownership

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// ErrSuperseded says that a newer owner has the epoch.
var ErrSuperseded = errors.New("a newer owner has the epoch")

// Epoch is the value of an epoch's key. Both numbers only rise.
type Epoch struct {
	// Taken is the number of the newest owner, from 1; 0 where there was none.
	Taken uint64 `json:"taken"`
	// Open is that of the newest one that was ready for work, 0 where none was.
	Open uint64 `json:"open,omitempty"`
}

// Term is the time of one owner, from its TakeEpoch until the next one's.
type Term struct {
	kv       jetstream.KeyValue
	key      string
	number   uint64
	revision uint64
}

// TakeEpoch raises the number under key by one, or above a higher number that the owner knows of, since the bucket was lost or
// is an older one. It does so by compare-and-set, and returns the term that begins with the number. The owner of the term
// before is superseded. It tries again if another was quicker; its error is that of NATS or of ctx. If the outcome of a try
// is not known, a number may be passed over.
func TakeEpoch(ctx context.Context, kv jetstream.KeyValue, key string, above uint64) (*Term, error) {
	for {
		now, revision, err := readEpoch(ctx, kv, key)
		if err != nil {
			return nil, err
		}
		now.Taken = max(now.Taken, above) + 1
		next, err := writeEpoch(ctx, kv, key, now, revision)
		if err == nil {
			return &Term{kv: kv, key: key, number: now.Taken, revision: next}, nil
		}
		if !outrun(err) {
			return nil, err
		}
	}
}

// Newest tells whether no later owner has taken the epoch. Its error is that of NATS or of ctx.
func (t *Term) Newest(ctx context.Context) (bool, error) {
	now, _, err := readEpoch(ctx, t.kv, t.key)
	return err == nil && now.Taken <= t.number, err
}

// Number is the epoch that was taken, at least 1.
func (t *Term) Number() uint64 { return t.number }

// Open shows that this term's owner is ready: those who watch the epoch send to it from
// now on, and counts on that no earlier owner can do anything any more. So what
// fences them comes before. It returns ErrSuperseded where another owner has taken the epoch.
func (t *Term) Open(ctx context.Context) error {
	for {
		next, err := writeEpoch(ctx, t.kv, t.key, Epoch{Taken: t.number, Open: t.number}, t.revision)
		if err == nil {
			t.revision = next
			return nil
		}
		if !outrun(err) {
			return err
		}
		now, revision, err := readEpoch(ctx, t.kv, t.key)
		switch {
		case err != nil:
			return err
		case now.Taken > t.number:
			return ErrSuperseded
		case now.Open == t.number: // it was stored, and only the acknowledgement was lost
			t.revision = revision
			return nil
		}
		t.revision = revision
	}
}

func readEpoch(ctx context.Context, kv jetstream.KeyValue, key string) (now Epoch, revision uint64, err error) {
	e, err := kv.Get(ctx, key)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return Epoch{}, 0, nil
	}
	if err != nil {
		return Epoch{}, 0, fmt.Errorf("read the epoch %s: %w", key, err)
	}
	if err := json.Unmarshal(e.Value(), &now); err != nil {
		return Epoch{}, 0, fmt.Errorf("read the epoch %s: %w", key, err)
	}
	return now, e.Revision(), nil
}

func writeEpoch(ctx context.Context, kv jetstream.KeyValue, key string, now Epoch, revision uint64) (next uint64, err error) {
	data, err := json.Marshal(now)
	if err != nil {
		return 0, fmt.Errorf("write the epoch %s: %w", key, err)
	}
	if revision == 0 {
		next, err = kv.Create(ctx, key, data)
	} else {
		next, err = kv.Update(ctx, key, data, revision)
	}
	if err != nil {
		return 0, fmt.Errorf("write the epoch %s: %w", key, err)
	}
	return next, nil
}

// outrun tells whether a compare-and-set failed since another write came first.
func outrun(err error) bool {
	var api *jetstream.APIError
	return errors.Is(err, jetstream.ErrKeyExists) || errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence
}
