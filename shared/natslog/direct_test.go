package natslog_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
)

func seqs(a natslog.Answer) (all []uint64) {
	for _, r := range a.Records {
		all = append(all, r.Seq)
	}
	return all
}

func TestDirect(t *testing.T) {
	t.Parallel()
	_, js := logServer(t, nil)
	for i := range 10 {
		_, _, err := natslog.Append(t.Context(), js.Conn(), natslog.Msg{Subject: []string{"log.a", "log.b"}[i%2], Data: make([]byte, 100)})
		must(t, err)
	}
	first, err := natslog.Get(t.Context(), js, stream, 5)
	must(t, err)
	d, err := natslog.NewDirect(js)
	must(t, err)
	defer d.Close()
	for _, c := range []struct {
		what  string
		query natslog.Query
		want  []uint64
		more  bool
	}{
		{"one", natslog.Query{Seq: 3}, []uint64{3}, false},
		{"one that is not there", natslog.Query{Seq: 30}, nil, false},
		{"next of a subject", natslog.Query{Seq: 3, NextFor: "log.b"}, []uint64{4}, false},
		{"last of a subject", natslog.Query{LastFor: "log.a"}, []uint64{9}, false},
		{"last of an unknown subject", natslog.Query{LastFor: "log.c"}, nil, false},
		{"some", natslog.Query{Seq: 3, Batch: 3}, []uint64{3, 4, 5}, true},
		{"some of a subject", natslog.Query{Seq: 3, Batch: 3, NextFor: "log.b"}, []uint64{4, 6, 8}, true},
		{"all of a subject", natslog.Query{Seq: 3, Batch: 4, NextFor: "log.b"}, []uint64{4, 6, 8, 10}, false},
		{"fewer than asked for", natslog.Query{Seq: 9, Batch: 5}, []uint64{9, 10}, false},
		{"by bytes", natslog.Query{Seq: 1, Batch: 5, BytesMax: 150}, []uint64{1, 2}, true},
		{"beyond the end", natslog.Query{Seq: 11, Batch: 5}, nil, false},
		{"a bare one", natslog.Query{Seq: 3, Bare: true}, []uint64{3}, false},
		{"a bare one that is not there", natslog.Query{Seq: 30, Bare: true}, nil, false},
		{"since", natslog.Query{Since: &first.Time, Batch: 2}, []uint64{5, 6}, true},
	} {
		got, err := d.Get(t.Context(), stream, []natslog.Query{c.query})
		if err != nil || !slices.Equal(seqs(got[0]), c.want) || got[0].More != c.more {
			t.Errorf("%s: %v, more %v, %v", c.what, seqs(got[0]), got[0].More, err)
		}
	}
	bare, err := d.Get(t.Context(), stream, []natslog.Query{{Seq: 3, Bare: true}})
	must(t, err)
	if r := bare[0].Records[0]; len(r.Data) != 100 || len(r.Header) > 0 {
		t.Errorf("bare: %d bytes, %v", len(r.Data), r.Header)
	}
	got, err := d.Get(t.Context(), stream, []natslog.Query{{Seq: 5}, {Seq: 99}, {Seq: 1, Batch: 2}})
	must(t, err)
	if r := got[0].Records[0]; r.Subject != "log.a" || !r.Time.Equal(first.Time) || string(r.Data) != string(first.Data) {
		t.Errorf("%+v, want %+v", r, first)
	}
	if len(got[1].Records) != 0 || !slices.Equal(seqs(got[2]), []uint64{1, 2}) {
		t.Errorf("several at once: %v %v", seqs(got[1]), seqs(got[2]))
	}
	if got, err := d.Get(t.Context(), stream, nil); err != nil || len(got) != 0 {
		t.Errorf("nothing: %v, %v", got, err)
	}
}

func TestDirectFails(t *testing.T) {
	t.Parallel()
	srv, js := logServer(t, nil)
	d, err := natslog.NewDirect(js)
	must(t, err)
	if _, err := d.Get(t.Context(), "NONE", []natslog.Query{{Seq: 1}}); !errors.Is(err, nats.ErrNoResponders) {
		t.Errorf("of no stream: %v", err)
	}
	if _, err := d.Get(t.Context(), stream, []natslog.Query{{}}); err == nil || !strings.Contains(err.Error(), "408") {
		t.Errorf("of nothing: %v", err)
	}
	d.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Get(ctx, stream, []natslog.Query{{Seq: 1}}); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
	stop(t, srv, js.Conn())
	if _, err := d.Get(t.Context(), stream, []natslog.Query{{Seq: 1}}); !errors.Is(err, natsrpc.ErrNotSent) {
		t.Errorf("without a server: %v", err)
	}
}
