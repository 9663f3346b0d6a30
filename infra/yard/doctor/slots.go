package doctor

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
)

// limitHash is the hash of a limit in Redis, as matching's scripts write it.
type limitHash struct {
	domain, limit string
	// run is that of the server which wrote it: under another one all of it is void.
	run           string
	used, entries int64
	shards        map[int]entry
}

// entry is what a shard holds of a limit.
type entry struct {
	epoch, call uint64
	held, till  int64
}

var (
	wholeForm = regexp.MustCompile(`^(\w+) (\d+) (\d+) (\d+) (\d+) `)
	entryForm = regexp.MustCompile(`^(\d+) (\d+) (\d+) (\d+)$`)
)

// readLimit reads the fields of a hash; false = it is not as the scripts write it.
func readLimit(domain, limit string, fields map[string]string) (h limitHash, ok bool) {
	h = limitHash{domain: domain, limit: limit, shards: map[int]entry{}}
	whole := wholeForm.FindStringSubmatch(fields["all"])
	if whole == nil {
		return h, false
	}
	h.run, h.used, h.entries = whole[1], number(whole[2]), number(whole[3])
	for name, text := range fields {
		shard, is := strings.CutPrefix(name, "s")
		if !is {
			continue
		}
		m, err := strconv.Atoi(shard)
		e := entryForm.FindStringSubmatch(text)
		if err != nil || e == nil {
			return h, false
		}
		h.shards[m] = entry{uint64(number(e[1])), uint64(number(e[2])), number(e[3]), number(e[4])}
	}
	return h, true
}

func number(digits string) int64 {
	n, _ := strconv.ParseInt(digits, 10, 64) // digits only
	return n
}

// holder is a shard and a limit.
type holder struct {
	domain, limit string
	shard         int
}

// booked is how many running attempts hold a slot.
type booked map[holder]int

// add takes running attempts that were granted to a shard and hold the same path.
func (b booked) add(shard int, domain, taskType string, limits []string, attempts int) {
	if len(limits) == 0 {
		limits = []string{ids.TypeLimit(taskType)}
	}
	for _, limit := range limits {
		b[holder{domain, limit, shard}] += attempts
	}
}

// checkLimit compares a limit with itself, and, if running is known, with what runs. now is the time of Redis, Unix ms. Slots that an entry holds too
// many are reported with the entry itself: a shard that makes a call writes another one, so the next look finds something else.
func checkLimit(h limitHash, shards int, nowMS int64, running booked) (found []Finding) {
	key := topology.SlotsKey(h.domain, h.limit)
	sum := int64(0)
	for _, e := range h.shards {
		sum += e.held
	}
	if h.used != sum || h.entries != int64(len(h.shards)) {
		found = append(found, Finding{
			Code: SlotsMiscounted, Where: key, Domain: h.domain,
			What: fmt.Sprintf("it says %d slots in %d entries, and its %d entries hold %d", h.used, h.entries, len(h.shards), sum),
		})
	}
	var all []int
	for m := range h.shards {
		all = append(all, m)
	}
	slices.Sort(all)
	for _, m := range all {
		e := h.shards[m]
		if e.held == 0 || e.till <= nowMS {
			continue
		}
		where := fmt.Sprintf("%s s%d %d/%d", key, m, e.epoch, e.call)
		switch n := running[holder{h.domain, h.limit, m}]; {
		case m >= shards:
			found = append(found, Finding{Code: SlotsLeaked, Where: where, Domain: h.domain, What: fmt.Sprintf("%d slots are those of a shard that does not exist", e.held)})
		case running != nil && e.held > int64(n):
			found = append(found, Finding{Code: SlotsLeaked, Where: where, Domain: h.domain, What: fmt.Sprintf("the shard holds %d slots, and %d of its attempts run", e.held, n)})
		}
	}
	return found
}
