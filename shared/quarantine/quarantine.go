// Package quarantine sets apart what a service could not read or write: whole, with
// the reason, in a stream of its own, until a person redrives or drops it.
//
// Owns: how such an item is stored (in parts, where one message is too small) so
// that setting it apart again does not store it twice, and its way back.
//
// Never does: decide what belongs here, or know what the data mean. natslog.Permanent
// tells writes that belong here from those to try again.
//
// On failure: Put returns the error of the append, and may be repeated. A redrive
// stores first and removes then, so that a crash between the two leaves an item that
// was redriven; redriven again within the target's dedupe window it is stored once.
package quarantine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
)

// partBytesMax bounds the data of one message; never more than half of what the
// server takes.
const partBytesMax = 512 << 10

// ErrNotFound: there is no such item.
var ErrNotFound = errors.New("no such item in quarantine")

// Item is one item with its place, which names it.
type Item struct {
	Seq uint64
	*logv1.Quarantined
}

// Target is where a redrive publishes it.
func (i Item) Target() string {
	if i.TargetSubject != "" {
		return i.TargetSubject
	}
	return i.OriginSubject
}

// Put stores an item and returns when it is stored. The same item is stored once
// within topology.QuarantineDedupeWindow. Where AtMs is 0 it is dated by when it was stored; q is not kept.
func Put(ctx context.Context, nc *nats.Conn, q *logv1.Quarantined) error {
	size := int(min(partBytesMax, nc.MaxPayload()/2))
	parts := max((len(q.Data)+size-1)/size, 1)
	head := q.CloneVT()
	head.Parts = uint32(parts)
	subject := topology.Quarantine(q.Service, int(q.Partition))
	msgs := make([]natslog.Msg, parts)
	for i := range msgs {
		part := head
		if i > 0 {
			part = &logv1.Quarantined{Part: uint32(i), Parts: uint32(parts)}
		}
		part.Data = q.Data[min(i*size, len(q.Data)):min((i+1)*size, len(q.Data))]
		data, err := part.MarshalVT()
		if err != nil {
			return fmt.Errorf("put into quarantine: %w", err)
		}
		msgs[i] = natslog.Msg{Subject: subject, Data: data}
	}
	msgs[0].MsgID = name(q)
	_, err := natslog.AppendAtomic(ctx, nc, msgs)
	if err != nil && !errors.Is(err, natslog.ErrDuplicate) {
		return fmt.Errorf("put into quarantine: %w", err)
	}
	return nil
}

// name is the same for the same item, no matter which process sets it apart, or when.
func name(q *logv1.Quarantined) string {
	h := sha256.New()
	for _, part := range []string{
		q.Service, strconv.Itoa(int(q.Partition)), q.Kind.String(), q.OriginStream, q.OriginSubject,
		strconv.FormatUint(q.OriginSeq, 10), q.TargetSubject, strconv.Itoa(len(q.Data)),
	} {
		_, _ = h.Write(append([]byte(part), 0)) // a hash never fails
	}
	_, _ = h.Write(q.Data)
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Filter chooses items. Service "" and Partition < 0 match all; so does kind 0.
type Filter struct {
	Service   string
	Partition int
	Kind      logv1.QuarantineKind
}

// List hands out the items that match, the oldest first. Where an item has several
// parts, its data are the first one's.
func List(ctx context.Context, js jetstream.JetStream, f Filter, each func(Item) error) error {
	cfg := natslog.ReadConfig{
		Stream: topology.QuarantineStream, Filters: []string{topology.QuarantineFilter(f.Service, f.Partition)},
	}
	return natslog.ReadAll(ctx, js, cfg, func(r natslog.Record) error {
		item, err := decode(r)
		if err != nil || item.Part > 0 || f.Kind != 0 && item.Kind != f.Kind {
			return err
		}
		return each(item)
	})
}

// Get is one item, whole, or ErrNotFound.
func Get(ctx context.Context, js jetstream.JetStream, seq uint64) (Item, error) {
	item, err := get(ctx, js, seq)
	if err == nil && item.Part > 0 {
		err = ErrNotFound
	}
	if err != nil {
		return Item{}, fmt.Errorf("item %d: %w", seq, err)
	}
	for i := range uint64(max(item.Parts, 1) - 1) {
		part, err := get(ctx, js, seq+1+i)
		if err != nil {
			return Item{}, fmt.Errorf("item %d, part %d: %w", seq, i+1, err)
		}
		item.Data = append(item.Data, part.Data...)
	}
	return item, nil
}

func get(ctx context.Context, js jetstream.JetStream, seq uint64) (Item, error) {
	r, err := natslog.Get(ctx, js, topology.QuarantineStream, seq)
	if err == nil && r == nil {
		err = ErrNotFound
	}
	if err != nil {
		return Item{}, err
	}
	return decode(*r)
}

func decode(r natslog.Record) (Item, error) {
	q := &logv1.Quarantined{}
	if err := q.UnmarshalVT(r.Data); err != nil {
		return Item{}, fmt.Errorf("message %d of %s: %w", r.Seq, topology.QuarantineStream, err)
	}
	if q.AtMs == 0 {
		q.AtMs = r.Time.UnixMilli()
	}
	return Item{Seq: r.Seq, Quarantined: q}, nil
}

// Redrive publishes an item's data to its target, and removes the item once they
// are stored there. It returns the sequence at which they are.
func Redrive(ctx context.Context, js jetstream.JetStream, seq uint64) (stored uint64, err error) {
	item, err := Get(ctx, js, seq)
	if err != nil {
		return 0, err
	}
	var header nats.Header
	if item.TtlS > 0 {
		header = nats.Header{jetstream.MsgTTLHeader: {strconv.FormatInt(item.TtlS, 10) + "s"}}
	}
	stored, _, err = natslog.Append(ctx, js.Conn(), natslog.Msg{
		Subject: item.Target(), Data: item.Data, Header: header,
		MsgID: "redriven-" + strconv.FormatUint(seq, 10) + "-" + name(item.Quarantined),
	})
	if err != nil {
		return 0, fmt.Errorf("redrive item %d: %w", seq, err)
	}
	return stored, remove(ctx, js, item)
}

// Drop removes an item forever.
func Drop(ctx context.Context, js jetstream.JetStream, seq uint64) error {
	item, err := Get(ctx, js, seq)
	if err != nil {
		return err
	}
	return remove(ctx, js, item)
}

// remove deletes the parts, the first one last: a removal that broke off can be
// repeated.
func remove(ctx context.Context, js jetstream.JetStream, item Item) error {
	stream, err := js.Stream(ctx, topology.QuarantineStream)
	if err != nil {
		return fmt.Errorf("remove item %d: %w", item.Seq, err)
	}
	for i := uint64(max(item.Parts, 1)); i > 0; i-- {
		err := stream.DeleteMsg(ctx, item.Seq+i-1)
		if err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
			return fmt.Errorf("remove item %d: %w", item.Seq, err)
		}
	}
	return nil
}
