package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

var (
	address  = "127.0.0.1:" + os.Getenv("PROGRAM_PORT")
	folder   = os.Getenv("PROGRAM_FOLDER")
	patience = seconds(os.Getenv("PROGRAM_PATIENCE"))
)

func seconds(text string) time.Duration {
	number, err := strconv.Atoi(text)
	must(err)
	return time.Duration(number) * time.Second
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func check(holds bool, format string, arguments ...any) {
	if !holds {
		panic(fmt.Sprintf(format, arguments...))
	}
}

// killServer has the server killed with SIGKILL and restarted on its data.
func killServer() {
	request := filepath.Join(folder, "kill")
	must(os.WriteFile(request, nil, 0o644))
	waitFor("the server to be restarted", func() bool {
		_, err := os.Stat(request)
		return os.IsNotExist(err)
	})
}

func waitFor(what string, condition func() bool) {
	for deadline := time.Now().Add(patience); !condition(); time.Sleep(10 * time.Millisecond) {
		check(time.Now().Before(deadline), "waited too long for %s", what)
	}
}

// notes has what was done: how often for each line.
type notes struct {
	mutex  sync.Mutex
	counts map[string]int
}

var done = notes{counts: map[string]int{}}

// note counts the line and returns how often it was noted before.
func (n *notes) note(line string) int {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.counts[line]++
	return n.counts[line] - 1
}

// of returns the counts of the lines that begin with the kind.
func (n *notes) of(kind string) map[string]int {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	found := map[string]int{}
	for line, count := range n.counts {
		if strings.HasPrefix(line, kind+" ") {
			found[line] = count
		}
	}
	return found
}

// expect waits until so many different lines of a kind are noted, numbered from 0. At most `repeated` of them may have been noted more than
// once, and no other line.
func (n *notes) expect(kind string, count, repeated int) {
	n.expectOrKept(kind, count, repeated, func() []string { return nil })
}

// expectOrKept is expect, where those that are not noted must be kept by the server: `kept` lists the lines of those that it has.
func (n *notes) expectOrKept(kind string, count, repeated int, kept func() []string) {
	waitFor(fmt.Sprintf("%d of %s", count, kind), func() bool {
		found := n.of(kind)
		for _, line := range kept() {
			found[line]++
		}
		return len(found) >= count
	})
	again := 0
	for line, times := range n.of(kind) {
		number, err := strconv.Atoi(strings.TrimPrefix(line, kind+" "))
		check(err == nil && number >= 0 && number < count, "not asked for: %s", line)
		if times > 1 {
			again++
		}
	}
	check(again <= repeated, "%d of %s were done more than once", again, kind)
}
