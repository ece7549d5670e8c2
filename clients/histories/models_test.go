package main

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anishathalye/porcupine"
)

// did is an operation from one time to another, in milliseconds; `commands` are separated by ";". Without an answer it has no end.
func did(from, to int64, commands, answer string) operation {
	in := input{Call: from * 1e6, Return: to * 1e6}
	if answer == unknown {
		in.Return = math.MaxInt64
	}
	for _, command := range strings.Split(commands, ";") {
		in.Commands = append(in.Commands, strings.Fields(command))
	}
	return operation{input: in, Answer: answer}
}

func having(read string, of operation) operation {
	of.Watched = strings.Fields(read)
	return of
}

func judged(kind string, operations []operation) porcupine.CheckResult {
	for i := range operations {
		operations[i].Client, operations[i].Kind = i, kind
	}
	history := history{kind, "k", operations}
	return history.judge()
}

func TestWhatCanBeIsLinearizable(t *testing.T) {
	for name, of := range map[string]struct {
		kind       string
		operations []operation
	}{
		"a read beside a write has either value": {"register", []operation{
			did(0, 1, "SET k a", "OK"), did(2, 9, "SET k b", "OK"), did(3, 4, "GET k", `"b"`), did(5, 6, "GET k", `"b"`), did(2, 4, "GET k", `"a"`)}},
		"a write without an answer was executed late": {"register", []operation{
			did(0, 1, "SET k a", unknown), did(2, 3, "GET k", "nil"), did(4, 5, "GET k", `"a"`)}},
		"a write without an answer was never executed": {"register", []operation{
			did(0, 1, "SET k a NX", unknown), did(2, 3, "GET k", "nil"), did(4, 5, "SET k b NX", "OK"), did(6, 7, "GET k", `"b"`)}},
		"options of SET": {"register", []operation{
			did(0, 1, "SET k a XX", "nil"), did(2, 3, "SET k b GET", "nil"), did(4, 5, "GETSET k c", `"b"`), did(6, 7, "GETDEL k", `"c"`),
			did(8, 9, "EXISTS k", "0"), did(10, 11, "DEL k", "0")}},
		"an increment without an answer counts once": {"counter", []operation{
			did(0, 1, "INCRBY k 5", unknown), did(2, 3, "INCRBY k 1", "6"), did(4, 5, "GET k", `"6"`)}},
		"elements in order": {"list", []operation{
			did(0, 1, "RPUSH k a", "1"), did(2, 3, "LPUSH k b c", "3"), did(4, 5, "LRANGE k 0 -1", `["c" "b" "a"]`), did(6, 7, "LPOP k", `"c"`),
			did(8, 9, "RPOP k", `"a"`), did(10, 11, "LLEN k", "1")}},
		"a pop without an answer took one": {"list", []operation{
			did(0, 1, "RPUSH k a b", "2"), did(2, 3, "LPOP k", unknown), did(4, 5, "LPOP k", `"b"`), did(6, 7, "LPOP k", "nil")}},
		"any member is popped": {"set", []operation{
			did(0, 1, "SADD k 3", "1"), did(2, 3, "SADD k 7", "1"), did(4, 5, "SPOP k", unknown), did(6, 7, "SMEMBERS k", `["3"]`),
			did(8, 9, "SPOP k", `"3"`), did(10, 11, "SCARD k", "0")}},
		"a transaction": {"transaction", []operation{
			did(0, 1, "INCRBY ka -3;INCRBY kb 3", `[-3 3]`), did(2, 9, "INCRBY ka -1;INCRBY kb 1", `[-4 4]`), did(3, 4, "GET ka;GET kb", `["-3" "3"]`),
			having(`"-4" "4"`, did(10, 11, "SET ka 1;SET kb 2", "[OK OK]")), did(12, 13, "GET ka;GET kb", `["1" "2"]`)}},
		"a compare and set without an answer did nothing": {"transaction", []operation{
			having("nil nil", did(0, 1, "SET ka 1;SET kb 2", unknown)), did(2, 3, "INCRBY ka 1;INCRBY kb 1", "[1 1]"), did(4, 5, "GET ka;GET kb", `["1" "1"]`)}},
		"an exact counter that grants less after a failure": {"exact-counter", []operation{
			did(0, 1, "COUNTER.TAKE k 100", "[1 20]"), did(2, 3, "COUNTER.TAKE k 3", unknown), did(4, 5, "COUNTER.TAKE k 2", "[1 10]"),
			did(6, 7, "COUNTER.GET k", "110"), did(8, 9, "COUNTER.TAKE k 11", "[0 10]"), did(10, 11, "COUNTER.TAKE k 10", "[1 0]")}},
		"a client waits for what is pushed": {"blocking", []operation{
			did(0, 9, "BLPOP k 1", `["k" "a"]`), did(3, 4, "RPUSH k a", "1"), did(5, 6, "LLEN k", "0"), did(7, 12, "BRPOP k 0.1", "nil")}},
		"a key expires at its time": {"expiry", []operation{
			did(0, 1, "SET k a PX 1000", "OK"), did(10, 11, "GET k", `"a"`), did(990, 1001, "GET k", "nil"), did(3000, 3001, "EXISTS k", "0")}},
		"a deadline is taken back": {"expiry", []operation{
			did(0, 1, "SET k a PX 1000", "OK"), did(2, 3, "PERSIST k", "1"), did(9000, 9001, "GET k", `"a"`), did(9002, 9003, "PEXPIRE k 10", "1")}},
	} {
		if found := judged(of.kind, of.operations); found != porcupine.Ok {
			t.Errorf("%s: %s", name, found)
		}
	}
}

func TestWhatCannotBeIsFound(t *testing.T) {
	for name, of := range map[string]struct {
		kind       string
		operations []operation
	}{
		"a stale read": {"register", []operation{
			did(0, 1, "SET k a", "OK"), did(2, 3, "SET k b", "OK"), did(4, 5, "GET k", `"a"`)}},
		"a lost write": {"register", []operation{did(0, 1, "SET k a", "OK"), did(2, 3, "GET k", "nil")}},
		"a read that goes back": {"register", []operation{
			did(0, 20, "SET k a", "OK"), did(1, 2, "GET k", `"a"`), did(3, 4, "GET k", "nil")}},
		"a write without an answer that comes and goes": {"register", []operation{
			did(0, 1, "SET k a", unknown), did(2, 3, "GET k", `"a"`), did(4, 5, "GET k", "nil")}},
		"a value that was never written": {"register", []operation{did(0, 1, "GET k", `"a"`)}},
		"an increment that counts twice": {"counter", []operation{
			did(0, 1, "INCRBY k 5", unknown), did(2, 3, "GET k", `"10"`)}},
		"two increments with one answer": {"counter", []operation{did(0, 1, "INCRBY k 1", "1"), did(0, 1, "INCRBY k 1", "1")}},
		"ONCE that counts twice":         {"once-counter", []operation{did(0, 9, "INCRBY k 1", "1"), did(10, 11, "GET k", `"2"`)}},
		"ONCE that pops twice": {"once-list", []operation{
			did(0, 1, "RPUSH k a b", "2"), did(2, 9, "LPOP k", `"a"`), did(10, 11, "LRANGE k 0 -1", `[]`)}},
		"ONCE of a transaction that counts twice": {"once-transaction", []operation{
			did(0, 9, "INCRBY ka 1;INCRBY kb -1", "[1 -1]"), did(10, 11, "GET ka;GET kb", `["2" "-2"]`)}},
		"an element that is popped twice": {"list", []operation{
			did(0, 1, "RPUSH k a", "1"), did(2, 5, "LPOP k", `"a"`), did(2, 5, "RPOP k", `"a"`)}},
		"an element that is lost": {"list", []operation{did(0, 1, "RPUSH k a b", "2"), did(2, 3, "LRANGE k 0 -1", `["b"]`)}},
		"a member that is removed twice": {"set", []operation{
			did(0, 1, "SADD k 3", "1"), did(2, 3, "SREM k 3", "1"), did(4, 5, "SREM k 3", "1")}},
		"a popped member that is there": {"set", []operation{
			did(0, 1, "SADD k 3", "1"), did(2, 3, "SPOP k", `"3"`), did(4, 5, "SISMEMBER k 3", "1")}},
		"half of a transaction": {"transaction", []operation{
			did(0, 9, "INCRBY ka -3;INCRBY kb 3", `[-3 3]`), did(1, 2, "GET ka;GET kb", `["-3" nil]`)}},
		"a compare and set over a change": {"transaction", []operation{
			did(0, 1, "INCRBY ka 1;INCRBY kb 1", "[1 1]"), having("nil nil", did(2, 3, "SET ka 5;SET kb 6", "[OK OK]"))}},
		"a compare and set without an answer over a change": {"transaction", []operation{
			did(0, 1, "INCRBY ka 1;INCRBY kb 1", "[1 1]"), having("nil nil", did(2, 3, "SET ka 5;SET kb 6", unknown)),
			did(4, 5, "GET ka;GET kb", `["5" "6"]`)}},
		"a client that waits although there is something": {"blocking", []operation{
			did(0, 1, "RPUSH k a", "1"), did(2, 9, "BLPOP k 0.1", "nil")}},
		"an exact counter that grants too much": {"exact-counter", []operation{
			did(0, 1, "COUNTER.TAKE k 100", "[1 20]"), did(2, 3, "COUNTER.TAKE k 20", "[1 0]"), did(4, 5, "COUNTER.TAKE k 1", "[1 0]")}},
		"an exact counter that forgets a grant": {"exact-counter", []operation{
			did(0, 1, "COUNTER.TAKE k 5", "[1 115]"), did(2, 3, "COUNTER.GET k", "0")}},
		"an exact counter with more than a block in doubt": {"exact-counter", []operation{
			did(0, 1, "COUNTER.TAKE k 1", "[1 119]"), did(2, 3, "COUNTER.GET k", "5"), did(4, 5, "COUNTER.GET k", "10")}},
		"an element for two clients that wait": {"blocking", []operation{
			did(0, 9, "BLPOP k 1", `["k" "a"]`), did(0, 9, "BLPOP k 1", `["k" "a"]`), did(3, 4, "RPUSH k a", "1")}},
		"an expired key that is back": {"expiry", []operation{
			did(0, 1, "SET k a PX 1000", "OK"), did(990, 1001, "GET k", "nil"), did(1002, 1003, "GET k", `"a"`)}},
		"a key that expires early": {"expiry", []operation{
			did(0, 1, "SET k a PX 5000", "OK"), did(1000, 1001, "GET k", "nil")}},
		"a key that expires late": {"expiry", []operation{
			did(0, 1, "SET k a PX 1000", "OK"), did(3000, 3001, "GET k", `"a"`)}},
		"a key without a deadline that expires": {"expiry", []operation{
			did(0, 1, "SET k a", "OK"), did(1000, 1001, "GET k", "nil")}},
	} {
		if found := judged(of.kind, of.operations); found != porcupine.Illegal {
			t.Errorf("%s: %s", name, found)
		}
	}
}

// at is a read of a member over connection 1 or another.
func at(connection int64, of operation) operation {
	of.Follower = connection
	return of
}

func TestReadsOfFollowersAreJudgedByTheirBound(t *testing.T) {
	changes := []operation{did(0, 1, "INCRBY k 1", "1"), did(2, 3, "INCRBY k 1", "2"), did(2000, 2001, "INCRBY k 1", "3")}
	for name, of := range map[string]struct {
		reads []operation
		found porcupine.CheckResult
	}{
		"within the bound they may be old": {[]operation{at(1, did(100, 101, "GET k", "nil")), at(1, did(1900, 1901, "GET k", `"1"`))}, porcupine.Ok},
		"each connection goes forward": {[]operation{
			at(1, did(100, 101, "GET k", `"2"`)), at(2, did(102, 103, "GET k", `"1"`)), at(1, did(104, 105, "GET k", `"2"`))}, porcupine.Ok},
		"one that goes back":  {[]operation{at(1, did(100, 101, "GET k", `"2"`)), at(1, did(102, 103, "GET k", `"1"`))}, porcupine.Illegal},
		"one that is too old": {[]operation{at(1, did(2200, 2201, "GET k", `"1"`))}, porcupine.Illegal},
		"one of the future":   {[]operation{at(1, did(100, 101, "GET k", `"3"`))}, porcupine.Illegal},
	} {
		if found := judged("follower", append(append([]operation{}, changes...), of.reads...)); found != of.found {
			t.Errorf("%s: %s", name, found)
		}
	}
	// At the leader a read is never old.
	if found := judged("follower", append(changes, did(100, 101, "GET k", `"1"`))); found != porcupine.Illegal {
		t.Error("a stale read of the leader:", found)
	}
}

func TestWhereClocksAreSteppedAKeyExpiresAtAnyTimeAndStaysAway(t *testing.T) {
	stepped := func(back bool) []operation {
		operations := []operation{
			did(0, 1, "SET k a PX 1000", "OK"), did(2, 3, "GET k", `"a"`), did(9000, 9001, "GET k", `"a"`), did(9002, 9003, "GET k", "nil")}
		if back {
			operations = append(operations, did(9004, 9005, "GET k", `"a"`))
		}
		for i := range operations {
			operations[i].Stepped = true
		}
		return operations
	}
	if found := judged("expiry", stepped(false)); found != porcupine.Ok {
		t.Error("late:", found)
	}
	if found := judged("expiry", stepped(true)); found != porcupine.Illegal {
		t.Error("back:", found)
	}
}

func TestAStaleAnswerIsPlantedAndFound(t *testing.T) {
	operations := []operation{
		did(0, 1, "SET k a", "OK"), did(2, 3, "GET k", `"a"`), did(4, 5, "SET k b", "OK"), did(6, 7, "GET k", `"b"`), did(8, 9, "GET k", `"b"`)}
	if found := judged("register", operations); found != porcupine.Ok {
		t.Fatal(found)
	}
	of := history{"register", "{register:1:0}", operations}
	if !of.corrupt() || of.judge() != porcupine.Illegal {
		t.Fatal("not found:", of)
	}
	directory := filepath.Join(t.TempDir(), "found")
	if err := of.write(directory); err != nil {
		t.Fatal(err)
	}
	lines, err := os.ReadFile(filepath.Join(directory, "history.jsonl"))
	if err != nil || strings.Count(string(lines), "\n") != len(operations) {
		t.Error(string(lines), err)
	}
	if page, err := os.ReadFile(filepath.Join(directory, "history.html")); err != nil || len(page) == 0 {
		t.Error("no page", err)
	}
}

func TestOnlyWhatWasNotExecutedIsLeftOut(t *testing.T) {
	for _, answer := range []string{"-MOVED 12 10.79.1.2:7379", "-CLUSTERDOWN The cluster is down", "-TRYAGAIN the lead", "-LOADING data",
		"-READONLY You", "-MISCONF Tidemark refuses changes because", "-EXECABORT Transaction discarded"} {
		if !isRefusal(answer) || !isError(answer) {
			t.Error(answer)
		}
	}
	for _, answer := range []string{"-MISCONF the log has failed, and", "-ERR no", "-WRONGTYPE Operation", "[OK -WRONGTYPE Operation]"} {
		if isRefusal(answer) || !isError(answer) {
			t.Error(answer)
		}
	}
	for _, answer := range []string{"OK", "-5", "[-5 5]", `"a"`, "nil", "[]"} {
		if isRefusal(answer) || isError(answer) {
			t.Error(answer)
		}
	}
}
