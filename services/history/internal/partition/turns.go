package partition

// turns is a queue in which domains take turns: one that asks for a hundred thousand tasks
// which are nowhere must not hold up the cancel of another's (I14).
type turns struct {
	waiting map[string][]*sought
	domains []string // the keys of waiting, in the order of their turns
}

// searchShare is how many searches of a job are of one domain before it is the next one's turn.
const searchShare = 50

func (q *turns) add(f *sought) {
	if q.waiting == nil {
		q.waiting = map[string][]*sought{}
	}
	if len(q.waiting[f.Domain]) == 0 {
		q.domains = append(q.domains, f.Domain)
	}
	q.waiting[f.Domain] = append(q.waiting[f.Domain], f)
}

func (q *turns) empty() bool { return len(q.domains) == 0 }

// next takes up to most searches.
func (q *turns) next(most int) (job []*sought) {
	for len(q.domains) > 0 && len(job) < most {
		domain := q.domains[0]
		q.domains = q.domains[1:]
		all := q.waiting[domain]
		n := min(len(all), searchShare, most-len(job))
		job = append(job, all[:n]...)
		if n < len(all) {
			q.waiting[domain] = all[n:]
			q.domains = append(q.domains, domain)
		} else {
			delete(q.waiting, domain)
		}
	}
	return job
}
