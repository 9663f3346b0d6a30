package events

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/internal/checktest"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

// A filter that can match nothing is refused before anything is sent.
func TestAMalformedFilterIsRefused(t *testing.T) {
	client, err := yard.NewClient(&nats.Conn{}, "shop")
	checktest.NoError(t, err)
	for path, f := range map[string]Filter{
		"/kinds/1":  {Kinds: []Kind{Dead, "no kind"}},
		"/tasklist": {Tasklist: "a.*"},
	} {
		_, err := Listen(t.Context(), client, f)
		if e := fault.From(err); e.Code != fault.InvalidArgument || e.Path != path {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// An event is read as it was written, with the kind and the tasklist of its message. A kind of a later version is passed on.
func TestAnEventIsRead(t *testing.T) {
	want := Event{
		Kind: "paused", Tasklist: "mail", TaskID: "a", Type: "email.send", State: yard.StateDead, At: time.UnixMilli(70), Grants: 3, Group: "g", ErrorType: "network",
	}
	data, err := codec.Marshal(codec.JSON, &yardv1.DomainEvents{Kind: "paused", Tasklist: "mail", Tasks: []*yardv1.DomainEvent{want.Wire(), {TaskId: "b"}, {TaskId: "c"}}})
	checktest.NoError(t, err)
	var got []Event
	goOn := each(data, func(e Event, err error) bool {
		checktest.NoError(t, err)
		got = append(got, e)
		return len(got) < 2
	})
	if goOn || len(got) != 2 || got[0] != want || got[1].TaskID != "b" {
		t.Errorf("got %+v, want %+v and one more", got, want)
	}
	if !each([]byte("no JSON"), func(Event, error) bool { return false }) {
		t.Error("a message that cannot be read ends the loop")
	}
}
