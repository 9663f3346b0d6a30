package dispatch

// walkStep is how many tasks one step of a walk visits.
const walkStep = 4096

// Walk visits the tasks of a domain in memory, some at a time, so that it does not hold up the partition, however many there are. A task that is there
// all the time is visited, perhaps twice; one that comes meanwhile is not.
type Walk struct {
	Domain string
	begun  bool
	// left are the places that are still to be visited.
	left int
}

// Walk visits some tasks, and tells whether those were the last ones.
func (d *DomainLists) Walk(w *Walk, visit func(*Entry)) (over bool) {
	of := d.domains[w.Domain]
	if of == nil {
		return true
	}
	if !w.begun {
		w.begun, w.left = true, len(of.tasks)
	}
	w.left = min(w.left, len(of.tasks)) // a task that takes the place of one that has left comes from behind: it was visited, or has just come
	for range min(walkStep, w.left) {
		w.left--
		visit(of.tasks[w.left])
	}
	return w.left == 0
}
