package natstimer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/due"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/firing"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/quarantine"
)

// Store is the stream of waiting tasks of one partition. It implements
// firing.Store and firing.Pruner.
type Store struct {
	js     jetstream.JetStream
	stream jetstream.Stream
	p      int
	log    *slog.Logger
}

// OpenStore finds the stream of partition p.
func OpenStore(ctx context.Context, js jetstream.JetStream, p int, log *slog.Logger) (*Store, error) {
	stream, err := js.Stream(ctx, topology.TimerStream(p))
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", topology.TimerStream(p), err)
	}
	return &Store{js: js, stream: stream, p: p, log: log}, nil
}

// Last implements firing.Store.
func (s *Store) Last(ctx context.Context) (uint64, error) {
	return natslog.LastSeq(ctx, s.js, topology.TimerStream(s.p))
}

// ReadRange implements firing.Store.
func (s *Store) ReadRange(ctx context.Context, from, upTo uint64, handle func(firing.Stored) error) error {
	if upTo < from { // and not "to the end", which 0 would mean
		return nil
	}
	return natslog.ReadRange(ctx, s.js, s.readFrom(from), upTo, s.pass(ctx, handle))
}

// ReadBuckets implements firing.Store.
func (s *Store) ReadBuckets(ctx context.Context, buckets []int64, from, upTo uint64, handle func(firing.Stored) error) error {
	return s.readBuckets(ctx, s.readFrom(from), buckets, upTo, handle)
}

func (s *Store) readBuckets(ctx context.Context, what natslog.ReadConfig, buckets []int64, upTo uint64, handle func(firing.Stored) error) error {
	if upTo < what.StartSeq {
		return nil
	}
	for _, b := range buckets {
		what.Filters = append(what.Filters, topology.Timer(s.p, b))
	}
	return natslog.ReadRange(ctx, s.js, what, upTo, s.pass(ctx, handle))
}

// Buckets implements firing.Store.
func (s *Store) Buckets(ctx context.Context, upTo uint64) (all []int64, ok bool, err error) {
	subjects, last, err := natslog.Subjects(ctx, s.js, topology.TimerStream(s.p), topology.TimerAny(s.p))
	for _, subject := range subjects {
		if bucket, isBucket := topology.TimerBucketOf(subject); isBucket {
			all = append(all, bucket)
		}
	}
	return all, len(subjects) < natslog.SubjectsMost && last >= upTo, err
}

// ReadFirst implements firing.Store.
func (s *Store) ReadFirst(ctx context.Context, buckets []int64, upTo uint64, handle func(firing.Stored) error) error {
	what := s.readFrom(1)
	what.Filters = []string{topology.TimerFence(s.p)}
	return s.readBuckets(ctx, what, buckets, upTo, handle)
}

// Read implements firing.Store.
func (s *Store) Read(ctx context.Context, from uint64, handle func(firing.Stored) error) error {
	return natslog.Read(ctx, s.js, s.readFrom(from), s.pass(ctx, handle))
}

func (s *Store) readFrom(seq uint64) natslog.ReadConfig {
	return natslog.ReadConfig{Stream: topology.TimerStream(s.p), StartSeq: seq, Log: s.log}
}

// pass hands on what lies in a bucket, and fences. The stream is meant to have
// nothing else; what it has goes into quarantine.
func (s *Store) pass(ctx context.Context, handle func(firing.Stored) error) func(natslog.Record) error {
	return func(r natslog.Record) error {
		bucket, ok := topology.TimerBucketOf(r.Subject)
		fence := r.Subject == topology.TimerFence(s.p)
		if !ok && !fence {
			s.log.Error("a message of the timer store has no bucket and was put into quarantine", "sequence", r.Seq, "subject", r.Subject)
			return s.setApart(ctx, r.Subject, r.Seq, r.Data, "its subject is no bucket of the timer store")
		}
		return handle(firing.Stored{Seq: r.Seq, AtMS: r.Time.UnixMilli(), Bucket: bucket, Fence: fence, Data: r.Data})
	}
}

// SetApart puts a message of a bucket, or of the fences, into quarantine, whole.
func (s *Store) SetApart(ctx context.Context, m firing.Stored, reason string) error {
	return s.setApart(ctx, s.subject(m.Bucket, m.Fence), m.Seq, m.Data, reason)
}

// setApartTimeout bounds one try: a stream of a cluster does not answer while it has no leader.
const setApartTimeout = 5 * time.Second

func (s *Store) setApart(ctx context.Context, subject string, seq uint64, data []byte, reason string) error {
	ctx, cancel := context.WithTimeout(ctx, setApartTimeout)
	defer cancel()
	return quarantine.Put(ctx, s.js.Conn(), &logv1.Quarantined{
		Kind: logv1.QuarantineKind_QUARANTINE_KIND_UNREADABLE, Service: "timer", Partition: int32(s.p), Reason: reason,
		OriginStream: topology.TimerStream(s.p), OriginSubject: subject, OriginSeq: seq, Data: data,
	})
}

// Get implements firing.Store. Any replica may answer; that a message is gone is
// believed only to the leader, since a replica may lag.
func (s *Store) Get(ctx context.Context, seq uint64) ([]byte, error) {
	msg, err := s.stream.GetMsg(ctx, seq)
	if err == nil {
		return msg.Data, nil
	}
	if !errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, fmt.Errorf("get message %d: %w", seq, err)
	}
	r, err := natslog.Get(ctx, s.js, topology.TimerStream(s.p), seq)
	if err != nil {
		return nil, err
	}
	if r == nil {
		return nil, fmt.Errorf("get message %d: %w", seq, firing.ErrGone)
	}
	return r.Data, nil
}

// subject is where the messages of a bucket lie, or the fences.
func (s *Store) subject(bucket int64, fence bool) string {
	if fence {
		return topology.TimerFence(s.p)
	}
	return topology.Timer(s.p, bucket)
}

// Early implements firing.Pruner.
func (s *Store) Early(ctx context.Context, bucket int64, data []byte) error {
	_, _, err := natslog.Append(ctx, s.js.Conn(), natslog.Msg{Subject: topology.Timer(s.p, bucket), Data: data})
	return err
}

// Purge implements firing.Pruner.
func (s *Store) Purge(ctx context.Context, p due.Purge) error {
	subject := s.subject(p.Bucket, p.Fences)
	// The server keeps the message at the sequence given.
	err := s.stream.Purge(ctx, jetstream.WithPurgeSubject(subject), jetstream.WithPurgeSequence(p.UpTo+1))
	if err != nil {
		return fmt.Errorf("purge %s: %w", subject, err)
	}
	return nil
}

// translate puts natslog's sentinels into the words of the port.
func translate(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, natslog.ErrWrongLast):
		return fmt.Errorf("%w: %w", firing.ErrOvertaken, err)
	case errors.Is(err, natslog.ErrNotStored):
		return err
	}
	return fmt.Errorf("%w: %w", firing.ErrOutcomeUnknown, err)
}
