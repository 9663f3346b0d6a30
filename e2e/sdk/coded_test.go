package sdk_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/contracts/yard/coded"
	"github.com/yardmaster-io/yardmaster/contracts/yard/schedules"
	"github.com/yardmaster-io/yardmaster/infra/yard/yardtest"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

type order struct{ Card string }

// What a task carries passes the engine encrypted: payload, progress, result and the text of a failure.
func TestTheEngineSeesNoContent(t *testing.T) {
	engine := yardtest.New(t)
	codec, err := coded.AESGCM("k1", map[string][]byte{"k1": bytes.Repeat([]byte{7}, 32)})
	testkit.NoError(t, err)
	client := withCodec(t, engine, coded.Gzip(1000, codec))
	worker := yard.NewWorker(client, "mail")
	progressed := make(chan struct{})
	yard.Handle(worker, "pay", func(ctx context.Context, in order) (order, error) {
		if yard.Info(ctx).Number == 1 {
			testkit.NoError(t, yard.Progress(ctx, in.Card))
			<-progressed
			return order{}, fmt.Errorf("card %s is refused%s", in.Card, strings.Repeat("!", 5000))
		}
		return in, nil
	})
	run(t, worker)
	id, err := client.Submit(soon(t), yard.Task{
		Type: "pay", Tasklist: "mail", Payload: order{"4111"}, Retry: &yard.RetryPolicy{InitialInterval: time.Millisecond},
	})
	testkit.NoError(t, err)
	testkit.Eventually(t, within, func() error {
		task, err := client.Get(soon(t), id)
		var seen string
		if err == nil && (task.Progress.Decode(&seen) != nil || seen != "4111") {
			err = fmt.Errorf("the progress is %q", task.Progress.Data)
		}
		return err
	})
	close(progressed)
	result, err := client.Wait(soon(t), id)
	testkit.NoError(t, err)
	var out order
	testkit.NoError(t, result.Decode(&out))
	testkit.Equal(t, "result", out, order{"4111"})

	plain, err := client.Get(soon(t), id)
	testkit.NoError(t, err)
	if text := fmt.Sprintf("%+v", plain.Events); !strings.Contains(text, "card 4111 is refused") {
		t.Errorf("the events are %.300s", text)
	}
	stored, err := engine.Client.Get(soon(t), id)
	testkit.NoError(t, err)
	if text := fmt.Sprintf("%+v %s %s", stored, stored.Payload.Data, stored.Result.Data); strings.Contains(text, "4111") || !coded.IsEncoded(stored.Payload.Data) {
		t.Errorf("without the codec the task is %.500s", text)
	}
}

// A worker that cannot decode a payload does not run the task, which waits for one that can.
func TestATaskWaitsForAWorkerWithTheKey(t *testing.T) {
	engine := yardtest.New(t)
	codec, err := coded.AESGCM("k1", map[string][]byte{"k1": bytes.Repeat([]byte{7}, 32)})
	testkit.NoError(t, err)
	other, err := coded.AESGCM("k2", map[string][]byte{"k2": bytes.Repeat([]byte{8}, 32)})
	testkit.NoError(t, err)
	client := withCodec(t, engine, codec)
	for _, unable := range []*yard.Client{engine.Client, withCodec(t, engine, other)} {
		id, err := client.Submit(soon(t), yard.Task{
			Type: "pay", Tasklist: "mail", Payload: []byte("4111"), Retry: &yard.RetryPolicy{MaxAttempts: 3, InitialInterval: time.Hour},
		})
		testkit.NoError(t, err)
		worker := yard.NewWorker(unable, "mail")
		worker.HandleFunc("pay", func(context.Context, *yard.Attempt) (yard.Payload, error) {
			t.Error("the handler ran")
			return yard.Payload{}, nil
		})
		stop := run(t, worker)
		testkit.Eventually(t, within, func() error {
			task, err := client.Get(soon(t), id)
			if err == nil && (task.State != yard.StateBackoff || task.ErrorType != yard.TypeBadInput) {
				err = fmt.Errorf("it is %v, %s", task.State, task.ErrorType)
			}
			return err
		})
		stop()
		testkit.NoError(t, client.Cancel(soon(t), id))
	}
}

// What is too large once it is encoded is an error of its own, and holds up no other outcome.
func TestAResultThatIsTooLargeOnceItIsEncoded(t *testing.T) {
	engine := yardtest.New(t)
	codec, err := coded.AESGCM("k1", map[string][]byte{"k1": bytes.Repeat([]byte{7}, 32)})
	testkit.NoError(t, err)
	client := withCodec(t, engine, codec)
	worker := yard.NewWorker(client, "mail")
	yard.Handle(worker, "grow", func(context.Context, []byte) ([]byte, error) { return make([]byte, 256<<10), nil })
	run(t, worker)
	id, err := client.Submit(soon(t), yard.Task{Type: "grow", Tasklist: "mail"})
	testkit.NoError(t, err)
	_, err = client.Wait(soon(t), id)
	var dead *yard.TaskError
	if !errors.As(err, &dead) || dead.ErrorType != yard.TypeBadResult {
		t.Errorf("the task ended with %v", err)
	}
	_, err = client.Submit(soon(t), yard.Task{Type: "grow", Tasklist: "mail", Payload: make([]byte, 256<<10)})
	testkit.Code(t, "a payload", err, fault.InvalidArgument)
}

func TestScheduledTasksAreEncoded(t *testing.T) {
	engine := yardtest.New(t)
	client := withCodec(t, engine, coded.Gzip(0, nil))
	all := schedules.Of(client)
	_, err := all.Create(soon(t), schedules.Schedule{Name: "y", Cron: []string{"@yearly"}, Task: yard.Task{Type: "x", Tasklist: "mail", Payload: order{"4111"}}})
	testkit.NoError(t, err)
	stored, err := schedules.Of(engine.Client).Get(soon(t), "y")
	testkit.NoError(t, err)
	plain, err := all.Get(soon(t), "y")
	testkit.NoError(t, err)
	for _, seen := range []struct {
		of      *schedules.Info
		encoded bool
	}{{stored, true}, {plain, false}} {
		payload, ok := seen.of.Schedule.Task.Payload.(yard.Payload)
		testkit.Equal(t, "it is a payload that is encoded", ok && coded.IsEncoded(payload.Data), seen.encoded)
	}
}

// withCodec is another client of the domain.
func withCodec(t *testing.T, engine *yardtest.Engine, codec coded.Codec) *yard.Client {
	t.Helper()
	client, err := yard.Connect(engine.URL(), engine.Domain(), yard.WithCodec(codec))
	testkit.NoError(t, err)
	t.Cleanup(client.Close)
	return client
}
