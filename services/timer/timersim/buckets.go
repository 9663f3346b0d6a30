package timersim

import "github.com/yardmaster-io/yardmaster/contracts/topology"

// Approach says which subjects are to be read up to a sequence, since their tasks come into memory: Near takes their messages, and BucketsLoaded ends it. None
// = nothing is to be done now.
func (o *Owner) Approach(nowMS int64) (subjects []string, upTo uint64) {
	o.must(idle)
	buckets, upTo := o.table.Approach(nowMS)
	for _, b := range buckets {
		subjects = append(subjects, topology.Timer(o.partition, b))
	}
	return subjects, upTo
}

// Near takes in a message of the subjects that are read, in the order of the store.
func (o *Owner) Near(m Message) {
	o.must(idle)
	o.table.LoadBucket(o.decode(m).index)
}

// BucketsLoaded says that all of the subjects was read.
func (o *Owner) BucketsLoaded() {
	o.must(idle)
	o.table.Loaded()
}
