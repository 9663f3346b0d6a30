package scenario_test

import (
	"fmt"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestAPeekShowsWhatStartsNext: by priority, then by how long it is ready, page by page, of a type if asked; what runs, waits or is of
// another tasklist is not there, and all that was shown is still to be had, in that order.
func TestAPeekShowsWhatStartsNext(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		w.submitOne(&yardv1.NewTask{Type: "x"})
		w.takeOne("x")
		w.submitOne(&yardv1.NewTask{Type: "x", Tasklist: "other"})
		w.submitOne(&yardv1.NewTask{Type: "x", DelayMs: 3_600_000})
		var urgent, usual []string
		for i, priority := range []int32{3, 1, 3, 1, 3} {
			typ := "x"
			if i == 2 {
				typ = "y"
			}
			id := w.submitOne(&yardv1.NewTask{Type: typ, Priority: priority})
			w.reach(id, "ready") // ready at another time than the next
			if priority == 1 {
				urgent = append(urgent, id)
			} else {
				usual = append(usual, id)
			}
		}
		order := append(urgent, usual...)
		peek := func(o yard.PeekOptions) (all []string) {
			for {
				p, err := w.client.PeekTasklist(w.soon(), list, o)
				testkit.NoError(t, err)
				for _, next := range p.Tasks {
					if next.State != yard.StateReady || next.ReadyFor < 0 {
						t.Errorf("%+v", next)
					}
					all = append(all, next.ID)
				}
				if o.Cursor = p.Cursor; o.Cursor == "" {
					return all
				}
			}
		}
		equal(t, "in order", fmt.Sprint(peek(yard.PeekOptions{})), fmt.Sprint(order))
		equal(t, "page by page", fmt.Sprint(peek(yard.PeekOptions{Limit: 2})), fmt.Sprint(order))
		equal(t, "of a type", fmt.Sprint(peek(yard.PeekOptions{Type: "y"})), fmt.Sprint(usual[1:2]))
		for _, id := range order {
			want(t, w.get(id), "ready", "submitted")
		}
		var taken []string
		for range urgent {
			taken = append(taken, w.takeOne().TaskId)
		}
		equal(t, "taken", fmt.Sprint(taken), fmt.Sprint(urgent))
	})
}
