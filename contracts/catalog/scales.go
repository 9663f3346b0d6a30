package catalog

import (
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// PartitionsOf is over how many partitions a tasklist is spread, 1..ids.PartitionsMax, by its settings and its scale, which may be nil:
// as many as the settings say, or, if these have a partitions_max, as the scale says within both.
func PartitionsOf(l *yardv1.Tasklist, s *rpcv1.TasklistScale) int {
	least, most := PartitionsBetween(l)
	return min(max(int(s.GetPartitions()), least), most)
}

// PartitionsBetween is the least and the most partitions that a tasklist with these settings may be spread over; both are the same if
// the engine does not set their number.
func PartitionsBetween(l *yardv1.Tasklist) (least, most int) {
	least = min(max(int(l.GetPartitions()), 1), ids.PartitionsMax)
	return least, min(max(int(l.GetPartitionsMax()), least), ids.PartitionsMax)
}

// Partitions is over how many partitions a tasklist is spread now.
func (c *Catalog) Partitions(domain, tasklist string) int {
	return PartitionsOf(Tasklists.Of(c, domain, tasklist), Scales.Of(c, domain, tasklist))
}
