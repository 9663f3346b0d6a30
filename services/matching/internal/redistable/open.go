package redistable

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// Limits of one script call: Lua blocks all of Redis while it runs.
const (
	clearKeysMax   = 1000
	countChunksMax = 1000
	// openTries bounds how often Open starts again because another owner changed the
	// tables meanwhile.
	openTries = 8
)

// opener is one Open under way.
type opener struct {
	*Tables
	node   redis.UniversalClient
	domain string
}

// Open implements tables.Tables. Tables of a life that is over are cleared first: their
// triggers come again from history.
func (t *Tables) Open(ctx context.Context, domain string) (table.Opened, error) {
	node, err := t.node(ctx, domain)
	if err != nil {
		return table.Opened{}, err
	}
	o := opener{t, node, domain}
	for range openTries {
		opened, ok, err := o.open(ctx)
		if err != nil {
			return table.Opened{}, fmt.Errorf("open the table of %s: %w", domain, err)
		}
		if ok {
			return opened, nil
		}
	}
	return table.Opened{}, fmt.Errorf("open the table of %s: others change it", domain)
}

// open is false where the tables had to be cleared.
func (o *opener) open(ctx context.Context) (table.Opened, bool, error) {
	fresh := rand.Text()
	begin := request{keys: []string{topology.EpochKey(o.domain, o.shard), topology.TasklistsKey(o.domain, o.shard)}, args: []any{fresh}}
	answer, err := o.run(ctx, o.node, o.Tables.open, []request{begin})[0].Slice()
	if err != nil {
		return table.Opened{}, false, err
	}
	var r reader
	lives, epoch := r.number(answer, 0) == 1, r.text(answer, 1)
	var lists []table.Tasklist
	entries := r.list(answer, 2)
	for i := range entries {
		lists = append(lists, o.tasklist(&r, entries, i))
	}
	if r.err != nil {
		return table.Opened{}, false, r.err
	}
	columns, err := o.columns(ctx, lists)
	if err != nil {
		return table.Opened{}, false, err
	}
	if !lives {
		return table.Opened{}, false, o.clear(ctx, epoch, lists, columns)
	}
	if err := o.count(ctx, columns); err != nil {
		return table.Opened{}, false, err
	}
	slices.SortFunc(columns, table.Known.Order)
	return table.Opened{Epoch: epoch, Fresh: epoch == fresh, Columns: columns}, true, nil
}

func (o *opener) tasklist(r *reader, entries []any, i int) table.Tasklist {
	name, partition, _ := strings.Cut(r.text(entries, i), ":")
	n, err := strconv.Atoi(partition)
	if err != nil {
		r.fail("a tasklist", entries[i])
	}
	return table.Tasklist{Domain: o.domain, Name: name, Partition: n}
}

// columns finds the columns of tasklists, without their triggers.
func (o *opener) columns(ctx context.Context, lists []table.Tasklist) ([]table.Known, error) {
	if len(lists) == 0 {
		return nil, nil
	}
	pipe := o.node.Pipeline()
	heads := make([]*redis.ZSliceCmd, len(lists))
	for i, list := range lists {
		heads[i] = pipe.ZRangeWithScores(ctx, headsKey(list), 0, -1)
	}
	if _, err := o.exec(ctx, opHeads, pipe); err != nil {
		o.failed(ctx, err)
		return nil, err
	}
	var found []table.Known
	for i, cmd := range heads {
		for _, z := range cmd.Val() {
			name, _ := z.Member.(string)
			priority, column, _ := strings.Cut(name, ":")
			typ, group, _ := strings.Cut(column, ":")
			n, err := strconv.Atoi(priority)
			if err != nil {
				return nil, fmt.Errorf("a column is called %q", name)
			}
			found = append(found, table.Known{Tasklist: lists[i], Column: table.Column{Priority: n, Type: typ, Group: group}, ReadyAt: int64(z.Score)})
		}
	}
	return found, nil
}

// clear removes tasklists of a life that is over, whole ones in each step.
func (o *opener) clear(ctx context.Context, epoch string, lists []table.Tasklist, columns []table.Known) error {
	byList := map[table.Tasklist][]string{}
	for _, k := range columns {
		byList[k.Tasklist] = append(byList[k.Tasklist], columnKey(k.Tasklist, k.Column))
	}
	var steps []request
	for _, list := range lists {
		if len(steps) == 0 || len(steps[len(steps)-1].keys) > clearKeysMax {
			steps = append(steps, request{
				keys: []string{topology.EpochKey(o.domain, o.shard), topology.TasklistsKey(o.domain, o.shard)}, args: []any{epoch},
			})
		}
		s := &steps[len(steps)-1]
		s.keys = append(append(s.keys, headsKey(list)), byList[list]...)
		s.args = append(s.args, entry(list))
	}
	var errs []error
	for _, cmd := range o.run(ctx, o.node, o.Tables.clear, steps) {
		errs = append(errs, cmd.Err())
	}
	return errors.Join(errs...)
}

// count fills in how many triggers columns hold. It goes through them by pages, the
// next one of all columns in one round trip.
func (o *opener) count(ctx context.Context, columns []table.Known) error {
	left := make([]int, len(columns))
	for i := range left {
		left[i] = i
	}
	for page := 0; len(left) > 0; page++ {
		requests := make([]request, len(left))
		for i, c := range left {
			requests[i] = request{keys: []string{columnKey(columns[c].Tasklist, columns[c].Column)}, args: []any{page * countChunksMax, countChunksMax}}
		}
		var more []int
		for i, cmd := range o.run(ctx, o.node, o.Tables.count, requests) {
			n, err := cmd.Int64Slice()
			if err != nil {
				return err
			}
			if columns[left[i]].Triggers += int(n[0]); page == 0 {
				columns[left[i]].Rank = n[2]
			}
			if n[1] == countChunksMax {
				more = append(more, left[i])
			}
		}
		left = more
	}
	return nil
}
