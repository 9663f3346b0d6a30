package natshistory

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// R18: a search costs what its lanes have not read, and one that would read without end
// says that it was given up. Lanes that were never used, or not recently, count as read.
func TestUnreadIsBounded(t *testing.T) {
	testkit.Slow(t, "stores much, or waits for the server")
	for name, replicated := range map[string]bool{"alone": false, "with replicas, whose leader is asked": true} {
		t.Run(name, func(t *testing.T) { unreadIsBounded(t, replicated) })
	}
}

func unreadIsBounded(t *testing.T, replicated bool) {
	owner, reader := serverPorts(t)
	reader.logReplicas = replicas{many: replicated, asked: time.Now().Add(time.Hour)}
	created := time.Now() // of both: a search begins there, however long the log takes to be written
	id, absent := ids.NewTaskID(created, 0, 1), ids.NewTaskID(created, 0, 2)
	batch := ofTask(t, &logv1.Record{Id: id[:], Domain: "shop"})
	early := stored(t, owner, topology.Submit(0, 3, "shop", "mail"), batch)
	event := make([]byte, 1_000_000)
	for range scanBytesMax/len(event) + 3 {
		stored(t, owner, topology.Event(0), event)
	}
	late := stored(t, owner, topology.Submit(0, 1, "shop", "mail"), batch)
	for _, c := range []struct {
		what    string
		id      ids.TaskID
		read    [ids.Lanes]uint64
		at      ids.Position
		tooLong bool
	}{
		{"all is read", absent, [ids.Lanes]uint64{1: late, 3: early}, 0, false},
		{"the end is not", absent, [ids.Lanes]uint64{3: early}, 0, false},
		{"the begin is not", absent, [ids.Lanes]uint64{1: late}, 0, true},
		{"it lies at the end", id, [ids.Lanes]uint64{3: early}, ids.NewPosition(late, 1), false},
		{"it lies at the begin", id, [ids.Lanes]uint64{1: late}, ids.NewPosition(early, 3), false},
	} {
		before := reader.cfg.NATS.Stats().InBytes
		found, at, err := reader.Unread(t.Context(), replica.Search{ID: c.id}, 0, replica.Levels{Lanes: c.read})
		if errors.Is(err, partition.ErrSearchTooLong) != c.tooLong || !c.tooLong && err != nil || (found != nil) != (c.at != 0) || found != nil && at != c.at {
			t.Errorf("%s: %v at %v: %v", c.what, found, at, err)
		}
		const little = 8 << 10
		if cost := reader.cfg.NATS.Stats().InBytes - before; cost > little && c.at == 0 && !c.tooLong {
			t.Errorf("%s: %d bytes were read", c.what, cost)
		}
	}
}

// Those who search at once share what is read of the log: each has its own answer, by what was read when it asked.
func TestManySearchTheLogAtOnce(t *testing.T) {
	owner, reader := serverPorts(t)
	const tasks, lane, size = 40, 3, 100_000
	created := time.Now()
	at := make([]uint64, tasks)
	for i := range tasks {
		id := ids.NewTaskID(created, 0, uint64(i))
		batch, err := (&logv1.Batch{Tasks: []*logv1.Record{{Id: id[:], Domain: "shop", Payload: make([]byte, size)}}}).MarshalVT()
		testkit.NoError(t, err)
		at[i], _, err = natslog.Append(t.Context(), owner.NATS, natslog.Msg{Subject: topology.Submit(0, lane, "shop", "mail"), Data: batch})
		testkit.NoError(t, err)
	}
	before := reader.cfg.NATS.Stats().InBytes
	var all sync.WaitGroup
	for i := range tasks {
		for _, c := range []struct {
			what string
			id   ids.TaskID
			read uint64
			want bool
		}{
			{"unread", ids.NewTaskID(created, 0, uint64(i)), at[i] - 1, true},
			{"read", ids.NewTaskID(created, 0, uint64(i)), at[i], false},
			{"absent", ids.NewTaskID(created, 0, uint64(tasks+i)), at[0] - 1, false},
			{"of another time", ids.NewTaskID(created.Add(-time.Hour), 0, uint64(i)), at[0] - 1, false},
		} {
			all.Go(func() {
				found, _, err := reader.Unread(t.Context(), replica.Search{ID: c.id}, 0, replica.Levels{Lanes: [ids.Lanes]uint64{lane: c.read}})
				if err != nil || (found != nil) != c.want || c.want && ids.TaskID(found.Id) != c.id {
					t.Errorf("task %d, %s: %v, %v", i, c.what, found.GetId(), err)
				}
			})
		}
	}
	all.Wait()
	cost := (reader.cfg.NATS.Stats().InBytes - before) / (tasks * size)
	if cost > tasks/2 {
		t.Errorf("%d searches read the log %d times", 4*tasks, cost)
	}
}

// ofTask is a message of a submit of one task.
func ofTask(t *testing.T, r *logv1.Record) []byte {
	t.Helper()
	return testkit.Encoded(t, &logv1.Batch{Tasks: []*logv1.Record{r}})
}

// stored stores a message, and returns where it lies.
func stored(t *testing.T, owner Config, subject string, data []byte) uint64 {
	t.Helper()
	seq, _, err := natslog.Append(t.Context(), owner.NATS, natslog.Msg{Subject: subject, Data: data})
	testkit.NoError(t, err)
	return seq
}

// searchAll searches for all, one beginning behind the other, until all are over.
func searchAll(t *testing.T, r *Reader, all ...*search) {
	t.Helper()
	for _, s := range all {
		testkit.NoError(t, r.searches.Add(s.domain, s, 1))
	}
	for _, s := range all {
		<-s.done
	}
}

// A caller that has gone ends its own search, and no other one.
func TestASearchIsGivenUpAlone(t *testing.T) {
	owner, reader := serverPorts(t)
	id := ids.NewTaskID(time.Now(), 0, 1)
	stored(t, owner, topology.Submit(0, 3, "shop", "mail"), ofTask(t, &logv1.Record{Id: id[:], Domain: "shop"}))
	gone, leave := context.WithCancel(t.Context())
	leave()
	absent := ids.NewTaskID(time.Now(), 0, 2)
	some := []*search{{caller: gone, id: absent, done: make(chan struct{})}, {caller: t.Context(), id: absent, done: make(chan struct{})}, {caller: t.Context(), id: id, done: make(chan struct{})}}
	searchAll(t, reader, some...)
	for i, want := range []error{context.Canceled, nil, nil} {
		if s := some[i]; !s.over || !errors.Is(s.err, want) || (s.found != nil) != (i == 2) {
			t.Errorf("search %d: over %v, found %v, %v", i, s.over, s.found, s.err)
		}
	}
}

// I14: a search has to read little, and those of a flood, that read all of a long log, let it in between.
func TestI14_SearchesOfTheLogTakeTurns(t *testing.T) {
	owner, reader := serverPorts(t)
	created := time.Now()
	id := ids.NewTaskID(created, 0, 1)
	stored(t, owner, topology.Submit(0, 1, "shop", "mail"), ofTask(t, &logv1.Record{Id: id[:], Domain: "shop"}))
	for range 30 {
		stored(t, owner, topology.Event(0), make([]byte, 1_000_000))
	}
	const searches = 20
	ended := make(chan string, searches+1)
	unread := func(domain string, id ids.TaskID) {
		_, _, err := reader.Unread(t.Context(), replica.Search{ID: id, Domain: domain}, 0, replica.Levels{})
		testkit.Check(t, err)
		ended <- domain
	}
	for i := range uint64(searches) {
		// Each begins elsewhere in the log, so they share little.
		go unread("flood", ids.NewTaskID(created.Add(time.Duration(i)*time.Millisecond), 0, 100+i))
	}
	testkit.Eventually(t, time.Minute, func() error { // they read
		if reader.cfg.NATS.Stats().InBytes < 3_000_000 {
			return errors.New("the flood has not begun")
		}
		return nil
	})
	go unread("shop", id)
	testkit.Equal(t, "the first that ended", <-ended, "shop")
	for range searches {
		<-ended
	}
}

// What is void is not found, wherever it lies.
func TestI1_WhatIsVoidIsNotFoundUnread(t *testing.T) {
	owner, reader := serverPorts(t)
	for within, found := range map[int64]bool{0: true, 1: false, 3_600_000: true} {
		id := ids.NewTaskID(time.Now().Add(-4*time.Second), 0, uint64(within))
		seq := stored(t, owner, topology.Submit(0, 3, "shop", "mail"), ofTask(t, &logv1.Record{Id: id[:], Domain: "shop", WithinMs: within}))
		for _, hint := range []uint64{0, seq} {
			r, _, err := reader.Unread(t.Context(), replica.Search{ID: id}, hint, replica.Levels{Lanes: [ids.Lanes]uint64{}})
			if err != nil || (r != nil) != found {
				t.Errorf("to be stored within %d ms, hint %d: %v, %v", within, hint, r, err)
			}
		}
	}
}

// A repeat may be stored long after the time in its id, and is found all the same.
func TestI1_WhatWasStoredAtTheLastMomentIsFoundUnread(t *testing.T) {
	owner, reader := serverPorts(t)
	id := ids.NewTaskID(time.Now().Add(-topology.SubmitLatest), 0, 1)
	stored(t, owner, topology.Submit(0, 3, "shop", "mail"), ofTask(t, &logv1.Record{Id: id[:], Domain: "shop"}))
	if r, _, err := reader.Unread(t.Context(), replica.Search{ID: id}, 0, replica.Levels{Lanes: [ids.Lanes]uint64{}}); err != nil || r == nil {
		t.Errorf("%v, %v", r, err)
	}
}

// What one search reads in vain is not held against another one, whose lanes have read that.
func TestASearchIsTooLongByItsOwnLanesAlone(t *testing.T) {
	testkit.Slow(t, "stores much, or waits for the server")
	owner, reader := serverPorts(t)
	store := func(lane ids.Lane, data []byte) uint64 {
		return stored(t, owner, topology.Submit(0, lane, "shop", "mail"), data)
	}
	created := time.Now()
	other := ids.NewTaskID(created, 0, 1)
	batch := ofTask(t, &logv1.Record{Id: other[:], Domain: "shop", Payload: make([]byte, 1_000_000)})
	var last uint64
	for range scanBytesMax/len(batch) + 3 {
		last = store(3, batch)
	}
	id := ids.NewTaskID(created, 0, 2)
	batch = ofTask(t, &logv1.Record{Id: id[:], Domain: "shop"})
	at := store(1, batch)
	long := &search{caller: t.Context(), id: ids.NewTaskID(created, 0, 3), read: replica.Levels{Lanes: [ids.Lanes]uint64{1: at}}, done: make(chan struct{})}
	short := &search{caller: t.Context(), id: id, read: replica.Levels{Lanes: [ids.Lanes]uint64{3: last}}, done: make(chan struct{})}
	searchAll(t, reader, long, short)
	if !errors.Is(long.err, partition.ErrSearchTooLong) {
		t.Errorf("the long search: %v", long.err)
	}
	if short.err != nil || short.found == nil {
		t.Errorf("the short search found %v, %v", short.found.GetId(), short.err)
	}
}

// Both parts of a search read no more than the bound together. If the first part is too long, a task in the second part is found all the same,
// and of an absent task the search does not say that it is not there.
func TestASearchIsTooLongByItsFirstPart(t *testing.T) {
	testkit.Slow(t, "stores much, or waits for the server")
	for name, between := range map[string]int{"a short second part": 0, "a long second part": scanBytesMax/2 + 8<<20} {
		t.Run(name, func(t *testing.T) {
			owner, reader := serverPorts(t)
			created := time.Now().Add(2 * time.Second) // by a clock that is ahead
			ahead, absent := ids.NewTaskID(created, 0, 1), ids.NewTaskID(created, 0, 2)
			fill := func(bytes int) {
				for range bytes / 1_000_000 {
					stored(t, owner, topology.Event(0), make([]byte, 1_000_000))
				}
			}
			stored(t, owner, topology.Submit(0, 3, "shop", "mail"), ofTask(t, &logv1.Record{Id: ahead[:], Domain: "shop"}))
			fill(between)
			<-time.After(time.Until(created.Add(time.Millisecond))) // the log goes on after the creation
			stored(t, owner, topology.Submit(0, 1, "shop", "mail"), ofTask(t, &logv1.Record{Id: make([]byte, 16), Domain: "shop"}))
			fill(scanBytesMax/2 + 8<<20)
			find := func(id ids.TaskID) (*logv1.Record, error) {
				before := reader.cfg.NATS.Stats().InBytes
				found, _, err := reader.Unread(t.Context(), replica.Search{ID: id}, 0, replica.Levels{})
				if cost := reader.cfg.NATS.Stats().InBytes - before; cost > scanBytesMax+4*scanBytes {
					t.Errorf("%d bytes were read", cost)
				}
				return found, err
			}
			if found, err := find(ahead); err != nil || found == nil {
				t.Errorf("the task in the second part: %v, %v", found.GetId(), err)
			}
			if found, err := find(absent); found != nil || !errors.Is(err, partition.ErrSearchTooLong) {
				t.Errorf("the absent task: %v, %v", found.GetId(), err)
			}
		})
	}
}

// TestASearchBeginsAtTheCreation: a task is found without what was stored before it, and one whose clock was ahead all the same.
func TestASearchBeginsAtTheCreation(t *testing.T) {
	owner, reader := serverPorts(t)
	store := func(id ids.TaskID, payload int) {
		stored(t, owner, topology.Submit(0, 3, "shop", "mail"), ofTask(t, &logv1.Record{Id: id[:], Domain: "shop", Payload: make([]byte, payload)}))
	}
	for n := range uint64(6) {
		store(ids.NewTaskID(time.Now(), 0, 100+n), 1_000_000)
	}
	id, ahead, absent := ids.NewTaskID(time.Now(), 0, 1), ids.NewTaskID(time.Now().Add(time.Second), 0, 2), ids.NewTaskID(time.Now(), 0, 3)
	store(id, 0)
	store(ahead, 0)
	<-time.After(time.Until(ahead.Time().Add(time.Millisecond))) // the log goes on after its creation
	store(ids.NewTaskID(time.Now(), 0, 4), 0)
	find := func(id ids.TaskID) bool {
		found, _, err := reader.Unread(t.Context(), replica.Search{ID: id}, 0, replica.Levels{})
		testkit.NoError(t, err)
		return found != nil
	}
	before := reader.cfg.NATS.Stats().InBytes
	testkit.Equal(t, "found", find(id), true)
	if cost := reader.cfg.NATS.Stats().InBytes - before; cost > 2_500_000 {
		t.Errorf("%d bytes were read", cost)
	}
	testkit.Equal(t, "found, made by a clock that was ahead", find(ahead), true)
	testkit.Equal(t, "found, that no one stored", find(absent), false)
}
