// Histories of real clients against a cluster of real members that are killed, stopped, cut off, slowed down, moved in time, replaced.
// Every history has to be linearizable: porcupine looks for an order of the operations that fits all answers and their times. An
// operation whose answer never came may have been executed at any time since it was sent, or never. Ends with "N passed, N failed".
//
//	histories -binary target/test-fast/tidemark -directory /tmp/histories -seconds 60
package main

import (
	"flag"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"
)

// Members that the network has room for; a cluster begins with three or five, and some are replaced.
const slots = 9

type options struct {
	binary, directory, fakeTime, planted, only string
	seconds, clients, keys, kinds              int
	seed                                       int64
	corrupts, isKept                           bool
}

func main() {
	var of options
	flag.StringVar(&of.binary, "binary", "", "the server to test")
	flag.StringVar(&of.directory, "directory", "", "where data goes, and histories that are not linearizable")
	flag.IntVar(&of.seconds, "seconds", 60, "begin no round after so long")
	flag.Int64Var(&of.seed, "seed", 0, "what is done, at random; 0: another one each time")
	flag.StringVar(&of.fakeTime, "faketime", "", "libfaketime.so.1; without it no clock is stepped")
	flag.StringVar(&of.planted, "planted", "", "a fault that the server has planted: TIDEMARK_PLANTED_FAULT of all members. Some history has to show it")
	flag.StringVar(&of.only, "faults", "", "only faults whose names contain one of these, separated by commas")
	flag.IntVar(&of.clients, "clients", 12, "clients")
	flag.IntVar(&of.kinds, "kinds", 5, "kinds of data in a round")
	flag.IntVar(&of.keys, "keys", 2, "keys of each kind in a round")
	flag.BoolVar(&of.corrupts, "corrupt", false, "give a read of each round a stale answer: each has to be found")
	flag.BoolVar(&of.isKept, "keep", false, "keep the data of clusters")
	flag.Parse()
	if of.binary == "" || of.directory == "" || of.clients < 1 || of.kinds < 1 || of.kinds > len(modelOf) || of.keys < 1 {
		flag.Usage()
		os.Exit(2)
	}
	if os.Getenv(insideVariable) == "" {
		code, err := enterNamespaces()
		if err != nil && os.Getenv("TIDEMARK_WITHOUT_NAMESPACES") == "1" {
			fmt.Println("skipped: cannot create namespaces:", err)
			os.Exit(0)
		}
		if err != nil {
			fmt.Println("cannot create namespaces, so nothing was tested; run as root, let users create namespaces, or accept this with "+
				"TIDEMARK_WITHOUT_NAMESPACES=1:", err)
			os.Exit(1)
		}
		os.Exit(code)
	}
	if of.seed == 0 {
		of.seed = time.Now().UnixNano() % 1_000_000_007
	}
	fmt.Printf("seed %d\n", of.seed)
	campaign := &campaign{options: of, random: rand.New(rand.NewSource(of.seed)), totals: totals{}, happened: map[string]int{}}
	if err := campaign.run(); err != nil {
		campaign.fail("%v", err)
	}
	if of.planted != "" {
		os.Exit(campaign.reportPlanted())
	}
	campaign.report()
	if campaign.failed > 0 {
		os.Exit(1)
	}
}

// A campaign is one cluster after the other, with some rounds each.
type campaign struct {
	options
	random         *rand.Rand
	deck           []fault
	happened       map[string]int
	passed, failed int
	rounds, number int
	// Histories that are not what is promised.
	illegal int
	// Stale answers that were planted in histories.
	stale  int
	totals totals
}

// fail says what is wrong, and counts it.
func (c *campaign) fail(format string, values ...interface{}) {
	c.failed++
	fmt.Printf("FAILED: %s\n", fmt.Sprintf(format, values...))
}

func (c *campaign) run() error {
	network, err := newNetwork(slots)
	if err != nil {
		return err
	}
	defer network.close()
	end := time.Now().Add(time.Duration(c.seconds) * time.Second)
	for time.Now().Before(end) && !c.hasFound() {
		if err := c.runCluster(network, end); err != nil {
			return err
		}
	}
	return nil
}

// hasFound returns whether the fault that is planted was found.
func (c *campaign) hasFound() bool { return c.planted != "" && c.illegal > 0 }

// reportPlanted says whether the fault that is planted was found, and returns the exit code.
func (c *campaign) reportPlanted() int {
	c.totals.print()
	if c.hasFound() {
		fmt.Printf("the planted fault %s was found in %d rounds with %d clusters, seed %d\n1 passed, 0 failed\n", c.planted, c.rounds, c.number, c.seed)
		return 0
	}
	fmt.Printf("the planted fault %s was NOT found in %d rounds with %d clusters, seed %d\n0 passed, 1 failed\n", c.planted, c.rounds, c.number, c.seed)
	return 1
}

// Rounds of one cluster at most.
const roundsOfCluster = 5

// choose returns one of some texts.
func choose(random *rand.Rand, texts ...string) string { return texts[random.Intn(len(texts))] }

// runCluster founds a cluster, and lets rounds happen to it.
func (c *campaign) runCluster(network *network, end time.Time) error {
	c.number++
	of := settings{
		Binary: c.binary, Planted: c.planted, FakeTime: c.fakeTime, Members: 3,
		Durability: choose(c.random, "always", "interval", "off"),
		Reads:      choose(c.random, "lease", "lease", "index"),
	}
	if c.number%3 == 0 {
		of.Members = 5
	}
	// Deadlines are judged strictly only where no clock is stepped.
	of.Stepped = c.fakeTime != "" && c.number%2 == 0
	var all []int
	for number := 1; number <= slots; number++ {
		all = append(all, number)
	}
	if err := network.set(all, nil); err != nil {
		return err
	}
	directory := filepath.Join(c.directory, fmt.Sprintf("cluster%d", c.number))
	cluster, err := newCluster(of, directory, network)
	if err != nil {
		return err
	}
	defer func() {
		cluster.close()
		if len(cluster.wrong) == 0 && c.failed == 0 && !c.isKept {
			_ = os.RemoveAll(directory)
		}
	}()
	fmt.Printf("cluster %d: %d members, durability %s, reads by %s%s\n", c.number, of.Members, of.Durability, of.Reads,
		map[bool]string{true: ", clocks are stepped"}[of.Stepped])
	nemesis := &nemesis{cluster: cluster, binary: c.binary, slots: slots, done: c.happened}
	if err := cluster.settle(); err != nil {
		for _, wrong := range cluster.wrong {
			c.fail("%s", wrong)
		}
		return fmt.Errorf("a cluster was not founded: %w; see %s", err, directory)
	}
	for round := 0; round < roundsOfCluster && time.Now().Before(end); round++ {
		err := c.runRound(cluster, nemesis)
		for _, wrong := range cluster.wrong {
			c.fail("%s", wrong)
		}
		if err != nil || len(cluster.wrong) > 0 {
			c.fail("cluster %d ends: %v; its data and what was done to it are in %s, the seed is %d", c.number, err, directory, c.seed)
			return nil
		}
	}
	return nil
}

// deal returns the next faults; each comes once before any comes again.
func (c *campaign) deal(count int) []fault {
	var dealt []fault
	for len(dealt) < count {
		if len(c.deck) == 0 {
			for _, one := range faults {
				isWanted := c.only == ""
				for _, name := range strings.Split(c.only, ",") {
					isWanted = isWanted || strings.Contains(one.name, name)
				}
				if isWanted {
					c.deck = append(c.deck, one)
				}
			}
			c.random.Shuffle(len(c.deck), func(i, j int) { c.deck[i], c.deck[j] = c.deck[j], c.deck[i] })
		}
		if len(c.deck) == 0 {
			return dealt
		}
		dealt, c.deck = append(dealt, c.deck[0]), c.deck[1:]
	}
	return dealt
}

// Time within which the faults of a round begin, and time of a round before and after them.
const (
	faultWindow = 1500 * time.Millisecond
	calm        = 300 * time.Millisecond
	// Longest time that clients work: the time to judge a history grows fast with the operations in it that have no answer.
	longestWork = 8 * time.Second
)

// runRound lets clients work while faults happen, waits until the cluster is well, and judges what they got.
func (c *campaign) runRound(cluster *cluster, nemesis *nemesis) error {
	c.rounds++
	random := rand.New(rand.NewSource(c.random.Int63()))
	some := c.deal(2 + random.Intn(3))
	round := &round{cluster: cluster, number: c.rounds, kinds: c.chooseKinds(random), keys: c.keys}
	round.giveUpAfter(10 * time.Minute)
	cluster.note("round %d: %s", c.rounds, strings.Join(round.kinds, ", "))
	creator := newClientOf(round, 0, random)
	created := creator.createAll()
	for _, connection := range creator.connections {
		connection.close()
	}
	if created != nil {
		return created
	}

	var clients []*client
	var wait sync.WaitGroup
	for index := 0; index < c.clients; index++ {
		one := newClientOf(round, index, rand.New(rand.NewSource(random.Int63())))
		clients = append(clients, one)
		wait.Add(1)
		go func() { defer wait.Done(); one.run() }()
	}
	time.Sleep(calm)
	// Histories do not grow for as long as a cluster may take.
	time.AfterFunc(longestWork, func() { atomic.StoreInt32(&round.isOver, 1) })
	nemesis.run(some, faultWindow, random)
	settled := cluster.recover()
	time.Sleep(calm)
	atomic.StoreInt32(&round.isOver, 1)
	if settled == nil {
		round.giveUpAfter(settlePatience)
	} else {
		// Clients do not wait for answers that will not come.
		round.giveUpAfter(0)
	}
	wait.Wait()
	reader := newClientOf(round, len(clients), random)
	clients = append(clients, reader)
	if settled == nil {
		settled = reader.readAll()
	}
	for _, connection := range reader.connections {
		connection.close()
	}
	c.judge(cluster, clients)
	if settled != nil {
		return settled
	}
	// Once more, without clients: all have the same data.
	return cluster.settle()
}

// chooseKinds returns kinds for a round.
func (c *campaign) chooseKinds(random *rand.Rand) []string {
	var kinds []string
	for kind := range modelOf {
		kinds = append(kinds, kind)
	}
	sort.Strings(kinds)
	random.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	return kinds[:c.kinds]
}

// judge judges the histories of a round.
func (c *campaign) judge(cluster *cluster, clients []*client) {
	var operations []operation
	for _, client := range clients {
		operations = append(operations, client.history...)
		for _, wrong := range client.wrong {
			cluster.blame("round %d: %s", c.rounds, wrong)
		}
	}
	all := histories(operations)
	results := make([]porcupine.CheckResult, len(all))
	corrupted := make([]bool, len(all))
	for i := range all {
		if c.corrupts {
			corrupted[i] = all[i].corrupt()
			c.stale += map[bool]int{true: 1}[corrupted[i]]
		}
		results[i] = all[i].judge()
	}
	unanswered := 0
	for i, history := range all {
		total := c.totals.of(history.kind)
		total.histories++
		total.operations += len(history.operations)
		for _, one := range history.operations {
			if one.Answer == unknown {
				total.unanswered++
				unanswered++
			}
		}
		switch {
		case corrupted[i] && results[i] == porcupine.Illegal, !corrupted[i] && results[i] == porcupine.Ok:
			c.passed++
			continue
		case results[i] == porcupine.Unknown:
			total.undecided++
		case results[i] == porcupine.Illegal:
			total.failed++
			c.illegal++
		}
		directory := filepath.Join(c.directory, fmt.Sprintf("seed%d-%s", c.seed, fileName(history.key)))
		why := map[porcupine.CheckResult]string{
			porcupine.Ok: "has a stale read, and was found to be linearizable", porcupine.Illegal: "is not linearizable",
			porcupine.Unknown: fmt.Sprintf("was not judged within %v", judgePatience),
		}[results[i]]
		if reason := judgeFollowers(history.operations); history.kind == "follower" && reason != "" {
			why = "has reads of followers that are not within their bound: " + reason
		}
		if err := history.write(directory); err != nil {
			c.fail("a history could not be written: %v", err)
		}
		cluster.blame("round %d: the history of %s %s; it is in %s", c.rounds, history.key, why, directory)
	}
	refused := 0
	for _, client := range clients {
		refused += client.refused
	}
	cluster.note("round %d: %d operations, %d of them without an answer, %d refusals", c.rounds, len(operations), unanswered, refused)
	fmt.Printf("round %d: %d operations, %d without an answer, %d refusals\n", c.rounds, len(operations), unanswered, refused)
}

func (c *campaign) report() {
	c.totals.print()
	var names []string
	for name := range c.happened {
		names = append(names, fmt.Sprintf("%s %d", name, c.happened[name]))
	}
	sort.Strings(names)
	fmt.Printf("faults: %s\n", strings.Join(names, ", "))
	fmt.Printf("%d rounds with %d clusters, seed %d\n", c.rounds, c.number, c.seed)
	if c.corrupts {
		fmt.Printf("%d histories had a stale answer\n", c.stale)
	}
	if c.failed == 0 && (c.passed == 0 || c.corrupts && c.stale == 0) {
		c.fail("nothing was judged")
	}
	fmt.Printf("%d passed, %d failed\n", c.passed, c.failed)
}
