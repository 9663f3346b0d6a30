package natslog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
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
	body, err := json.Marshal(p)
	if err != nil {
		return 0, fmt.Errorf("purge %s: %w", stream, err)
	}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	msg, err := natsrpc.Request(ctx, js.Conn(), &nats.Msg{Subject: apiSubject(js, "STREAM.PURGE."+stream), Data: body})
	if err != nil {
		return 0, fmt.Errorf("purge %s: %w", stream, err)
	}
	var answer struct {
		Purged int64     `json:"purged"`
		Error  *apiError `json:"error"`
	}
	if err := json.Unmarshal(msg.Data, &answer); err != nil {
		return 0, fmt.Errorf("purge %s: %w", stream, err)
	}
	if answer.Error != nil {
		return 0, fmt.Errorf("purge %s: %w", stream, answer.Error)
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
	var mu sync.Mutex
	var running sync.WaitGroup
	slots := make(chan struct{}, deletesMax)
	for _, p := range all {
		slots <- struct{}{}
		running.Go(func() {
			n, failed := Purge{Subject: p.Subject, Before: p.Seq + 1}.Do(ctx, js, stream)
			mu.Lock()
			deleted += min(n, 1)
			if err == nil {
				err = failed
			}
			mu.Unlock()
			<-slots
		})
	}
	running.Wait()
	return deleted, err
}
