package redistable

import (
	"fmt"
	"strconv"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// reader reads values of a script's answer and keeps the first surprise.
type reader struct{ err error }

func (r *reader) fail(what string, v any) {
	if r.err == nil {
		r.err = fmt.Errorf("the script answered %v for %s", v, what)
	}
}

// read is the i-th value.
func read[T any](r *reader, what string, v []any, i int) (one T) {
	ok := false
	if i < len(v) {
		one, ok = v[i].(T)
	}
	if !ok {
		r.fail(what, v)
	}
	return one
}

func (r *reader) list(v []any, i int) []any { return read[[]any](r, "a list", v, i) }

func (r *reader) number(v []any, i int) int64 { return read[int64](r, "a number", v, i) }

func (r *reader) text(v []any, i int) string { return read[string](r, "a text", v, i) }

func (r *reader) score(v []any, i int) int64 {
	f, err := strconv.ParseFloat(r.text(v, i), 64)
	if err != nil {
		r.fail("a score", v)
	}
	return int64(f)
}

// taken reads what became of a want.
func (r *reader) taken(out *table.Taken, answer []any, c *table.Call, w *table.Want) {
	column := func(n int64) table.Candidate {
		if n < 1 || int(n) > len(w.Candidates) {
			r.fail("a candidate", n)
			return table.Candidate{}
		}
		return w.Candidates[n-1]
	}
	batches := r.list(answer, 0)
	for i := 0; i+3 < len(batches); i += 4 {
		at := column(r.number(batches, i))
		b := table.Batch{Chunk: table.Unpack(r.score(batches, i+1), []byte(r.text(batches, i+2))), From: int(r.number(batches, i)) - 1, Booked: len(at.Path) > 0}
		b.Tasklist, b.Column = w.Tasklist, at.Column
		if over := int(r.number(batches, i+3)) * ids.TriggerBytes; over > 0 && over < len(b.Triggers) {
			n := len(b.Triggers) - over
			b.Triggers, b.Ahead = b.Triggers[:n:n], b.Triggers[n:]
		}
		out.Batches = append(out.Batches, b)
	}
	heads := r.list(answer, 1)
	for i := 0; i+2 < len(heads); i += 3 {
		h := table.Head{Column: column(int64(i/3 + 1)).Column, Gone: int(r.number(heads, i+1)), Rank: r.score(heads, i+2)}
		if r.text(heads, i) == "" {
			h.Empty = true
		} else {
			h.ReadyAt = r.score(heads, i)
		}
		out.Heads = append(out.Heads, h)
	}
	blocked := r.list(answer, 2)
	for i := 0; i+1 < len(blocked); i += 2 {
		n := r.number(blocked, i)
		if n < 1 || int(n) > len(c.Stances) {
			r.fail("a stance", n)
			return
		}
		out.Blocked = append(out.Blocked, table.Blocked{At: int(n - 1), By: c.Stances[n-1].Ref, Why: table.BlockedWhy(r.number(blocked, i+1))})
	}
}
