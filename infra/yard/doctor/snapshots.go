package doctor

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
)

// snapshot takes the snapshot that the checkpoint of a partition names. An owner that saves the next one meanwhile deletes this one; then the next
// look takes another one.
func (s source) snapshot(ctx context.Context, p *pass) error {
	ref := p.cp.GetSnapshot()
	if ref == nil {
		return nil
	}
	stream, size, digest := topology.SnapshotStream(p.partition), int64(0), sha256.New()
	bad := func(format string, args ...any) error {
		if p.part.at == 0 { // one part of a partition that is read in several is enough
			p.report(Finding{Code: SnapshotMissing, Where: fmt.Sprintf("%s %d-%d", stream, ref.Epoch, ref.Seq), What: fmt.Sprintf(format, args...)})
		}
		return nil
	}
	for i := range int(ref.Chunks) {
		r, err := natslog.LastForSubject(ctx, s.js, stream, topology.Snapshot(p.partition, ref.Epoch, ref.Seq, i))
		if err != nil {
			return fmt.Errorf("the snapshot of partition %d: %w", p.partition, err)
		}
		if r == nil {
			return bad("chunk %d of %d is not stored", i, ref.Chunks)
		}
		size += int64(len(r.Data))
		digest.Write(r.Data)
		if err := p.snapshot(*r); err != nil {
			return err
		}
	}
	if size != ref.Bytes || !bytes.Equal(digest.Sum(nil), ref.Digest) {
		return bad("it has %d bytes, of %d, and they differ from those that were saved", size, ref.Bytes)
	}
	return nil
}

// snapshot takes a chunk of the snapshot.
func (p *pass) snapshot(r natslog.Record) error {
	stream := topology.SnapshotStream(p.partition)
	var c logv1.SnapshotChunk
	if !p.decode(stream, r, &c) {
		return nil
	}
	if c.Head != nil {
		p.head = c.Head
	}
	for _, t := range c.Tasks {
		if id, ok := p.taskID(stream, r.Seq, t.Task.GetId()); ok {
			p.task(id, t.Task.GetDomain()).inSnapshot = true
		}
	}
	return p.full()
}
