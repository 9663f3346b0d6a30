package scenario_test

import (
	"fmt"

)

// partitions are those of a tasklist as a description, the settings and a list tell, which must be the same.
func (w *world) partitions(tasklist string) (int, error) {
	d, err := w.client.DescribeTasklist(w.soon(), tasklist)
	if err != nil {
		return 0, err
	}
	set, err := w.client.GetTasklist(w.soon(), tasklist)
	if err != nil {
		return 0, err
	}
	listed := 0
	for l, err := range w.client.Tasklists(w.soon()) {
		if err != nil {
			return 0, err
		}
		if l.Name == tasklist {
			listed = l.Partitions
		}
	}
	if d.Partitions != set.Partitions || listed != set.Partitions {
		return 0, fmt.Errorf("described with %d partitions, set with %d, listed with %d", d.Partitions, set.Partitions, listed)
	}
	return set.Partitions, nil
}
