// Every type of value with go-redis. Empties database 15 first.
//
//	go run . [redis://127.0.0.1:7379/15]
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"sort"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

type example struct {
	name string
	run  func(context.Context, *redis.Client) error
}

var examples = []example{
	{"strings", stringValues},
	{"durable writes", durableWrites},
	{"hashes", hashes},
	{"lists", lists},
	{"a blocking pop waits for a push", blockingPop},
	{"sets", sets},
	{"sorted sets", sortedSets},
	{"time series", timeSeries},
	{"a transaction fails when a watched key has changed", watched},
	{"a pipeline answers in order", pipeline},
	{"a scan finds every key", scan},
	{"messages reach channels and patterns", messages},
	{"an expired key is gone", expiry},
	{"counters take and give back", counters},
	{"limits say when to come again", limits},
}

// check turns what was and what should have been into an error, unless there is one already.
func check[T comparable](got T, err error, want T) error {
	if err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("got %v, expected %v", got, want)
	}
	return nil
}

// first finds the first error, if there is any.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func checkAll[T any](got []T, err error, want ...T) error {
	if err == nil && !reflect.DeepEqual(got, want) {
		return fmt.Errorf("got %v, expected %v", got, want)
	}
	return err
}

func stringValues(ctx context.Context, client *redis.Client) error {
	missing := client.Get(ctx, "missing").Err()
	if !errors.Is(missing, redis.Nil) {
		return fmt.Errorf("a missing key: %w", missing)
	}
	set, err := client.Set(ctx, "greeting", "hello", 100*time.Second).Result()
	got, getErr := client.Get(ctx, "greeting").Result()
	visits, incrErr := client.IncrBy(ctx, "visits", 42).Result()
	return first(check(set, err, "OK"), check(got, getErr, "hello"), check(visits, incrErr, 42))
}

// Tidemark's own word: these answers wait until the change is on disk.
func durableWrites(ctx context.Context, client *redis.Client) error {
	set, err := client.Do(ctx, "SET", "order", 42, "DURABLE").Text()
	order, incrErr := client.Do(ctx, "DURABLE", "INCR", "order").Int()
	return first(check(set, err, "OK"), check(order, incrErr, 43))
}

func hashes(ctx context.Context, client *redis.Client) error {
	added, err := client.HSet(ctx, "user", "name", "ada", "visits", 1).Result()
	visits, incrErr := client.HIncrBy(ctx, "user", "visits", 2).Result()
	all, allErr := client.HGetAll(ctx, "user").Result()
	return first(check(added, err, 2), check(visits, incrErr, 3), check(all["name"], allErr, "ada"))
}

func lists(ctx context.Context, client *redis.Client) error {
	length, err := client.RPush(ctx, "queue", "a", "b", "c").Result()
	moved, moveErr := client.LMove(ctx, "queue", "done", "LEFT", "RIGHT").Result()
	rest, rangeErr := client.LRange(ctx, "queue", 0, -1).Result()
	return first(check(length, err, 3), check(moved, moveErr, "a"), checkAll(rest, rangeErr, "b", "c"))
}

func blockingPop(ctx context.Context, client *redis.Client) error {
	pushed := make(chan error, 1)
	go func() { pushed <- client.RPush(ctx, "jobs", "job").Err() }()
	popped, err := client.BLPop(ctx, 30*time.Second, "jobs").Result()
	return first(checkAll(popped, err, "jobs", "job"), <-pushed)
}

func sets(ctx context.Context, client *redis.Client) error {
	err := first(client.SAdd(ctx, "odd", 1, 3, 5).Err(), client.SAdd(ctx, "small", 1, 2, 3).Err())
	both, interErr := client.SInter(ctx, "odd", "small").Result()
	sort.Strings(both)
	return first(err, checkAll(both, interErr, "1", "3"))
}

func sortedSets(ctx context.Context, client *redis.Client) error {
	err := client.ZAdd(ctx, "board", redis.Z{Score: 12.5, Member: "ada"}, redis.Z{Score: 9, Member: "bob"}).Err()
	bob, incrErr := client.ZIncrBy(ctx, "board", 10, "bob").Result()
	ranking, rangeErr := client.ZRevRangeWithScores(ctx, "board", 0, -1).Result()
	want := []redis.Z{{Score: 19, Member: "bob"}, {Score: 12.5, Member: "ada"}}
	return first(err, check(bob, incrErr, 19), checkAll(ranking, rangeErr, want...))
}

func timeSeries(ctx context.Context, client *redis.Client) error {
	key := "temperature:hall"
	options := &redis.TSOptions{Labels: map[string]string{"kind": "temperature"}, DuplicatePolicy: "last"}
	created, err := client.TSCreateWithArgs(ctx, key, options).Result()
	time, addErr := client.TSAdd(ctx, key, 1000, 20.5).Result()
	times, maddErr := client.TSMAdd(ctx, [][]interface{}{{key, 2000, 21.5}, {key, 61000, 19}}).Result()
	last, getErr := client.TSGet(ctx, key).Result()
	byMinute := &redis.TSRangeOptions{Aggregator: redis.Avg, BucketDuration: 60000}
	means, rangeErr := client.TSRangeWithArgs(ctx, key, 0, 100000, byMinute).Result()
	keys, queryErr := client.TSQueryIndex(ctx, []string{"kind=~temp.*"}).Result()
	return first(
		check(created, err, "OK"),
		check(time, addErr, 1000),
		checkAll(times, maddErr, 2000, 61000),
		check(last, getErr, redis.TSTimestampValue{Timestamp: 61000, Value: 19}),
		checkAll(means, rangeErr, redis.TSTimestampValue{Value: 21}, redis.TSTimestampValue{Timestamp: 60000, Value: 19}),
		checkAll(keys, queryErr, key),
	)
}

func watched(ctx context.Context, client *redis.Client) error {
	err := client.Watch(ctx, func(tx *redis.Tx) error {
		// Another connection is faster.
		if err := client.Set(ctx, "balance", 20, 0).Err(); err != nil {
			return err
		}
		_, err := tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error { return pipe.Set(ctx, "balance", 1, 0).Err() })
		return err
	}, "balance")
	if !errors.Is(err, redis.TxFailedErr) {
		return fmt.Errorf("the key had changed: %v", err)
	}
	balance, err := client.Get(ctx, "balance").Int()
	return check(balance, err, 20)
}

func pipeline(ctx context.Context, client *redis.Client) error {
	answers, err := client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for number := 0; number < 1000; number++ {
			pipe.Set(ctx, "key", number, 0)
			pipe.Get(ctx, "key")
		}
		return nil
	})
	for number := 0; number < 1000 && err == nil; number++ {
		got, getErr := answers[2*number+1].(*redis.StringCmd).Result()
		err = check(got, getErr, strconv.Itoa(number))
	}
	return err
}

func scan(ctx context.Context, client *redis.Client) error {
	for number := 0; number < 500; number++ {
		if err := client.Set(ctx, fmt.Sprintf("scan:%d", number), number, 0).Err(); err != nil {
			return err
		}
	}
	found := map[string]bool{}
	keys := client.Scan(ctx, 0, "scan:*", 50).Iterator()
	for keys.Next(ctx) {
		found[keys.Val()] = true
	}
	return check(len(found), keys.Err(), 500)
}

func messages(ctx context.Context, client *redis.Client) error {
	subscriber := client.PSubscribe(ctx, "weather.*")
	defer subscriber.Close()
	if _, err := subscriber.Receive(ctx); err != nil {
		return err
	}
	heard, err := client.Publish(ctx, "weather.oslo", "snow").Result()
	if err := check(heard, err, 1); err != nil {
		return err
	}
	message, err := subscriber.ReceiveMessage(ctx)
	if err != nil {
		return err
	}
	return first(check(message.Channel, nil, "weather.oslo"), check(message.Payload, nil, "snow"))
}

func expiry(ctx context.Context, client *redis.Client) error {
	if err := client.Set(ctx, "short", "lived", time.Millisecond).Err(); err != nil {
		return err
	}
	for ctx.Err() == nil {
		if exists, err := client.Exists(ctx, "short").Result(); err != nil || exists == 0 {
			return err
		}
	}
	return ctx.Err()
}

func counters(ctx context.Context, client *redis.Client) error {
	created, err := client.Do(ctx, "COUNTER.CREATE", "seats", "LIMIT", 10, "EXACT", 2).Int()
	taken, takeErr := client.Do(ctx, "COUNTER.TAKE", "seats", 8).Int64Slice()
	refused, refusedErr := client.Do(ctx, "COUNTER.TAKE", "seats", 3).Int64Slice()
	refunded, refundErr := client.Do(ctx, "COUNTER.REFUND", "seats", 9).Int()
	return first(
		check(created, err, 1),
		checkAll(taken, takeErr, 1, 2),
		checkAll(refused, refusedErr, 0, 2),
		check(refunded, refundErr, 8),
	)
}

func limits(ctx context.Context, client *redis.Client) error {
	allowed, err := client.Do(ctx, "CL.THROTTLE", "caller", 1, 1, 3600).Int64Slice()
	limited, limitedErr := client.Do(ctx, "CL.THROTTLE", "caller", 1, 1, 3600, 2).Int64Slice()
	if limitedErr == nil {
		limited = limited[:3]
	}
	all, allErr := client.Do(ctx, "LIMIT.CHECKALL", 2, "route", "seats", "GCRA", 5, "PER", 3600000, "DEFINED").Slice()
	return first(
		checkAll(allowed, err, 0, 2, 1, -1, 3600),
		checkAll(limited, limitedErr, 1, 2, 1),
		checkAll[any](all, allErr, int64(1), int64(5), int64(4), int64(-1), int64(720000), "route"),
	)
}

func main() {
	url := "redis://127.0.0.1:7379/15"
	if len(os.Args) > 1 {
		url = os.Args[1]
	}
	passed, failed := 0, 0
	for _, protocol := range []int{2, 3} {
		options, err := redis.ParseURL(url)
		if err != nil {
			fmt.Println(err)
			os.Exit(2)
		}
		options.Protocol = protocol
		client := redis.NewClient(options)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		if err := client.FlushDB(ctx).Err(); err != nil {
			fmt.Println(err)
		}
		for _, example := range examples {
			if err := example.run(ctx, client); err != nil {
				failed++
				fmt.Printf("FAILED %s (RESP%d): %v\n", example.name, protocol, err)
			} else {
				passed++
			}
		}
		cancel()
		client.Close()
	}
	fmt.Printf("%d passed, %d failed\n", passed, failed)
	if failed > 0 {
		os.Exit(1)
	}
}
