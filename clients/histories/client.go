package main

import (
	"fmt"
	"math"
	"math/rand"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// One operation of a history.
type operation struct {
	Client int    `json:"client"`
	Kind   string `json:"kind"`
	Key    string `json:"key"`
	input
	Answer string `json:"answer"`
	// The member that answered, or did not.
	Member int `json:"member"`
	// Number under ONCE, 0 without.
	Once int64 `json:"once,omitempty"`
	// Number of the connection of a read that is not asked of the leader, 0 for all others.
	Follower int64 `json:"follower,omitempty"`
}

// Starts of errors that say that a command was not executed: see docs/once.md and crates/server/src/command/gate.rs. "MISCONF the log has
// failed" is none of them: it takes the place of an answer.
var refusals = []string{
	"-MOVED ", "-CLUSTERDOWN ", "-TRYAGAIN ", "-LOADING ", "-MASTERDOWN ", "-READONLY ", "-MISCONF Tidemark refuses changes", "-ONCE_FULL ",
	// A command of the transaction was refused when it was queued, or EXEC before any was executed.
	"-EXECABORT ",
}

func isRefusal(answer string) bool {
	for _, start := range refusals {
		if strings.HasPrefix(answer, start) {
			return true
		}
	}
	return false
}

// Ids of clients in histories. A client whose operation has no end goes on as another one.
var nextClient int64

func newClient() int { return int(atomic.AddInt64(&nextClient, 1)) - 1 }

// What the clients of a round have in common.
type round struct {
	cluster *cluster
	number  int
	// Keys by kind.
	kinds []string
	keys  int
	// Set when clients are to end.
	isOver int32
	// When clients give up what has to be answered, as now() has it.
	deadline int64
}

func (r *round) over() bool { return atomic.LoadInt32(&r.isOver) != 0 }

// isLate returns whether clients are to give up.
func (r *round) isLate() bool { return now() >= atomic.LoadInt64(&r.deadline) }

func (r *round) giveUpAfter(patience time.Duration) {
	atomic.StoreInt64(&r.deadline, now()+int64(patience))
}

// A client of a cluster. It never sends a command again whose outcome is unknown, except under its number of ONCE.
type client struct {
	round  *round
	random *rand.Rand
	id     int
	// The member that it asks first, even if that one does not lead any more, or 0: then it asks the leader that it knows.
	home   int
	leader int
	// Longest wait for an answer.
	patience    time.Duration
	connections map[int]*connection
	// Connections that have sent READONLY, and their numbers.
	readers map[int]*connection
	reader  map[int]int64
	// When a member that did not answer is asked again.
	silent map[int]time.Time
	// Its session of ONCE, and the newest number in it.
	session string
	once    int64
	written int64

	history []operation
	// Answers that no client may get.
	wrong   []string
	refused int
}

var patiences = []time.Duration{300 * time.Millisecond, 700 * time.Millisecond, 1500 * time.Millisecond, 4 * time.Second}

func newClientOf(round *round, index int, random *rand.Rand) *client {
	numbers := round.cluster.numbers()
	c := &client{
		round: round, random: random, id: newClient(), patience: patiences[index%len(patiences)],
		connections: map[int]*connection{}, readers: map[int]*connection{}, reader: map[int]int64{}, silent: map[int]time.Time{},
		session: fmt.Sprintf("round-%d-client-%d", round.number, index),
	}
	// Two of three are faithful: what a deposed leader answers is seen by them.
	if index%3 != 2 {
		c.home = numbers[(index-index/3)%len(numbers)]
	}
	return c
}

// run sends commands until the round is over.
func (c *client) run() {
	defer func() {
		for _, connection := range c.connections {
			connection.close()
		}
		for _, connection := range c.readers {
			connection.close()
		}
	}()
	for !c.round.over() {
		kind := c.round.kinds[c.random.Intn(len(c.round.kinds))]
		key := c.round.key(kind, c.random.Intn(c.round.keys))
		c.perform(kind, key)
		time.Sleep(time.Duration(c.random.Int63n(int64(12 * time.Millisecond))))
	}
}

func (r *round) key(kind string, index int) string {
	return fmt.Sprintf("{%s:%d:%d}", kind, r.number, index)
}

// perform sends one operation of a kind.
func (c *client) perform(kind, key string) {
	if kind == "transaction" && c.random.Intn(3) == 0 {
		c.compareAndSet(kind, key)
		return
	}
	if kind == "follower" && c.random.Intn(2) == 0 {
		c.readFollower(kind, key)
		return
	}
	in := input{Commands: c.commands(kind, key), Stepped: c.round.cluster.Stepped}
	if strings.HasPrefix(kind, "once-") && !isRead(in.Commands) {
		c.performOnce(kind, key, in)
		return
	}
	c.attempts(func(member int, connection *connection) bool {
		in.Call = now()
		answer, err := c.send(connection, in.Commands)
		return c.note(operation{Kind: kind, Key: key, input: in, Answer: answer, Member: member}, err)
	})
}

// attempts calls a member until one has not refused: then `attempt` returns true. Pauses before the next one.
func (c *client) attempts(attempt func(member int, connection *connection) bool) {
	for asked, try := c.home, 0; try < 6 && !c.round.over(); try++ {
		if asked == 0 {
			asked = c.leader
		}
		if asked == 0 {
			numbers := c.round.cluster.numbers()
			asked = numbers[c.random.Intn(len(numbers))]
		}
		connection := c.connection(asked)
		if connection != nil && attempt(asked, connection) {
			return
		}
		known := c.leader
		if connection == nil && known == asked {
			c.leader, known = 0, 0
		}
		asked = known
		c.refused++
		time.Sleep(time.Duration(1+c.random.Intn(8)) * time.Millisecond)
	}
}

// Connections that have sent READONLY.
var readers int64

// readFollower reads a key at any member, as one that may follow.
func (c *client) readFollower(kind, key string) {
	numbers := c.round.cluster.numbers()
	member := numbers[c.random.Intn(len(numbers))]
	connection := c.readers[member]
	if connection == nil {
		dialled, err := dial(clientAddress(member), 150*time.Millisecond)
		if err != nil {
			return
		}
		if answers, err := dialled.call(c.patience, []string{"READONLY"}); err != nil || answers[0] != "OK" {
			dialled.close()
			return
		}
		connection = dialled
		c.readers[member], c.reader[member] = dialled, atomic.AddInt64(&readers, 1)
	}
	in := input{Commands: [][]string{{"GET", key}}, Stepped: c.round.cluster.Stepped, Call: now()}
	answers, err := connection.call(c.patience, in.Commands[0])
	if err != nil {
		connection.close()
		delete(c.readers, member)
		return
	}
	of := operation{Client: c.id, Kind: kind, Key: key, input: in, Answer: answers[0], Member: member, Follower: c.reader[member]}
	of.Return = now()
	switch {
	case isRefusal(of.Answer):
		c.refused++
	case isError(of.Answer):
		c.wrong = append(c.wrong, fmt.Sprintf("%s at follower %d was answered %s", describe(&of.input), member, of.Answer))
	default:
		c.history = append(c.history, of)
	}
}

// connection returns one with a member that answers, or nil.
func (c *client) connection(member int) *connection {
	if connection := c.connections[member]; connection != nil {
		return connection
	}
	if time.Now().Before(c.silent[member]) {
		return nil
	}
	connection, err := dial(clientAddress(member), 150*time.Millisecond)
	if err != nil {
		c.silent[member] = time.Now().Add(100 * time.Millisecond)
		return nil
	}
	c.connections[member] = connection
	return connection
}

// send sends the commands of an operation, several as a transaction, and returns the answer to them. `prefix` stands before the command that
// executes them.
func (c *client) send(connection *connection, commands [][]string, prefix ...string) (string, error) {
	patience := c.patience
	if first := commands[0]; first[0] == "BLPOP" || first[0] == "BRPOP" {
		seconds, _ := strconv.ParseFloat(first[2], 64)
		patience += time.Duration(seconds * float64(time.Second))
	}
	last := func(command []string) []string { return append(append([]string{}, prefix...), command...) }
	if len(commands) == 1 {
		answers, err := connection.call(patience, last(commands[0]))
		if err != nil {
			return "", err
		}
		return answers[0], nil
	}
	// Alone: behind a MULTI that is refused, commands would be executed one by one.
	answers, err := connection.call(patience, []string{"MULTI"})
	if err != nil || answers[0] != "OK" {
		// Nothing was sent that changes anything.
		return fmt.Sprintf("-EXECABORT MULTI: %v %v", answers, err), nil
	}
	answers, err = connection.call(patience, append(commands[:len(commands):len(commands)], last([]string{"EXEC"}))...)
	if err != nil {
		return "", err
	}
	return answers[len(answers)-1], nil
}

// isError returns whether an answer is or contains an error.
func isError(answer string) bool { return errorIn.MatchString(answer) }

var errorIn = regexp.MustCompile(`(^|[\[ ])-[A-Z]`)

// isLost returns whether an operation has no answer, or one that takes the place of an answer.
func isLost(answer string, err error) bool {
	return err != nil || strings.HasPrefix(answer, "-MISCONF the log has failed")
}

// note records what became of an operation. Returns false if it was refused, and may be sent again.
func (c *client) note(of operation, err error) bool {
	of.Client, of.Return = c.id, now()
	if isLost(of.Answer, err) {
		c.drop(of.Member)
		of.Answer, of.Return = unknown, math.MaxInt64
		// A read that was not answered has told nothing.
		if !isRead(of.Commands) {
			c.history = append(c.history, of)
			c.id = newClient()
		}
		return true
	}
	if isRefusal(of.Answer) {
		c.refuse(of.Member, of.Answer)
		return false
	}
	if isError(of.Answer) {
		c.wrong = append(c.wrong, fmt.Sprintf("%s at member %d was answered %s", describe(&of.input), of.Member, of.Answer))
		return true
	}
	if of.Commands[0][0] == "SMEMBERS" {
		of.Answer = sorted(of.Answer)
	}
	c.leader = of.Member
	c.history = append(c.history, of)
	return true
}

func (c *client) drop(member int) {
	if connection := c.connections[member]; connection != nil {
		connection.close()
		delete(c.connections, member)
	}
}

// refuse notes what a refusal says of the leader. Behind a transaction the connection is not used any more: what of it was queued or watched
// does not matter then.
func (c *client) refuse(member int, answer string) {
	if strings.HasPrefix(answer, "-EXECABORT") {
		c.drop(member)
	}
	c.follow(member, answer)
}

func (c *client) follow(member int, answer string) {
	if c.leader == member {
		c.leader = 0
	}
	at := strings.Index(answer, "MOVED ")
	if at < 0 {
		return
	}
	if words := strings.Fields(answer[at:]); len(words) >= 3 {
		for _, number := range c.round.cluster.numbers() {
			if strings.HasPrefix(words[2], clientAddress(number)) {
				c.leader = number
			}
		}
	}
}

// performOnce sends an operation under a number until it is answered, whatever happens; sometimes it then sends it once more.
func (c *client) performOnce(kind, key string, in input) {
	c.once++
	number := fmt.Sprint(c.once)
	in.Call = 0
	ask := func() (int, string) {
		for !c.round.isLate() {
			answer, by := "", 0
			c.persist(func(member int, connection *connection) bool {
				if in.Call == 0 {
					in.Call = now()
				}
				text, err := c.send(connection, in.Commands, "ONCE", c.session, number)
				if isLost(text, err) {
					c.drop(member)
					return false
				}
				if isRefusal(text) {
					c.refuse(member, text)
					return false
				}
				answer, by = text, member
				return true
			})
			if by != 0 {
				return by, answer
			}
		}
		return 0, ""
	}
	member, answer := ask()
	if member == 0 {
		c.wrong = append(c.wrong, fmt.Sprintf("ONCE %s %s was not answered after the last fault", c.session, number))
		if in.Call != 0 {
			in.Return = math.MaxInt64
			c.history = append(c.history, operation{Client: c.id, Kind: kind, Key: key, input: in, Answer: unknown, Once: c.once})
			c.id = newClient()
		}
		return
	}
	c.note(operation{Kind: kind, Key: key, input: in, Answer: answer, Member: member, Once: c.once}, nil)
	if c.random.Intn(4) == 0 {
		if again, repeated := ask(); again != 0 && repeated != answer {
			c.wrong = append(c.wrong, fmt.Sprintf("ONCE %s %s was answered %s by member %d and %s by member %d", c.session, number,
				answer, member, repeated, again))
		}
	}
}

// persist calls members, the leader first, until `attempt` returns true or the round's deadline is over.
func (c *client) persist(attempt func(member int, connection *connection) bool) {
	for !c.round.isLate() {
		numbers := c.round.cluster.numbers()
		asked := c.leader
		if asked == 0 {
			asked = numbers[c.random.Intn(len(numbers))]
		}
		if connection := c.connection(asked); connection != nil && attempt(asked, connection) {
			return
		}
		if c.leader == asked {
			c.leader = 0
		}
		time.Sleep(time.Duration(1+c.random.Intn(10)) * time.Millisecond)
	}
}

// compareAndSet reads two keys behind a WATCH, and sets both unless one has changed.
func (c *client) compareAndSet(kind, key string) {
	a, b := key+"a", key+"b"
	c.attempts(func(member int, connection *connection) bool {
		answers, err := connection.call(c.patience, []string{"WATCH", a, b}, []string{"GET", a}, []string{"GET", b})
		if err != nil {
			// Nothing was changed.
			c.drop(member)
			return false
		}
		for _, answer := range answers {
			if strings.HasPrefix(answer, "-") {
				c.refuse(member, answer)
				// The keys are watched, or not: the connection is not used for another transaction.
				c.drop(member)
				if !isRefusal(answer) {
					c.wrong = append(c.wrong, fmt.Sprintf("WATCH and GET at member %d were answered %s", member, answer))
				}
				return false
			}
		}
		set := [][]string{{"SET", a, c.number()}, {"SET", b, c.number()}}
		in := input{Commands: set, Watched: answers[1:], Call: now()}
		answer, err := c.send(connection, set)
		if err == nil && answer == "nil" {
			return true
		}
		return c.note(operation{Kind: kind, Key: key, input: in, Answer: answer, Member: member}, err)
	})
}

func isRead(commands [][]string) bool {
	for _, command := range commands {
		switch command[0] {
		case "GET", "EXISTS", "LRANGE", "LLEN", "SMEMBERS", "SISMEMBER", "SCARD", "COUNTER.GET":
		default:
			return false
		}
	}
	return true
}

// number returns a number that no other write of the round has.
func (c *client) number() string {
	c.written++
	return fmt.Sprint(int64(c.id)*100_000 + c.written)
}

func (c *client) value() string {
	c.written++
	return fmt.Sprintf("c%d-%d", c.id, c.written)
}

// commands returns the commands of an operation at random.
func (c *client) commands(kind, key string) [][]string {
	one := func(words ...string) [][]string { return [][]string{words} }
	among := func(choices ...func() [][]string) [][]string { return choices[c.random.Intn(len(choices))]() }
	get := func() [][]string { return one("GET", key) }
	member := func() string { return strconv.Itoa(c.random.Intn(8)) }
	milliseconds := func() string { return strconv.Itoa([]int{100, 400, 1000, 1500, 2500}[c.random.Intn(5)]) }
	switch strings.TrimPrefix(kind, "once-") {
	case "register":
		return among(get, get, get,
			func() [][]string { return one("SET", key, c.value()) },
			func() [][]string { return one("SET", key, c.value()) },
			func() [][]string { return one("SET", key, c.value(), "NX") },
			func() [][]string { return one("SET", key, c.value(), "XX") },
			func() [][]string { return one("SET", key, c.value(), "GET") },
			func() [][]string { return one("GETSET", key, c.value()) },
			func() [][]string { return one("GETDEL", key) },
			func() [][]string { return one("DEL", key) },
			func() [][]string { return one("EXISTS", key) })
	case "counter":
		return among(get,
			func() [][]string { return one("INCRBY", key, "1") },
			func() [][]string { return one("INCRBY", key, strconv.Itoa(1+c.random.Intn(9))) })
	case "follower":
		return among(get, func() [][]string { return one("INCRBY", key, "1") }, func() [][]string { return one("INCRBY", key, "1") })
	case "exact-counter":
		return among(
			func() [][]string { return one("COUNTER.GET", key) },
			func() [][]string { return one("COUNTER.TAKE", key, "1") },
			func() [][]string { return one("COUNTER.TAKE", key, strconv.Itoa(1+c.random.Intn(3))) })
	case "list":
		return among(
			func() [][]string { return one("LRANGE", key, "0", "-1") },
			func() [][]string { return one("LLEN", key) },
			func() [][]string { return one("RPUSH", key, c.value()) },
			func() [][]string { return one("LPUSH", key, c.value(), c.value()) },
			func() [][]string { return one("LPOP", key) },
			func() [][]string { return one("RPOP", key) },
			func() [][]string { return one("RPOP", key) })
	case "set":
		return among(
			func() [][]string { return one("SADD", key, member()) },
			func() [][]string { return one("SADD", key, member()) },
			func() [][]string { return one("SREM", key, member()) },
			func() [][]string { return one("SISMEMBER", key, member()) },
			func() [][]string { return one("SCARD", key) },
			func() [][]string { return one("SMEMBERS", key) },
			func() [][]string { return one("SPOP", key) })
	case "blocking":
		timeout := fmt.Sprintf("0.%d", 1+c.random.Intn(9))
		return among(
			func() [][]string { return one("BLPOP", key, timeout) },
			func() [][]string { return one("BRPOP", key, timeout) },
			func() [][]string { return one("RPUSH", key, c.value()) },
			func() [][]string { return one("LPUSH", key, c.value()) },
			func() [][]string { return one("RPUSH", key, c.value(), c.value()) },
			func() [][]string { return one("LLEN", key) },
			func() [][]string { return one("LPOP", key) })
	case "expiry":
		return among(get, get, get, get,
			func() [][]string { return one("SET", key, c.value(), "PX", milliseconds()) },
			func() [][]string { return one("SET", key, c.value(), "NX", "PX", milliseconds()) },
			func() [][]string { return one("PEXPIRE", key, milliseconds()) },
			func() [][]string { return one("SET", key, c.value()) },
			func() [][]string { return one("PERSIST", key) },
			func() [][]string { return one("EXISTS", key) })
	case "transaction":
		a, b := key+"a", key+"b"
		amount := strconv.Itoa(1 + c.random.Intn(9))
		return among(
			func() [][]string { return [][]string{{"GET", a}, {"GET", b}} },
			func() [][]string { return [][]string{{"INCRBY", a, "-" + amount}, {"INCRBY", b, amount}} },
			func() [][]string { return [][]string{{"INCRBY", a, amount}, {"GET", b}, {"SET", b, c.number()}} })
	}
	panic("no commands of " + kind)
}

// finalReads returns what shows all of a key.
func finalRead(kind, key string) [][]string {
	switch strings.TrimPrefix(kind, "once-") {
	case "list", "blocking":
		return [][]string{{"LRANGE", key, "0", "-1"}}
	case "set":
		return [][]string{{"SMEMBERS", key}}
	case "transaction":
		return [][]string{{"GET", key + "a"}, {"GET", key + "b"}}
	case "exact-counter":
		return [][]string{{"COUNTER.GET", key}}
	}
	return [][]string{{"GET", key}}
}

// createAll creates the keys of the round that are not there by their first use.
func (c *client) createAll() error {
	for _, kind := range c.round.kinds {
		for index := 0; kind == "exact-counter" && index < c.round.keys; index++ {
			create := [][]string{{"COUNTER.CREATE", c.round.key(kind, index), "LIMIT", number(quotaLimit), "EXACT", number(quotaBlock), "NX"}}
			done := false
			c.persist(func(member int, connection *connection) bool {
				answer, err := c.send(connection, create)
				if isLost(answer, err) {
					c.drop(member)
					return false
				}
				if isRefusal(answer) {
					c.refuse(member, answer)
					return false
				}
				done = !isError(answer)
				return true
			})
			if !done {
				return fmt.Errorf("%s could not be created", create[0][1])
			}
		}
	}
	return nil
}

// readAll reads every key of the round at the leader.
func (c *client) readAll() error {
	for _, kind := range c.round.kinds {
		for index := 0; index < c.round.keys; index++ {
			key, done := c.round.key(kind, index), false
			in := input{Commands: finalRead(kind, key), Stepped: c.round.cluster.Stepped}
			c.persist(func(member int, connection *connection) bool {
				in.Call = now()
				answer, err := c.send(connection, in.Commands)
				before := len(c.history)
				c.note(operation{Kind: kind, Key: key, input: in, Answer: answer, Member: member}, err)
				done = len(c.history) > before
				return done
			})
			if !done {
				return fmt.Errorf("%s could not be read after the last fault", key)
			}
		}
	}
	return nil
}
