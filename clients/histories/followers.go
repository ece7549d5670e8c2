package main

import (
	"fmt"
	"math"
	"sort"
	"strconv"

	"github.com/anishathalye/porcupine"
)

// How old the state may be that a follower shows to a client that has sent READONLY, by docs/cluster.md, and how much later than that a
// read may be sent by this program's clock and still show an older one: the clocks of two processes on one machine are one.
const (
	followerBound     = int64(2000e6)
	followerTolerance = int64(100e6)
)

// judgeFollowers returns why reads of followers are not what is promised; "" if they are. All changes of the key are increments by 1, so its
// values are in the order of the changes.
func judgeFollowers(operations []operation) string {
	// Acknowledged values by the time at which the answer was there, and when increments were sent.
	type acknowledged struct{ at, value int64 }
	var known []acknowledged
	var sent []int64
	var reads []operation
	for _, one := range operations {
		switch {
		case one.Follower != 0:
			reads = append(reads, one)
		case one.Commands[0][0] == "INCRBY":
			sent = append(sent, one.Call)
			if one.Answer != unknown {
				known = append(known, acknowledged{one.Return, integer(one.Answer)})
			}
		}
	}
	sort.Slice(known, func(i, j int) bool { return known[i].at < known[j].at })
	for i := 1; i < len(known); i++ {
		if known[i].value < known[i-1].value {
			known[i].value = known[i-1].value
		}
	}
	sort.Slice(sent, func(i, j int) bool { return sent[i] < sent[j] })
	sort.Slice(reads, func(i, j int) bool { return reads[i].Call < reads[j].Call })
	seen := map[int64]int64{}
	for _, read := range reads {
		value, err := followerValue(read.Answer)
		if err != nil {
			return err.Error()
		}
		at := sort.Search(len(known), func(i int) bool { return known[i].at > read.Call-followerBound-followerTolerance })
		if at > 0 && value < known[at-1].value {
			return fmt.Sprintf("member %d showed %d at %d ms, and %d was acknowledged at %d ms", read.Member, value, read.Call/1e6,
				known[at-1].value, known[at-1].at/1e6)
		}
		if count := sort.Search(len(sent), func(i int) bool { return sent[i] > read.Return }); value > int64(count) {
			return fmt.Sprintf("member %d showed %d at %d ms, when only %d increments had been sent", read.Member, value, read.Return/1e6, count)
		}
		if value < seen[read.Follower] {
			return fmt.Sprintf("member %d showed %d and then %d over one connection", read.Member, seen[read.Follower], value)
		}
		seen[read.Follower] = value
	}
	return ""
}

func followerValue(answer string) (int64, error) {
	if answer == "nil" {
		return 0, nil
	}
	text, err := strconv.Unquote(answer)
	if err != nil {
		return math.MinInt64, fmt.Errorf("a follower answered %s", answer)
	}
	return strconv.ParseInt(text, 10, 64)
}

// withoutFollowers returns the operations that have to be linearizable.
func withoutFollowers(operations []operation) []operation {
	var others []operation
	for _, one := range operations {
		if one.Follower == 0 {
			others = append(others, one)
		}
	}
	return others
}

// judge returns whether the history is what is promised; porcupine.Unknown if that took too long.
func (h *history) judge() porcupine.CheckResult {
	if h.kind == "follower" && judgeFollowers(h.operations) != "" {
		return porcupine.Illegal
	}
	linear := history{h.kind, h.key, withoutFollowers(h.operations)}
	return porcupine.CheckOperationsTimeout(linearizable(h.kind), linear.forPorcupine(), judgePatience)
}
