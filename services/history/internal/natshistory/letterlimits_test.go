package natshistory

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/natskit"
)

// letterBox is dead letters of two domains, whose letters lie between each other.
type letterBox struct {
	t  *testing.T
	js jetstream.JetStream
	DeadLetters
}

func newLetterBox(t *testing.T, srv *natskit.Server, letters int) *letterBox {
	owner, reader := serverPortsAt(t, srv)
	b := &letterBox{t, owner.JetStream, NewDeadLetters(reader)}
	b.die("shop", letters)
	return b
}

// die stores letters of a domain, each beside one of another domain.
func (b *letterBox) die(domain string, n int) {
	b.t.Helper()
	var msgs []natslog.Msg
	for i := range n {
		for _, d := range []string{domain, "rival"} {
			msgs = append(msgs, natslog.Msg{Subject: topology.Dead(d, "mail", ids.NewTaskID(time.Now(), i%4, uint64(len(msgs)))), Data: []byte("a letter")})
		}
	}
	for _, r := range natslog.AppendEach(b.t.Context(), b.js.Conn(), msgs) {
		if r.Err != nil {
			b.t.Fatal(r.Err)
		}
	}
}

// left is where the letters of a domain lie.
func (b *letterBox) left(domain string) (seqs []uint64) {
	b.t.Helper()
	err := natslog.ReadAll(b.t.Context(), b.js, natslog.ReadConfig{Stream: topology.DeadLetterStream, StartSeq: 1, Filters: []string{topology.DeadFilter(domain)}}, func(r natslog.Record) error {
		seqs = append(seqs, r.Seq)
		return nil
	})
	testkit.NoError(b.t, err)
	return seqs
}

func (b *letterBox) want(domain string, want []uint64) {
	b.t.Helper()
	if got := b.left(domain); fmt.Sprint(got) != fmt.Sprint(want) {
		b.t.Errorf("%s has letters at %v, want %v", domain, got, want)
	}
}

func TestTheOldestLettersBeyondANumberAreDeleted(t *testing.T) {
	t.Parallel()
	srv := natskit.Run(t)
	b := newLetterBox(t, srv, 10)
	all, rival := b.left("shop"), b.left("rival")
	for _, c := range []struct{ keep, deleted int64 }{{10, 0}, {11, 0}, {7, 3}, {7, 0}} {
		if n, more, err := b.DeleteBeyond(t.Context(), "shop", c.keep); n != c.deleted || more || err != nil {
			t.Errorf("of %d that are kept: %d deleted, more: %v: %v", c.keep, n, more, err)
		}
	}
	b.want("shop", all[3:])
	srv.Restart(t)
	testkit.Eventually(t, time.Minute, func() error { // a limit holds after an outage too
		_, _, err := b.DeleteBeyond(t.Context(), "shop", 2)
		return err
	})
	b.want("shop", all[8:])
	b.want("rival", rival)
	if n, more, err := b.DeleteBeyond(t.Context(), "none", 1); n != 0 || more || err != nil {
		t.Errorf("of a domain without letters: %d deleted, more: %v: %v", n, more, err)
	}
}

func TestLettersBeforeATimeAreDeleted(t *testing.T) {
	t.Parallel()
	b := newLetterBox(t, natskit.Run(t), 5)
	first := b.left("shop")
	last, err := natslog.Get(t.Context(), b.js, topology.DeadLetterStream, first[4])
	testkit.NoError(t, err)
	b.die("shop", 5)
	all, rival := b.left("shop"), b.left("rival")
	for _, c := range []struct {
		before time.Time
		want   []uint64
	}{{last.Time.Add(-time.Hour), all}, {last.Time, all[4:]}, {last.Time.Add(1), all[5:]}, {time.Now().Add(time.Hour), nil}, {time.Now(), nil}} {
		before := len(b.left("shop"))
		if n, more, err := b.DeleteBefore(t.Context(), "shop", c.before); int(n) != before-len(c.want) || more || err != nil {
			t.Errorf("%d deleted, more: %v: %v", n, more, err)
		}
		b.want("shop", c.want)
	}
	b.want("rival", rival)
}

// TestManyLettersAreDeletedStepByStep, so that the server does something else between them.
func TestManyLettersAreDeletedStepByStep(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]func(*letterBox) (int64, bool, error){
		"age": func(b *letterBox) (int64, bool, error) {
			return b.DeleteBefore(t.Context(), "shop", time.Now().Add(time.Hour))
		},
		"number": func(b *letterBox) (int64, bool, error) { return b.DeleteBeyond(t.Context(), "shop", 1) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const letters, most = 40, 12
			b := newLetterBox(t, natskit.Run(t), letters)
			b.most = most
			sum, calls := int64(0), 0
			for more := true; more; calls++ {
				n, goesOn, err := limit(b)
				if err != nil || n > most || n == 0 && goesOn || calls > 10 {
					t.Fatalf("call %d: %d deleted, more: %v: %v", calls, n, goesOn, err)
				}
				sum, more = sum+n, goesOn
			}
			if left := len(b.left("shop")); calls < 4 || sum+int64(left) != letters || left > 1 {
				t.Errorf("%d deleted by %d calls, and %d are left", sum, calls, left)
			}
		})
	}
}
