package storage

import "fmt"

// Config says how much is kept in reserve.
type Config struct {
	// ReservePercent of each limit is kept for events, the archive and checkpoints of tasks that
	// are in the log already; no tasks are accepted that would take it. 1..90, default 10. It should
	// be more than is submitted within two seconds, since the storage is checked each second. Too
	// little, and what runs cannot be finished when the storage is full.
	ReservePercent int `koanf:"reserve_percent" usage:"percent of the storage kept for what goes on with accepted tasks"`
	// ReserveBytes bounds that for large limits, in bytes. Default 4 GiB.
	ReserveBytes int64 `koanf:"reserve_bytes" unit:"bytes" usage:"the reserve is never more than this"`
	// BytesMax is how much all streams of the account may take, over all servers, replicas counted,
	// in bytes. Default 0: the account's limit, which JetStream tells. Name it if the
	// account has none, since the servers' own max_file_store is not shown to clients: it is that
	// times the servers.
	BytesMax int64 `koanf:"bytes_max" unit:"bytes" usage:"bytes that JetStream may take, over all servers; 0 = the account's limit"`
}

// DefaultConfig is the defaults given at the fields.
func DefaultConfig() Config { return Config{ReservePercent: 10, ReserveBytes: 4 << 30} }

// Valid tells what is wrong with c, "" if nothing is.
func (c Config) Valid() string {
	switch {
	case c.ReservePercent < 1 || c.ReservePercent > 90:
		return fmt.Sprintf("reserve_percent is %d: want 1 to 90", c.ReservePercent)
	case c.ReserveBytes < 1:
		return fmt.Sprintf("reserve_bytes is %d: want at least 1", c.ReserveBytes)
	case c.BytesMax < 0:
		return fmt.Sprintf("bytes_max is %d: want 0 or more", c.BytesMax)
	}
	return ""
}

// Limit is one limit of the storage, in bytes.
type Limit struct {
	// Of names what is limited, for people.
	Of        string
	Used, Max int64
}

// left is what is free of it.
func (l Limit) left() int64 { return max(l.Max-l.Used, 0) }

func (c Config) reserve(l Limit) int64 { return min(l.Max/100*int64(c.ReservePercent), c.ReserveBytes) }

// Gate decides whether tasks are taken. Its zero value takes them.
type Gate struct{ full bool }

// Look takes in the limits as they are. It returns why no tasks are taken, "" if they are: each
// limit must have its reserve free, and to take tasks again after it had not a quarter more, but no more than half of
// what is not reserve: a large reserve and a quarter are more than there is.
func (g *Gate) Look(c Config, limits []Limit) (why string) {
	for _, l := range limits {
		need := c.reserve(l)
		if g.full {
			need += min(need/4, (l.Max-need)/2)
		}
		if l.left() < need {
			g.full = true
			return fmt.Sprintf("%s has %d of %d bytes left, %d are needed to accept tasks", l.Of, l.left(), l.Max, need)
		}
	}
	g.full = false
	return ""
}
