package main

import (
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// Harms a cluster, as a seed says: which faults, when and for how long. Which member a fault means by "the leader" is found out then, so a
// seed repeats what is done, not what comes of it.
type nemesis struct {
	cluster *cluster
	binary  string
	// Highest number that a member may get.
	slots int
	// What has happened, by name.
	mutex sync.Mutex
	done  map[string]int
}

// A fault begins, lasts, and ends. `begin` returns what ends it, or nil if it cannot be here now.
type fault struct {
	name  string
	begin func(n *nemesis, random *rand.Rand) func()
}

var faults = []fault{
	{"kill the leader", func(n *nemesis, r *rand.Rand) func() { return n.kill(n.theLeader(r)) }},
	{"kill a member", func(n *nemesis, r *rand.Rand) func() { return n.kill(n.some(r, 1)) }},
	{"kill most members", func(n *nemesis, r *rand.Rand) func() { return n.kill(n.some(r, n.most())) }},
	{"kill all members", func(n *nemesis, r *rand.Rand) func() { return n.kill(n.some(r, len(n.cluster.numbers()))) }},
	{"stop the leader by SIGSTOP", func(n *nemesis, r *rand.Rand) func() { return n.stop(n.theLeader(r)) }},
	{"stop a member by SIGSTOP", func(n *nemesis, r *rand.Rand) func() { return n.stop(n.some(r, 1)) }},
	{"stop most members by SIGSTOP", func(n *nemesis, r *rand.Rand) func() { return n.stop(n.some(r, n.most())) }},
	{"cut the leader off", func(n *nemesis, r *rand.Rand) func() { return n.cutOff(r, true, true) }},
	{"cut what the leader sends", func(n *nemesis, r *rand.Rand) func() { return n.cutOff(r, true, false) }},
	{"cut what the leader hears", func(n *nemesis, r *rand.Rand) func() { return n.cutOff(r, false, true) }},
	{"cut in halves", (*nemesis).halves},
	{"cut to a bridge", (*nemesis).bridge},
	{"cut some directions", (*nemesis).someDirections},
	{"step a clock", (*nemesis).stepClock},
	{"slow disk", (*nemesis).slowDisk},
	{"full disk", (*nemesis).fullDisk},
	{"transfer the lead", (*nemesis).transfer},
	{"restart in order", (*nemesis).restart},
	{"replace a member", (*nemesis).replace},
	{"snapshots", (*nemesis).snapshots},
}

// Shortest and longest time of a fault.
const (
	faultMin = 200 * time.Millisecond
	faultMax = 2000 * time.Millisecond
)

// run lets some faults happen, beginning at random times of `window`, and returns when all have ended.
func (n *nemesis) run(some []fault, window time.Duration, random *rand.Rand) {
	var wait sync.WaitGroup
	for _, one := range some {
		// What a fault takes at random does not depend on when others do.
		own := rand.New(rand.NewSource(random.Int63()))
		start := time.Duration(own.Int63n(int64(window)))
		length := faultMin + time.Duration(own.Int63n(int64(faultMax-faultMin)))
		wait.Add(1)
		go func(one fault) {
			defer wait.Done()
			time.Sleep(start)
			end := one.begin(n, own)
			if end == nil {
				n.cluster.note("no chance to %s", one.name)
				return
			}
			n.mutex.Lock()
			n.done[one.name]++
			n.mutex.Unlock()
			time.Sleep(length)
			end()
			n.cluster.note("ended: %s", one.name)
		}(one)
	}
	wait.Wait()
}

func (n *nemesis) most() int { return len(n.cluster.numbers())/2 + 1 }

// take returns the member for a fault, unless another fault concerns it.
func (n *nemesis) take(number int) *member {
	m := n.cluster.member(number)
	if m == nil {
		return nil
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.busy {
		return nil
	}
	m.busy = true
	return m
}

func release(members []*member) {
	for _, m := range members {
		m.mutex.Lock()
		m.busy = false
		m.mutex.Unlock()
	}
}

// some returns up to so many members at random, for a fault.
func (n *nemesis) some(random *rand.Rand, count int) []*member {
	numbers := n.cluster.numbers()
	random.Shuffle(len(numbers), func(i, j int) { numbers[i], numbers[j] = numbers[j], numbers[i] })
	var taken []*member
	for _, number := range numbers {
		if len(taken) == count {
			break
		}
		if m := n.take(number); m != nil {
			taken = append(taken, m)
		}
	}
	return taken
}

// theLeader returns the leader for a fault, or another member if none is known.
func (n *nemesis) theLeader(random *rand.Rand) []*member {
	if leader := n.cluster.leader(); leader != 0 {
		if m := n.take(leader); m != nil {
			return []*member{m}
		}
	}
	return n.some(random, 1)
}

// eitherOne returns the leader or any member for a fault.
func (n *nemesis) eitherOne(random *rand.Rand) []*member {
	if random.Intn(2) == 0 {
		return n.theLeader(random)
	}
	return n.some(random, 1)
}

func names(members []*member) string {
	text := ""
	for _, m := range members {
		text += fmt.Sprintf(" %d", m.number)
	}
	return text
}

func (n *nemesis) kill(members []*member) func() {
	if len(members) == 0 {
		return nil
	}
	n.cluster.note("kill -9 of%s", names(members))
	var wait sync.WaitGroup
	for _, m := range members {
		wait.Add(1)
		go func(m *member) { defer wait.Done(); m.end(syscall.SIGKILL) }(m)
	}
	wait.Wait()
	return func() { n.start(members) }
}

func (n *nemesis) start(members []*member) {
	defer release(members)
	for _, m := range members {
		if err := n.cluster.start(m); err != nil {
			n.cluster.blame("member %d could not be started: %v", m.number, err)
		}
	}
}

func (n *nemesis) stop(members []*member) func() {
	if len(members) == 0 {
		return nil
	}
	n.cluster.note("SIGSTOP of%s", names(members))
	for _, m := range members {
		_ = m.signal(syscall.SIGSTOP)
	}
	return func() {
		defer release(members)
		for _, m := range members {
			_ = m.signal(syscall.SIGCONT)
		}
	}
}

func (n *nemesis) cut(what string, directions map[direction]bool) func() {
	n.cluster.note("cut %s: %v", what, directions)
	mend, err := n.cluster.cut(directions)
	if err != nil {
		n.cluster.blame("the network could not be cut: %v", err)
	}
	return mend
}

// cutOff cuts what the leader sends to all others, what it hears from them, or both.
func (n *nemesis) cutOff(random *rand.Rand, sends, hears bool) func() {
	numbers := n.cluster.numbers()
	leader := n.cluster.leader()
	if leader == 0 {
		leader = numbers[random.Intn(len(numbers))]
	}
	directions := map[direction]bool{}
	for _, other := range numbers {
		if other != leader && sends {
			directions[direction{leader, other}] = true
		}
		if other != leader && hears {
			directions[direction{other, leader}] = true
		}
	}
	return n.cut(fmt.Sprintf("of member %d", leader), directions)
}

func between(directions map[direction]bool, some, others []int) {
	for _, one := range some {
		for _, other := range others {
			directions[direction{one, other}] = true
			directions[direction{other, one}] = true
		}
	}
}

func (n *nemesis) shuffled(random *rand.Rand) []int {
	numbers := n.cluster.numbers()
	random.Shuffle(len(numbers), func(i, j int) { numbers[i], numbers[j] = numbers[j], numbers[i] })
	return numbers
}

// halves cuts the members into a minority and a majority.
func (n *nemesis) halves(random *rand.Rand) func() {
	numbers := n.shuffled(random)
	directions := map[direction]bool{}
	between(directions, numbers[:len(numbers)/2], numbers[len(numbers)/2:])
	return n.cut("in halves", directions)
}

// bridge cuts the members into two halves and one that sees both.
func (n *nemesis) bridge(random *rand.Rand) func() {
	numbers := n.shuffled(random)
	directions := map[direction]bool{}
	middle := (len(numbers) - 1) / 2
	between(directions, numbers[:middle], numbers[middle:len(numbers)-1])
	return n.cut(fmt.Sprintf("to a bridge at member %d", numbers[len(numbers)-1]), directions)
}

// someDirections cuts each direction with the chance of a third.
func (n *nemesis) someDirections(random *rand.Rand) func() {
	directions := map[direction]bool{}
	numbers := n.cluster.numbers()
	for _, from := range numbers {
		for _, to := range numbers {
			if from != to && random.Intn(3) == 0 {
				directions[direction{from, to}] = true
			}
		}
	}
	return n.cut("in some directions", directions)
}

// stepClock steps a member's clock by up to a minute. Half of the time it is stepped back then.
func (n *nemesis) stepClock(random *rand.Rand) func() {
	if !n.cluster.Stepped {
		return nil
	}
	members := n.eitherOne(random)
	if len(members) == 0 {
		return nil
	}
	seconds := random.Intn(121) - 60
	isLasting := random.Intn(2) == 0
	n.cluster.note("the clock of%s is %+d s", names(members), seconds)
	set := func(seconds int) {
		if err := n.cluster.setClock(members[0], seconds); err != nil {
			n.cluster.blame("a clock could not be stepped: %v", err)
		}
	}
	set(seconds)
	return func() {
		defer release(members)
		if !isLasting {
			set(0)
		}
	}
}

// slowDisk has each sync of a member take long.
func (n *nemesis) slowDisk(random *rand.Rand) func() {
	members := n.eitherOne(random)
	if len(members) == 0 {
		return nil
	}
	milliseconds := 50 + random.Intn(500)
	inject := fmt.Sprintf("inject=fsync,fdatasync,msync,sync_file_range:delay_enter=%d", milliseconds*1000)
	trace := exec.Command("strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fsync,fdatasync,msync,sync_file_range", "-e", inject,
		"-p", fmt.Sprint(members[0].pid()))
	trace.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := trace.Start(); err != nil {
		n.cluster.blame("strace could not be started: %v", err)
		release(members)
		return nil
	}
	n.cluster.note("syncs of%s take %d ms longer", names(members), milliseconds)
	return func() {
		defer release(members)
		_ = trace.Process.Signal(syscall.SIGINT)
		_ = trace.Wait()
	}
}

// fullDisk fills a member's disk, and frees it.
func (n *nemesis) fullDisk(random *rand.Rand) func() {
	members := n.eitherOne(random)
	if len(members) == 0 {
		return nil
	}
	file := filepath.Join(members[0].directory, "ballast")
	ballast, err := os.Create(file)
	if err != nil {
		n.cluster.blame("a disk could not be filled: %v", err)
		release(members)
		return nil
	}
	// Pages of a file system in memory: what does not fit is not written.
	block := make([]byte, 1<<20)
	for len(block) > 0 {
		if _, err := ballast.Write(block); err != nil {
			block = block[:len(block)/2]
		}
	}
	ballast.Close()
	n.cluster.note("the disk of%s is full", names(members))
	return func() {
		defer release(members)
		_ = os.Remove(file)
	}
}

// ask sends a member one command, and returns its answer for the list of faults.
func ask(number int, command ...string) string {
	connection, err := dial(clientAddress(number), answerPatience)
	if err != nil {
		return err.Error()
	}
	defer connection.close()
	answers, err := connection.call(answerPatience, command)
	if err != nil {
		return err.Error()
	}
	return answers[0]
}

// transfer asks the leader to have another member lead, or that one to take the lead.
func (n *nemesis) transfer(random *rand.Rand) func() {
	leader := n.cluster.leader()
	if leader == 0 {
		return nil
	}
	numbers := n.shuffled(random)
	to := numbers[0]
	if to == leader {
		to = numbers[1]
	}
	if random.Intn(2) == 0 {
		n.cluster.note("member %d is asked to give the lead to %d: %s", leader, to, ask(leader, "CLUSTER", "TRANSFER", fmt.Sprint(to)))
	} else {
		n.cluster.note("member %d is asked to take the lead: %s", to, ask(to, "CLUSTER", "FAILOVER"))
	}
	return func() {}
}

// restart stops a member by SIGTERM, as for an upgrade.
func (n *nemesis) restart(random *rand.Rand) func() {
	members := n.eitherOne(random)
	if len(members) == 0 {
		return nil
	}
	n.cluster.note("SIGTERM of%s", names(members))
	members[0].end(syscall.SIGTERM)
	return func() { n.start(members) }
}

// Longest wait for a member to take the place of another.
const replacePatience = "20s"

// replace takes a new member in, and another one out.
func (n *nemesis) replace(random *rand.Rand) func() {
	numbers := n.shuffled(random)
	newest := 0
	for _, number := range numbers {
		if number > newest {
			newest = number
		}
	}
	if newest == n.slots {
		return nil
	}
	next := newest + 1
	old, asked := numbers[0], numbers[len(numbers)-1]
	n.cluster.note("member %d joins and takes the place of %d", next, old)
	err := n.cluster.add(next, "--cluster-join", clientAddress(asked)+","+clientAddress(old),
		"--cluster-address", peerAddress(next)+"/"+clientAddress(next))
	if err != nil {
		n.cluster.blame("a member could not be added: %v", err)
		return nil
	}
	return func() {
		output, err := exec.Command(n.binary, "cluster", "replace", fmt.Sprint(old), fmt.Sprint(next), "--timeout", replacePatience,
			"-h", fmt.Sprintf("10.79.1.%d", asked), "-p", fmt.Sprint(clientPort)).CombinedOutput()
		n.cluster.note("`cluster replace` ended with %v: %s", err, output)
	}
}

// snapshots has all members write one.
func (n *nemesis) snapshots(random *rand.Rand) func() {
	for _, number := range n.shuffled(random) {
		n.cluster.note("member %d is asked for a snapshot: %s", number, ask(number, "BGSAVE"))
	}
	return func() {}
}
