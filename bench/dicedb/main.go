// The load of SevenDB's throughput program, by DiceDB's own client: GET and SET of keys at random, one request at a time for
// each worker. Prints one line of JSON.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand"
	"os"
	"sort"
	"strings"
	"sync"
	"syscall"
	"time"

	dicedb "github.com/dicedb/dicedb-go"
	"github.com/dicedb/dicedb-go/wire"
)

const keys = 100_000

type result struct {
	Requests       int     `json:"requests"`
	PerSecond      float64 `json:"perSecond"`
	P50Ms          float64 `json:"p50Ms"`
	P99Ms          float64 `json:"p99Ms"`
	CPUUsPerReq    float64 `json:"cpuUsPerRequest"`
	FailedRequests int     `json:"failedRequests"`
}

func main() {
	port := flag.Int("port", 7379, "port of the server on this machine")
	workers := flag.Int("workers", 16, "workers, each with a connection of its own")
	duration := flag.Duration("duration", 4*time.Second, "how long the load lasts")
	gets := flag.Int("get", 50, "percent of GET; the rest is SET")
	flag.Parse()

	clients := make([]*dicedb.Client, *workers)
	for i := range clients {
		client, err := dicedb.NewClient("127.0.0.1", *port)
		if err != nil {
			fmt.Fprintln(os.Stderr, "cannot connect:", err)
			os.Exit(1)
		}
		clients[i] = client
	}
	value := strings.Repeat("x", 16)
	latencies, failed := make([][]float64, *workers), make([]int, *workers)
	before, begin := cpuMicros(), time.Now()
	end := begin.Add(*duration)
	var running sync.WaitGroup
	for worker := range clients {
		running.Add(1)
		go func() {
			defer running.Done()
			random := rand.New(rand.NewSource(int64(worker)))
			for {
				sent := time.Now()
				if sent.After(end) {
					return
				}
				key := fmt.Sprintf("bench:key:%d", random.Intn(keys))
				command := &wire.Command{Cmd: "SET", Args: []string{key, value}}
				if random.Intn(100) < *gets {
					command = &wire.Command{Cmd: "GET", Args: []string{key}}
				}
				answer := clients[worker].Fire(command)
				if answer == nil || answer.Status != wire.Status_OK {
					failed[worker]++
					continue
				}
				latencies[worker] = append(latencies[worker], float64(time.Since(sent))/1e6)
			}
		}()
	}
	running.Wait()
	took, cpu := time.Since(begin).Seconds(), cpuMicros()-before

	var all []float64
	var failures int
	for worker := range clients {
		all = append(all, latencies[worker]...)
		failures += failed[worker]
	}
	if len(all) == 0 {
		fmt.Fprintln(os.Stderr, "no request was answered with success")
		os.Exit(1)
	}
	sort.Float64s(all)
	quantile := func(q float64) float64 { return all[int(q*float64(len(all)-1))] }
	json.NewEncoder(os.Stdout).Encode(result{
		Requests: len(all), PerSecond: float64(len(all)) / took, P50Ms: quantile(0.5), P99Ms: quantile(0.99),
		CPUUsPerReq: cpu / float64(len(all)), FailedRequests: failures,
	})
}

// cpuMicros is the processor time that this process has taken.
func cpuMicros() float64 {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e3
}
