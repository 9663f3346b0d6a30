package match

import (
	"cmp"
	"slices"
)

// fellSilent ends the polls of workers that send no more signs of life, so that no more tasks are granted to them. One whose grabs are under
// way is answered, too: what they bring is handed back. A worker that lives polls again.
func (s *Shard) fellSilent(all []SilentWorker) {
	if len(all) == 0 {
		return
	}
	silent := make(map[SilentWorker]bool, len(all))
	for _, w := range all {
		silent[w] = true
	}
	var ended []*poll
	for _, p := range s.polls.due.All() {
		if p.workerID != "" && silent[SilentWorker{p.list.Domain, p.workerID}] {
			ended = append(ended, p)
		}
	}
	slices.SortFunc(ended, func(a, b *poll) int { return cmp.Compare(a.order, b.order) })
	for _, p := range ended {
		s.answer(p)
	}
}
