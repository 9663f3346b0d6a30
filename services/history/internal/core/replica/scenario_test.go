package replica

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestScenarios runs testdata/*.txt: commands, and below each, indented, what followed. A
// command is one turn: its steps and a flush. YARD_UPDATE=1 writes what followed.
//
// What others send: submit, fire, started, complete, fail, beat, release, expire, cancel. An
// event names the current attempt of its task; seq=, lane=, v= and by change that. from=SHARD/EPOCH/BATCH
// makes its message one of matching, to=INBOX names the poll, in=A+B the limits, delivered=BATCH says how
// far the shard has delivered; fence and batch are such messages without a task.
// What the replica is given: read LANE|events|all (messages of lanes are admitted, each message of events becomes a turn), tick, stored, saved,
// purged, found, bounced, hungry, retrigger, drain; undelivered SHARD EPOCH and bookings SHARD ask. `append` sends what it proposes,
// `turn` has it stored and reported, too. `snapshot` has one made of a turn, and stored; `crash` ends the owner, `replay` is the takeover of the next
// one: with the snapshot that the saved checkpoint names, and the turns behind it.
// The log moves all the while before a tick, but before one that is silent.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			script, err := os.ReadFile(path)
			testkit.NoError(t, err)
			s := newScenario()
			for _, line := range strings.Split(strings.TrimRight(string(script), "\n"), "\n") {
				if strings.HasPrefix(line, " ") {
					continue
				}
				fmt.Fprintln(&s.out, line)
				if line != "" && !strings.HasPrefix(line, "#") {
					s.command(strings.Fields(line))
				}
			}
			if os.Getenv("YARD_UPDATE") != "" {
				testkit.NoError(t, os.WriteFile(path, s.out.Bytes(), 0o644))
			} else if !bytes.Equal(script, s.out.Bytes()) {
				t.Errorf("it is now (YARD_UPDATE=1 accepts it):\n%s", s.out.String())
			}
		})
	}
}

type scenario struct {
	out bytes.Buffer
	r   *Replica
	now Now
	cfg Config
	outside
	log []*message
	// taken are the messages of events that are turns.
	taken map[*message]bool
	save  *Checkpoint
	tasks map[string]*actor
	own   []Proposal
	jobs  [2][]*Entry
	// partitions is how many tasklists have.
	partitions int
}

// actor is what workers and matching know of a task.
type actor struct {
	id    ids.TaskID
	fence ids.Token
}

const scenarioStart = int64(1_700_000_000_000)

func newScenario() *scenario {
	s := &scenario{
		now: Now{MS: scenarioStart}, tasks: make(map[string]*actor), taken: make(map[*message]bool), outside: newOutside(),
		cfg: Config{
			Shards: 1, WindowTasks: 3, WindowBytes: 1 << 20, CheckpointEveryMS: 1000, PurgeEveryMS: 1000, SnapshotBytes: 1 << 50, SnapshotEveryMS: 1 << 50,
		},
	}
	s.cfg.Partitions = func(string, string) int { return s.partitions }
	s.replay(new(Effects))
	return s
}

func (s *scenario) printf(format string, args ...any) {
	fmt.Fprintf(&s.out, "  "+format+"\n", args...)
}

func (s *scenario) actor(name string) *actor {
	if s.tasks[name] == nil {
		n, err := strconv.Atoi(name[1:])
		if err != nil || name[0] != 't' {
			panic("not a task: " + name)
		}
		s.tasks[name] = &actor{id: ids.NewTaskID(time.UnixMilli(scenarioStart), 0, uint64(n))}
	}
	return s.tasks[name]
}

func name(id ids.TaskID) string { return fmt.Sprintf("t%d", int(id[14])<<8|int(id[15])) }

// option is the value of name=value among args.
func option(args []string, name string) (string, bool) {
	for _, a := range args {
		if value, ok := strings.CutPrefix(a, name+"="); ok {
			return value, true
		}
	}
	if i := slices.Index(args, name); i >= 0 && i+1 < len(args) {
		return args[i+1], true
	}
	return "", false
}

func number(s string) uint64 {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

func span(s string) time.Duration {
	if s == "" {
		return 0
	}
	d, err := time.ParseDuration(strings.TrimPrefix(s, "+"))
	if err != nil {
		panic(err)
	}
	return d
}

func lane(s string) ids.Lane {
	for l := range ids.Lane(ids.Lanes + 1) {
		if l.String() == s {
			return l
		}
	}
	panic("not a lane: " + s)
}

var scenarioKinds = map[string]taskstate.Kind{
	"started": taskstate.Started, "complete": taskstate.Succeeded, "fail": taskstate.Failed, "beat": taskstate.Heartbeat,
	"release": taskstate.Released, "cancel": taskstate.Cancel, "update": taskstate.Changed, "expire": taskstate.Expired, "lapse": taskstate.Lapse, "unknown": 99,
}

func (s *scenario) command(args []string) {
	verb, args := args[0], args[1:]
	fx := new(Effects)
	switch kind, event := scenarioKinds[verb]; {
	case event:
		s.add(s.fromMatching(&message{events: true, list: []taskstate.Event{s.event(kind, args)}}, args))
		return
	case verb == "fence":
		s.add(s.fromMatching(&message{events: true, list: []taskstate.Event{{Kind: taskstate.Fence}}}, args))
		return
	case verb == "batch":
		s.add(s.fromMatching(&message{events: true}, args))
		return
	case verb == "submit" || verb == "fire":
		s.submit(verb, args)
		return
	case verb == "append":
		s.appendOwn()
		return
	case verb == "turn":
		s.appendOwn()
		s.read("events", fx)
		s.r.Step(Stored{Kind: JobAppend}, s.now, fx)
	case verb == "snapshot":
		s.snapshot(fx)
	case verb == "set":
		s.set(args)
		return
	case verb == "crash":
		s.r, s.own, s.save, s.jobs = nil, nil, nil, [2][]*Entry{}
		return
	case verb == "replay":
		s.replay(fx)
	case verb == "read":
		s.read(args[0], fx)
	default:
		s.give(verb, args, fx)
	}
	s.r.Flush(s.now, fx)
	s.show(fx)
	if err := s.r.Check(); err != nil {
		s.printf("broken: %v", err)
	}
	if s.r.answers.Waiting() {
		s.prove()
	}
}

func (s *scenario) set(args []string) {
	if v, ok := option(args, "window"); ok {
		s.cfg.WindowTasks = int(number(v))
	}
	if v, ok := option(args, "shards"); ok {
		s.cfg.Shards = int(number(v))
	}
	if v, ok := option(args, "partitions"); ok {
		if s.partitions = int(number(v)); len(args) == 1 {
			return
		}
	}
	if v, ok := option(args, "gone"); ok {
		s.r.gone.max = int(number(v))
		return
	}
	s.replay(new(Effects))
}

func (s *scenario) add(m *message) {
	m.seq, m.at = s.end()+1, s.now.MS
	if m.shard == 0 {
		m.request = m.seq
	}
	s.log = append(s.log, m)
	if !m.events {
		s.lanes = append(s.lanes, m)
	}
}

// end is the last message.
func (s *scenario) end() uint64 {
	if len(s.log) == 0 {
		return 0
	}
	return s.log[len(s.log)-1].seq
}

func (s *scenario) submit(verb string, args []string) {
	m := &message{lane: lane(args[0])}
	s.add(m)
	for _, arg := range args[1:] {
		if arg[0] != 't' {
			continue
		}
		a := s.actor(arg)
		t := taskstate.Task{ID: a.id, Domain: "shop", Tasklist: "mail", Type: "send", Priority: 3, Policy: storyPolicy}
		if slices.Contains(args, "once") {
			t.Policy = policyWith(func(p *taskstate.Policy) { p.MaxAttempts = 1 })
		}
		if most, ok := option(args, "max_deliveries"); ok {
			t.Policy = policyWith(func(p *taskstate.Policy) { p.MaxDeliveries = int32(number(most)) })
		}
		if slices.Contains(args, "on_lost_dead") {
			t.Policy = policyWith(func(p *taskstate.Policy) { p.OnLost = taskstate.LostDies })
		}
		if due, ok := option(args, "due"); ok {
			t.DueAt = s.now.MS + span(due).Milliseconds()
		}
		start, starts := option(args, "start_within")
		finish, finishes := option(args, "finish_within")
		if starts || finishes {
			t.Extra = new(taskstate.Extra)
			t.Extra.Expiry.StartWithinMS, t.Extra.Expiry.FinishWithinMS = span(start).Milliseconds(), span(finish).Milliseconds()
		}
		if verb == "fire" {
			t = s.parked(a.id)
		}
		a.fence.Position, a.fence.Version = m.position(), t.Version
		m.tasks = append(m.tasks, t)
	}
}

// parked is the last stay of a task in the timer store, as it comes back.
func (s *scenario) parked(id ids.TaskID) (t taskstate.Task) {
	for stay, kept := range s.timer {
		if stay.ID == id && stay.Parkings >= t.Parkings {
			t = cloneTask(&kept.task)
		}
	}
	t.State, t.Before = taskstate.None, 0
	return t
}

func (s *scenario) event(kind taskstate.Kind, args []string) taskstate.Event {
	a := s.actor(args[0])
	ev := taskstate.Event{Kind: kind, ID: a.id, Domain: "shop", Message: "why"}
	by, _ := option(args, "by")
	switch kind {
	case taskstate.Changed, taskstate.Cancel:
		if ev.Domain = cmp.Or(by, ev.Domain); kind == taskstate.Changed {
			ev.Update = &taskstate.Update{Priority: 1, Since: isNew}
		}
		return ev
	case taskstate.Started:
		a.fence.Version++
		ev.Worker = taskstate.NewWorker(by, "", 0)
		if in, ok := option(args, "in"); ok {
			ev.Limits = taskstate.NewPath(strings.Split(in, "+")...)
		}
		if _, ok := option(args, "to"); ok {
			ev.Poll = 1
		}
	}
	if by != "" {
		a.fence.Nonce = uint64(by[len(by)-1])
	}
	if v, ok := option(args, "v"); ok {
		a.fence.Version = uint32(number(v))
	}
	if d, ok := option(args, "delay"); ok {
		ev.DelayMS = span(d).Milliseconds()
	}
	ev.NonRetryable = slices.Contains(args, "final")
	ev.Fence = a.fence
	if seq, ok := option(args, "seq"); ok {
		ev.Fence.Position = ids.NewPosition(number(seq), a.fence.Position.Lane())
		if l, ok := option(args, "lane"); ok {
			ev.Fence.Position = ids.NewPosition(number(seq), lane(l))
		}
	}
	return ev
}

// appendOwn sends what the replica proposed.
func (s *scenario) appendOwn() {
	m := &message{events: true}
	for _, p := range s.own {
		m.list = append(m.list, taskstate.Event{Kind: p.Kind, ID: p.ID, Fence: p.Fence, Message: p.Message, Undelivered: p.Undelivered, NotAfter: p.NotAfter})
	}
	s.add(m)
	s.own = nil
}

// read takes the rest of a lane, or the events, or all in the order in which they came.
func (s *scenario) read(reader string, fx *Effects) {
	for _, m := range slices.Clone(s.log) {
		switch {
		case reader == "events" && !m.events, reader != "events" && reader != "all" && (m.events || m.lane != lane(reader)):
		case m.events && s.taken[m], !m.events && m.seq <= s.r.ReadLevels()[m.lane]:
		case !s.r.LeaseHolds(s.now.Mono):
			s.printf("the lease is over")
			return
		case m.events:
			s.turn(m, fx)
		case !s.r.Room(m.lane):
			s.printf("no room for %d", m.seq)
			return
		default:
			s.r.Step(m.input(), s.now, fx)
		}
	}
}

// turn has a message of events stored. If the log has gone on since it came, it lies at the end.
func (s *scenario) turn(m *message, fx *Effects) {
	before := s.r.EventAt()
	for _, read := range s.r.ReadLevels() {
		before = max(before, read)
	}
	if m.seq <= before {
		s.log = slices.DeleteFunc(s.log, func(o *message) bool { return o == m })
		m.seq = s.end() + 1
		s.log = append(s.log, m)
	}
	turn := m.input().(*Turn)
	turn.Admitted = s.r.BeginTurn()
	s.turns, s.taken[m] = append(s.turns, turn), true
	s.r.Step(turn.copied(), s.now, fx)
}

// snapshot has one made of a turn without events, and stored.
func (s *scenario) snapshot(fx *Effects) {
	s.r.snapshots.due = true
	s.add(&message{events: true})
	s.turn(s.log[len(s.log)-1], fx)
	made := fx.Snapshot
	s.snapshots[made.Seq] = made
	s.r.Step(Stored{Kind: JobSnapshot, Snapshot: SnapshotRef{Seq: made.Seq, TimerSeq: made.TimerSeq}}, s.now, fx)
}

func (s *scenario) replay(fx *Effects) {
	s.r = s.takeOver(s.cfg, s.now, fx)
	s.r.Step(Recovered{}, s.now, fx)
}

// give hands the replica what is neither a record nor a takeover.
func (s *scenario) give(verb string, args []string, fx *Effects) {
	switch verb {
	case "tick":
		d := span(args[0])
		s.now.MS, s.now.Mono = s.now.MS+d.Milliseconds(), s.now.Mono+d
		if !slices.Contains(args, "silent") {
			s.r.moves(s.now)
		}
		s.r.Step(Tick{}, s.now, fx)
	case "stored":
		s.stored(map[string]JobKind{"archive": JobArchive, "park": JobPark, "append": JobAppend}[args[0]], fx)
	case "saved":
		if slices.Contains(args, "lost") {
			s.r.Step(Saved{SentAt: s.now.Mono}, s.now, fx)
		} else {
			s.saved = *s.save
			s.r.Step(Saved{OK: true, SentAt: s.now.Mono}, s.now, fx)
		}
	case "purged":
		s.r.Step(Purged{}, s.now, fx)
	case "found":
		s.r.Step(s.found(args), s.now, fx)
	case "bounced":
		a := s.actor(args[0])
		s.r.Step(Bounced{[]GrantRef{{a.id, a.fence}}}, s.now, fx)
	case "hungry":
		s.r.Hungry("shop", "mail", nil, s.now, fx)
	case "retrigger":
		s.r.Retrigger("", -1, s.now.MS, &fx.Effects)
	case "drain":
		s.r.Step(Draining{}, s.now, fx)
	case "get":
		if t := s.r.Get(s.actor(args[0]).id); t != nil {
			lost := ""
			if t.Lost > 0 {
				lost = fmt.Sprintf(" lost=%d", t.Lost)
			}
			s.printf("%s failures=%d%s v%d ready=%s", t.State, t.Failures, lost, t.Version, since(t.ReadyAt))
		} else {
			s.printf("not in memory")
		}
	case "undelivered", "bookings":
		s.ask(verb, args)
	default:
		panic("unknown command " + verb)
	}
}

// stored carries a job out and reports it.
func (s *scenario) stored(kind JobKind, fx *Effects) {
	if kind != JobAppend {
		for _, e := range s.jobs[kind] {
			s.storeSeq++
			if kind == JobArchive {
				put(s.archive, Stay{e.ID, e.Parkings}, s.storeSeq, &e.Task)
			} else {
				put(s.timer, Stay{e.ID, e.Parkings}, s.storeSeq, &e.Task)
			}
		}
		s.jobs[kind] = nil
	}
	s.r.Step(Stored{Kind: kind, Seq: s.storeSeq}, s.now, fx)
}

func (s *scenario) found(args []string) *Found {
	a := new(actor)
	if args[0] != "ends" {
		a = s.actor(args[0])
	}
	f := &Found{Search: Search{ID: a.id, Domain: "shop", Command: !slices.Contains(args, "outcome") && args[0] != "ends"}}
	if by, ok := option(args, "by"); ok {
		f.Domain = by
	}
	for _, m := range s.log {
		if m.events {
			continue
		}
		f.Ends[m.lane] = m.seq
		for i := range m.tasks {
			if m.tasks[i].ID == a.id && slices.Contains(args, "unread") {
				t := cloneTask(&m.tasks[i])
				t.Before, t.Position = t.Position, m.position()
				f.Unread = &t
			}
		}
	}
	t := s.parked(a.id)
	t.State = taskstate.Waiting
	f.Unsure = slices.Contains(args, "unsure")
	switch {
	case slices.Contains(args, "coming"):
		f.Coming = true
	case slices.Contains(args, "waiting"):
		f.Waiting = &t
	case slices.Contains(args, "archived"):
		for stay, kept := range s.archive {
			if stay.ID == a.id {
				end := cloneTask(&kept.task)
				f.Archived = &end
			}
		}
	}
	return f
}
