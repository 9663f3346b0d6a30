package porttest

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
)

// pages: each is read by its sequence, is no event, and is there until it is purged: by itself, or with all up to a level.
func pages(t *testing.T, p Ports) {
	ctx := t.Context()
	var seqs []uint64
	for n := range uint64(4) {
		seq, err := p.Shelf.Write(ctx, 7, n+1, []byte{byte(n)})
		if err != nil {
			t.Fatal(err)
		}
		seqs = append(seqs, seq)
	}
	there := func(want ...bool) {
		t.Helper()
		for n, seq := range seqs {
			if got, err := p.Shelf.Read(ctx, seq); err != nil || (got != nil) != want[n] || got != nil && got[0] != byte(n) {
				t.Errorf("page %d is %v %v, there: %v", n, got, err, want[n])
			}
		}
	}
	there(true, true, true, true)
	if _, of, err := p.Log.Ends(ctx); err != nil || of[partition.SourceEvents] != 0 {
		t.Errorf("a page is an event: %v %v", of, err)
	}
	if err := p.Log.Forget(ctx, replica.Levels{Events: seqs[3]}); err != nil {
		t.Fatal(err)
	}
	there(true, true, true, true)
	for range 2 { // what is gone may be asked for again
		if err := p.Log.Forget(ctx, replica.Levels{Shelf: seqs[0], Dead: []uint64{seqs[0], seqs[2]}}); err != nil {
			t.Fatal(err)
		}
		there(false, true, false, true)
	}
}
