package main

import (
	"sync"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	goredislib "github.com/redis/go-redis/v9"
)

// redsyncLocks has one holder of a lock at a time; a lock that is held when the server is killed is still held after it.
func redsyncLocks() {
	client := goredislib.NewClient(&goredislib.Options{Addr: address})
	locks := redsync.New(goredis.NewPool(client))

	const holders, rounds = 8, 50
	number := 0
	var group sync.WaitGroup
	for holder := 0; holder < holders; holder++ {
		group.Add(1)
		go func() {
			defer group.Done()
			lock := locks.NewMutex("counter",
				redsync.WithExpiry(30*time.Second), redsync.WithTries(100_000), redsync.WithRetryDelay(time.Millisecond))
			for round := 0; round < rounds; round++ {
				must(lock.Lock())
				// Without a lock most of these get lost.
				found := number
				time.Sleep(time.Millisecond)
				number = found + 1
				held, err := lock.Unlock()
				check(held && err == nil, "the lock was lost: %v", err)
			}
		}()
	}
	group.Wait()
	check(number == holders*rounds, "%d: two held the lock at one time", number)

	kept := locks.NewMutex("kept", redsync.WithExpiry(time.Minute), redsync.WithTries(1))
	other := locks.NewMutex("kept", redsync.WithExpiry(time.Minute), redsync.WithTries(1))
	must(kept.Lock())
	check(other.Lock() != nil, "two hold the lock")
	killServer()
	check(other.Lock() != nil, "the lock was lost with the server")
	held, err := kept.Extend()
	check(held && err == nil, "its holder has lost the lock: %v", err)
	held, err = kept.Unlock()
	check(held && err == nil, "its holder cannot release the lock: %v", err)
	must(other.Lock())

	short := locks.NewMutex("short", redsync.WithExpiry(100*time.Millisecond), redsync.WithTries(1))
	must(short.Lock())
	successor := locks.NewMutex("short", redsync.WithExpiry(time.Minute), redsync.WithTries(1000), redsync.WithRetryDelay(10*time.Millisecond))
	must(successor.Lock())
	held, _ = short.Unlock()
	check(!held, "the holder of a lock that had ended could release its successor's")
	held, err = successor.Extend()
	check(held && err == nil, "the successor has lost the lock: %v", err)
}
