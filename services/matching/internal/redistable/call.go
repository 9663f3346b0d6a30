package redistable

import (
	"context"
	"fmt"
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
	p := sortPut(c.Put)
	r.args = append(r.args, c.Epoch, c.Shard, c.Shards, c.Seq.Epoch, c.Seq.Call, len(c.Stances), len(c.Clear), len(p.lists), len(p.columns), len(c.Wants))
	for i := range c.Stances {
		encodeStance(&r, c, &c.Stances[i])
	}
	for _, at := range c.Clear {
		r.keys = append(r.keys, headsKey(at.Tasklist), columnKey(at.Tasklist, at.Column))
		r.args = append(r.args, entry(at.Tasklist), columnName(at.Column))
	}
	p.encode(&r, c.Put)
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

// put is chunks by tasklist and column, in the order in which these are first met.
type put struct {
	lists   []table.Tasklist
	columns []putColumn
	// of tells the column of each chunk.
	of []int
}

type putColumn struct {
	list, n int
	at      table.Column
	head    int64
}

func sortPut(chunks []table.Chunk) put {
	p := put{of: make([]int, len(chunks))}
	type place struct {
		list int
		at   table.Column
	}
	lists, columns := map[table.Tasklist]int{}, map[place]int{}
	for i, c := range chunks {
		l, ok := lists[c.Tasklist]
		if !ok {
			l = len(p.lists)
			lists[c.Tasklist], p.lists = l, append(p.lists, c.Tasklist)
		}
		n, ok := columns[place{l, c.Column}]
		if !ok {
			n = len(p.columns)
			columns[place{l, c.Column}] = n
			p.columns = append(p.columns, putColumn{list: l, at: c.Column, head: c.ReadyAt})
		}
		p.columns[n].n++
		p.columns[n].head = min(p.columns[n].head, c.ReadyAt)
		p.of[i] = n
	}
	return p
}

func (p *put) encode(r *request, chunks []table.Chunk) {
	for l, list := range p.lists {
		r.keys = append(r.keys, headsKey(list))
		r.args = append(r.args, entry(list), 0)
		count := len(r.args) - 1
		for _, c := range p.columns {
			if c.list == l {
				r.args = append(r.args, c.head, columnName(c.at))
			}
		}
		r.args[count] = (len(r.args) - count - 1) / 2
	}
	// Where each column's chunks begin among the arguments: in one pass over them all.
	next := make([]int, len(p.columns))
	for n, c := range p.columns {
		r.keys = append(r.keys, columnKey(p.lists[c.list], c.at))
		r.args = append(r.args, c.n)
		next[n] = len(r.args)
		r.args = append(r.args, make([]any, 2*c.n)...)
	}
	for i, c := range chunks {
		at := next[p.of[i]]
		r.args[at], r.args[at+1] = c.Place(), c.Packed()
		next[p.of[i]] += 2
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
