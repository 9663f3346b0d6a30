package natshistory

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/archive"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
)

const (
	// chunkBytes is how much one write holds at most; a File of more is several.
	chunkBytes = 4 << 20
	// headerRoom is what a message needs beside its tasks.
	headerRoom = 1 << 10
	// pipelined is up to how many messages go one by one instead of as one atomic batch, whose fixed cost is that of
	// about ten.
	pipelined = 8
	// batchMsgs is how many go in one atomic batch.
	batchMsgs = natslog.BatchMsgsMax - 100
)

// Archive files finished tasks. It is not safe for concurrent use: one write is under way at a time, and each names the
// archive's last sequence, so that a rival, or a write whose answer was lost, is noticed.
type Archive struct {
	cfg       Config
	retention func(t *taskstate.Task) time.Duration
	enc       record.Encoder
	tail      archive.Tail
	// indexAfter is how much may be filed before the index follows.
	indexAfter archive.Bounds
	at         uint64 // up to where tail is known
	known      bool
}

// NewArchive makes the writer. retention is for how long a finished task is kept.
func NewArchive(c Config, retention func(t *taskstate.Task) time.Duration) *Archive {
	return &Archive{cfg: c, retention: retention, indexAfter: archive.IndexAfter}
}

// Last implements partition.Archive.
func (a *Archive) Last(ctx context.Context) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, appendTimeout)
	defer cancel()
	return natslog.LastSeq(ctx, a.cfg.JetStream, topology.ArchiveStream(a.cfg.Partition))
}

// Tail implements partition.Archive.
func (a *Archive) Tail(ctx context.Context, after uint64, handle func([]replica.Stay) error) error {
	cfg := a.tasksAfter(after)
	return natslog.ReadAll(ctx, a.cfg.JetStream, cfg, func(r natslog.Record) error {
		all, err := record.Stays(r.Data)
		if err != nil {
			return fmt.Errorf("message %d of the archive: %w", r.Seq, err)
		}
		return handle(all)
	})
}

func (a *Archive) tasksAfter(seq uint64) natslog.ReadConfig {
	return natslog.ReadConfig{
		Stream: topology.ArchiveStream(a.cfg.Partition), StartSeq: seq + 1, Log: a.cfg.Log,
		Filters: []string{topology.ArchiveTasks(a.cfg.Partition)}, PrefetchBytes: prefetchBytes,
	}
}

// File implements partition.Archive.
func (a *Archive) File(ctx context.Context, tasks []*taskstate.Task, last uint64) (uint64, error) {
	if !a.known || a.at != last {
		if err := a.load(ctx, last); err != nil {
			return last, err
		}
	}
	for len(tasks) > 0 {
		n, err := a.fileSome(ctx, tasks, last)
		if mayBeBad(err) {
			err = a.singleOut(ctx, tasks[:n], last)
		}
		if err != nil {
			a.known = false
			return last, err
		}
		tasks, last = tasks[n:], a.at
	}
	return last, nil
}

// load reads what is filed and not in the index yet, up to sequence upTo.
func (a *Archive) load(ctx context.Context, upTo uint64) error {
	a.known, a.tail = false, archive.Tail{}
	stream := topology.ArchiveStream(a.cfg.Partition)
	mark, err := natslog.LastForSubject(ctx, a.cfg.JetStream, stream, topology.ArchiveIndexed(a.cfg.Partition))
	if err != nil {
		return err
	}
	if mark == nil {
		mark = &natslog.Record{}
	}
	if mark.Seq < upTo {
		err = natslog.ReadRange(ctx, a.cfg.JetStream, a.tasksAfter(mark.Seq), upTo, func(r natslog.Record) error {
			all, err := record.Filed(r.Data)
			if err != nil {
				return fmt.Errorf("message %d of the archive: %w", r.Seq, err)
			}
			a.tail.Add(r.Seq, all, retentionOf(r.Header), len(r.Data))
			return nil
		})
		if err != nil {
			return err
		}
	}
	a.known, a.at = true, upTo
	return nil
}

// fileSome stores the first n tasks, and the index if it is due. N is returned after an error of the store too.
func (a *Archive) fileSome(ctx context.Context, tasks []*taskstate.Task, last uint64) (n int, err error) {
	n, encoded, err := a.encode(tasks)
	if err != nil {
		return 0, err
	}
	msgs, parts := a.share(tasks[:n], encoded)
	for i, m := range parts {
		inside := make([]archive.Filed, len(m.Items))
		for k, item := range m.Items {
			inside[k] = archive.Filed{ID: tasks[item].ID, Domain: tasks[item].Domain}
		}
		a.tail.Add(last+uint64(i)+1, inside, m.RetentionS, m.Bytes)
	}
	due := a.tail.Exceeds(a.indexAfter)
	if due {
		if msgs, err = a.appendIndex(msgs); err != nil {
			return 0, err
		}
		a.tail = archive.Tail{}
	}
	a.at, err = a.append(ctx, msgs, last, due)
	return n, err
}

// share puts tasks into messages.
func (a *Archive) share(tasks []*taskstate.Task, encoded [][]byte) ([]natslog.Msg, []archive.Message) {
	items := make([]archive.Item, len(tasks))
	for i, t := range tasks {
		items[i] = archive.Item{Domain: t.Domain, RetentionS: a.retentionS(t), Bytes: len(encoded[i])}
	}
	parts := archive.Share(items)
	msgs := make([]natslog.Msg, len(parts), len(parts)+8)
	for i, m := range parts {
		msg := natslog.Msg{Subject: topology.ArchiveShared(a.cfg.Partition, m.RetentionS), Data: make([]byte, 0, m.Bytes), Header: ttl(m.RetentionS)}
		if m.Domain != "" {
			msg.Subject = topology.ArchiveOf(a.cfg.Partition, m.Domain)
		}
		for _, item := range m.Items {
			msg.Data = append(msg.Data, encoded[item]...)
		}
		msgs[i] = msg
	}
	return msgs, parts
}

// retentionS is for how long a finished task is kept, in seconds.
func (a *Archive) retentionS(t *taskstate.Task) int64 {
	return max(1, int64(a.retention(t)/time.Second))
}

// encode encodes tasks, up to a chunk.
func (a *Archive) encode(tasks []*taskstate.Task) (n int, encoded [][]byte, err error) {
	limit := int(a.cfg.NATS.MaxPayload()) - headerRoom
	buf := make([]byte, 0, min(chunkBytes, len(tasks)*512))
	encoded = make([][]byte, 0, len(tasks))
	for total := 0; n < len(tasks) && total < chunkBytes; n++ {
		from := len(buf)
		buf = a.enc.AppendTask(buf, tasks[n])
		one := buf[from:len(buf):len(buf)] // stays where it is if buf moves on
		if len(one) > limit {
			return 0, nil, tooLarge(tasks[n], a.retentionS(tasks[n]), len(one), limit)
		}
		total += len(one)
		encoded = append(encoded, one)
	}
	return n, encoded, nil
}

// appendIndex adds the pages of the tail, and the mark that says so. The mark expires with the last of the tasks before
// it.
func (a *Archive) appendIndex(msgs []natslog.Msg) ([]natslog.Msg, error) {
	longest := int64(0)
	for _, p := range archive.Paginate(a.tail.Entries) {
		data, err := (&logv1.ArchivePage{Base: p.Base, Fingerprints: p.Fingerprints, Offsets: p.Offsets}).MarshalVT()
		if err != nil {
			return nil, fmt.Errorf("index of the archive: %w", err)
		}
		msgs = append(msgs, natslog.Msg{Subject: topology.ArchivePage(a.cfg.Partition, p.Domain, p.Path()...), Data: data, Header: ttl(p.RetentionS)})
		longest = max(longest, p.RetentionS)
	}
	return append(msgs, natslog.Msg{Subject: topology.ArchiveIndexed(a.cfg.Partition), Header: ttl(longest)}), nil
}

// append stores messages behind last. Those with an index go all or none, so that no mark stands without its pages;
// else each stands for itself.
func (a *Archive) append(ctx context.Context, msgs []natslog.Msg, last uint64, atomic bool) (uint64, error) {
	for len(msgs) > 0 {
		part := msgs[:min(len(msgs), batchMsgs)]
		var err error
		within, cancel := context.WithTimeout(ctx, appendTimeout) // each part its own: an index may have many
		if atomic || len(part) > pipelined {
			part[0].Header[jetstream.ExpectedLastSeqHeader] = []string{strconv.FormatUint(last, 10)}
			last, err = natslog.AppendAtomic(within, a.cfg.NATS, part)
		} else {
			last, err = a.appendEach(within, part, last)
		}
		cancel()
		if errors.Is(err, natslog.ErrWrongLast) {
			return 0, partition.ErrArchiveMoved
		}
		if err != nil {
			return 0, fmt.Errorf("archive: %w", err)
		}
		msgs = msgs[len(part):]
	}
	return last, nil
}

func (a *Archive) appendEach(ctx context.Context, msgs []natslog.Msg, last uint64) (uint64, error) {
	for i := range msgs {
		msgs[i].Header[jetstream.ExpectedLastSeqHeader] = []string{strconv.FormatUint(last+uint64(i), 10)}
	}
	for _, r := range natslog.AppendEach(ctx, a.cfg.NATS, msgs) {
		if r.Err != nil {
			return 0, r.Err // the first one; those behind it are refused for it
		}
		last = r.Seq
	}
	return last, nil
}

// ttl is the header of a message that expires. It has room for what append adds.
func ttl(seconds int64) nats.Header {
	h := make(nats.Header, 2)
	h[jetstream.MsgTTLHeader] = []string{strconv.FormatInt(seconds, 10) + "s"}
	return h
}

// retentionOf is the inverse of ttl.
func retentionOf(h nats.Header) int64 {
	s, err := strconv.ParseInt(strings.TrimSuffix(h.Get(jetstream.MsgTTLHeader), "s"), 10, 64)
	if err != nil {
		return 1 // not of our making
	}
	return s
}
