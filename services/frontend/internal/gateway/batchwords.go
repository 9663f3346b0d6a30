package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/batchmembers"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
)

// Tasks of a batch are stored together with the word on how many tasks the batch has in that partition, over the word that was read (decision 0047). So the
// log counts them, and takes none behind a word that closes the batch. This guards a repeat, too: it reads the word first and looks for its tasks then, so
// what was sent before is either found, or refused once the repeat has written. So does a first try, which may come after its repeat, where the word says
// that repeats were stored since the request was made; stored again, its tasks would be counted twice, and the batch would never be over.

// batchWord is a word on the members of a batch in a partition.
type batchWord struct {
	batchAt
	// made is when the batch was created, Unix ms.
	made int64
	// seq is where the word lies that this one is over, 0 = there is none; tasks is what it counts, more are those that are being stored.
	seq         uint64
	tasks, more int64
	// repeated is when those of a repeat were last stored with it, Unix ms, later each time: 1 = never, 0 = not known.
	repeated int64
	// again: some that are being stored are of a repeat.
	again bool
}

// errMayBeCounted: a repeat of it may have been stored, so it is to be looked for.
var errMayBeCounted = errors.New("its tasks may be members already")

// mayCount tells whether a repeat of a part may be counted in the word: not one that it was looked for behind.
func (w *batchWord) mayCount(pt *part) bool {
	switch {
	case !pt.hasID || w.seq == 0 || pt.word != nil || pt.unique(): // one with a word of its own was looked for behind it, and keys guard what has them
		return false
	case w.repeated == 0:
		return true
	}
	made := pt.at.Add(-aheadMax - clocksApart) // by the client's clock
	return pt.looked < w.repeated && made.UnixMilli() <= w.repeated
}

// count takes in that tasks of a part are stored with it.
func (w *batchWord) count(pt *part) {
	w.more += int64(pt.tasks())
	if pt.repeats() && !w.again || w.repeated == 0 {
		w.again, w.repeated = pt.repeats(), max(time.Now().UnixMilli(), w.repeated+1)
	}
}

// batchAt is a batch in a partition.
type batchAt struct {
	partition  int
	domain, id string
}

const (
	// wordsKnown bounds the words that are remembered.
	wordsKnown = 4096
	// wordTries is how often a flush is tried again since others have stored tasks of the same batch.
	wordTries = 16
)

// batch is the batch of the tasks of s; "" = none.
func (s *submission) batch() string { return s.accepted.Records[0].BatchId }

func (pt *part) batchAt() batchAt { return batchAt{pt.partition, pt.call.Domain, pt.batch()} }

// batchHome reads a batch; nil = there is none. Seq is where it lies.
func (g *Gateway) batchHome(ctx context.Context, domain, id string) (home *logv1.BatchHome, seq uint64, err error) {
	p := topology.BatchPartition(domain, id, g.Partitioning)
	m, err := g.History.LastFor(ctx, p, topology.BatchHome(p, domain, id))
	if err != nil {
		return nil, 0, fault.New(fault.Unavailable, "the log does not answer: %v", err).After(awayRetryAfter)
	}
	if m == nil {
		return nil, 0, nil
	}
	home = &logv1.BatchHome{}
	if err := home.UnmarshalVT(m.Data); err != nil {
		return nil, 0, fault.New(fault.Internal, "message %d of partition %d is no batch: %v", m.Seq, p, err)
	}
	if err := logversion.Check(home.LogVersion); err != nil {
		return nil, 0, fault.New(fault.Internal, "message %d of partition %d: %v", m.Seq, p, err)
	}
	return home, m.Seq, nil
}

// batchMembers reads the word on the members of a batch in partition p; seq is where it lies, 0 = there is none.
func batchMembers(ctx context.Context, log Log, k batchmembers.Key) (said *logv1.BatchMembers, seq uint64, err error) {
	said, seq, err = batchmembers.Read(ctx, log, k)
	switch {
	case errors.Is(err, batchmembers.ErrUnreadable):
		err = fault.New(fault.Internal, "%v", err)
	case err != nil:
		err = fault.New(fault.Unavailable, "the log does not answer: %v", err).After(awayRetryAfter)
	}
	return said, seq, err
}

// wordOf reads the word on the members of a batch. Refused is why the batch takes no more; never tells that what is not stored by now never will be.
func (g *Gateway) wordOf(ctx context.Context, at batchAt) (word batchWord, refused *fault.Error, never bool, err error) {
	const path = "/tasks/0/batch_id"
	home, _, err := g.batchHome(ctx, at.domain, at.id)
	switch {
	case err != nil:
		return word, nil, false, err
	case home == nil:
		return word, fault.At(fault.NotFound, path, "there is no batch %q: make it with batches.create", at.id), true, nil
	case home.EndedAtMs != 0:
		return word, fault.At(fault.FailedPrecondition, path, "the batch %q is over", at.id), true, nil
	}
	said, seq, err := batchMembers(ctx, g.History, batchmembers.Key{Partition: at.partition, Domain: at.domain, ID: at.id, Made: home.CreatedAtMs})
	if err != nil {
		return word, nil, false, err
	}
	if said.Closed || home.ClosedAtMs != 0 {
		return word, fault.At(fault.FailedPrecondition, path, "the batch %q is closed", at.id), said.Closed, nil
	}
	word = batchWord{batchAt: at, made: home.CreatedAtMs, seq: seq, tasks: said.Tasks, repeated: said.RepeatedAtMs}
	if seq == 0 {
		word.repeated = 1
	}
	return word, nil, false, nil
}

// readWord reads the word that the tasks of a part are to be stored over, if they are of a batch. Refused is why they are not.
func (g *Gateway) readWord(ctx context.Context, pt *part) (refused error, err error) {
	if pt.batch() == "" {
		return nil, nil
	}
	word, why, never, err := g.wordOf(ctx, pt.batchAt())
	if err != nil {
		return nil, err
	}
	if why != nil {
		if never {
			pt.fenced, pt.certain = true, true
		}
		return why, nil
	}
	pt.word = &word
	return nil, nil
}

// storeAll stores parts of one domain together, and tells each how that went: natslog.ErrWrongLast is about a key, or the word that the part itself
// has read.
func (a *appender) storeAll(ctx context.Context, parts []*part, tell func(pt *part, err error)) {
	fresh := false
	for range wordTries {
		ready, words := a.gather(ctx, parts, fresh, tell)
		if len(ready) == 0 {
			return
		}
		parts = ready
		err := a.storeTogether(ctx, parts, words)
		pinned := slices.ContainsFunc(parts, func(pt *part) bool { return pt.word != nil })
		if !errors.Is(err, natslog.ErrWrongLast) || len(words) == 0 || pinned || !a.wordsMoved(ctx, parts, words) {
			for _, pt := range parts {
				tell(pt, err)
			}
			return
		}
		fresh = true
	}
	for _, pt := range parts {
		tell(pt, fmt.Errorf("%w: too many tasks of the batch are stored at once", natslog.ErrNotStored))
	}
}

// gather finds the words for parts, and tells those whose batch takes no more, and those that are to be looked for.
func (a *appender) gather(ctx context.Context, parts []*part, fresh bool, tell func(*part, error)) (ready []*part, words []*batchWord) {
	found := make(map[batchAt]*batchWord)
	refused := make(map[batchAt]error)
	for _, pt := range parts {
		at := pt.batchAt()
		if at.id == "" {
			ready = append(ready, pt)
			continue
		}
		if found[at] == nil && refused[at] == nil {
			word, err := a.word(ctx, pt, fresh)
			if err != nil {
				refused[at] = err
			} else {
				found[at] = &word
			}
		}
		switch word := found[at]; {
		case refused[at] != nil:
			tell(pt, refused[at])
		case word.mayCount(pt):
			tell(pt, errMayBeCounted)
		default:
			ready = append(ready, pt)
		}
	}
	for _, pt := range ready {
		word := found[pt.batchAt()]
		if word == nil {
			continue
		}
		if word.more == 0 {
			words = append(words, word)
		}
		word.count(pt)
		for _, r := range pt.accepted.Records {
			r.BatchMadeMs = word.made
		}
	}
	return ready, words
}

// word is the word that the tasks of a part go over: its own, the last one that is known, or that of the log.
func (a *appender) word(ctx context.Context, pt *part, fresh bool) (batchWord, error) {
	if pt.word != nil {
		word := *pt.word
		return word, nil
	}
	at := pt.batchAt()
	if !fresh {
		a.mu.Lock()
		known, ok := a.words[at]
		a.mu.Unlock()
		if ok {
			return known, nil
		}
	}
	word, refused, _, err := a.g.wordOf(ctx, at)
	if refused != nil {
		return word, refused
	}
	if err != nil {
		return word, fmt.Errorf("%w: %v", natslog.ErrNotStored, err) // no fault: it is tried again
	}
	return word, nil
}

// wordsMoved tells whether one of the words is not the last one any more. Without keys nothing else can be.
func (a *appender) wordsMoved(ctx context.Context, parts []*part, words []*batchWord) bool {
	if !slices.ContainsFunc(parts, func(pt *part) bool { return pt.unique() }) {
		return true
	}
	return slices.ContainsFunc(words, func(w *batchWord) bool {
		_, seq, err := batchMembers(ctx, a.g.History, batchmembers.Key{Partition: w.partition, Domain: w.domain, ID: w.id, Made: w.made})
		return err == nil && seq != w.seq
	})
}

// learnWords takes in how words were stored, the first of them at a sequence.
func (a *appender) learnWords(p int, words []*batchWord, first uint64, err error) {
	if len(words) == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.words) > wordsKnown {
		clear(a.words)
	}
	for i, w := range words {
		if err != nil {
			delete(a.words, w.batchAt)
			continue
		}
		a.words[w.batchAt] = batchWord{batchAt: w.batchAt, made: w.made, seq: first + uint64(i), tasks: w.tasks + w.more, repeated: w.repeated}
	}
}

// encodeWords makes the messages that count the tasks that are stored with them.
func encodeWords(p int, words []*batchWord, version uint32) ([]natslog.Msg, error) {
	msgs := make([]natslog.Msg, len(words))
	for i, w := range words {
		data, err := (&logv1.BatchMembers{BatchId: w.id, LogVersion: version, Tasks: w.tasks + w.more, RepeatedAtMs: w.repeated}).MarshalVT()
		if err != nil {
			return nil, err
		}
		msgs[i] = natslog.Msg{Subject: topology.BatchMembers(p, w.domain, w.id, w.made), Data: data}.InPlace(topology.BatchLifeMax).Over(w.seq)
	}
	return msgs, nil
}
