package natslog_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/shared/natslog"
)

// store appends a message and returns where it lies.
func store(t *testing.T, js jetstream.JetStream, subject string) natslog.Place {
	t.Helper()
	seq, _, err := natslog.Append(t.Context(), js.Conn(), natslog.Msg{Subject: subject, Data: []byte("x")})
	must(t, err)
	return natslog.Place{subject, seq}
}

func TestManyMessagesAreDeleted(t *testing.T) {
	t.Parallel()
	_, js := logServer(t, nil)
	ctx := t.Context()
	var all []natslog.Place
	for i := range 100 {
		all = append(all, store(t, js, fmt.Sprintf("log.a.%d", i)))
	}
	again := store(t, js, all[5].Subject)
	if n, err := natslog.Delete(ctx, js, stream, all[:80]); n != 80 || err != nil {
		t.Fatalf("%d deleted: %v", n, err)
	}
	for i, p := range all {
		there, err := natslog.Get(ctx, js, stream, p.Seq)
		if err != nil || (there == nil) != (i < 80) {
			t.Errorf("at place %d lies %v: %v", i, there, err)
		}
	}
	wrong := []natslog.Place{{"log.a.5", again.Seq - 1}, {"log.b", again.Seq}, all[0]}
	if n, err := natslog.Delete(ctx, js, stream, wrong); n != 0 || err != nil {
		t.Errorf("%d deleted of those that are not there: %v", n, err)
	}
	if there, err := natslog.Get(ctx, js, stream, again.Seq); err != nil || there == nil {
		t.Errorf("what was stored again is %v: %v", there, err)
	}
	last := store(t, js, all[5].Subject)
	if n, err := natslog.Delete(ctx, js, stream, []natslog.Place{last}); n != 1 || err != nil {
		t.Errorf("%d places deleted, of a message and the one before it: %v", n, err)
	}
	if there, err := natslog.LastForSubject(ctx, js, stream, last.Subject); err != nil || there != nil {
		t.Errorf("of its subject %v is left: %v", there, err)
	}
	if n, err := natslog.Delete(ctx, js, "OTHER", all[:2]); n != 0 || err == nil {
		t.Errorf("%d deleted from a stream that is not there", n)
	}
}

func TestAPurgeDeletesTheOldest(t *testing.T) {
	t.Parallel()
	_, js := logServer(t, nil)
	ctx := t.Context()
	var a, b []natslog.Place
	for i := range 10 {
		a, b = append(a, store(t, js, fmt.Sprintf("log.a.%d", i))), append(b, store(t, js, fmt.Sprintf("log.b.%d", i)))
	}
	for _, c := range []struct {
		purge         natslog.Purge
		deleted, left int
	}{
		{natslog.Purge{Subject: "log.a.>", Before: a[3].Seq}, 3, 7},
		{natslog.Purge{Subject: "log.a.>", Before: a[3].Seq}, 0, 7},
		{natslog.Purge{Subject: "log.a.>", Keep: 8}, 0, 7},
		{natslog.Purge{Subject: "log.a.>", Keep: 5}, 2, 5},
	} {
		n, err := c.purge.Do(ctx, js, stream)
		if err != nil || n != int64(c.deleted) {
			t.Errorf("%+v: %d deleted: %v", c.purge, n, err)
		}
		for i := range a {
			there, err := natslog.Get(ctx, js, stream, a[i].Seq)
			if err != nil || (there == nil) != (i < len(a)-c.left) {
				t.Errorf("%+v: message %d is %v: %v", c.purge, i, there, err)
			}
			if there, err := natslog.Get(ctx, js, stream, b[i].Seq); err != nil || there == nil {
				t.Errorf("%+v: message %d of another subject is %v: %v", c.purge, i, there, err)
			}
		}
	}
	for _, all := range []natslog.Purge{{Subject: "log.>"}, {Subject: "log.>", Before: 9, Keep: 9}} {
		if _, err := all.Do(ctx, js, stream); err == nil {
			t.Errorf("%+v is taken", all)
		}
	}
}

func TestTheFirstMessageSinceATime(t *testing.T) {
	t.Parallel()
	_, js := logServer(t, nil)
	ctx := t.Context()
	store(t, js, "log.a")
	first, err := natslog.Get(ctx, js, stream, store(t, js, "log.a").Seq)
	must(t, err)
	store(t, js, "log.b")
	second, err := natslog.Get(ctx, js, stream, store(t, js, "log.a").Seq)
	must(t, err)
	for since, want := range map[time.Time]uint64{first.Time: first.Seq, first.Time.Add(1): second.Seq, second.Time: second.Seq, second.Time.Add(1): 0} {
		found, err := natslog.NextSince(ctx, js, stream, "log.a", since)
		if err != nil || (found == nil) != (want == 0) || found != nil && found.Seq != want {
			t.Errorf("since %v: %v, want message %d: %v", since, found, want, err)
		}
	}
}
