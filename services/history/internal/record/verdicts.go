package record

import (
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
)

// verdictBytesMax bounds one verdict message; more of a batch go into further ones.
const verdictBytesMax = 600 << 10

// Verdicts encodes an answer as messages that fit, each a logv1.VerdictBatch. Granted
// tasks are written straight into their message.
func (e *Encoder) Verdicts(a *replica.Answer) [][]byte {
	const fixed, verdict, granted = 64, 48, 288
	room := fixed
	begin := func(m []byte, i int) []byte {
		m = protowire.AppendTag(m, 1, protowire.VarintType) // VerdictBatch.request_id
		m = protowire.AppendVarint(m, a.RequestID)
		if first := a.First + i; first > 0 {
			m = protowire.AppendTag(m, 3, protowire.VarintType) // VerdictBatch.first
			m = protowire.AppendVarint(m, uint64(first))
		}
		return m
	}
	for i := range a.Verdicts {
		room += verdict
		if t := a.Verdicts[i].Grant.Task; t != nil {
			room += granted + len(t.Payload.Data)
		}
	}
	var out [][]byte
	m := begin(make([]byte, 0, min(verdictBytesMax, room)), 0)
	first := len(m)
	for i := range a.Verdicts {
		v := &a.Verdicts[i]
		e.polledOf(&v.Grant)
		size := e.verdictSize(v)
		if len(m) > first && len(m)+size > verdictBytesMax {
			out = append(out, m)
			m = begin(nil, i)
			first = len(m)
		}
		m = protowire.AppendTag(m, 2, protowire.BytesType) // VerdictBatch.verdicts
		m = protowire.AppendVarint(m, uint64(size))
		m = e.appendVerdict(m, v)
	}
	return append(out, m)
}

// verdictSize is the size of one EventVerdict without its tag and length.
func (e *Encoder) verdictSize(v *replica.Verdict) int {
	n := 0
	for _, length := range [...]int{len(v.Code), len(v.Message), len(v.Trace)} {
		if length > 0 {
			n += 1 + protowire.SizeBytes(length)
		}
	}
	if v.Grant.Task != nil {
		n += 1 + protowire.SizeBytes(e.polled.SizeVT())
	}
	for _, yes := range [...]bool{v.CancelRequested, v.Fenced, v.Final} {
		if yes {
			n += 2
		}
	}
	for _, x := range [...]int64{v.LeaseUntil, max(v.Grant.DeadlineAt, v.DeadlineAt), int64(v.Revision), readyAt(v)} {
		if x != 0 {
			n += 1 + protowire.SizeVarint(uint64(x))
		}
	}
	return n
}

func (e *Encoder) appendVerdict(m []byte, v *replica.Verdict) []byte {
	bytes := func(number protowire.Number, s string) {
		if s != "" {
			m = protowire.AppendString(protowire.AppendTag(m, number, protowire.BytesType), s)
		}
	}
	varint := func(number protowire.Number, x int64) {
		if x != 0 {
			m = protowire.AppendVarint(protowire.AppendTag(m, number, protowire.VarintType), uint64(x))
		}
	}
	bytes(1, string(v.Code))
	bytes(2, v.Message)
	if v.Grant.Task != nil {
		m = e.appendPolled(protowire.AppendTag(m, 3, protowire.BytesType))
	}
	bytes(4, string(v.Trace))
	if v.CancelRequested {
		varint(5, 1)
	}
	varint(6, v.LeaseUntil)
	varint(7, max(v.Grant.DeadlineAt, v.DeadlineAt))
	if v.Fenced {
		varint(8, 1)
	}
	varint(9, int64(v.Revision))
	if v.Final {
		varint(12, 1)
	}
	varint(13, readyAt(v))
	return m
}

// readyAt is since when a task that is traced could have been granted; 0 = it is not traced, or nothing was granted.
func readyAt(v *replica.Verdict) int64 {
	if v.Grant.Task == nil || !telemetry.Sampled(v.Trace) {
		return 0
	}
	return v.Grant.ReadyAt
}

// polledOf fills e.polled with the granted task as the worker sees it.
func (e *Encoder) polledOf(g *replica.Grant) {
	if g.Task == nil {
		return
	}
	t, m := g.Task, &e.polled
	m.Reset()
	m.TaskId, m.Token = t.ID.String(), e.Tokens.Print(t.ID, g.Token)
	m.Type, m.Tasklist, m.Priority = t.Type, t.Tasklist, t.Priority
	if len(t.Payload.Data) > 0 {
		e.payload.Reset()
		e.payload.Data, e.payload.Encoding = t.Payload.Data, yardv1.Encoding(t.Payload.Encoding)
		m.Payload = &e.payload
	}
	m.Attempt, m.Failures, m.MaxAttempts = int32(min(t.Grants(), math.MaxInt32)), t.Failures, t.Policy.MaxAttempts
	m.CreatedAtMs, m.HeartbeatTimeoutMs = t.CreatedAt(), t.Policy.HeartbeatTimeoutMS
	// Never 0, which would say nothing; nor more than was asked, where this clock is behind that of the grant.
	m.TimeoutMs = min(max(g.DeadlineAt-e.NowMS, 1), t.Policy.StartToCloseMS)
	if len(t.Trace) > 0 {
		m.Traceparent = telemetry.FormatTraceparent([]byte(t.Trace))
	}
	m.Headers, m.Group, m.Cost = publicHeaders(t.HeaderList()), t.Group(), t.Cost()
}

// Polled is a granted task as its worker sees it, encoded.
func (e *Encoder) Polled(g *replica.Grant) []byte {
	e.polledOf(g)
	data, err := e.polled.MarshalVT()
	if err != nil {
		panic("record: " + err.Error()) // every field is of our making
	}
	return data
}

func (e *Encoder) appendPolled(m []byte) []byte {
	size := e.polled.SizeVT()
	m = protowire.AppendVarint(m, uint64(size))
	at := len(m)
	m = append(m, make([]byte, size)...)
	if _, err := e.polled.MarshalToSizedBufferVT(m[at:]); err != nil {
		panic("record: " + err.Error()) // only a wrong size could be the cause
	}
	return m
}
