package natshistory

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/archive"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// briefDomain keeps its finished tasks for a second, and so does each domain those of briefType. All others are kept for an hour.
const briefDomain, briefType = "brief", "brief"

// suiteRetention is the retention that the archives of the suite are made with.
func suiteRetention(t *taskstate.Task) time.Duration {
	if t.Domain == briefDomain || t.Type == briefType {
		return time.Second
	}
	return time.Hour
}

// archivePorts is one implementation, on an empty partition.
type archivePorts struct {
	// Archive makes another writer of the partition, as each owner has one.
	Archive func() partition.Archive
	Reader  partition.Reader
	Submit  func(lane ids.Lane, batch []byte) uint64
	// SubmitOf appends a submit batch of a domain.
	SubmitOf func(at replica.Queue, batch []byte) uint64
	// Dead lists the dead letters.
	Dead func(t *testing.T) []*logv1.Record
}

// exerciseArchive runs the suite; each part on ports of its own.
func exerciseArchive(t *testing.T, make func(t *testing.T) archivePorts) {
	t.Helper()
	for name, part := range map[string]func(*testing.T, archivePorts){
		"filed is found": filedIsFound, "a rival files in between": rivals, "an unknown outcome is repeated": repeated,
		"a task filed by two": filedTwice, "retention": retention, "many small files": manySmall,
		"sparse creation times": sparse, "a thousand domains": manyDomains, "a large task": large,
		"absent": absent, "equal fingerprints": collisions, "dead letters": letters, "redriven": redriven,
		"found as soon as filed": foundAtOnce, "unread": unread, "listed beside others": listedBesideOthers, "listed in order": listedInOrder,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			part(t, make(t))
		})
	}
}

var policy = taskstate.Policy{MaxAttempts: 1}

// finishedTask makes a finished task.
func finishedTask(domain string, created time.Time, random uint64) *taskstate.Task {
	return &taskstate.Task{
		ID: ids.NewTaskID(created, 0, random), Domain: domain, Tasklist: "mail", Type: "t", Policy: &policy,
		State: taskstate.Completed, Payload: taskstate.Blob{Data: []byte("payload")}, FinishedAt: created.UnixMilli() + 5,
	}
}

func many(n int, domain func(int) string, created func(int) time.Time) (all []*taskstate.Task) {
	for i := range n {
		all = append(all, finishedTask(domain(i), created(i), rand.Uint64()))
	}
	return all
}

func shop(int) string { return "shop" }

// searches asks for tasks of a domain.
func searches(domain string, wanted ...ids.TaskID) (all []replica.Search) {
	for _, id := range wanted {
		all = append(all, replica.Search{ID: id, Domain: domain})
	}
	return all
}

func searchesOf(tasks []*taskstate.Task) (all []replica.Search) {
	for _, t := range tasks {
		all = append(all, replica.Search{ID: t.ID, Domain: t.Domain})
	}
	return all
}

func idsOf(tasks []*taskstate.Task) (all []ids.TaskID) {
	for _, t := range tasks {
		all = append(all, t.ID)
	}
	return all
}

// fileAll files tasks and returns the archive's last sequence.
func fileAll(t *testing.T, a partition.Archive, tasks []*taskstate.Task) uint64 {
	t.Helper()
	last, err := a.Last(t.Context())
	testkit.NoError(t, err)
	after, err := a.File(t.Context(), tasks, last)
	testkit.NoError(t, err)
	if got, err := a.Last(t.Context()); err != nil || got != after || after <= last {
		t.Fatalf("last is %d after %d, File said %d: %v", got, last, after, err)
	}
	return after
}

// wantFound looks for all tasks, some at a time.
func wantFound(t *testing.T, r partition.Reader, tasks []*taskstate.Task) {
	t.Helper()
	for some := range slices.Chunk(tasks, 500) {
		found, err := r.Archived(t.Context(), searchesOf(some))
		testkit.NoError(t, err)
		for i, want := range some {
			if found[i] == nil || ids.TaskID(found[i].Id) != want.ID || found[i].Domain != want.Domain ||
				found[i].FinishedAtMs != want.FinishedAt || len(found[i].Payload) != len(want.Payload.Data) {
				t.Fatalf("task %d, %v of %s, is %v", i, want.ID, want.Domain, found[i])
			}
		}
	}
}

// tail lists what was filed after a sequence.
func tail(t *testing.T, a partition.Archive, after uint64) (all []ids.TaskID) {
	t.Helper()
	var stays []replica.Stay
	testkit.NoError(t, a.Tail(t.Context(), after, func(some []replica.Stay) error { stays = append(stays, some...); return nil }))
	for _, stay := range stays {
		all = append(all, stay.ID)
	}
	return all
}

func filedIsFound(t *testing.T, p archivePorts) {
	a, now := p.Archive(), time.Now()
	if last, err := a.Last(t.Context()); err != nil || last != 0 {
		t.Fatalf("an empty archive has %d, %v", last, err)
	}
	tasks := many(3, shop, func(int) time.Time { return now })
	fileAll(t, a, tasks)
	wantFound(t, p.Reader, tasks)
	none := ids.NewTaskID(now, 0, 1)
	found, err := p.Reader.Archived(t.Context(), append(searches("shop", tasks[1].ID, none, tasks[0].ID, tasks[1].ID), searches("rival", tasks[0].ID)...))
	if err != nil || found[1] != nil || found[4] != nil {
		t.Fatal(found, err)
	}
	for i, want := range map[int]ids.TaskID{0: tasks[1].ID, 2: tasks[0].ID, 3: tasks[1].ID} {
		if found[i] == nil || ids.TaskID(found[i].Id) != want {
			t.Errorf("place %d has %v, want %v", i, found[i], want)
		}
	}
	if found, err := p.Reader.Archived(t.Context(), nil); err != nil || len(found) != 0 {
		t.Error(found, err)
	}
}

// R27: two owners take turns, each an unknown client to what the other filed.
func rivals(t *testing.T, p archivePorts) {
	one, two := p.Archive(), p.Archive()
	var all []*taskstate.Task
	last := uint64(0)
	for range 50 {
		first := many(3, shop, func(int) time.Time { return time.Now() })
		second := many(2, shop, func(int) time.Time { return time.Now() })
		between, err := two.File(t.Context(), first, last)
		testkit.NoError(t, err)
		if _, err := one.File(t.Context(), second, last); !errors.Is(err, partition.ErrArchiveMoved) {
			t.Fatalf("filed behind a rival's back: %v", err)
		}
		if got := tail(t, one, last); !slices.Equal(got, idsOf(first)) {
			t.Fatalf("the rival filed %v, the tail has %v", idsOf(first), got)
		}
		last, err = one.File(t.Context(), second, between)
		testkit.NoError(t, err)
		all = append(append(all, first...), second...)
	}
	bulk := many(2*pipelined, shop, func(int) time.Time { return time.Now() })
	for _, one := range bulk { // each fills a message
		one.Payload.Data = make([]byte, archive.MessageBytes)
	}
	if _, err := one.File(t.Context(), bulk, last-1); !errors.Is(err, partition.ErrArchiveMoved) {
		t.Fatalf("many messages were filed behind a rival's back: %v", err)
	}
	if got := tail(t, two, 0); !slices.Equal(got, idsOf(all)) {
		t.Fatalf("%d tasks were filed, the tail has %d", len(all), len(got))
	}
	wantFound(t, p.Reader, all)
}

// R27: who does not know whether a write was stored repeats it, and learns.
func repeated(t *testing.T, p archivePorts) {
	a := p.Archive()
	last := uint64(0)
	var all []*taskstate.Task
	for _, n := range []int{1, 5, 400, 3000} {
		some := many(n, shop, func(int) time.Time { return time.Now() })
		next, err := a.File(t.Context(), some, last)
		testkit.NoError(t, err)
		if _, err := a.File(t.Context(), some, last); !errors.Is(err, partition.ErrArchiveMoved) {
			t.Fatalf("%d tasks were filed again: %v", n, err)
		}
		got, want := tail(t, a, last), idsOf(some)
		slices.SortFunc(got, compareIDs)
		slices.SortFunc(want, compareIDs)
		if !slices.Equal(got, want) {
			t.Fatalf("the tail has %d tasks, %d were filed", len(got), len(want))
		}
		last = next
		all = append(all, some...)
	}
	wantFound(t, p.Reader, all)
}

func compareIDs(a, b ids.TaskID) int { return slices.Compare(a[:], b[:]) }

func filedTwice(t *testing.T, p archivePorts) {
	one, two := p.Archive(), p.Archive()
	tasks := many(100, shop, func(int) time.Time { return time.Now() })
	fileAll(t, one, tasks)
	wantFound(t, p.Reader, tasks)
	fileAll(t, two, tasks[:60])
	fileAll(t, one, tasks[40:])
	wantFound(t, p.Reader, tasks)
}

func retention(t *testing.T, p archivePorts) {
	a := p.Archive()
	tasks := many(400, func(i int) string { return []string{"shop", briefDomain, "shop", "shop"}[i%4] }, func(int) time.Time { return time.Now() })
	for i := range 100 { // domains may keep tasks for different times
		tasks[4*i+3].Type = briefType
	}
	for some := range slices.Chunk(tasks, 4) { // across the index's coming into being
		fileAll(t, a, some)
	}
	var kept, gone []*taskstate.Task
	for _, task := range tasks {
		if suiteRetention(task) == time.Second {
			gone = append(gone, task)
		} else {
			kept = append(kept, task)
		}
	}
	testkit.Eventually(t, 30*time.Second, func() error {
		found, err := p.Reader.Archived(t.Context(), searchesOf(gone))
		if err != nil {
			return err
		}
		if i := slices.IndexFunc(found, func(r *logv1.Record) bool { return r != nil }); i >= 0 {
			return fmt.Errorf("task %d is there", i)
		}
		return nil
	})
	wantFound(t, p.Reader, kept)
	wantListed(t, p.Reader, briefDomain, nil, 100)
	wantListed(t, p.Reader, "shop", kept, 100)
	fileAll(t, p.Archive(), many(1, shop, func(int) time.Time { return time.Now() }))
	if got := tail(t, a, 0); len(got) != len(kept)+1 {
		t.Errorf("the tail has %d tasks, want %d", len(got), len(kept)+1)
	}
}

func manySmall(t *testing.T, p archivePorts) {
	a := p.Archive()
	var all []*taskstate.Task
	for i := range 300 {
		if i%70 == 69 { // a takeover
			a = p.Archive()
		}
		some := many(1+i%3, shop, func(int) time.Time { return time.Now() })
		fileAll(t, a, some)
		all = append(all, some...)
		if i%50 == 0 {
			wantFound(t, p.Reader, all)
		}
	}
	wantFound(t, p.Reader, all)
	if got := tail(t, a, 0); !slices.Equal(got, idsOf(all)) {
		t.Errorf("the tail has %d tasks, want %d", len(got), len(all))
	}
}

// Delayed tasks finish together, and were created over a week.
func sparse(t *testing.T, p archivePorts) {
	a, week := p.Archive(), 7*24*time.Hour
	all := many(5000, shop, func(i int) time.Time { return time.Now().Add(-week * time.Duration(i) / 5000) })
	rand.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
	before := fileAll(t, a, all[:4000])
	if before > 4000/32 {
		t.Errorf("4000 tasks took %d messages", before)
	}
	for some := range slices.Chunk(all[4000:], 10) {
		fileAll(t, a, some)
	}
	wantFound(t, p.Reader, all)
}

func manyDomains(t *testing.T, p archivePorts) {
	a := p.Archive()
	all := many(3000, func(i int) string { return fmt.Sprintf("d%d", i%1000) }, func(int) time.Time { return time.Now() })
	if last := fileAll(t, a, all); last > 100 {
		t.Errorf("3000 tasks of 1000 domains took %d messages", last)
	}
	wantFound(t, p.Reader, all)
	if got := listAll(t, p.Reader, "d17", 2, anyTask); len(got) != 3 {
		t.Errorf("%d tasks of one domain are listed, want 3", len(got))
	}
}

// R5: a task of about the server's limit goes beside small ones.
func large(t *testing.T, p archivePorts) {
	a := p.Archive()
	all := many(40, shop, func(int) time.Time { return time.Now() })
	for i := 0; i < len(all); i += 4 {
		all[i].Payload.Data = make([]byte, 900<<10)
	}
	fileAll(t, a, all)
	wantFound(t, p.Reader, all)
}

// R22, R26: what is not there is answered, for any time of creation.
func absent(t *testing.T, p archivePorts) {
	a := p.Archive()
	for range 2 {
		var wanted []ids.TaskID
		for i := range 1000 {
			wanted = append(wanted, ids.NewTaskID(time.Now().Add(-time.Duration(i)*time.Hour), 0, rand.Uint64()))
		}
		wanted = append(wanted, ids.TaskID{}, ids.NewTaskID(time.Now().AddDate(100, 0, 0), 0, 1))
		found, err := p.Reader.Archived(t.Context(), searches("shop", wanted...))
		testkit.NoError(t, err)
		if i := slices.IndexFunc(found, func(r *logv1.Record) bool { return r != nil }); i >= 0 {
			t.Fatalf("found %v", found[i])
		}
		fileAll(t, a, many(3000, shop, func(i int) time.Time { return time.Now().Add(-time.Duration(i) * time.Hour) }))
	}
}

// Ids that an index of fingerprints cannot tell apart.
func collisions(t *testing.T, p archivePorts) {
	a, now := p.Archive(), time.Now()
	var all []*taskstate.Task
	for i := range uint64(100) {
		same := []*taskstate.Task{finishedTask("shop", now, i<<32|7)}
		fileAll(t, a, same)
		all = append(all, same...)
	}
	fileAll(t, a, many(5000, shop, func(int) time.Time { return now }))
	wantFound(t, p.Reader, all)
	none := ids.NewTaskID(now, 0, 1<<63|7)
	if found, err := p.Reader.Archived(t.Context(), searches("shop", none)); err != nil || found[0] != nil {
		t.Errorf("%v %v", found, err)
	}
}

// R27: a letter is stored once, no matter which owner repeats it.
func letters(t *testing.T, p archivePorts) {
	one, two := p.Archive(), p.Archive()
	all := many(600, func(i int) string { return fmt.Sprintf("d%d", i%7) }, func(int) time.Time { return time.Now() })
	for _, storeDead := range []func() error{
		func() error { return one.StoreDead(t.Context(), all[:400]) },
		func() error { return two.StoreDead(t.Context(), all[200:]) },
		func() error { return one.StoreDead(t.Context(), all) },
		func() error { return one.StoreDead(t.Context(), nil) },
	} {
		testkit.Eventually(t, 30*time.Second, storeDead) // as its owner does
	}
	got := map[ids.TaskID]bool{}
	for _, r := range p.Dead(t) {
		if got[ids.TaskID(r.Id)] || string(r.Payload) != "payload" {
			t.Errorf("letter %v came again, or not whole", r)
		}
		got[ids.TaskID(r.Id)] = true
	}
	if len(got) != len(all) {
		t.Errorf("%d letters, want %d", len(got), len(all))
	}
}

// R26: readers that read all the time find what was filed before they ask.
func foundAtOnce(t *testing.T, p archivePorts) {
	const readers = 4
	a := p.Archive()
	asked := make([]chan []*taskstate.Task, readers)
	ended := make(chan error, readers)
	for i := range asked {
		asked[i] = make(chan []*taskstate.Task, 64)
		go func() { ended <- readAll(t.Context(), p.Reader, asked[i]) }()
	}
	for i := range 200 {
		// Of all ages: fresh, a while old, and scattered.
		tasks := many(1+i%60, shop, func(k int) time.Time { return time.Now().Add(-time.Duration(k*k*k) * time.Second) })
		fileAll(t, a, tasks)
		for _, to := range asked {
			select {
			case to <- tasks:
			default: // it is busy with what came before
			}
		}
	}
	for _, to := range asked {
		close(to)
	}
	for range readers {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func readAll(ctx context.Context, r partition.Reader, asked <-chan []*taskstate.Task) error {
	for tasks := range asked {
		found, err := r.Archived(ctx, searchesOf(tasks))
		if err != nil {
			return err
		}
		if k := slices.Index(found, nil); k >= 0 {
			return fmt.Errorf("task %d of %d is not found", k, len(tasks))
		}
	}
	return nil
}

// R18: a task that lies in the log behind the read levels is found, and a delay counts from when it was stored.
func unread(t *testing.T, p archivePorts) {
	ctx, now := t.Context(), time.Now()
	old, fresh, other := task(1, now.Add(-time.Hour)), task(2, now), task(3, now)
	fresh.DelayMs = 60_000
	p.Submit(2, encodedBatch(t, other))
	first := p.Submit(1, encodedBatch(t, old)) // fired long after its creation
	second := p.Submit(3, encodedBatch(t, other, fresh))
	own := task(4, now)
	third := p.SubmitOf(replica.Queue{Lane: 4, Place: "shop"}, encodedBatch(t, own))
	lags := func(lane ids.Lane, domain string, seq uint64) []replica.QueueLevel {
		return []replica.QueueLevel{{Queue: replica.Queue{Lane: lane, Place: ids.Place(domain)}, Seq: seq}}
	}
	var none [ids.Lanes]uint64
	read := func(lane ids.Lane, seq uint64) (levels [ids.Lanes]uint64) { levels[lane] = seq; return levels }
	for _, c := range []struct {
		what string
		id   ids.TaskID
		hint uint64
		read [ids.Lanes]uint64
		want bool
		// queues are domains that lag behind.
		queues []replica.QueueLevel
	}{
		{"fresh, without a hint", ids.TaskID(fresh.Id), 0, none, true, nil},
		{"fresh, with a hint", ids.TaskID(fresh.Id), second, none, true, nil},
		{"fresh, with a wrong hint", ids.TaskID(fresh.Id), first, none, true, nil},
		{"fresh, with a hint beyond the end", ids.TaskID(fresh.Id), second + 100, none, true, nil},
		{"fresh, but read", ids.TaskID(fresh.Id), second, read(3, second), false, nil},
		{"fresh, others read", ids.TaskID(fresh.Id), 0, read(1, second), true, nil},
		{"old, with a hint", ids.TaskID(old.Id), first, none, true, nil},
		{"old, but read", ids.TaskID(old.Id), first, read(1, first), false, nil},
		{"of no time at all", ids.TaskID{}, 0, none, false, nil},
		{"old, others read", ids.TaskID(old.Id), first, read(1, first), false, lags(1, "shop", 0)},
		{"own, but read", ids.TaskID(own.Id), 0, read(4, third), false, nil},
		{"own, but read, another lags", ids.TaskID(own.Id), 0, read(4, third), false, lags(4, "depot", 0)},
		{"own, and lags", ids.TaskID(own.Id), 0, read(4, third), true, lags(4, "shop", third-1)},
		{"own, and lags, with a hint", ids.TaskID(own.Id), third, read(4, third), true, lags(4, "shop", third-1)},
		{"own, and has caught up", ids.TaskID(own.Id), third, read(4, third), false, lags(4, "shop", third)},
		{"unknown", ids.NewTaskID(now, 0, 9), 0, none, false, nil},
		{"unknown, with a hint", ids.NewTaskID(now, 0, 9), first, none, false, nil},
	} {
		got, at, err := p.Reader.Unread(ctx, replica.Search{ID: c.id}, c.hint, replica.Levels{Lanes: c.read, Queues: c.queues})
		if err != nil || (got != nil) != c.want || got != nil && ids.TaskID(got.Id) != c.id {
			t.Errorf("%s: %v, %v", c.what, got, err)
		}
		if want := map[ids.TaskID]ids.Position{
			ids.TaskID(old.Id): ids.NewPosition(first, 1), ids.TaskID(fresh.Id): ids.NewPosition(second, 3),
			ids.TaskID(own.Id): ids.NewPosition(third, 4),
		}; got != nil && at != want[c.id] {
			t.Errorf("%s: it lies at %d in lane %s", c.what, at.Seq(), at.Lane())
		}
		if got.GetDelayMs() > 0 && got.DueAtMs < now.UnixMilli()+got.DelayMs {
			t.Errorf("%s: it is due at %d", c.what, got.DueAtMs)
		}
	}
}
