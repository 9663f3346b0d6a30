package yard

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// Types without a handler of their own go to HandleRest, and the worker asks for all types.
func TestTheRestOfTheTypes(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		says := func(word string) HandlerFunc {
			return func(context.Context, *Attempt) (Payload, error) { return NewPayload(word) }
		}
		b.worker.HandleFunc("own", says("own"))
		b.worker.HandleRest(says("rest"))
		b.start(append(granted("own", 1), granted("other", 1)...)...)
		synctest.Wait()
		b.finish(t)
		results := map[string]string{}
		for _, c := range b.engine.completed {
			results[c.TaskId] = string(c.Result.Data)
		}
		if len(results) != 2 || results["own-0"] != `"own"` || results["other-0"] != `"rest"` {
			t.Errorf("completed %v, failed %v", b.engine.completed, b.engine.failed)
		}
		if types := newSession(b.worker, b.engine).types; len(types) != 0 {
			t.Errorf("it asks for the types %v alone", types)
		}
	})
}

// A handler that needs a while to stop gets it, and what it returns then is handed back.
func TestStopGrace(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBench(WithDrainTimeout(time.Second), WithStopGrace(time.Minute))
		b.worker.HandleFunc("slow", func(ctx context.Context, _ *Attempt) (Payload, error) {
			<-ctx.Done()
			time.Sleep(50 * time.Second)
			return Payload{}, errors.New("stopped")
		})
		b.start(granted("slow", 1)...)
		synctest.Wait()
		b.finish(t)
		if len(b.engine.failed) != 1 || !b.engine.failed[0].NotStarted {
			t.Errorf("got %v", b.engine.failed)
		}
	})
}
