// go-redis follows the leader of a cluster: see test.py.
//
//	go-redis cluster|sentinel PORT,PORT,PORT
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	patience = 30 * time.Second
	before   = 100
	behind   = 100
)

func connect(mode string, addresses []string) redis.UniversalClient {
	if mode == "cluster" {
		return redis.NewClusterClient(&redis.ClusterOptions{Addrs: addresses})
	}
	return redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "tidemark", SentinelAddrs: addresses, DB: 5})
}

// persist repeats a command until it succeeds.
func persist(command func() error) {
	end := time.Now().Add(patience)
	for {
		err := command()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func main() {
	var addresses []string
	for _, port := range strings.Split(os.Args[2], ",") {
		addresses = append(addresses, "127.0.0.1:"+port)
	}
	var killed int32
	go func() {
		bufio.NewReader(os.Stdin).ReadString('\n')
		atomic.StoreInt32(&killed, 1)
	}()
	ctx, client := context.Background(), connect(os.Args[1], addresses)
	key := func(number int) string { return "go-redis:" + os.Args[1] + ":" + strconv.Itoa(number) }
	written := 0
	for left := behind; left > 0; written++ {
		wasKilled := atomic.LoadInt32(&killed)
		persist(func() error { return client.Set(ctx, key(written), written, 0).Err() })
		left -= int(wasKilled)
		if written == before {
			fmt.Println("ready")
		}
		time.Sleep(2 * time.Millisecond)
	}
	for number := 0; number < written; number++ {
		var found int
		persist(func() (err error) { found, err = client.Get(ctx, key(number)).Int(); return })
		if found != number {
			fmt.Fprintln(os.Stderr, key(number), "is", found)
			os.Exit(1)
		}
	}
	fmt.Println("done")
}
