package chaos_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/e2e/cluster"
	"github.com/yardmaster-io/yardmaster/e2e/sealed"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

const (
	// syncDelay is how long a sync of the slow disk takes.
	syncDelay = 200 * time.Millisecond
	// hangsFor is for how long a server hangs: less than it takes the others to elect leaders.
	hangsFor = 3 * time.Second
	// slowEvery is the time between two submits, and observed is for how long they are observed.
	slowEvery = 10 * time.Millisecond
	observed  = 5 * time.Second
	// slowServer has the slow disk, and slowPartition is led by a server that is slow.
	slowServer, slowPartition = 0, 0
)

// TestSubmitsAvoidASlowServer: one of three NATS servers leads the log of a partition, and its disk is slow for a while, or
// it hangs. Submits go to the other partitions, long before an append fails, and come back afterwards.
func TestSubmitsAvoidASlowServer(t *testing.T) {
	testkit.Slow(t, "disturbs a cluster of processes")
	disk := mountSlowDisk(t)
	c := cluster.Start(t, binaries, 1, cluster.WithNATSNodes(trio), cluster.WithNATSData(func(i int, folder string) string {
		if i == slowServer && disk != nil {
			return disk.folder
		}
		return folder
	}))
	s := &slowRun{t: t, c: c, conn: c.Conn(domain), inside: c.Inside()}
	var err error
	s.client, err = yard.NewClient(s.conn, domain)
	testkit.NoError(t, err)
	define(t, c, s.client, yard.TaskType{Name: string(quick)})
	c.AwaitReplicas()

	if disk == nil {
		t.Log("without root and /dev/fuse no disk is slow here")
	} else {
		s.leads(slowServer)
		s.report("all servers are quick", s.submits(observed))
		s.use()
		disk.delay(syncDelay)
		during := s.submits(observed)
		s.report("the disk of one server is slow", during)
		s.avoided(during, syncDelay)
		s.shown("its appends are slow")
		disk.delay(0)
		s.comesBack()
	}

	hangs := s.neitherConnected()
	s.leads(hangs)
	s.report("all servers are quick", s.submits(observed))
	s.use()
	c.Pause(cluster.NATS, hangs)
	during := s.submits(hangsFor)
	c.Resume(cluster.NATS, hangs)
	s.report("one server hangs", during)
	s.avoided(during, time.Second)
	s.comesBack()
	c.AwaitReplicas()
	c.CheckAll()
}

type slowRun struct {
	t            *testing.T
	c            *cluster.Cluster
	conn, inside *nats.Conn
	client       *yard.Client
}

// submitted is one submit.
type submitted struct {
	partition int
	took      time.Duration
}

// submits submits a task each slowEvery for so long, and returns when all are answered.
func (s *slowRun) submits(lasts time.Duration) (all []submitted) {
	s.t.Helper()
	var mu sync.Mutex
	var under sync.WaitGroup
	ctx, cancel := context.WithTimeout(s.t.Context(), within)
	defer cancel()
	tick := time.NewTicker(slowEvery)
	defer tick.Stop()
	for end := time.Now().Add(lasts); time.Now().Before(end); <-tick.C {
		under.Go(func() {
			began := time.Now()
			task, err := s.client.Submit(ctx, yard.Task{Type: string(quick), Tasklist: tasklist})
			if err != nil {
				s.t.Errorf("a submit: %v", err)
				return
			}
			id, err := ids.ParseTaskID(task)
			testkit.Check(s.t, err)
			mu.Lock()
			defer mu.Unlock()
			all = append(all, submitted{id.Partition(), time.Since(began)})
		})
	}
	under.Wait()
	slices.SortFunc(all, func(a, b submitted) int { return int(a.took - b.took) })
	return all
}

// use submits until requests go to the slow partition. The next ones go there too, until others have far fewer tasks.
func (s *slowRun) use() {
	s.t.Helper()
	tasks := slices.Repeat([]yard.Task{{Type: string(quick), Tasklist: tasklist}}, 100)
	testkit.Eventually(s.t, within, func() error {
		all, err := s.client.SubmitMany(s.t.Context(), tasks)
		if err != nil {
			return err
		}
		if id, err := ids.ParseTaskID(all[0]); err != nil || id.Partition() != slowPartition {
			return fmt.Errorf("it went to partition %d: %v", id.Partition(), err)
		}
		return nil
	})
}

func (s *slowRun) report(when string, all []submitted) {
	s.t.Helper()
	got := map[int]int{}
	for _, one := range all {
		got[one.partition]++
	}
	s.t.Logf("%s: %d submits, p50 %v, p99 %v, most %v, by partition %v", when, len(all), all[len(all)/2].took, all[len(all)*99/100].took, all[len(all)-1].took, got)
}

// avoided checks that few submits went to the slow partition, and that few took as long as it does.
func (s *slowRun) avoided(all []submitted, slow time.Duration) {
	s.t.Helper()
	there, late := 0, 0
	for _, one := range all {
		if one.partition == slowPartition {
			there++
		}
		if one.took >= slow {
			late++
		}
	}
	if most := len(all) / 20; there > most || late > most {
		s.t.Errorf("of %d submits %d went to the slow partition, %d took %v or more", len(all), there, late, slow)
	}
}

// shown checks that operators see the slow partition.
func (s *slowRun) shown(text string) {
	s.t.Helper()
	out, err := s.c.Yard(binaries, sealed.Operator(), "cluster", "queues")
	if err != nil || !strings.Contains(out, text) {
		s.t.Errorf("yard cluster queues: %v\n%s", err, out)
	}
	out, err = s.c.Yard(binaries, sealed.Operator(), "status")
	if err != nil || !strings.Contains(out, "are slow") {
		s.t.Errorf("yard status: %v\n%s", err, out)
	}
}

// comesBack submits until the slow partition has its full share again.
func (s *slowRun) comesBack() {
	s.t.Helper()
	began := time.Now()
	testkit.Eventually(s.t, within, func() error {
		s.submits(10 * slowEvery)
		page, err := s.c.Metrics(cluster.Frontend, 0)
		if err == nil && !strings.Contains(page, fmt.Sprintf("yardmaster_submit_partition_share_ratio{partition=\"%d\"} 1\n", slowPartition)) {
			err = fmt.Errorf("partition %d does not have its full share", slowPartition)
		}
		return err
	})
	s.t.Logf("it has its full share again after %v", time.Since(began).Round(time.Millisecond))
}

// leads has one server lead the log of the slow partition, and the others those of the other partitions.
func (s *slowRun) leads(server int) {
	s.t.Helper()
	js, err := jetstream.New(s.inside)
	testkit.NoError(s.t, err)
	for p := range topology.DefaultPartitioning().History {
		leader := server
		if p != slowPartition {
			leader = (server + 1 + p%(trio-1)) % trio
		}
		name, stream := fmt.Sprintf("nats-%d", leader), topology.HistoryStream(p)
		testkit.Eventually(s.t, within, func() error {
			info, err := clusterInfo(s.t.Context(), js, stream)
			if err == nil && info.Leader == name {
				return nil
			}
			_, err = s.inside.Request("$JS.API.STREAM.LEADER.STEPDOWN."+stream, fmt.Appendf(nil, `{"placement":{"preferred":%q}}`, name), leaderTimeout)
			return fmt.Errorf("%s does not lead %s: %v", name, stream, err)
		})
	}
}

func clusterInfo(ctx context.Context, js jetstream.JetStream, name string) (*jetstream.ClusterInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, leaderTimeout)
	defer cancel()
	stream, err := js.Stream(ctx, name)
	if err != nil {
		return nil, err
	}
	return stream.CachedInfo().Cluster, nil
}

// neitherConnected is a server that neither the frontend nor the client is connected to.
func (s *slowRun) neitherConnected() int {
	s.t.Helper()
	connected := regexp.MustCompile(`connected to NATS.*nats://([0-9.:]+)`).FindAllStringSubmatch(s.c.Log(cluster.Frontend, 0), -1)
	if len(connected) == 0 {
		s.t.Fatal("the frontend does not say where it is connected")
	}
	frontend := connected[len(connected)-1][1]
	return slices.IndexFunc(strings.Split(s.c.URL(), ","), func(url string) bool {
		return !strings.HasSuffix(url, frontend) && !strings.HasSuffix(s.conn.ConnectedUrl(), strings.TrimPrefix(url, "nats://"))
	})
}

// slowDisk is a folder whose syncs take a time.
type slowDisk struct {
	t      *testing.T
	folder string
	input  io.Writer
}

// mountSlowDisk mounts one until the test ends. It returns nil if this machine cannot.
func mountSlowDisk(t *testing.T) *slowDisk {
	t.Helper()
	if dev, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0); err != nil || os.Geteuid() != 0 {
		return nil
	} else {
		testkit.NoError(t, dev.Close())
	}
	root := t.TempDir()
	folder, mounted, program := filepath.Join(root, "folder"), filepath.Join(root, "slow"), filepath.Join(root, "slowdisk")
	for _, f := range []string{folder, mounted} {
		testkit.NoError(t, os.Mkdir(f, 0o700))
	}
	if out, err := exec.Command("go", "build", "-C", "../../infra/tools/slowdisk", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("build slowdisk: %v\n%s", err, out)
	}
	cmd := exec.Command(program, folder, mounted)
	cmd.Stderr = os.Stderr
	input, err := cmd.StdinPipe()
	testkit.NoError(t, err)
	output, err := cmd.StdoutPipe()
	testkit.NoError(t, err)
	testkit.NoError(t, cmd.Start())
	t.Cleanup(func() {
		testkit.Check(t, input.Close())
		testkit.Check(t, cmd.Wait())
	})
	if _, err := bufio.NewReader(output).ReadString('\n'); err != nil {
		t.Fatalf("slowdisk is not mounted: %v", err)
	}
	return &slowDisk{t, mounted, input}
}

// delay sets how long a sync takes from now on.
func (d *slowDisk) delay(each time.Duration) {
	d.t.Helper()
	testkit.NoError(d.t, testkit.Err(fmt.Fprintln(d.input, each)))
}
