package natsgate

import (
	"context"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
)

// headerBytes is left free in each message for its headers.
const headerBytes = 4 << 10

// Reader reads what Letters, Batches and Schedules are made of.
type Reader struct {
	js     jetstream.JetStream
	direct *natslog.Direct
}

// NewReader makes a reader on a connection. The caller closes the connection.
func NewReader(js jetstream.JetStream) (*Reader, error) {
	direct, err := natslog.NewDirect(js)
	return &Reader{js: js, direct: direct}, err
}

// Close ends what it listens to.
func (r *Reader) Close() { r.direct.Close() }

// Log is the history log on JetStream (intake.HistoryLog).
type Log struct {
	nc *nats.Conn
	js jetstream.JetStream
}

// NewLog makes the port on a connection.
func NewLog(nc *nats.Conn, js jetstream.JetStream) *Log { return &Log{nc: nc, js: js} }

// Append stores one message.
func (l *Log) Append(ctx context.Context, m natslog.Msg) (seq uint64, duplicate bool, err error) {
	return natslog.Append(ctx, l.nc, m)
}

// AppendEach stores messages one after the other, each for itself.
func (l *Log) AppendEach(ctx context.Context, msgs []natslog.Msg, outcome func(i int, a natslog.Appended)) {
	if len(msgs) == 1 { // without a subscription of its own
		seq, duplicate, err := l.Append(ctx, msgs[0])
		outcome(0, natslog.Appended{Seq: seq, Duplicate: duplicate, Err: err})
		return
	}
	natslog.Pipeline(ctx, l.nc, msgs, outcome)
}

// AppendAtomic stores all messages, or none.
func (l *Log) AppendAtomic(ctx context.Context, msgs []natslog.Msg) (lastSeq uint64, err error) {
	return natslog.AppendAtomic(ctx, l.nc, msgs)
}

// LastFor reads the last message of a subject, or nil where there is none.
func (l *Log) LastFor(ctx context.Context, p int, subject string) (*natslog.Record, error) {
	return natslog.LastForSubject(ctx, l.js, topology.HistoryStream(p), subject)
}

// Message reads one message, or nil where it is gone.
func (l *Log) Message(ctx context.Context, p int, seq uint64) (*natslog.Record, error) {
	return natslog.Get(ctx, l.js, topology.HistoryStream(p), seq)
}

// MessageBytesMax is what the server takes, less what headers need.
func (l *Log) MessageBytesMax() int { return int(l.nc.MaxPayload()) - headerBytes }
