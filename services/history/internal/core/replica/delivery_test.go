package replica

import (
	"fmt"
	"slices"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/dispatch"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// grabs gives a message of an owner of shard 0 that grabs tasks, each for a poll of its own.
func (b *bench) grabs(epoch, request, delivered uint64, tasks ...int) *Effects {
	b.Helper()
	b.seq++
	in := &Events{Seq: b.seq, At: b.now.MS, ReplyTo: "asker", RequestID: request, Shard: 1, Epoch: epoch, Delivered: delivered}
	for i, n := range tasks {
		e := b.r.tasks[id(n)]
		in.Polls = append(in.Polls, dispatch.Poll{Worker: taskstate.NewWorker(fmt.Sprint("w", n), "", 0), ReplyTo: fmt.Sprint("inbox", n), JSON: n%2 == 1})
		in.Events = append(in.Events, taskstate.Event{
			Kind: taskstate.Started, ID: id(n), Poll: uint32(i + 1), Worker: in.Polls[i].Worker,
			Fence: ids.Token{Position: e.Position, Version: e.Version + 1, Nonce: uint64(b.seq)},
		})
	}
	return b.step(in)
}

func (b *bench) fence(epoch uint64) *Effects {
	b.Helper()
	b.seq++
	return b.step(&Events{Seq: b.seq, At: b.now.MS, ReplyTo: "asker", Shard: 1, Epoch: epoch, Events: []taskstate.Event{{Kind: taskstate.Fence}}})
}

// undelivered are the tasks that owners before epoch may not have delivered.
func (b *bench) undelivered(epoch uint64) (numbers []int) {
	b.r.Undelivered(0, epoch, ids.TaskID{}, func(u *Undelivered) bool {
		n := int(u.Grant.Task.ID[15])
		numbers = append(numbers, n)
		if u.Poll != (dispatch.Poll{Worker: u.Poll.Worker, ReplyTo: fmt.Sprint("inbox", n), JSON: n%2 == 1}) || u.Poll.Worker.Name() != fmt.Sprint("w", n) || u.Grant.Token != b.r.tasks[u.Grant.Task.ID].Token() || u.Grant.First {
			b.Errorf("task %d is for %+v, %+v", n, u.Poll, u.Grant)
		}
		return true
	})
	return numbers
}

// upFrom are n numbers from one on.
func upFrom(first, n int) (all []int) {
	for i := range n {
		all = append(all, first+i)
	}
	return all
}

// TestUndeliveredIsToldInPages: each page begins behind the last task that was taken of the one before,
// and what was not taken is not yet reported.
func TestUndeliveredIsToldInPages(t *testing.T) {
	b := newBench(t, Config{})
	b.submit(nil, upFrom(1, 5)...)
	b.grabs(1, 1, 0, 5, 1, 4)
	b.grabs(1, 2, 0, 2, 3)
	var pages [][]int
	for after := (ids.TaskID{}); len(pages) < 9; {
		var page []int
		b.r.Undelivered(0, 2, after, func(u *Undelivered) bool {
			if len(page) == 2 {
				return false
			}
			after = u.Grant.Task.ID
			page = append(page, int(after[15]))
			return true
		})
		if page == nil {
			break
		}
		pages = append(pages, page)
		if len(pages) == 1 { // 3 was offered and not taken
			fx := b.step(Bounced{[]GrantRef{{id(1), b.r.Get(id(1)).Token()}, {id(3), b.r.Get(id(3)).Token()}}})
			if len(fx.Append) != 1 || fx.Append[0].ID != id(3) {
				t.Errorf("taken back: %+v", fx.Append)
			}
		}
	}
	testkit.Equal(t, "pages, without the one that is taken back", fmt.Sprint(pages), "[[1 2] [4 5]]")
}

func TestI7WhatIsNotDeliveredIsBounded(t *testing.T) {
	b := newBench(t, Config{Shards: 1, WindowTasks: 1 << 20, WindowBytes: 1 << 40, CheckpointEveryMS: 1 << 50, PurgeEveryMS: 1 << 50, SnapshotBytes: 1 << 50, SnapshotEveryMS: 1 << 50})
	b.submit(nil, upFrom(1, 40)...)
	kept := []int{3, 17}
	b.grabs(1, 1, 0, kept...)
	rest := slices.DeleteFunc(upFrom(1, 40), func(n int) bool { return slices.Contains(kept, n) })
	for request := uint64(2); request < 200; request++ {
		b.grabs(1, request, 0, rest...)
		for _, n := range rest {
			b.finish(taskstate.Released, n)
		}
	}
	b.equal("what was kept", b.undelivered(2), kept)
	b.grabs(1, 200, 199)
	b.equal("all is delivered", b.undelivered(2), nil)
}
