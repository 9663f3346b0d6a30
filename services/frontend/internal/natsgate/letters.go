package natsgate

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/natslog"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/gateway"
)

// Letters are the dead letters on JetStream (gateway.Letters).
type Letters struct {
	js     jetstream.JetStream
	direct *natslog.Direct
	// logVersion is what the cluster writes.
	logVersion func() uint32
	marks      natslog.Marks
}

// NewLetters makes the port on a connection, for a cluster that writes a log version. Who made it closes it.
func NewLetters(js jetstream.JetStream, logVersion func() uint32) (*Letters, error) {
	direct, err := natslog.NewDirect(js)
	if err != nil {
		return nil, err
	}
	return &Letters{js: js, direct: direct, logVersion: logVersion}, nil
}

// Close ends what it listens to.
func (l *Letters) Close() { l.direct.Close() }

// Last is the sequence of the last letter that was ever stored.
func (l *Letters) Last(ctx context.Context) (uint64, error) {
	last, err := natslog.LastSeq(ctx, l.js, topology.DeadLetterStream)
	return last, unread(err)
}

// Page reads the letters of a domain, or of one tasklist of it, behind a sequence, and the marks in place of those that are gone.
func (l *Letters) Page(ctx context.Context, domain, tasklist string, after uint64, limit, bytesMax int) (page []gateway.Letter, more bool, err error) {
	filter := topology.DeadFilter(domain)
	if tasklist != "" {
		filter = topology.DeadOfTasklist(domain, tasklist)
	}
	answers, err := l.direct.Get(ctx, topology.DeadLetterStream, []natslog.Query{{Seq: after + 1, NextFor: filter, Batch: limit, BytesMax: bytesMax}})
	if err != nil {
		return nil, false, unread(err)
	}
	for _, r := range answers[0].Records {
		if r.IsMark() {
			page = append(page, gateway.Letter{Seq: r.Seq})
			continue
		}
		task, err := letterOf(r.Data)
		if err != nil {
			return nil, false, err
		}
		page = append(page, gateway.Letter{Seq: r.Seq, Record: brief(task)})
	}
	return page, answers[0].More, nil
}

// Find reads the letters of tasks, as the stream's leader has them; nil where there is none.
func (l *Letters) Find(ctx context.Context, domain string, wanted []ids.TaskID) ([]*gateway.Letter, error) {
	found := make([]*gateway.Letter, len(wanted))
	err := parallel(len(wanted), func(i int) (err error) {
		if found[i], err = l.Get(ctx, domain, wanted[i]); found[i] != nil {
			found[i].Record = brief(found[i].Record)
		}
		return err
	})
	return found, err
}

// Get reads one, as the stream's leader has it.
func (l *Letters) Get(ctx context.Context, domain string, id ids.TaskID) (*gateway.Letter, error) {
	r, err := natslog.LastForSubject(ctx, l.js, topology.DeadLetterStream, topology.DeadOf(domain, id))
	if err != nil || r == nil || r.IsMark() {
		return nil, unread(err)
	}
	task, err := letterOf(r.Data)
	if err != nil {
		return nil, err
	}
	return &gateway.Letter{Seq: r.Seq, Record: task}, nil
}

// brief leaves out what only Get tells of: a request may be about many, and many requests are under way.
func brief(r *logv1.Record) *logv1.Record {
	r.Payload, r.Steps = nil, nil
	return r
}

// Delete deletes letters, and what may be left of earlier ones of the same tasks; nil ones are passed over. Many go in one atomic batch, with a mark in place of
// each; where one of them is not the last of its subject, or the stream takes no marks, each is purged for itself.
func (l *Letters) Delete(ctx context.Context, domain string, letters []*gateway.Letter) (deleted int64, err error) {
	var all []natslog.Place
	for _, one := range letters {
		if one != nil {
			all = append(all, natslog.Place{Subject: topology.Dead(one.Record.Domain, one.Record.Tasklist, ids.TaskID(one.Record.Id)), Seq: one.Seq})
		}
	}
	for some := range slices.Chunk(all, natslog.MarksMax) {
		n, err := l.delete(ctx, domain, some)
		if deleted += n; err != nil {
			return deleted, unread(err)
		}
	}
	return deleted, nil
}

// delete deletes letters of a domain.
func (l *Letters) delete(ctx context.Context, domain string, all []natslog.Place) (deleted int64, err error) {
	if len(all) >= natslog.MarksMin && l.logVersion() >= logversion.LetterMarks {
		err := l.marks.Put(ctx, l.js.Conn(), all, topology.DeadMarked(domain))
		switch {
		case err == nil:
			return int64(len(all)), nil
		case errors.Is(err, natslog.ErrOutcomeUnknown):
			return 0, err
		}
	}
	stream, err := l.js.Stream(ctx, topology.DeadLetterStream)
	if err != nil {
		return 0, err
	}
	var done atomic.Int64
	err = parallel(len(all), func(i int) error {
		err := stream.Purge(ctx, jetstream.WithPurgeSubject(all[i].Subject), jetstream.WithPurgeSequence(all[i].Seq+1))
		if err == nil {
			done.Add(1)
		}
		return err
	})
	return done.Load(), err
}

// letterOf is the task of a dead letter: a batch of one.
func letterOf(data []byte) (*logv1.Record, error) {
	var b logv1.Batch
	if err := b.UnmarshalVT(data); err != nil {
		return nil, fault.New(fault.Internal, "a dead letter cannot be read: %v", err)
	}
	if len(b.Tasks) != 1 {
		return nil, fault.New(fault.Internal, "a dead letter holds %d tasks", len(b.Tasks))
	}
	if _, err := ids.TaskIDFromBytes(b.Tasks[0].Id); err != nil {
		return nil, fault.New(fault.Internal, "a dead letter cannot be read: %v", err)
	}
	return b.Tasks[0], nil
}

func unread(err error) error {
	if err == nil {
		return nil
	}
	return fault.New(fault.Unavailable, "the store of dead letters does not answer: %v", err)
}

// parallelMax is how many calls about single letters of a request are under way at a time.
const parallelMax = 16

// parallel does n things, some at a time, and returns the first failure.
func parallel(n int, do func(i int) error) error {
	errs := make([]error, n)
	slots := make(chan struct{}, parallelMax)
	var all sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		all.Go(func() {
			errs[i] = do(i)
			<-slots
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
