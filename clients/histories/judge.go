package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// Longest time for one history of some hundred operations; most take milliseconds.
const judgePatience = 60 * time.Second

// The history of one key in one round.
type history struct {
	kind, key  string
	operations []operation
}

// histories takes the operations of all clients of a round apart by kind and key.
func histories(operations []operation) []history {
	byKey := map[string]*history{}
	var keys []string
	for _, one := range operations {
		if byKey[one.Key] == nil {
			byKey[one.Key] = &history{kind: one.Kind, key: one.Key}
			keys = append(keys, one.Key)
		}
		of := byKey[one.Key]
		of.operations = append(of.operations, one)
	}
	sort.Strings(keys)
	var all []history
	for _, key := range keys {
		all = append(all, *byKey[key])
	}
	return all
}

func (h *history) forPorcupine() []porcupine.Operation {
	var operations []porcupine.Operation
	for i := range h.operations {
		one := &h.operations[i]
		operations = append(operations, porcupine.Operation{
			ClientId: one.Client, Input: &one.input, Output: one.Answer, Call: one.Call, Return: one.Return,
			Metadata: fmt.Sprintf("member %d", one.Member),
		})
	}
	return operations
}

// write writes a history to a folder: as lines of JSON, and as a page that shows how far it is linearizable.
func (h *history) write(directory string) error {
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return err
	}
	lines, err := os.Create(filepath.Join(directory, "history.jsonl"))
	if err != nil {
		return err
	}
	defer lines.Close()
	encoder := json.NewEncoder(lines)
	encoder.SetEscapeHTML(false)
	for _, one := range h.operations {
		if err := encoder.Encode(one); err != nil {
			return err
		}
	}
	model, shown := linearizable(h.kind), *h
	// What has no end is shown up to a second behind the last answer.
	end := int64(0)
	for _, one := range h.operations {
		if one.Return != math.MaxInt64 && one.Return > end {
			end = one.Return
		}
	}
	operations := shown.forPorcupine()
	clients := map[int]int{}
	for i := range operations {
		one := &operations[i]
		if one.Return == math.MaxInt64 {
			one.Return = end + int64(time.Second)
		}
		// Its page has a line for each number up to the highest.
		if _, is := clients[one.ClientId]; !is {
			clients[one.ClientId] = len(clients)
		}
		one.ClientId = clients[one.ClientId]
	}
	_, information := porcupine.CheckOperationsVerbose(model, operations, judgePatience)
	return porcupine.VisualizePath(model, information, filepath.Join(directory, "history.html"))
}

// corrupt gives one read of a history an answer that was right before: what a stale read gets. It begins behind a read that has seen a later
// value. Returns false if the history has no such three reads.
func (h *history) corrupt() bool {
	var reads []int
	for i, one := range h.operations {
		if isRead(one.Commands) && one.Commands[0][0] == "GET" && one.Answer != unknown && one.Follower == 0 {
			reads = append(reads, i)
		}
	}
	sort.Slice(reads, func(i, j int) bool { return h.operations[reads[i]].Call < h.operations[reads[j]].Call })
	of := func(i int) *operation { return &h.operations[reads[i]] }
	for first := range reads {
		if of(first).Answer == "nil" {
			// Keys are deleted more than once.
			continue
		}
		for second := first + 1; second < len(reads); second++ {
			if of(second).Answer == of(first).Answer || of(second).Call <= of(first).Return {
				continue
			}
			for third := second + 1; third < len(reads); third++ {
				if of(third).Call > of(second).Return && of(third).Answer != of(first).Answer {
					of(third).Answer = of(first).Answer
					return true
				}
			}
			break
		}
	}
	return false
}

// What was judged, by kind.
type total struct{ histories, operations, unanswered, failed, undecided int }

type totals map[string]*total

func (t totals) of(kind string) *total {
	if t[kind] == nil {
		t[kind] = &total{}
	}
	return t[kind]
}

func (t totals) print() {
	var kinds []string
	for kind := range t {
		kinds = append(kinds, kind)
	}
	sort.Strings(kinds)
	fmt.Printf("%-17s %9s %10s %10s %9s %9s\n", "kind", "histories", "operations", "unanswered", "illegal", "undecided")
	for _, kind := range kinds {
		of := t[kind]
		fmt.Printf("%-17s %9d %10d %10d %9d %9d\n", kind, of.histories, of.operations, of.unanswered, of.failed, of.undecided)
	}
}

func fileName(key string) string { return strings.Trim(strings.ReplaceAll(key, ":", "-"), "{}") }
