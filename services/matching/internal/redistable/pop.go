package redistable

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// Pop implements shard.Tables. Where some wants failed and others did not, it
// returns what was taken together with the error.
func (t *Tables) Pop(ctx context.Context, wants []table.Want) ([]table.Taken, error) {
	calls := make([]call, len(wants))
	types := make([][]string, len(wants))
	for i, w := range wants {
		calls[i], types[i] = popCall(w, t.shard)
	}
	taken := make([]table.Taken, len(wants))
	var lost []string
	var failed error
	for i, cmd := range t.run(ctx, t.pop, calls) {
		ok, err := readTaken(&taken[i], cmd, wants[i].Candidates, types[i])
		if err != nil {
			failed = fmt.Errorf("take triggers of %s: %w", wants[i].Domain, err)
		} else if !ok && !slices.Contains(lost, wants[i].Domain) {
			lost = append(lost, wants[i].Domain)
		}
	}
	if failed != nil {
		return taken, failed
	}
	return taken, lostError(lost)
}

// popCall also returns the limited types in the order in which the script knows them.
func popCall(w table.Want, shard int) (call, []string) {
	n := len(w.Candidates)
	c := call{keys: make([]string, 1, 1+3*n), args: make([]any, 5, 5+5*n)}
	c.keys[0] = topology.EpochKey(w.Domain, shard)
	var limited []string
	var limits []any
	for _, at := range w.Candidates {
		c.keys = append(c.keys, columnKey(w.Tasklist, at.Column), headsKey(w.Tasklist, at.Priority))
		which := 0
		if at.Limit > 0 {
			which = slices.Index(limited, at.Type) + 1
			if which == 0 {
				limited, limits = append(limited, at.Type), append(limits, at.Limit)
				which = len(limited)
			}
		}
		c.args = append(c.args, at.Priority, at.Type, at.Head, which)
	}
	for _, typ := range limited {
		c.keys = append(c.keys, topology.SlotsKey(w.Domain, typ))
	}
	c.args = append(c.args, limits...)
	c.args[0], c.args[1], c.args[2], c.args[3], c.args[4] = w.N, w.Now, w.Until, n, len(limited)
	return c, limited
}

// readTaken reads the script's answer; false means that the epoch is lost.
func readTaken(out *table.Taken, cmd *redis.Cmd, candidates []table.Candidate, limited []string) (bool, error) {
	answer, err := cmd.Slice()
	if err != nil {
		return false, err
	}
	if len(answer) == 0 {
		return false, nil
	}
	r := reader{candidates: candidates, limited: limited}
	for taken := r.list(answer, 0); len(taken) >= 3; taken = taken[3:] {
		at := r.candidate(taken[0])
		out.Batches = append(out.Batches, table.Batch{
			Column: at.Column, ReadyAt: r.score(taken[1]), Triggers: []byte(r.text(taken[2])), Booked: at.Limit > 0,
		})
	}
	heads := r.list(answer, 1)
	for i := 0; 2*i+1 < len(heads); i++ {
		h := table.Head{Column: r.candidate(int64(i + 1)).Column, Gone: int(r.number(heads[2*i+1]))}
		if score := r.text(heads[2*i]); score == "" {
			h.Empty = true
		} else {
			h.ReadyAt = r.score(score)
		}
		out.Heads = append(out.Heads, h)
	}
	for _, which := range r.list(answer, 2) {
		if n := r.number(which); n >= 1 && int(n) <= len(limited) {
			out.Full = append(out.Full, limited[n-1])
		}
	}
	return true, r.err
}

// reader reads values of a script's answer and keeps the first surprise.
type reader struct {
	candidates []table.Candidate
	limited    []string
	err        error
}

func (r *reader) fail(what string, v any) {
	if r.err == nil {
		r.err = fmt.Errorf("the script answered %v for %s", v, what)
	}
}

func (r *reader) list(v []any, i int) []any {
	if i < len(v) {
		if l, ok := v[i].([]any); ok {
			return l
		}
	}
	r.fail("a list", v)
	return nil
}

func (r *reader) number(v any) int64 {
	n, ok := v.(int64)
	if !ok {
		r.fail("a number", v)
	}
	return n
}

func (r *reader) text(v any) string {
	s, ok := v.(string)
	if !ok {
		r.fail("a text", v)
	}
	return s
}

func (r *reader) score(v any) int64 {
	f, err := strconv.ParseFloat(r.text(v), 64)
	if err != nil {
		r.fail("a score", v)
	}
	return int64(f)
}

func (r *reader) candidate(v any) table.Candidate {
	n := r.number(v)
	if n < 1 || int(n) > len(r.candidates) {
		r.fail("a candidate", v)
		return table.Candidate{}
	}
	return r.candidates[n-1]
}
