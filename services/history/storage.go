package history

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/storage"
)

// rooms are the watches of the partitions served here.
type rooms struct {
	mu  sync.Mutex
	all map[int]*storage.Watch
}

// warn names the partitions that have no room.
func (r *rooms) warn() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var full []int
	why := ""
	for _, p := range slices.Sorted(maps.Keys(r.all)) {
		if says := r.all[p].Full(); says != "" {
			full, why = append(full, p), says
		}
	}
	if len(full) == 0 {
		return nil
	}
	return fmt.Errorf("partitions %v accept no tasks because the storage is full: %s", full, why)
}

func (r *rooms) add(p int, w *storage.Watch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = map[int]*storage.Watch{}
	}
	r.all[p] = w
}

func (r *rooms) remove(p int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.all, p)
}

// room is the part of one ownership that looks at the room in the log of its partition.
type room struct {
	*storage.Watch
	rooms     *rooms
	partition int
}

func (s *Service) room(p int) room {
	full := s.Deps.Metrics.Gauge(signals.StorageFull, strconv.Itoa(p))
	return room{&storage.Watch{
		JetStream: s.js, Stream: topology.HistoryStream(p), Config: s.Config.Storage, Log: s.Log.With("partition", p), Gauge: full,
	}, &s.rooms, p}
}

// Run looks until ctx ends.
func (r room) Run(ctx context.Context) error {
	r.rooms.add(r.partition, r.Watch)
	defer r.rooms.remove(r.partition)
	return r.Watch.Run(ctx)
}
