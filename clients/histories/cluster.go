package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"syscall"
	"time"
)

// How the members of a cluster are started.
type settings struct {
	Binary     string
	Members    int
	Durability string
	Reads      string
	// Whether the clocks of members can be stepped.
	Stepped bool
	// libfaketime, for that.
	FakeTime string
	// A fault that a server built with them has planted; empty for none.
	Planted string
}

const (
	// Size of a member's disk, of which 128 MB have to stay free when the snapshot of another member arrives. Its log has segments of
	// segmentBytes, and a snapshot is taken often, so that members that were away need one.
	diskMegabytes  = 256
	segmentBytes   = 256 << 10
	snapshotEvery  = 4000
	heartbeatMs    = 50
	electionMinMs  = 200
	electionMaxMs  = 400
	answerPatience = 500 * time.Millisecond
	// Longest wait for a group to be well once nothing harms it.
	settlePatience = 90 * time.Second
)

// A member of a cluster: a process that is started, harmed and ended.
type member struct {
	number    int
	directory string
	// How it finds the others at its first start.
	flags []string

	mutex   sync.Mutex
	process *exec.Cmd
	ended   chan struct{}
	// Whether its end is what this program wants.
	ending bool
	// Whether a fault concerns it; one at a time does.
	busy bool
	// Whether the group has had it as a member that votes, so that it has been removed if it is none any more.
	hasVoted bool
}

// A cluster of real processes. Its members change; numbers are not used again.
type cluster struct {
	settings
	directory string
	network   *network

	mutex   sync.Mutex
	members map[int]*member
	cuts    map[int]map[direction]bool
	nextCut int
	log     *os.File
	// What must not happen, in words.
	wrong []string
}

func newCluster(of settings, directory string, network *network) (*cluster, error) {
	c := &cluster{settings: of, directory: directory, network: network, members: map[int]*member{}, cuts: map[int]map[direction]bool{}}
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(directory, "faults.log"))
	if err != nil {
		return nil, err
	}
	c.log = log
	c.note("%d members, durability %s, reads by %s, clocks stepped: %v, planted: %q", of.Members, of.Durability, of.Reads, of.Stepped, of.Planted)
	var founders []string
	for number := 1; number <= of.Members; number++ {
		founders = append(founders, fmt.Sprintf("%d=%s/%s", number, peerAddress(number), clientAddress(number)))
	}
	for number := 1; number <= of.Members; number++ {
		if err := c.add(number, "--cluster-members", strings.Join(founders, ",")); err != nil {
			c.close()
			return nil, err
		}
	}
	return c, nil
}

var began = time.Now()

// now returns nanoseconds since the program began, by a clock that is never stepped.
func now() int64 { return int64(time.Since(began)) }

// note writes a line to the cluster's list of faults.
func (c *cluster) note(format string, values ...interface{}) {
	fmt.Fprintf(c.log, "%9.3f %s\n", float64(now())/1e9, fmt.Sprintf(format, values...))
}

func (c *cluster) blame(format string, values ...interface{}) {
	text := fmt.Sprintf(format, values...)
	c.note("WRONG: %s", text)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.wrong = append(c.wrong, text)
}

// add gives the cluster a member with a disk of its own, and starts it.
func (c *cluster) add(number int, flags ...string) error {
	m := &member{number: number, directory: filepath.Join(c.directory, fmt.Sprintf("member%d", number)), flags: flags}
	if err := os.MkdirAll(m.directory, 0o755); err != nil {
		return err
	}
	if err := syscall.Mount("tmpfs", m.directory, "tmpfs", 0, fmt.Sprintf("size=%dm", diskMegabytes)); err != nil {
		return fmt.Errorf("cannot mount a disk for a member: %w", err)
	}
	if c.Stepped {
		if err := c.setClock(m, 0); err != nil {
			return err
		}
	}
	c.mutex.Lock()
	c.members[number] = m
	c.mutex.Unlock()
	return c.start(m)
}

func (c *cluster) clockFile(m *member) string {
	return filepath.Join(c.directory, fmt.Sprintf("clock%d", m.number))
}

func (c *cluster) serverLog(number int) string {
	return filepath.Join(c.directory, fmt.Sprintf("server%d.log", number))
}

// setClock has a member's clock be ahead of this machine's by so many seconds.
func (c *cluster) setClock(m *member, seconds int) error {
	file := c.clockFile(m)
	if err := os.WriteFile(file+".new", []byte(fmt.Sprintf("%+d\n", seconds)), 0o644); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

func (c *cluster) start(m *member) error {
	host, port, _ := strings.Cut(clientAddress(m.number), ":")
	arguments := []string{
		"serve", "--dir", filepath.Join(m.directory, "data"), "--bind", host, "--port", port, "--protected-mode", "no",
		"--cluster-node", fmt.Sprint(m.number), "--durability", c.Durability, "--cluster-reads", c.Reads,
		"--cluster-heartbeat-ms", fmt.Sprint(heartbeatMs),
		"--cluster-election-min-ms", fmt.Sprint(electionMinMs), "--cluster-election-max-ms", fmt.Sprint(electionMaxMs),
		"--log-segment-bytes", fmt.Sprint(segmentBytes), "--snapshot-after", fmt.Sprint(snapshotEvery),
		"--enable-debug-command", "yes", "--threads", "2",
	}
	command := c.network.command(m.number, c.Binary, append(arguments, m.flags...)...)
	log, err := os.OpenFile(c.serverLog(m.number), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	command.Stdout, command.Stderr = log, log
	// The server takes TIDEMARK_* for settings.
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "TIDEMARK_") {
			command.Env = append(command.Env, variable)
		}
	}
	if c.Stepped {
		command.Env = append(command.Env, "LD_PRELOAD="+c.FakeTime, "FAKETIME_TIMESTAMP_FILE="+c.clockFile(m), "FAKETIME_CACHE_DURATION=1",
			"DONT_FAKE_MONOTONIC=1", "FAKETIME_DONT_FAKE_MONOTONIC=1", "FAKETIME_DISABLE_SHM=1")
	}
	if c.Planted != "" {
		command.Env = append(command.Env, "TIDEMARK_PLANTED_FAULT="+c.Planted)
	}
	if err := command.Start(); err != nil {
		return fmt.Errorf("cannot start a member: %w", err)
	}
	ended := make(chan struct{})
	m.mutex.Lock()
	m.process, m.ended, m.ending = command, ended, false
	m.mutex.Unlock()
	go func() {
		_ = command.Wait()
		close(ended)
		m.mutex.Lock()
		defer m.mutex.Unlock()
		if !m.ending && m.joins() {
			c.note("member %d could not join, and is started again: %s", m.number, command.ProcessState)
			time.AfterFunc(joinPause, func() { c.startAgain(m, ended) })
		} else if !m.ending {
			c.blame("member %d ended by itself: %s; see %s", m.number, command.ProcessState, c.serverLog(m.number))
		}
	}()
	return nil
}

// Pause before a member that found no member to ask is started again, as a service manager does.
const joinPause = 300 * time.Millisecond

// joins returns whether the member has never voted, and asks others to take it in. The caller has its lock.
func (m *member) joins() bool { return m.flags[0] == "--cluster-join" && !m.hasVoted }

// startAgain starts a member, unless it was started or ended since.
func (c *cluster) startAgain(m *member, ended chan struct{}) {
	m.mutex.Lock()
	isSame := m.ended == ended && !m.ending
	m.mutex.Unlock()
	if !isSame {
		return
	}
	if err := c.start(m); err != nil {
		c.blame("member %d could not be started: %v", m.number, err)
	}
}

func (m *member) signal(signal syscall.Signal) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.process.Process.Signal(signal)
}

func (m *member) pid() int {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.process.Process.Pid
}

// end ends a member's process, by SIGKILL if it does not end by the signal.
func (m *member) end(signal syscall.Signal) {
	m.mutex.Lock()
	m.ending = true
	_ = m.process.Process.Signal(signal)
	ended := m.ended
	m.mutex.Unlock()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		_ = m.signal(syscall.SIGKILL)
		<-ended
	}
}

// numbers returns the members, removed ones included as long as they run.
func (c *cluster) numbers() []int {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	var numbers []int
	for number := range c.members {
		numbers = append(numbers, number)
	}
	sort.Ints(numbers)
	return numbers
}

func (c *cluster) member(number int) *member {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.members[number]
}

// cut drops what is sent in these directions, beside what is cut already. Returns what ends that.
func (c *cluster) cut(directions map[direction]bool) (func(), error) {
	c.mutex.Lock()
	c.nextCut++
	id := c.nextCut
	c.cuts[id] = directions
	c.mutex.Unlock()
	mend := func() {
		c.mutex.Lock()
		delete(c.cuts, id)
		c.mutex.Unlock()
		if err := c.applyCuts(); err != nil {
			c.blame("the network could not be mended: %v", err)
		}
	}
	return mend, c.applyCuts()
}

func (c *cluster) applyCuts() error {
	numbers := c.numbers()
	c.mutex.Lock()
	defer c.mutex.Unlock()
	all := map[direction]bool{}
	for _, cut := range c.cuts {
		for direction := range cut {
			all[direction] = true
		}
	}
	return c.network.set(numbers, all)
}

// What a member says of itself and of the group.
type view struct {
	role          string
	term, applied int64
	members       []seen
}

type seen struct {
	number             int
	isVoter, isReached bool
}

func viewOf(connection *connection) (*view, error) {
	value, err := connection.value(answerPatience, "CLUSTER", "STATUS")
	if err != nil {
		return nil, err
	}
	fields, err := fieldsOf(value)
	if err != nil {
		return nil, err
	}
	of := &view{}
	of.role, _ = fields["role"].(string)
	of.term, _ = fields["term"].(int64)
	of.applied, _ = fields["applied_lsn"].(int64)
	members, _ := fields["members"].([]interface{})
	for _, one := range members {
		member, err := fieldsOf(one)
		if err != nil {
			return nil, err
		}
		node, _ := member["node"].(int64)
		of.members = append(of.members, seen{int(node), member["votes"] == int64(1), member["reachable"] == int64(1)})
	}
	return of, nil
}

func fieldsOf(value interface{}) (map[string]interface{}, error) {
	list, is := value.([]interface{})
	if !is || len(list)%2 != 0 {
		return nil, fmt.Errorf("CLUSTER STATUS was answered %s", text(value))
	}
	fields := map[string]interface{}{}
	for i := 0; i < len(list); i += 2 {
		name, _ := list[i].(string)
		fields[name] = list[i+1]
	}
	return fields, nil
}

// look asks a member over a connection of its own.
func look(number int) (*view, error) {
	connection, err := dial(clientAddress(number), answerPatience)
	if err != nil {
		return nil, err
	}
	defer connection.close()
	return viewOf(connection)
}

// leader returns the member that leads in the newest term, or 0.
func (c *cluster) leader() int {
	type found struct {
		number int
		view   *view
	}
	numbers := c.numbers()
	answers := make(chan found, len(numbers))
	for _, number := range numbers {
		go func(number int) {
			view, _ := look(number)
			answers <- found{number, view}
		}(number)
	}
	leader, term := 0, int64(-1)
	for range numbers {
		one := <-answers
		if one.view != nil && one.view.role == "leader" && one.view.term > term {
			leader, term = one.number, one.view.term
		}
	}
	return leader
}

// write sets a key at whichever member takes it, and returns that member.
func (c *cluster) write(key, value string) (int, error) {
	for _, number := range c.numbers() {
		connection, err := dial(clientAddress(number), answerPatience)
		if err != nil {
			continue
		}
		answers, err := connection.call(2*time.Second, []string{"SET", key, value})
		connection.close()
		if err == nil && answers[0] == "OK" {
			return number, nil
		}
	}
	return 0, errors.New("no member acknowledges a write")
}

// recover waits until all members are well, while clients work. Members that have been removed are ended.
func (c *cluster) recover() error { return c.await(func() error { _, err := c.check(); return err }) }

// settle waits until all members are well and, without clients, have the same data at the same record.
func (c *cluster) settle() error {
	return c.await(func() error {
		if numbers, err := c.check(); err != nil {
			return err
		} else {
			return c.compare(numbers)
		}
	})
}

func (c *cluster) await(check func() error) error {
	deadline := time.Now().Add(settlePatience)
	for {
		err := check()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			for _, number := range c.numbers() {
				c.note("member %d says: %s", number, ask(number, "CLUSTER", "STATUS"))
			}
			return fmt.Errorf("the group was not well %v after the last fault: %w", settlePatience, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// check returns the members, if one leads and takes a write, and the others follow and vote.
func (c *cluster) check() ([]int, error) {
	leader, err := c.write("settled", fmt.Sprint(now()))
	if err != nil {
		return nil, err
	}
	leading, err := look(leader)
	if err != nil {
		return nil, err
	}
	if leading.role != "leader" {
		return nil, fmt.Errorf("member %d took a write and is a %s", leader, leading.role)
	}
	if err := c.follow(leading); err != nil {
		return nil, err
	}
	numbers := c.numbers()
	for _, number := range numbers {
		of, err := look(number)
		if err != nil {
			return nil, fmt.Errorf("member %d does not answer: %w", number, err)
		}
		if of.term != leading.term || (of.role != "follower") != (number == leader) {
			return nil, fmt.Errorf("member %d is a %s of term %d, and member %d leads in %d", number, of.role, of.term, leader, leading.term)
		}
	}
	return numbers, nil
}

// What a member has at a record.
type content struct {
	applied int64
	digest  string
}

// contentOf returns what a member has, if no record is applied meanwhile.
func contentOf(number int) (content, error) {
	connection, err := dial(clientAddress(number), answerPatience)
	if err != nil {
		return content{}, err
	}
	defer connection.close()
	before, err := viewOf(connection)
	if err != nil {
		return content{}, err
	}
	digest, err := connection.call(5*time.Second, []string{"DEBUG", "DIGEST"})
	if err != nil {
		return content{}, err
	}
	after, err := viewOf(connection)
	if err != nil {
		return content{}, err
	}
	if before.applied != after.applied || isError(digest[0]) {
		return content{}, fmt.Errorf("member %d applies records, or answers %s", number, digest[0])
	}
	return content{after.applied, digest[0]}, nil
}

// compare compares the data of all members. That two differ at one record is final.
func (c *cluster) compare(numbers []int) error {
	var first content
	for i, number := range numbers {
		of, err := contentOf(number)
		if err != nil {
			return err
		}
		if i == 0 {
			first = of
		}
		if of.applied != first.applied {
			return fmt.Errorf("member %d has applied record %d, and member %d %d", numbers[0], first.applied, number, of.applied)
		}
		if of != first {
			c.blame("at record %d, member %d has the digest %s and member %d %s", of.applied, numbers[0], first.digest, number, of.digest)
			return nil
		}
	}
	return nil
}

// follow compares the processes with the members that the leader names.
func (c *cluster) follow(leader *view) error {
	var problem error
	isMember := map[int]bool{}
	for _, seen := range leader.members {
		isMember[seen.number] = true
		one := c.member(seen.number)
		switch {
		case one == nil:
			problem = fmt.Errorf("member %d has no process", seen.number)
		case !seen.isVoter:
			problem = fmt.Errorf("member %d does not vote yet", seen.number)
		default:
			one.mutex.Lock()
			one.hasVoted = true
			one.mutex.Unlock()
		}
	}
	for _, number := range c.numbers() {
		if isMember[number] {
			continue
		}
		one := c.member(number)
		if one.hasVoted || isVoterByItself(number) {
			c.note("member %d has been removed, and is ended", number)
			c.remove(one)
		} else {
			problem = fmt.Errorf("member %d has not joined yet", number)
		}
	}
	return problem
}

// isVoterByItself returns whether a member's own log says that it votes: it may have joined and been removed since anyone looked.
func isVoterByItself(number int) bool {
	of, err := look(number)
	if err != nil {
		return false
	}
	for _, seen := range of.members {
		if seen.number == number {
			return seen.isVoter
		}
	}
	return false
}

func (c *cluster) remove(m *member) {
	m.end(syscall.SIGKILL)
	c.mutex.Lock()
	delete(c.members, m.number)
	c.mutex.Unlock()
	_ = syscall.Unmount(m.directory, syscall.MNT_DETACH)
}

// close ends all members.
func (c *cluster) close() {
	for _, number := range c.numbers() {
		c.remove(c.member(number))
	}
	c.log.Close()
}
