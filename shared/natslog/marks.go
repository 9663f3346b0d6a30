package natslog

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// MarksMin is from how many messages on marks cost less than purges: a purge has one sync to disk, and an atomic batch about ten, whatever is in it.
	MarksMin = 16
	// MarksMax is how many messages get marks at a time.
	MarksMax = BatchMsgsMax / 2
	// markKept is how long a mark stays at least. The server removes each with a sync of its own, while the stream waits: so those of one writer go one by one, markEvery apart.
	markKept  = 10 * time.Second
	markEvery = 40 * time.Millisecond
	// markedAhead is for how long the last mark of a writer stays at most: 90,000 of them.
	markedAhead = time.Hour
	// MarkedLonger is for how much longer than the marks it is said that there are some.
	MarkedLonger = 5 * time.Minute
)

// errManyMarks: their messages are purged, so that the server forgets what it has, and marks do not pile up before what is read.
var errManyMarks = fmt.Errorf("%w: the marks of this writer stay for %v already", ErrNotStored, markedAhead)

// Place is where a message lies.
type Place struct {
	Subject string
	Seq     uint64
}

// Marks deletes messages, many with one sync to disk: a message without data takes the place of each, and goes by itself. Readers pass over those. The zero value is
// ready, and safe for concurrent use.
type Marks struct {
	mu   sync.Mutex
	last time.Time
}

// Put marks all of these messages, or none: ErrWrongLast if one is not the last of its subject, and ErrNotStored if the marks before them stay for long. Their subjects must differ, and be of one stream, which allows
// atomic batches, rollups and TTLs; they are MarksMax at most. Beside them a message is stored on each of the subjects said, which has
// this number and is there for longer than all of these marks.
func (m *Marks) Put(ctx context.Context, nc *nats.Conn, all []Place, said map[string]int) error {
	msgs := make([]Msg, 0, len(all)+len(said))
	now, kept := time.Now(), time.Duration(0)
	if m.full(now) {
		return errManyMarks
	}
	for _, p := range all {
		kept = m.kept(now)
		msgs = append(msgs, Msg{Subject: p.Subject}.InPlace(kept).Over(p.Seq))
	}
	ttl := strconv.FormatInt(int64((kept+MarkedLonger)/time.Second), 10)
	for subject, n := range said {
		msgs = append(msgs, Msg{Subject: subject, Data: strconv.AppendInt(nil, int64(n), 10), Header: nats.Header{jetstream.MsgTTLHeader: []string{ttl}}})
	}
	_, err := AppendAtomic(ctx, nc, msgs)
	return err
}

// full tells whether the marks of this writer stay for long.
func (m *Marks) full(now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last.Sub(now) >= markedAhead
}

// kept is for how long the next mark stays.
func (m *Marks) kept(now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last = m.last.Add(markEvery)
	if soonest := now.Add(markKept); m.last.Before(soonest) {
		m.last = soonest
	}
	return m.last.Sub(now)
}

// IsMark tells whether r lies in place of a message that was deleted, in a stream whose other messages have data.
func (r *Record) IsMark() bool { return len(r.Data) == 0 }
