package record

import (
	"cmp"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/admission"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/shared/protofield"
)

// Fields of Turn, as in log.proto.
const (
	turnVersion  = 1
	turnEpoch    = 2
	turnNumber   = 3
	turnAt       = 4
	turnBatches  = 5
	turnAdmitted = 6
	turnTerms    = 7
)

// Turn is a message of the owner's log (logv1.Turn). Its batches stay encoded until they are needed.
type Turn struct {
	LogVersion    uint32
	Epoch, Number uint64
	// At is when its events count as made, Unix ms; 0 = when the server stored it.
	At int64
	// Admitted are the steps before the batches.
	Admitted []replica.Admission
	Batches  [][]byte
	// Terms are those of types that have changed.
	Terms []*logv1.TypeTerms
}

// Append encodes t behind b.
func (t *Turn) Append(b []byte) []byte {
	for field, value := range [...]uint64{turnVersion: uint64(t.LogVersion), turnEpoch: t.Epoch, turnNumber: t.Number, turnAt: uint64(t.At)} {
		if value != 0 {
			b = protowire.AppendVarint(protowire.AppendTag(b, protowire.Number(field), protowire.VarintType), value)
		}
	}
	for i := range t.Admitted {
		s := &t.Admitted[i]
		b = appendMessage(b, turnAdmitted, &logv1.Admission{Lane: uint32(s.Lane), Place: string(s.Place), Kind: logv1.Admission_Kind(s.Kind), ToSeq: s.To, FromSeq: s.From, Messages: s.Messages})
	}
	for _, of := range t.Terms {
		b = appendMessage(b, turnTerms, of)
	}
	for _, batch := range t.Batches {
		b = protowire.AppendBytes(protowire.AppendTag(b, turnBatches, protowire.BytesType), batch)
	}
	return b
}

// ReadTurn decodes a turn. Its batches alias data.
func ReadTurn(data []byte) (t Turn, err error) {
	err = protofield.Each(data, func(f protofield.Field) error {
		switch {
		case f.Bytes != nil && f.Number == turnAdmitted:
			return t.admitted(f.Bytes)
		case f.Bytes != nil && f.Number == turnTerms:
			of := new(logv1.TypeTerms)
			t.Terms = append(t.Terms, of)
			return of.UnmarshalVT(f.Bytes)
		case f.Bytes != nil && f.Number == turnBatches:
			t.Batches = append(t.Batches, f.Bytes)
		case f.Bytes != nil: // no number is of this kind
		case f.Number == turnVersion:
			t.LogVersion = uint32(f.Varint)
		case f.Number == turnEpoch:
			t.Epoch = f.Varint
		case f.Number == turnNumber:
			t.Number = f.Varint
		case f.Number == turnAt:
			t.At = int64(f.Varint)
		}
		return nil
	})
	if err != nil {
		return t, fmt.Errorf("turn: %w", err)
	}
	if err := logversion.Check(t.LogVersion); err != nil {
		return t, fmt.Errorf("turn: %w", err)
	}
	return t, nil
}

// admitted adds a step of how tasks came into the state.
func (t *Turn) admitted(data []byte) error {
	var m logv1.Admission
	if err := m.UnmarshalVT(data); err != nil {
		return err
	}
	if m.Lane >= ids.Lanes || m.Kind < 0 || m.Kind > logv1.Admission_MERGE {
		return fmt.Errorf("an admission of kind %d of lane %d", m.Kind, m.Lane)
	}
	t.Admitted = append(t.Admitted, replica.Admission{
		Queue: replica.Queue{Lane: ids.Lane(m.Lane), Place: ids.Place(m.Place)}, Kind: admission.StepKind(m.Kind), To: m.ToSeq, From: m.FromSeq, Messages: m.Messages,
	})
	return nil
}

// Turn decodes the batches of a turn that was stored as message seq. A batch that cannot be read makes the turn unreadable:
// its owner has read each before it appended them. Then its batches are left out.
func (d *Decoder) Turn(t *Turn, seq uint64, storedAt int64) (*replica.Turn, error) {
	out := &replica.Turn{Seq: seq, At: cmp.Or(t.At, storedAt), Admitted: t.Admitted}
	for _, of := range t.Terms {
		out.Terms = append(out.Terms, d.Terms(of))
	}
	for _, batch := range t.Batches {
		in, err := d.Events(batch)
		if err != nil {
			return &replica.Turn{Seq: seq, At: out.At}, err
		}
		out.Batches = append(out.Batches, in)
	}
	return out, nil
}
