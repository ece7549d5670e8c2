package main

import (
	"fmt"
	"hash/fnv"
	"math"
	"sort"
	"strconv"
	"strings"

	"github.com/anishathalye/porcupine"
)

// What a client sent, as models see it.
type input struct {
	// Commands on the one key of the history, or the two of a transaction. More than one are those of a MULTI.
	Commands [][]string `json:"commands"`
	// What the client had read behind its WATCH, by which a transaction is one of compare and set.
	Watched []string `json:"watched,omitempty"`
	// When it was sent and when the answer was there, in nanoseconds of the program. No answer: math.MaxInt64.
	Call   int64 `json:"call"`
	Return int64 `json:"return"`
	// Whether the clocks of members are stepped, so that nothing is known about when a key expires.
	Stepped bool `json:"stepped,omitempty"`
}

// The answer of an operation whose answer never came: it may have been executed at any time since, or never.
const unknown = "?"

// One way in which an operation may end.
type outcome struct {
	answer string
	state  interface{}
}

// What a kind of data does, one operation after the other. States are comparable.
type model struct {
	initial interface{}
	apply   func(state interface{}, in *input) []outcome
}

var modelOf = map[string]model{
	"register":         {register{}, onRegister},
	"counter":          {register{}, onRegister},
	"list":             {"", onList},
	"set":              {uint32(0), onSet},
	"transaction":      {[2]register{}, onTransaction},
	"blocking":         {"", onList},
	"expiry":           {expiring{}, onExpiring},
	"once-counter":     {register{}, onRegister},
	"once-list":        {"", onList},
	"once-transaction": {[2]register{}, onTransaction},
	"exact-counter":    {quota{}, onQuota},
	// Reads of followers are judged by their bound, the others as those of a counter: see followers.go.
	"follower": {register{}, onRegister},
}

// linearizable returns the model as porcupine takes it.
func linearizable(kind string) porcupine.Model {
	of := modelOf[kind]
	nondeterministic := porcupine.NondeterministicModel{
		Init: func() []interface{} { return []interface{}{of.initial} },
		Step: func(state, in, out interface{}) []interface{} {
			input, answer := in.(*input), out.(string)
			var next []interface{}
			for _, outcome := range of.apply(state, input) {
				if answer == unknown || answer == outcome.answer {
					next = append(next, outcome.state)
				}
			}
			return next
		},
		Hash: func(state interface{}) uint64 {
			hash := fnv.New64a()
			fmt.Fprint(hash, state)
			return hash.Sum64()
		},
		DescribeOperation: func(in, out interface{}) string { return describe(in.(*input)) + " → " + out.(string) },
		DescribeState:     func(state interface{}) string { return fmt.Sprint(state) },
	}
	return nondeterministic.ToModel()
}

func describe(in *input) string {
	var commands []string
	for _, command := range in.Commands {
		commands = append(commands, strings.Join(command, " "))
	}
	text := strings.Join(commands, "; ")
	if in.Watched != nil {
		text = "having read " + list(in.Watched) + ": " + text
	}
	return text
}

func number(value int64) string { return strconv.FormatInt(value, 10) }

func integer(text string) int64 {
	value, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic("no integer in a command of this program: " + text)
	}
	return value
}

func bit(is bool) string {
	if is {
		return "1"
	}
	return "0"
}

// has returns whether a SET has an option.
func has(command []string, option string) bool {
	for _, argument := range command[3:] {
		if argument == option {
			return true
		}
	}
	return false
}

// A string, or a number as text, that is there or not.
type register struct {
	is    bool
	value string
}

func (r register) get() string {
	if !r.is {
		return "nil"
	}
	return strconv.Quote(r.value)
}

func onRegister(state interface{}, in *input) []outcome {
	answer, next := registerCommand(state.(register), in.Commands[0])
	return []outcome{{answer, next}}
}

func registerCommand(old register, command []string) (string, register) {
	switch command[0] {
	case "GET":
		return old.get(), old
	case "EXISTS":
		return bit(old.is), old
	case "GETSET":
		return old.get(), register{true, command[2]}
	case "GETDEL":
		return old.get(), register{}
	case "DEL":
		return bit(old.is), register{}
	case "SET":
		if (has(command, "NX") && old.is) || (has(command, "XX") && !old.is) {
			return "nil", old
		}
		if has(command, "GET") {
			return old.get(), register{true, command[2]}
		}
		return "OK", register{true, command[2]}
	case "INCRBY":
		sum := integer(command[2])
		if old.is {
			sum += integer(old.value)
		}
		return number(sum), register{true, number(sum)}
	}
	panic("no model of " + command[0])
}

// Values with no spaces in them, in their order, separated by spaces.
func onList(state interface{}, in *input) []outcome {
	old, command := strings.Fields(state.(string)), in.Commands[0]
	with := func(answer string, elements []string) []outcome {
		return []outcome{{answer, strings.Join(elements, " ")}}
	}
	switch command[0] {
	case "LRANGE":
		quoted := make([]string, len(old))
		for i, element := range old {
			quoted[i] = strconv.Quote(element)
		}
		return with(list(quoted), old)
	case "LLEN":
		return with(strconv.Itoa(len(old)), old)
	case "RPUSH":
		old = append(old[:len(old):len(old)], command[2:]...)
		return with(strconv.Itoa(len(old)), old)
	case "LPUSH":
		for _, element := range command[2:] {
			old = append([]string{element}, old...)
		}
		return with(strconv.Itoa(len(old)), old)
	case "LPOP", "RPOP", "BLPOP", "BRPOP":
		if len(old) == 0 {
			return with("nil", old)
		}
		element, rest := old[0], old[1:]
		if strings.Contains(command[0], "RPOP") {
			element, rest = old[len(old)-1], old[:len(old)-1]
		}
		answer := strconv.Quote(element)
		if command[0][0] == 'B' {
			answer = list([]string{strconv.Quote(command[1]), answer})
		}
		return with(answer, rest)
	}
	panic("no model of " + command[0])
}

// The numbers 0 to 31 that are in a set, as bits.
func onSet(state interface{}, in *input) []outcome {
	old, command := state.(uint32), in.Commands[0]
	member := func() uint32 { return 1 << uint(integer(command[2])) }
	var members []string
	for i := 0; i < 32; i++ {
		if old&(1<<uint(i)) != 0 {
			members = append(members, strconv.Quote(strconv.Itoa(i)))
		}
	}
	switch command[0] {
	case "SADD":
		return []outcome{{bit(old&member() == 0), old | member()}}
	case "SREM":
		return []outcome{{bit(old&member() != 0), old &^ member()}}
	case "SISMEMBER":
		return []outcome{{bit(old&member() != 0), old}}
	case "SCARD":
		return []outcome{{strconv.Itoa(len(members)), old}}
	case "SMEMBERS":
		sort.Strings(members)
		return []outcome{{list(members), old}}
	case "SPOP":
		// Any of them.
		if old == 0 {
			return []outcome{{"nil", old}}
		}
		var outcomes []outcome
		for _, member := range members {
			number, _ := strconv.Unquote(member)
			outcomes = append(outcomes, outcome{member, old &^ (1 << uint(integer(number)))})
		}
		return outcomes
	}
	panic("no model of " + command[0])
}

// Two numbers, under keys that end with "a" and "b".
func onTransaction(state interface{}, in *input) []outcome {
	old := state.([2]register)
	next := old
	var answers []string
	for _, command := range in.Commands {
		key := command[1]
		which := key[len(key)-1] - 'a'
		var answer string
		answer, next[which] = registerCommand(next[which], command)
		answers = append(answers, answer)
	}
	done := outcome{list(answers), next}
	if in.Watched == nil {
		return []outcome{done}
	}
	// A transaction whose keys may have changed is answered nil, and changes nothing.
	outcomes := []outcome{{"nil", old}}
	if in.Watched[0] == old[0].get() && in.Watched[1] == old[1].get() {
		outcomes = append(outcomes, done)
	}
	return outcomes
}

// A string that may have a deadline: it is gone at the latest then, and never before.
type expiring struct {
	register
	expires bool
	// It may be gone from `from` on, and is by `until`; times as those of input. math.MinInt64 and math.MaxInt64 say that nothing is known.
	from, until int64
}

// How far the leader's idea of the time of a command may be from when it was sent and answered: it reads its clock before it reads the
// command, and still answers if it pauses in between for less than a lease.
const clockTolerance = int64(600e6)

func deadline(in *input, milliseconds string) (from, until int64) {
	if in.Stepped {
		return math.MinInt64, math.MaxInt64
	}
	from = in.Call + integer(milliseconds)*1e6 - clockTolerance
	until = math.MaxInt64
	if in.Return != math.MaxInt64 {
		until = in.Return + integer(milliseconds)*1e6 + clockTolerance
	}
	return from, until
}

func onExpiring(state interface{}, in *input) []outcome {
	old := state.(expiring)
	var outcomes []outcome
	if !old.expires || in.Call <= old.until {
		outcomes = append(outcomes, onUnexpired(old, in))
	}
	if old.expires && in.Return >= old.from {
		outcomes = append(outcomes, onUnexpired(expiring{}, in))
	}
	return outcomes
}

func onUnexpired(old expiring, in *input) outcome {
	command := in.Commands[0]
	switch command[0] {
	case "PEXPIRE":
		if !old.is {
			return outcome{"0", old}
		}
		next := expiring{register: old.register, expires: true}
		next.from, next.until = deadline(in, command[2])
		return outcome{"1", next}
	case "PERSIST":
		return outcome{bit(old.expires), expiring{register: old.register}}
	}
	answer, value := registerCommand(old.register, command)
	if value == old.register && (command[0] != "SET" || answer == "nil") {
		return outcome{answer, old}
	}
	next := expiring{register: value}
	for at, argument := range command {
		if argument == "PX" {
			next.expires = true
			next.from, next.until = deadline(in, command[at+1])
		}
	}
	return outcome{answer, next}
}

// Units of an exact counter, and how many of them may be in doubt at most after all failures together.
const (
	quotaLimit = 120
	quotaBlock = 8
)

// What an exact counter has granted. A leader that dies may have granted all that it had reserved: those units count as used, at most one
// block of them over the whole life of the counter, which never goes down to 0 again here.
type quota struct{ used, doubt int64 }

func onQuota(state interface{}, in *input) []outcome {
	old, command := state.(quota), in.Commands[0]
	var outcomes []outcome
	for lost := int64(0); lost <= quotaBlock-old.doubt && old.used+lost <= quotaLimit; lost++ {
		now := quota{old.used + lost, old.doubt + lost}
		switch command[0] {
		case "COUNTER.GET":
			outcomes = append(outcomes, outcome{number(now.used), now})
		case "COUNTER.TAKE":
			granted := "0"
			if units := integer(command[2]); now.used+units <= quotaLimit {
				granted, now.used = "1", now.used+units
			}
			outcomes = append(outcomes, outcome{list([]string{granted, number(quotaLimit - now.used)}), now})
		default:
			panic("no model of " + command[0])
		}
	}
	return outcomes
}
