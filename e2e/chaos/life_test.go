package chaos_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/e2e/cluster"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

const (
	// lifeRate is how many tasks are submitted a second in the short form.
	lifeRate = 150
	// lifeLasts is how long tasks are submitted in a round, in both forms; longer if its fault takes longer.
	lifeLasts = 20 * time.Second
	// shortRounds is how many rounds there are of the short form.
	shortRounds = 1
	// beforeFault is how long a round goes on before its fault, at most.
	beforeFault = 6 * time.Second
	// examineEvery is after how many rounds the doctor looks.
	examineEvery = 10
	// endsOfRound is how long the tasks of a round take to end, at most.
	endsOfRound = 4 * time.Minute
	// jobsMost is more than operators have to do in a round.
	jobsMost = 200_000
)

// The types of tasks: with a limit and heartbeats, one whose attempts may take long, one that is always dead, and all else.
const (
	plainLife, beatingLife, slowLife, goneLife = "plain", "beating", "slow", "gone"
	beatingMost                                = 30
	slowAttempt                                = time.Second
)

// life is a load of all that may become of a task, with an account of its own. What a round submits ends in it.
type life struct {
	t       *testing.T
	cluster *cluster.Cluster
	client  *yard.Client
	rate    int
	round   int
	// crew are the workers; each is killed and replaced.
	crew []func()

	mu     sync.Mutex
	made   int
	tasks  map[int]*lifeTask    // by number, of this round
	before map[int]*lifeTask    // those of the round before
	byID   map[string]*lifeItem // of this round
	runs   []*lifeRun           // of this round
	// retired counts the generations of an order key: one behind a submit without an answer is used no more.
	retired map[string]int
	// redriven is how many letters redrives said to have brought back, repeats how many requests were repeated that were answered.
	redriven int64
	repeats  int
	// asks counts the answers to cancels and updates.
	asks map[string]int
	// batches are those of this round; those before it had others.
	batches       map[string]*lifeBatch
	batchesBefore map[string]bool
	// waiting are those who wait for batches.
	waiting  sync.WaitGroup
	faults   []string
	offences []string
	reports  []lifeReport
	// queued is what operators have to do, open how much of that is not done.
	queued chan lifeJob
	open   int
}

// TestI1_I4_I6_I14_AllThatMayBecomeOfATaskThroughFaults: tasks with order keys and unique keys, that are updated, cancelled, put off, expire, die, block their key
// and are redriven, while one process or another is killed or paused, Redis is lost, and NATS nodes are. Each accepted task ends as it may, once, in order and alone.
func TestI1_I4_I6_I14_AllThatMayBecomeOfATaskThroughFaults(t *testing.T) {
	testkit.Slow(t, "disturbs a cluster of processes")
	s := settingsOf(t)
	rounds := s.rounds
	if !s.long {
		t.Parallel()
		rounds, s.rate = shortRounds, number(t, rateEnv, lifeRate)
	}
	seed := testkit.Seed(t)
	c := cluster.Start(t, binaries, instances, cluster.WithNATSNodes(trio), cluster.WithRedis("--save", "15 1"))
	l := &life{t: t, cluster: c, client: c.Client(domain), rate: s.rate, retired: map[string]int{}, batchesBefore: map[string]bool{}}
	l.define()
	working, stopWorking := context.WithCancel(context.Background())
	var busy sync.WaitGroup
	t.Cleanup(func() {
		stopWorking()
		busy.Wait()
	})
	l.forget()
	l.hire(working, &busy)
	deck := l.deck(seed)
	for n := range rounds {
		if n%len(deck) == 0 {
			seed.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
		}
		l.round = n + 1
		l.play(deck[n%len(deck)], seed)
		if l.round%examineEvery == 0 || l.round == rounds {
			c.CheckAll()
		}
	}
	l.summary()
}

// define makes the domain, the types and the tasklist.
func (l *life) define() {
	l.t.Helper()
	retry := &yard.RetryPolicy{MaxAttempts: 60, InitialInterval: 50 * time.Millisecond, MaxInterval: 200 * time.Millisecond, Jitter: yard.JitterEqual}
	define(l.t, l.cluster, l.client,
		yard.TaskType{Name: plainLife, StartToClose: shortLeases.startToClose, Retry: retry},
		yard.TaskType{Name: calledLife, StartToClose: shortLeases.startToClose, Retry: retry},
		yard.TaskType{Name: goneLife, StartToClose: shortLeases.startToClose, Retry: retry},
		yard.TaskType{Name: slowLife, StartToClose: slowAttempt, Retry: retry},
		yard.TaskType{Name: beatingLife, StartToClose: shortLeases.startToClose, HeartbeatTimeout: shortLeases.heartbeat, Retry: retry, MaxConcurrency: beatingMost})
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	testkit.Eventually(l.t, within, func() error {
		_, err := l.client.PutTasklist(ctx, yard.Tasklist{Name: tasklist, Partitions: 2})
		return err
	})
}

// forget begins a new account.
func (l *life) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.before = l.tasks
	l.tasks, l.byID, l.runs, l.faults = map[int]*lifeTask{}, map[string]*lifeItem{}, nil, nil
	l.redriven, l.repeats, l.offences, l.asks, l.open = 0, 0, nil, map[string]int{}, 0
	for id := range l.batches {
		l.batchesBefore[id] = true
	}
	l.batches = map[string]*lifeBatch{}
	l.queued = make(chan lifeJob, jobsMost)
}

// play is one round: tasks, a fault, the end of all tasks, and what was wrong.
func (l *life) play(fault lifeFault, seed *rand.Rand) {
	l.t.Helper()
	l.forget()
	began := time.Now()
	producing, stopProducing := context.WithCancel(l.t.Context())
	operating, stopOperating := context.WithCancel(l.t.Context())
	var producers, operators sync.WaitGroup
	l.produce(producing, &producers, seed)
	l.operate(operating, &operators, seed)
	wait(l.t.Context(), time.Second+upTo(seed, beforeFault))
	l.note("%s", fault.name)
	fault.do(seed)
	wait(l.t.Context(), lifeLasts-time.Since(began))
	stopProducing()
	producers.Wait()
	submitted := time.Since(began)
	l.cluster.AwaitReady()
	l.end()
	l.cluster.AwaitReplicas() // or the next round may lose what one node alone has; while much is written some are always behind
	stopOperating()
	operators.Wait()
	ended := time.Since(began)
	r := l.check()
	r.round, r.faults, r.lasted, r.ended = l.round, strings.Join(l.faults, "; "), submitted, ended-submitted
	l.probe()
	r.violations = len(l.offences)
	l.reports = append(l.reports, r)
	l.t.Logf("round %d:\n%s", l.round, lifeTable([]lifeReport{r}))
	slices.Sort(l.offences)
	for i, o := range l.offences {
		if i == offencesMax {
			l.t.Errorf("%d more", len(l.offences)-i)
			break
		}
		l.t.Errorf("round %d: %s", l.round, o)
	}
	l.cluster.Check()
}

// note writes down what was disturbed.
func (l *life) note(format string, args ...any) {
	l.t.Helper()
	text := fmt.Sprintf(format, args...)
	l.t.Logf("round %d: %s", l.round, text)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults = append(l.faults, text)
}

// offend notes a violation.
func (l *life) offend(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.offences = append(l.offences, fmt.Sprintf(format, args...))
}

// lifeReport is a line of the table.
type lifeReport struct {
	round                                                        int
	faults                                                       string
	lasted, ended                                                time.Duration
	submitted, accepted, unsure, refused                         int
	completed, cancelled, dead, expired, redriven, blocked, runs int
	updates, cancels, repeats, taken, replaced, batches          int
	answers, starts                                              []time.Duration
	violations                                                   int
}

func (r *lifeReport) add(o lifeReport) {
	r.lasted, r.ended = r.lasted+o.lasted, r.ended+o.ended
	for _, n := range [][2]*int{
		{&r.submitted, &o.submitted},
		{&r.accepted, &o.accepted},
		{&r.unsure, &o.unsure},
		{&r.refused, &o.refused},
		{&r.completed, &o.completed},
		{&r.cancelled, &o.cancelled},
		{&r.dead, &o.dead},
		{&r.expired, &o.expired},
		{&r.redriven, &o.redriven},
		{&r.blocked, &o.blocked},
		{&r.runs, &o.runs},
		{&r.updates, &o.updates},
		{&r.cancels, &o.cancels},
		{&r.repeats, &o.repeats},
		{&r.taken, &o.taken},
		{&r.replaced, &o.replaced},
		{&r.batches, &o.batches},
		{&r.violations, &o.violations},
	} {
		*n[0] += *n[1]
	}
	r.answers, r.starts = append(r.answers, o.answers...), append(r.starts, o.starts...)
}

// summary prints all rounds, and their sum.
func (l *life) summary() {
	l.t.Helper()
	sum := lifeReport{faults: "all"}
	for _, r := range l.reports {
		sum.add(r)
	}
	l.t.Logf("all rounds:\n%s", lifeTable(append(l.reports, sum)))
}

func lifeTable(reports []lifeReport) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	// a strings.Builder takes everything
	_, _ = fmt.Fprintln(w, "round\tlasted\tended in\tsubmitted\taccepted\tunsure\trefused\tcompleted\tcancelled\tdead\texpired\tredriven\tblocked\truns\tupdates\tcancels\t"+
		"repeats\tkey taken\treplaced\tbatches\tanswer p50\tp99\tmost\tstart p50\tp99\tmost\tviolations\t  faults")
	for _, r := range reports {
		_, _ = fmt.Fprintf(w, "%d\t%.0f s\t%.0f s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t%s\t%d\t  %s\n", r.round, r.lasted.Seconds(), r.ended.Seconds(),
			r.submitted, r.accepted, r.unsure, r.refused, r.completed, r.cancelled, r.dead, r.expired, r.redriven, r.blocked, r.runs, r.updates, r.cancels, r.repeats, r.taken, r.replaced, r.batches,
			quantiles(r.answers), quantiles(r.starts), r.violations, r.faults)
	}
	_ = w.Flush()
	return b.String()
}

// quantiles are the median, the 99th percentile and the most, with tabs.
func quantiles(all []time.Duration) string {
	if len(all) == 0 {
		return "–\t–\t–"
	}
	slices.Sort(all)
	ms := func(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }
	return ms(all[len(all)/2]) + "\t" + ms(all[len(all)*99/100]) + "\t" + ms(all[len(all)-1])
}
