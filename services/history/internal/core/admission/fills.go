package admission

import "github.com/yardmaster-io/yardmaster/contracts/ids"

// Fill is what a queue, or a lane, takes of its window: tasks and their bytes. It is read while it takes less than TasksMax and BytesMax.
type Fill struct {
	Tasks, TasksMax int
	Bytes, BytesMax int64
}

func (x *windows) laneFill(lane ids.Lane) Fill {
	tasks, bytes := x.laneWindow(lane)
	return Fill{x.rooms[lane].tasks, tasks, x.rooms[lane].bytes, bytes}
}

func (x *windows) queueFill(q *queue) Fill {
	tasks, bytes := x.queueWindow(q)
	return Fill{q.room.tasks, tasks, q.room.bytes, bytes}
}

// LaneFill is what a lane takes, and all queues together that are split off it.
type LaneFill struct {
	Lane, SplitOff Fill
	// Domains and Tasklists are how many queues of each there are.
	Domains, Tasklists int
}

// Fills are those of the lanes.
func (x *windows) Fills() (all [ids.Lanes]LaneFill) {
	for lane := range ids.Lane(ids.Lanes) {
		all[lane].Lane = x.laneFill(lane)
	}
	for at, q := range x.queues {
		of, one := &all[at.Lane], x.queueFill(q)
		sum := &of.SplitOff
		sum.Tasks, sum.TasksMax, sum.Bytes, sum.BytesMax = sum.Tasks+one.Tasks, sum.TasksMax+one.TasksMax, sum.Bytes+one.Bytes, sum.BytesMax+one.BytesMax
		if at.Place.Tasklist() == "" {
			of.Domains++
		} else {
			of.Tasklists++
		}
	}
	return all
}
