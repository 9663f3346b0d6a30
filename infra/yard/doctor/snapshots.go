package doctor

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
)

// snapshot checks the snapshot that the checkpoint of a partition names. An owner that saves the next one meanwhile deletes this one; then the next
// look checks another one.
func (s source) snapshot(ctx context.Context, p *pass) error {
	ref := p.cp.GetSnapshot()
	if ref == nil || p.part.at > 0 { // one part of a partition that is read in several is enough
		return nil
	}
	stream, size, digest := topology.SnapshotStream(p.partition), int64(0), sha256.New()
	where := fmt.Sprintf("%s %d-%d", stream, ref.Epoch, ref.Seq)
	for i := range int(ref.Chunks) {
		r, err := natslog.LastForSubject(ctx, s.js, stream, topology.Snapshot(p.partition, ref.Epoch, ref.Seq, i))
		if err != nil {
			return fmt.Errorf("the snapshot of partition %d: %w", p.partition, err)
		}
		if r == nil {
			p.report(Finding{Code: SnapshotMissing, Where: where, What: fmt.Sprintf("chunk %d of %d is not stored", i, ref.Chunks)})
			return nil
		}
		size += int64(len(r.Data))
		digest.Write(r.Data)
	}
	if size != ref.Bytes || !bytes.Equal(digest.Sum(nil), ref.Digest) {
		p.report(Finding{Code: SnapshotMissing, Where: where, What: fmt.Sprintf("it has %d bytes, of %d, and they differ from those that were saved", size, ref.Bytes)})
	}
	return nil
}
