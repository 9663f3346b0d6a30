package natshistory

import (
	"context"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/shared/quarantine"
)

// Quarantine implements partition.Quarantine.
func (c Config) Quarantine(ctx context.Context, item partition.Quarantined) error {
	ctx, cancel := context.WithTimeout(ctx, appendTimeout)
	defer cancel()
	q := &logv1.Quarantined{Service: "history", Partition: int32(c.Partition), Reason: item.Reason, Data: item.Data}
	if item.Unreadable {
		q.Kind = logv1.QuarantineKind_QUARANTINE_KIND_UNREADABLE
		q.OriginStream, q.OriginSubject, q.OriginSeq = topology.HistoryStream(c.Partition), item.Subject, item.Seq
	} else {
		q.Kind, q.TargetSubject, q.TtlS = logv1.QuarantineKind_QUARANTINE_KIND_UNWRITABLE, item.Subject, item.KeepS
	}
	return quarantine.Put(ctx, c.NATS, q)
}
