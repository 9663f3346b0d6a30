package firing

import (
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/due"
)

// Config bounds the firing of one partition.
type Config struct {
	// ChunkTasksMax is how many tasks one atomic batch fires, 1..100000. Default
	// 5000. More is a longer wait for a call that comes meanwhile.
	ChunkTasksMax int `koanf:"chunk_tasks_max"`
	// ChunkBytesMax is how many bytes one atomic batch holds. Default 2 MiB.
	// The server keeps a batch in memory until it is whole.
	ChunkBytesMax int `koanf:"chunk_bytes_max"`
	// FetchParallel is how many stored messages are asked for at a time, 1..256. Default 16.
	FetchParallel int `koanf:"fetch_parallel"`
	// CacheBytes is how much of the store a partition keeps at hand, bytes: messages of which records are still to fire.
	// Default 32 MiB. If these take more, messages are fetched again for each of their tasks.
	CacheBytes int `koanf:"cache_bytes"`
	// PurgeEvery is how often what was fired is removed from the store. Default
	// 10 s. Seldom costs disk and a longer takeover.
	PurgeEvery time.Duration `koanf:"purge_every"`
	// FiredKeep is for how long a fired task is remembered, to recognise a
	// second copy of it. Default 10 min.
	FiredKeep time.Duration `koanf:"fired_keep"`
	// FiredKeepMax is how many of them are remembered, about 50 bytes each. Default 250000. If history has not read
	// a task that was fired before them, a get may not find it, and a command waits until history reads it.
	FiredKeepMax int `koanf:"fired_keep_max"`
	// EarlyFor is how long a call that has tasks fire early goes on, 10 ms to 10 s. Default 500 ms, and the rest is asked for again.
	EarlyFor time.Duration `koanf:"early_for"`
	// CriticalFailures is how often a task may have failed before its next attempts come in as the least urgent ones, 1..1000000, so
	// that endless retries hold up no fresh task. Those with an order key keep their place. Default 50.
	CriticalFailures int `koanf:"critical_failures"`
	// Horizon is how long before its time a task comes into memory, 2 to 60 min. Default 10 min. Before that memory has about 10 bytes of it.
	Horizon time.Duration `koanf:"horizon"`
	// NearMax is how many tasks of a partition are in memory, about 75 bytes each, 1000..100000000. Default 150000. With more, the horizon is
	// nearer: a task is read again from the store before its time, and a get of it reads the store. A minute with more than half as many comes
	// into memory as a whole. Of minutes that are over, up to 1,000,000 tasks are in memory: after a downtime domains take turns among them.
	NearMax int `koanf:"near_max"`
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config {
	return Config{
		ChunkTasksMax: 5000, ChunkBytesMax: 2 << 20, FetchParallel: 16, CacheBytes: 32 << 20,
		PurgeEvery: 10 * time.Second, FiredKeep: 10 * time.Minute, FiredKeepMax: 250_000, EarlyFor: 500 * time.Millisecond,
		CriticalFailures: 50, Horizon: 10 * time.Minute, NearMax: 150_000,
	}
}

// Limits are those of a chunk.
func (c Config) Limits() due.Limits {
	return due.Limits{
		Tasks: c.ChunkTasksMax, Bytes: c.ChunkBytesMax, Messages: chunkMessagesMax,
		MessageTasks: messageTasksMax, MessageBytes: messageBytesMax, Reads: chunkReadsMax,
	}
}

// Table is what the due table remembers.
func (c Config) Table() due.Config {
	return due.Config{
		FiredKeepMS: c.FiredKeep.Milliseconds(), FiredMost: c.FiredKeepMax, CriticalFailures: c.CriticalFailures,
		BucketMS: topology.TimerBucketWidth.Milliseconds(), HorizonMS: c.Horizon.Milliseconds(), NearMost: c.NearMax, DueMost: dueMax,
	}
}

const (
	// messageTasksMax and messageBytesMax bound one message of the history log:
	// what the log's readers are made for.
	messageTasksMax = 1000
	messageBytesMax = 400 << 10
	// chunkMessagesMax leaves one message of an atomic batch of 1000 to the cursor.
	chunkMessagesMax = 999
	// chunkReadsMax bounds the messages of the store that are read for a chunk: a small record may lie in one of 400 KiB.
	chunkReadsMax = 256

	// appendTimeout bounds one append; after it the outcome is unknown.
	appendTimeout = 10 * time.Second
	// retryFirst and retryLast bound the pause before something is tried again.
	retryFirst = 20 * time.Millisecond
	retryLast  = 2 * time.Second
	// fullPause is how soon it is looked again whether the log has room.
	fullPause = time.Second
	// locatingMax is how many callers look for a task at a time, locatersMax how many more of a domain wait for their turn: all that may call.
	locatingMax, locatersMax = 8, 256
	// locateTries is how often a task is looked for that fires meanwhile.
	locateTries = 3
	// cacheAhead: an arriving message with a task due this soon is kept at hand.
	cacheAhead = time.Minute
	// arrivalsMax is how many messages wait for the loop.
	arrivalsMax = 64
	// approachEvery is how soon it is asked again which buckets are to come into memory, loadTasks how many of their tasks come in between two chunks.
	approachEvery = time.Second
	loadTasks     = 2000
	// renewAfter is after how many messages of the store a cursor is written though nothing fires.
	renewAfter = 256
	// dueMax is how many tasks are in memory of minutes whose time has come, if it is more than NearMax.
	dueMax = 1_000_000
	// earlyParallel is how many buckets get early messages at a time.
	earlyParallel = 16
	// earlyTasks, earlyBytes and earlyReads, the messages of the store that they lie in, bound the stays of a domain that fire early together,
	// before another domain has its turn: due tasks wait for them. earlyMax is how many calls of a domain wait for their turn.
	earlyTasks, earlyBytes = 256, 1 << 20
	earlyReads             = 64
	earlyMax               = 16
	// cursorsKept is how many old cursors may pile up before they are removed.
	cursorsKept = 1000
	// endTimeout bounds one question for the end of the store, endsTogether how many callers share its answer. There is room for all callers.
	endTimeout               = 2 * time.Second
	endsTogether, endsQueued = 10_000, 1 << 30
	// scanSlots is how much of the table one turn of the loop visits for a list.
	scanSlots = 20_000
	// searchTime is after how long a list goes no further, searchersMax how many of a domain wait for their turn beside the one that
	// has it. All of them come to theirs before a frontend asks again (2 s), also if another domain searches as much.
	searchTime   = 100 * time.Millisecond
	searchersMax = 4
	// searchTasks and searchBytes bound the records that a list reads together. Of the messages they lie in, searchCacheBytes stay at
	// hand for the next ones.
	searchTasks, searchBytes = 500, 1 << 20
	searchCacheBytes         = 8 << 20
)
