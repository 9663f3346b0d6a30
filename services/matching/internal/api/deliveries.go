package api

import (
	"sync"

	"github.com/nats-io/nats.go/jetstream"
)

// deliveries are the messages of the hint stream that are not taken care of, by the number
// that the core knows them by. The consumer bounds them.
type deliveries struct {
	mu   sync.Mutex
	last uint64
	all  map[uint64]jetstream.Msg
}

// add returns the number of a message, from 1.
func (d *deliveries) add(m jetstream.Msg) uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.all == nil {
		d.all = map[uint64]jetstream.Msg{}
	}
	d.last++
	d.all[d.last] = m
	return d.last
}

// take removes a message; nil where it is not known.
func (d *deliveries) take(n uint64) jetstream.Msg {
	d.mu.Lock()
	defer d.mu.Unlock()
	m := d.all[n]
	delete(d.all, n)
	return m
}
