package explain

import (
	"fmt"
	"strings"
	"time"
)

// pollersKnownMS is for how long matching remembers a worker after its last poll.
const pollersKnownMS = int64(5 * time.Minute / time.Millisecond)

// ofTask is about the time of the task, and its failures.
func (f *Facts) ofTask() []Reason {
	t := &f.Task
	switch {
	case t.Blocks:
		return []Reason{{
			Code: Blocked, SinceMS: t.SinceMS,
			Text: fmt.Sprintf("The task failed for good and blocks its order key %s until it is unblocked, skipped or cancelled%s.", t.OrderKey, because(t.Failure)),
		}}
	case t.State == Fails:
		r := Reason{Code: Backoff, UntilMS: t.DueMS, SinceMS: t.SinceMS}
		r.Text = fmt.Sprintf("Failure %d%s; the next attempt is due at %s.", t.Failures, because(t.Failure), at(t.DueMS))
		return f.overdue(r)
	case t.State == Waits:
		return f.overdue(Reason{Code: DueLater, UntilMS: t.DueMS, Text: fmt.Sprintf("The task is due at %s.", at(t.DueMS))})
	}
	return nil
}

// overdue is a reason of a task whose time may have come: it is fired in a moment.
func (f *Facts) overdue(r Reason) []Reason {
	if r.UntilMS <= f.NowMS {
		r.About = true
		r.Text = fmt.Sprintf("The task was due at %s and comes back from the timer store.", at(r.UntilMS))
	}
	return []Reason{r}
}

// ofQueue is about a task on disk.
func (f *Facts) ofQueue() []Reason {
	if f.Task.State != Queued {
		return nil
	}
	r := Reason{Code: NotAdmitted, About: true, Text: "The task is on disk and is not admitted yet."}
	if q := f.Queue; q != nil {
		r.Ref = q.Ref
		r.Text = fmt.Sprintf("The task is on disk and is not admitted yet: messages of its queue %s, which is that of several domains, are not read.", q.Ref)
		if q.Own {
			r.Waiting = q.Unread
			r.Text = fmt.Sprintf("The task is on disk and is not admitted yet: about %s of its queue %s are not read.", count(q.Unread, "message"), q.Ref)
		}
		if q.LowClass {
			r.Text += fmt.Sprintf(" The domain %s is over its full_weight_tasks_per_s, so the queue has one turn of five.", f.Task.Domain)
		}
	}
	return []Reason{r}
}

// ofOrderKey is about the task in front.
func (f *Facts) ofOrderKey() []Reason {
	first := f.First
	if first == nil {
		return nil
	}
	r := Reason{Code: BehindOrderKey, Ref: f.Task.OrderKey, TaskID: first.TaskID, Waiting: first.Waiting}
	is := "is " + first.State
	switch {
	case first.Blocks:
		is = "failed for good and blocks the key until it is unblocked, skipped or cancelled" + because(first.Why)
	case first.Worker != "":
		is = "runs on " + first.Worker
	case first.DueMS > f.NowMS:
		is += ", and due at " + at(first.DueMS)
	}
	r.Text = fmt.Sprintf("An earlier task of its order key %s has to end first: task %s %s.", f.Task.OrderKey, first.TaskID, is)
	return []Reason{r}
}

// ofPauses is about what operators have paused.
func (f *Facts) ofPauses() (all []Reason) {
	for _, p := range f.Pauses {
		r := Reason{Code: Paused, By: p.By, SinceMS: p.SinceMS, UntilMS: p.UntilMS, Ref: p.Kind + "/" + p.Name}
		if p.Kind == "domain" {
			r.Code, r.Ref = Suspended, p.Kind
		}
		until := "until it is resumed"
		if p.UntilMS > 0 {
			until = "until " + at(p.UntilMS)
		}
		r.Text = fmt.Sprintf("The %s %s is paused%s %s%s.", p.Kind, p.Name, by(p.By), until, because(p.Why))
		all = append(all, r)
	}
	return all
}

// ofLimits is about limits and rates.
func (f *Facts) ofLimits() (all []Reason) {
	for _, l := range f.Limits {
		r := Reason{Ref: l.Ref, Waiting: l.Waiting, About: true}
		switch {
		case l.Counting:
			r.Code, r.Text = LimitUnknown, fmt.Sprintf("The attempts that use slots of the limit %s are being counted.", l.Ref)
		case l.Max == 0 && l.Closed:
			r.Code, r.UntilMS = Rate, l.NextMS
			r.Text = fmt.Sprintf("The rate of %s has no start left; the next one is tried at %s.", strings.TrimPrefix(l.Ref, "rate/"), at(l.NextMS))
		case l.Max > 0 && (l.Closed || l.Used >= l.Max):
			r.Code = LimitFull
			r.Text = fmt.Sprintf("The limit %s is full: %d of %d slots are in use.", l.Ref, l.Used, l.Max)
			if l.Used < l.Max { // others stand before it in the line
				r.Text = fmt.Sprintf("The free slots of the limit %s are kept for tasks that have waited for longer: %d of %d are in use.", l.Ref, l.Used, l.Max)
			}
			if l.Holder != "" {
				r.Text += fmt.Sprintf(" Task %s has had its slot for the longest.", l.Holder)
			}
		default:
			continue
		}
		all = append(all, r)
	}
	return all
}

// ofWorkers is about the workers of the tasklist. alone: there is no other reason.
func (f *Facts) ofWorkers(alone bool) (all []Reason) {
	w, t := &f.Workers, &f.Task
	r := Reason{About: true, Waiting: w.Waiting}
	switch {
	case w.Free:
		return nil
	case len(w.Silent) > 0:
		r.Code, r.Text = MatchingSilent, fmt.Sprintf("The matching shards of the tasklist %s did not answer, so limits and workers are not known: %s.", t.Tasklist, numbers(w.Silent))
	case w.Polled == 0:
		r.Code, r.About = NoWorker, w.KnownMS < pollersKnownMS
		r.Text = fmt.Sprintf("No worker has polled the tasklist %s within the last %s.", t.Tasklist, duration(min(w.KnownMS, pollersKnownMS)))
	case w.Takers == 0:
		r.Code = NoWorkerForType
		r.Text = fmt.Sprintf("No worker of the tasklist %s accepts the type %s; %s polled last, %s ago.", t.Tasklist, t.Type, worker(w.Last), duration(w.AgoMS))
	case alone:
		r.Code = NoWorkerFree
		r.Text = fmt.Sprintf("All workers of the tasklist %s are busy or away; %s polled last, %s ago.", t.Tasklist, worker(w.Last), duration(w.AgoMS))
	default:
		return nil
	}
	all = append(all, r)
	for _, d := range w.Drained {
		all = append(all, Reason{
			Code: Drained, By: d.By, SinceMS: d.SinceMS, Ref: d.ID,
			Text: sentence(fmt.Sprintf("%s is drained%s until it is resumed%s.", worker(d.Worker), by(d.By), because(d.Why))),
		})
	}
	return all
}

// worker names a worker.
func worker(name string) string {
	if name == "" {
		return "a worker without a name"
	}
	return "worker " + name
}

// sentence begins with a capital letter.
func sentence(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// by names who did something, if that is known.
func by(name string) string {
	if name == "" {
		return ""
	}
	return " by " + name
}

// because adds a reason that somebody wrote, or an error.
func because(why string) string {
	if why = strings.TrimRight(strings.Join(strings.Fields(why), " "), "."); why == "" {
		return ""
	}
	return ": " + why
}

// since adds an instant, if it is known.
func since(ms int64) string {
	if ms == 0 {
		return ""
	}
	return " since " + at(ms)
}

// at is an instant, Unix ms, for people.
func at(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02 15:04:05 UTC") }

// duration is a duration for people, in whole seconds above one.
func duration(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	if d >= time.Second {
		d = d.Round(time.Second)
	}
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	return text
}

func count(n int64, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// numbers lists numbers for people.
func numbers(all []int) string {
	return strings.Trim(strings.Join(strings.Fields(fmt.Sprint(all)), ", "), "[]")
}
