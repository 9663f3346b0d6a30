package timersim

import (
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/due"
)

// EarlyFrom is from which sequence on NearFirst needs the messages of the store; 0 = all messages are to arrive before Loaded.
func (o *Owner) EarlyFrom() uint64 { return o.table.Cursor().EarlyFrom }

// NearFirst chooses the subjects of which the messages are to arrive before Loaded, of all in a store that ends at a sequence. Tail are the messages from
// EarlyFrom on. With ok the messages of the other subjects go to Rest after Loaded, in order.
func (o *Owner) NearFirst(subjects []string, tail []Message, end uint64) (first map[string]bool, ok bool) {
	o.must(loading)
	o.end = end
	var all, early []int64
	for _, s := range subjects {
		if bucket, inBucket := topology.TimerBucketOf(s); inBucket {
			all = append(all, bucket)
		}
	}
	for _, m := range tail {
		if k := o.decode(m); len(k.index.Early) > 0 {
			early = append(early, k.index.Bucket)
		}
	}
	buckets, ok := due.Rest{Table: o.table}.NearFirst(all, early, end)
	if !ok {
		return nil, false
	}
	first, o.restTo = map[string]bool{topology.TimerFence(o.partition): true}, end
	for _, b := range buckets {
		first[topology.Timer(o.partition, b)] = true
	}
	return first, true
}

// Rest takes in a message of a subject that was not chosen by NearFirst.
func (o *Owner) Rest(m Message) (outdated int) {
	o.must(idle)
	k := o.decode(m)
	o.kept[m.Seq] = k
	return due.Rest{Table: o.table}.Load(k.index)
}

// Whole says that all up to the end went to Rest. Until then messages with early tasks may not arrive, and no one may ask.
func (o *Owner) Whole() {
	o.must(idle)
	due.Rest{Table: o.table}.Whole()
	o.restTo = 0
}

// Takes reports whether a message may arrive now.
func (o *Owner) Takes(m Message) bool { return o.restTo == 0 || len(o.decode(m).index.Early) == 0 }
