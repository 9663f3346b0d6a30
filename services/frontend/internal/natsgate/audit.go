package natsgate

import (
	"context"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
)

// Audit is the list of what operators did, on JetStream (audit.Store).
type Audit struct {
	*Reader
	nc *nats.Conn
}

// NewAudit makes the port on a connection.
func NewAudit(nc *nats.Conn, r *Reader) Audit { return Audit{r, nc} }

// Append stores one entry of a domain.
func (a Audit) Append(ctx context.Context, domain string, data []byte) error {
	_, _, err := natslog.Append(ctx, a.nc, natslog.Msg{Subject: topology.Audit(domain), Data: data})
	return err
}

// auditBytes is up to how many bytes are read at a time.
const auditBytes = 256 << 10

// Last reads what is stored of a domain, oldest first.
func (a Audit) Last(ctx context.Context, domain string) (all [][]byte, err error) {
	next := natslog.Query{Seq: 1, NextFor: topology.Audit(domain), Batch: topology.AuditEntries, BytesMax: auditBytes}
	for more := true; more; {
		answers, err := a.direct.Get(ctx, topology.AuditStream, []natslog.Query{next})
		if err != nil {
			return nil, err
		}
		for _, r := range answers[0].Records {
			all, next.Seq = append(all, r.Data), r.Seq+1
		}
		more = answers[0].More && len(answers[0].Records) > 0
	}
	return all, nil
}
