package redistable_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// BenchmarkCall is one call that stores triggers in chunks of ten at most and takes as many,
// per task. Held says that the tasks of the call before still run; the limit has room for
// these and the next. It tells the CPU time of the server, and of its scripts alone.
func BenchmarkCall(b *testing.B) {
	for _, c := range []struct {
		name               string
		tasks, types, most int // most 0 = no limit
		shards             int
	}{
		{"unlimited/tasks=100/types=10", 100, 10, 0, 1},
		{"unlimited/tasks=25/types=1", 25, 1, 0, 1},
		{"limit=50/tasks=25/types=1", 25, 1, 50, 1},
		{"limit=50/tasks=25/types=1/shards=16", 25, 1, 50, 16},
		{"limit=64/tasks=100/types=10/shards=16", 100, 10, 64, 16},
		{"limit=64/tasks=640/types=10/shards=16", 640, 10, 64 * 2, 16},
		{"waiting/limit=25/tasks=25/types=1/shards=2", 25, 1, 25, 2},
	} {
		b.Run(c.name, func(b *testing.B) {
			s, _ := run(b)
			w := &bench{B: b, s: s, types: c.types, most: c.most}
			w.start(c.shards)
			run := w.round
			if strings.HasPrefix(c.name, "waiting/") {
				run = w.handOver
			}
			run(c.tasks) // the script is known
			cpu, script := w.used()
			b.ResetTimer()
			done := 0
			for done < b.N {
				done += run(c.tasks)
			}
			b.StopTimer()
			cpuNow, scriptNow := w.used()
			b.ReportMetric((cpuNow-cpu)*1e6/float64(done), "redis-µs/task")
			b.ReportMetric((scriptNow-script)/float64(done), "script-µs/task")
		})
	}
}

type bench struct {
	*testing.B
	s           store
	types, most int
	calls       []table.Call
	tables      []interface {
		Do(context.Context, []table.Call) ([]table.Outcome, []error)
	}
	next  uint64
	held  int
	turn  int
	ready int64
}

// start opens the tables of all shards, which hold nothing.
func (w *bench) start(shards int) {
	for i := range shards {
		tables := w.s.Shard(i)
		opened, err := tables.Open(context.Background(), "d")
		if err != nil {
			w.Fatal(err)
		}
		w.tables = append(w.tables, tables)
		w.calls = append(w.calls, table.Call{Domain: "d", Shard: i, Shards: shards, Epoch: opened.Epoch, Seq: table.Seq{Epoch: 1}})
		w.do(i, 0, 0, 0)
	}
}

// do is one call of a shard that holds slots of each type, stores triggers and wants some.
func (w *bench) do(shard, held, put, want int) int {
	c := &w.calls[shard]
	c.Seq.Call++
	c.Stances, c.Put, c.Wants = c.Stances[:0], c.Put[:0], c.Wants[:0]
	list := table.Tasklist{Domain: "d", Name: "l", Partition: shard}
	take := table.Want{Tasklist: list, N: want}
	for i := range w.types {
		at := table.Column{Priority: 3, Type: fmt.Sprint("t", i)}
		candidate := table.Candidate{Column: at}
		if w.most > 0 {
			c.Stances = append(c.Stances, table.Stance{Ref: table.TypeRef(at.Type), Max: w.most, Held: held, Wait: min(want, 3), TTL: time.Minute})
			candidate.Path = []int{i}
		}
		take.Candidates = append(take.Candidates, candidate)
		for left := put / w.types; left > 0; left -= 10 {
			w.ready++
			chunk := table.Chunk{Tasklist: list, Column: at, ReadyAt: 1_795_334_386_661_409 + w.ready}
			for range min(left, 10) {
				w.next++
				chunk.Triggers = ids.AppendTrigger(chunk.Triggers, ids.Trigger{ID: ids.NewTaskID(time.UnixMilli(1), 0, w.next)})
			}
			c.Put = append(c.Put, chunk)
		}
	}
	if want > 0 {
		c.Wants = append(c.Wants, take)
	}
	outcomes, errs := w.tables[shard].Do(context.Background(), []table.Call{*c})
	if errs[0] != nil || outcomes[0].Lost || outcomes[0].Overtaken {
		w.Fatal(outcomes, errs)
	}
	taken := 0
	if want > 0 {
		for _, b := range outcomes[0].Taken[0].Batches {
			taken += len(b.Triggers) / ids.TriggerBytes
		}
	}
	return taken
}

// round has shard 0 take n tasks while those before run.
func (w *bench) round(n int) int {
	if got := w.do(0, w.held, n, n); got != n {
		w.Fatalf("took %d", got)
	}
	w.held = n / w.types
	return n
}

// handOver has the shard that holds all slots give them back and wait for more, and the
// other take them: two calls.
func (w *bench) handOver(n int) int {
	if w.next == 0 { // both have more than they get
		w.do(0, 0, n, 0)
		w.do(1, 0, n, 0)
		w.do(0, 0, n, n)
		w.do(1, 0, n, n)
		w.turn = 1 // shard 0 was served before shard 1 came
	}
	w.turn = 1 - w.turn
	if got := w.do(1-w.turn, 0, 0, n); got != 0 {
		w.Fatalf("the shard that had the slots took %d", got)
	}
	if got := w.do(w.turn, 0, n, n); got != n {
		w.Fatalf("the shard that waited took %d", got)
	}
	return n
}

// used is the CPU time of the server in seconds, and that of its scripts in µs.
func (w *bench) used() (cpu, script float64) {
	for line := range strings.Lines(w.s.client.Info(context.Background(), "cpu", "commandstats").Val()) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch name {
		case "used_cpu_sys", "used_cpu_user":
			n, _ := strconv.ParseFloat(value, 64)
			cpu += n
		case "cmdstat_evalsha":
			_, usec, _ := strings.Cut(value, "usec=")
			usec, _, _ = strings.Cut(usec, ",")
			script, _ = strconv.ParseFloat(usec, 64)
		}
	}
	return cpu, script
}
