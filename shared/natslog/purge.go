package natslog

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/shared/parallel"
)

// Purge says which messages of a stream are deleted: of a subject (wildcards allowed), those before a sequence, or all but the last ones. Exactly one of
// Before and Keep is set.
type Purge struct {
	Subject string `json:"filter"`
	Before  uint64 `json:"seq,omitempty"`
	Keep    uint64 `json:"keep,omitempty"`
}

var errPurgeAll = errors.New("a purge says neither before which message nor how many are kept")

// Do deletes them and returns how many they were. After an error it may have deleted them or not.
func (p Purge) Do(ctx context.Context, js jetstream.JetStream, stream string) (deleted int64, err error) {
	if (p.Before == 0) == (p.Keep == 0) {
		return 0, fmt.Errorf("purge %s: %w", stream, errPurgeAll)
	}
	var answer struct {
		Purged int64     `json:"purged"`
		Error  *apiError `json:"error"`
	}
	err = ask(ctx, js, "STREAM.PURGE."+stream, p, &answer)
	if err == nil && answer.Error != nil {
		err = answer.Error
	}
	if err != nil {
		return 0, fmt.Errorf("purge %s: %w", stream, err)
	}
	return answer.Purged, nil
}

// Place is where a message lies.
type Place struct {
	Subject string
	Seq     uint64
}

// deletesMax is how many deletes of a call are under way at a time. More are no faster; with 16, a stream of three replicas deletes half as many.
const deletesMax = 64

// Delete deletes messages, each with those of its subject before it, and returns of how many places some were deleted. A message that is gone is no
// error. Each place names its subject, so that no sequence, wherever it comes from, deletes a message of another subject.
func Delete(ctx context.Context, js jetstream.JetStream, stream string, all []Place) (deleted int64, err error) {
	counts, errs := make([]int64, len(all)), make([]error, len(all))
	_ = parallel.Each(ctx, len(all), deletesMax, func(ctx context.Context, i int) error {
		counts[i], errs[i] = Purge{Subject: all[i].Subject, Before: all[i].Seq + 1}.Do(ctx, js, stream)
		return nil // one that fails does not end the others
	})
	for _, n := range counts {
		deleted += min(n, 1)
	}
	return deleted, cmp.Or(errs...)
}
