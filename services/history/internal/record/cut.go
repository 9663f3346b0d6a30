package record

import (
	"errors"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/archive"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
)

// Field numbers of Batch and Record.
const (
	fieldTasks  = 1
	fieldID     = 1
	fieldDomain = 2
	fieldStay   = 21
)

var errNotABatch = errors.New("not a batch of tasks")

// Cut decodes the one task of an encoded Batch that has this id, and skips the
// others; nil where there is none.
func Cut(batch []byte, id ids.TaskID) (found *logv1.Record, err error) {
	all, err := CutEach(batch, func(at ids.TaskID) bool { return at == id })
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return all[0], nil
}

// CutEach decodes the tasks of an encoded Batch that are wanted, in order, and skips the others. Tasks that it found before an error are returned with it.
func CutEach(batch []byte, wanted func(ids.TaskID) bool) (found []*logv1.Record, err error) {
	err = each(batch, func(at ids.TaskID, encoded []byte) error {
		if !wanted(at) {
			return nil
		}
		r := new(logv1.Record)
		if err := r.UnmarshalVT(encoded); err != nil {
			return err
		}
		found = append(found, r)
		return nil
	})
	return found, err
}

// Late tells whether a submit is void that the log stored at.
func Late(r *logv1.Record, at time.Time) bool {
	id, err := ids.TaskIDFromBytes(r.Id)
	return err == nil && r.WithinMs > 0 && at.UnixMilli() > id.Time().UnixMilli()+r.WithinMs
}

// Date makes the delay of a submit count from when the log stored it.
func Date(r *logv1.Record, at time.Time) {
	if r.DelayMs > 0 {
		r.DueAtMs = max(r.DueAtMs, at.Add(time.Millisecond-1).UnixMilli()+r.DelayMs) // it was sent before at, not before its millisecond
		r.DelayMs = 0                                                                // it is not delayed again when it comes out of the quarantine
	}
}

// Filed lists the tasks of an encoded Batch, in order.
func Filed(batch []byte) (all []archive.Filed, err error) {
	err = each(batch, func(id ids.TaskID, encoded []byte) error {
		domain, err := field(encoded, fieldDomain)
		all = append(all, archive.Filed{ID: id, Domain: string(domain)})
		return err
	})
	return all, err
}

// Stays lists the stays of the tasks of an encoded Batch, in order.
func Stays(batch []byte) (all []replica.Stay, err error) {
	err = each(batch, func(id ids.TaskID, encoded []byte) error {
		parkings, err := number(encoded, fieldStay)
		all = append(all, replica.Stay{ID: id, Parkings: uint32(parkings)})
		return err
	})
	return all, err
}

// each walks over the tasks of an encoded Batch.
func each(batch []byte, handle func(id ids.TaskID, encoded []byte) error) error {
	for len(batch) > 0 {
		num, typ, n := protowire.ConsumeTag(batch)
		if n < 0 {
			return errNotABatch
		}
		batch = batch[n:]
		if num != fieldTasks || typ != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(num, typ, batch); n < 0 {
				return errNotABatch
			}
			batch = batch[n:]
			continue
		}
		encoded, n := protowire.ConsumeBytes(batch)
		if n < 0 {
			return errNotABatch
		}
		batch = batch[n:]
		raw, err := field(encoded, fieldID)
		if err != nil {
			return err
		}
		id, err := ids.TaskIDFromBytes(raw)
		if err != nil {
			return err
		}
		if err := handle(id, encoded); err != nil {
			return err
		}
	}
	return nil
}

// number is the first number field of that number; 0 = there is none.
func number(encoded []byte, want protowire.Number) (uint64, error) {
	value, err := first(encoded, want, protowire.VarintType)
	if value == nil {
		return 0, err
	}
	n, _ := protowire.ConsumeVarint(value)
	return n, nil
}

// field is the first bytes field of that number. Those asked for stand first, since
// fields are encoded in their order.
func field(encoded []byte, want protowire.Number) ([]byte, error) {
	value, err := first(encoded, want, protowire.BytesType)
	if value == nil {
		return nil, err
	}
	bytes, _ := protowire.ConsumeBytes(value)
	return bytes, nil
}

// first is the first field of that number and type, as it is encoded; nil = there is none.
func first(encoded []byte, want protowire.Number, of protowire.Type) ([]byte, error) {
	for len(encoded) > 0 {
		num, typ, n := protowire.ConsumeTag(encoded)
		if n < 0 {
			return nil, errNotABatch
		}
		encoded = encoded[n:]
		if n = protowire.ConsumeFieldValue(num, typ, encoded); n < 0 {
			return nil, errNotABatch
		}
		if num == want && typ == of {
			return encoded[:n], nil
		}
		encoded = encoded[n:]
	}
	return nil, nil
}
