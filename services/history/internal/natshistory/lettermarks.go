package natshistory

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
)

// DropDead implements partition.Archive. Many letters go in one atomic batch, with a mark in place of each; where one of them is not the last of its subject, or the
// stream takes no marks, each is purged for itself. Both name the subject, so that no sequence, wherever it comes from, deletes another task's letter.
func (a *Archive) DropDead(ctx context.Context, letters []replica.Letter) error {
	ctx, cancel := context.WithTimeout(ctx, appendTimeout)
	defer cancel()
	for some := range slices.Chunk(letters, natslog.MarksMax) {
		err := a.mark(ctx, some)
		if err != nil && !errors.Is(err, natslog.ErrOutcomeUnknown) {
			err = dropLetters(ctx, a.cfg.JetStream, some)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

var errNoMarks = errors.New("they are few, or members of the cluster do not know marks")

// mark stores marks in place of letters, of all of them or of none.
func (a *Archive) mark(ctx context.Context, letters []replica.Letter) error {
	if len(letters) < natslog.MarksMin || a.cfg.LogVersion == nil || a.cfg.LogVersion() < logversion.LetterMarks {
		return errNoMarks
	}
	var all []natslog.Place
	said := map[string]int{}
	for _, l := range letters {
		all = append(all, natslog.Place{Subject: topology.Dead(l.Domain, l.Tasklist, l.ID), Seq: l.Seq})
		said[topology.DeadMarked(l.Domain)]++
	}
	return a.marks.Put(ctx, a.cfg.NATS, all, said)
}

// saidMax is how much of what is said of the marks of a domain is read.
const saidMax = 10_000

// marked is how many marks a domain has at most; it is not sure if there may be more. They were said before they could be read.
func (r *Reader) marked(ctx context.Context, domain string) (n uint64, sure bool, err error) {
	subject := topology.DeadMarked(domain)
	last, err := natslog.LastForSubject(ctx, r.cfg.JetStream, topology.DeadLetterStream, subject)
	if err != nil || last == nil {
		return 0, err == nil, err
	}
	answers, err := r.direct.Get(ctx, topology.DeadLetterStream, []natslog.Query{{Seq: 1, NextFor: subject, Batch: saidMax}})
	if err != nil {
		return 0, false, err
	}
	for i := range answers[0].Records {
		some, err := strconv.ParseUint(string(answers[0].Records[i].Data), 10, 63)
		if err != nil {
			return 0, false, nil
		}
		n += some
		sure = answers[0].Records[i].Seq >= last.Seq // else a follower has answered that lags
	}
	return n, sure && !answers[0].More, nil
}

// sureAfter is for how long after it was connected a reader is not sure: a server that was away removes what has run out meanwhile one by one, in any order, and so what
// is said of marks before the marks.
const sureAfter = 15 * time.Minute

// certainty tells whether what is said of marks is said of all. Young is for how long it is said of each at least.
type certainty struct {
	young time.Duration

	mu         sync.Mutex
	reconnects uint64
	since      time.Time
}

// all is asked with how often the reader's connection was made again, and with the time of the oldest letter or mark that was counted.
func (s *certainty) all(reconnects uint64, oldest, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reconnects != reconnects {
		s.reconnects, s.since = reconnects, now
	}
	return now.Sub(oldest) < s.young || now.Sub(s.since) >= sureAfter
}
