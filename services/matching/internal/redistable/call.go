package redistable

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// Do implements tables.Tables. Calls of several nodes are made beside each other.
func (t *Tables) Do(ctx context.Context, calls []table.Call) ([]table.Outcome, []error) {
	outcomes, errs := make([]table.Outcome, len(calls)), make([]error, len(calls))
	byNode := map[redis.UniversalClient][]int{}
	for i, c := range calls {
		node, err := t.node(ctx, c.Domain)
		if err != nil {
			errs[i] = err
			continue
		}
		byNode[node] = append(byNode[node], i)
	}
	var all sync.WaitGroup
	for node, which := range byNode {
		all.Go(func() { t.do(ctx, node, calls, which, outcomes, errs) })
	}
	all.Wait()
	return outcomes, errs
}

// do carries out those calls that are of one node.
func (t *Tables) do(ctx context.Context, node redis.UniversalClient, calls []table.Call, which []int, outcomes []table.Outcome, errs []error) {
	requests := make([]request, len(which))
	for i, c := range which {
		requests[i] = encode(&calls[c])
	}
	for i, cmd := range t.run(ctx, node, t.call, requests) {
		c := which[i]
		if err := decode(&outcomes[c], cmd, &calls[c]); err != nil {
			outcomes[c], errs[c] = table.Outcome{}, fmt.Errorf("call the tables of %s: %w", calls[c].Domain, err)
		}
	}
}

// encode writes a call as the script reads it.
func encode(c *table.Call) request {
	var r request
	keys, args := 2+len(c.Stances)+2*len(c.Put), 10+7*len(c.Stances)+6*len(c.Put)
	for _, w := range c.Wants {
		keys, args = keys+1+len(w.Candidates), args+4+6*len(w.Candidates)
	}
	r.keys, r.args = make([]string, 0, keys), make([]any, 0, args)
	r.keys = append(r.keys, topology.EpochKey(c.Domain, c.Shard), topology.TasklistsKey(c.Domain, c.Shard))
	p, columns := sortPut(c.Put)
	r.args = append(r.args, c.Epoch, c.Shard, c.Shards, c.Seq.Epoch, c.Seq.Call, len(c.Stances), len(c.Clear), len(p), columns, len(c.Wants))
	for i := range c.Stances {
		encodeStance(&r, c, &c.Stances[i])
	}
	for _, at := range c.Clear {
		r.keys = append(r.keys, headsKey(at.Tasklist), columnKey(at.Tasklist, at.Column))
		r.args = append(r.args, entry(at.Tasklist), columnName(at.Column))
	}
	p.encode(&r)
	for _, w := range c.Wants {
		encodeWant(&r, &w)
	}
	return r
}

func encodeStance(r *request, c *table.Call, s *table.Stance) {
	ref, shadow := string(s.Ref), 0
	if s.Shadow {
		shadow = -2
	}
	switch {
	case s.Rate.EveryUS > 0:
		r.keys = append(r.keys, topology.RateKey(c.Domain, ref))
		r.args = append(r.args, s.Rate.Burst, s.Unused, 0, 0, 0, strconv.FormatFloat(s.Rate.EveryUS, 'g', -1, 64), shadow)
	case s.PerGroup.Count > 0:
		complete := 0
		if s.PerGroup.Complete {
			complete = 1
		}
		r.keys = append(r.keys, topology.PerGroupKey(c.Domain, ref))
		r.args = append(r.args, 0, s.PerGroup.Count, 0, complete, 0, 0, -1)
	case s.Of > 0:
		r.keys = append(r.keys, topology.GroupSlotsKey(c.Domain, ref))
		r.args = append(r.args, s.Max, s.Held, 0, s.Wait, table.Expiry(s.TTL), 0, s.Of)
	default:
		r.keys = append(r.keys, topology.SlotsKey(c.Domain, ref))
		r.args = append(r.args, s.Max, s.Held, s.Ask, s.Wait, table.Expiry(s.TTL), 0, shadow)
	}
}

func encodeWant(r *request, w *table.Want) {
	r.keys = append(r.keys, headsKey(w.Tasklist))
	r.args = append(r.args, entry(w.Tasklist), w.N, w.Ahead, len(w.Candidates))
	for _, at := range w.Candidates {
		r.keys = append(r.keys, columnKey(w.Tasklist, at.Column))
		r.args = append(r.args, at.Priority, columnName(at.Column), at.Head, at.Most, len(at.Path))
		for _, s := range at.Path {
			r.args = append(r.args, s+1)
		}
	}
}

// puts are the chunks that a call stores: by tasklist, then by column.
type puts [][][]*table.Chunk

func sortPut(chunks []table.Chunk) (p puts, columns int) {
	all := make([]*table.Chunk, len(chunks))
	for i := range chunks {
		all[i] = &chunks[i]
	}
	order := func(a, b *table.Chunk) int {
		return table.Known{Tasklist: a.Tasklist, Column: a.Column}.Order(table.Known{Tasklist: b.Tasklist, Column: b.Column})
	}
	slices.SortStableFunc(all, order)
	for i, c := range all {
		last := len(p) - 1
		switch {
		case i == 0 || all[i-1].Tasklist != c.Tasklist:
			p = append(p, [][]*table.Chunk{{c}})
		case all[i-1].Column != c.Column:
			p[last] = append(p[last], []*table.Chunk{c})
		default:
			column := &p[last][len(p[last])-1]
			*column = append(*column, c)
			continue
		}
		columns++
	}
	return p, columns
}

func (p puts) encode(r *request) {
	for _, list := range p {
		r.keys = append(r.keys, headsKey(list[0][0].Tasklist))
		r.args = append(r.args, entry(list[0][0].Tasklist), len(list))
		for _, column := range list {
			head := column[0].ReadyAt
			for _, c := range column {
				head = min(head, c.ReadyAt)
			}
			r.args = append(r.args, head, columnName(column[0].Column))
		}
	}
	for _, column := range slices.Concat(p...) {
		r.keys = append(r.keys, columnKey(column[0].Tasklist, column[0].Column))
		r.args = append(r.args, len(column))
		for _, c := range column {
			r.args = append(r.args, c.Place(), c.Packed())
		}
	}
}

func columnKey(l table.Tasklist, c table.Column) string {
	return topology.ColumnKey(l.Domain, l.Name, l.Partition, c.Priority, columnOf(c))
}

func headsKey(l table.Tasklist) string { return topology.HeadsKey(l.Domain, l.Name, l.Partition) }

// columnName is a column among the heads of its tasklist. No name holds a colon.
func columnName(c table.Column) string { return strconv.Itoa(c.Priority) + ":" + columnOf(c) }

// columnOf is the type of a column, and its group if it has one.
func columnOf(c table.Column) string {
	if c.Group == "" {
		return c.Type
	}
	return c.Type + ":" + c.Group
}

// entry is a tasklist partition in the set of a shard's known ones. No name holds a colon.
func entry(l table.Tasklist) string { return l.Name + ":" + strconv.Itoa(l.Partition) }

// Answers of the script.
const (
	answerLost      = 1
	answerOvertaken = 2
)

// decode reads the script's answer to a call.
func decode(out *table.Outcome, cmd *redis.Cmd, c *table.Call) error {
	answer, err := cmd.Slice()
	if err != nil {
		return err
	}
	r := reader{}
	switch r.number(answer, 0) {
	case answerLost:
		out.Lost = true
		return r.err
	case answerOvertaken:
		out.Overtaken = true
		return r.err
	}
	limits := r.list(answer, 1)
	out.Limits = make([]table.LimitState, len(c.Stances))
	for i, s := range c.Stances {
		st := &out.Limits[i]
		if s.Rate.EveryUS > 0 {
			st.After, st.Waits = time.Duration(r.number(limits, 4*i+1))*time.Microsecond, r.number(limits, 4*i+3) == 1
		} else {
			st.Used, st.Leased = int(r.number(limits, 4*i)), int(r.number(limits, 4*i+1))
			st.Others = r.number(limits, 4*i+3) == 1
		}
		if third := r.number(limits, 4*i+2); s.Shadow {
			st.Beyond = int(third)
		} else {
			st.Restoring = third == 1
		}
	}
	out.Taken = make([]table.Taken, len(c.Wants))
	for i := range c.Wants {
		r.taken(&out.Taken[i], r.list(answer, 2+i), c, &c.Wants[i])
	}
	return r.err
}
