package workloads

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	senders      = 8
	clients      = 8
	publishes    = 8
	latenciesMax = 8_000_000
	warmUpActors = 1_000
)

type budget struct {
	messages        uint64
	seconds, warmUp time.Duration
}

type sample struct {
	metric, unit string
	value        float64
	note         string
}

// run repeats a batch, first to warm up, then measured, and returns the median.
func (b budget) run(batch func() (time.Duration, error)) (float64, error) {
	for begun := time.Now(); time.Since(begun) < b.warmUp; {
		if _, err := batch(); err != nil {
			return 0, err
		}
	}
	var measured []time.Duration
	for begun := time.Now(); len(measured) == 0 || time.Since(begun) < b.seconds; {
		elapsed, err := batch()
		if err != nil {
			return 0, err
		}
		measured = append(measured, elapsed)
	}
	slices.Sort(measured)
	return float64(measured[len(measured)/2].Nanoseconds()), nil
}

func tell[A, G any](s System[A, G], b budget, targets int, fromHandlers bool) ([]sample, error) {
	perSender := b.messages / senders
	if perSender == 0 {
		return nil, fmt.Errorf("--messages must be at least %d", senders)
	}
	board := newBoard()
	tallies := board.tallies(targets, perSender*senders/uint64(targets))
	addresses := make([]A, targets)
	for i := range addresses {
		addresses[i] = s.Spawn(&tallies[i])
	}
	producers := make([]A, senders)
	for i := range producers {
		producers[i] = s.SpawnProducer(addresses[i%targets])
	}
	elapsed, err := b.run(func() (time.Duration, error) {
		board.sum.Store(0)
		board.handled.expect(targets)
		begun := time.Now()
		for i := range senders {
			if fromHandlers {
				s.Burst(producers[i], perSender)
				continue
			}
			go func(target A) {
				for number := range perSender {
					s.Tell(target, number)
				}
			}(addresses[i%targets])
		}
		ended, err := board.handled.wait()
		expected := senders * (perSender * (perSender - 1) / 2)
		if err == nil && board.sum.Load() != expected {
			err = fmt.Errorf("handlers added up to %d instead of %d", board.sum.Load(), expected)
		}
		return ended.Sub(begun), err
	})
	rate := float64(perSender*senders) * 1000 / elapsed
	return []sample{{metric: "rate", unit: "M/s", value: rate}}, err
}

func askOne[A, G any](s System[A, G], b budget) ([]sample, error) {
	tallies := newBoard().tallies(1, ^uint64(0))
	address := s.Spawn(&tallies[0])
	asks := uint64(0)
	for begun := time.Now(); time.Since(begun) < b.warmUp; asks++ {
		s.Ask(address, 1)
	}
	latencies := make([]int64, 0, latenciesMax)
	sum, last := uint64(0), time.Now()
	for until := last.Add(b.seconds); last.Before(until) && len(latencies) < latenciesMax; {
		sum = s.Ask(address, 1)
		now := time.Now()
		latencies = append(latencies, now.Sub(last).Nanoseconds())
		last = now
	}
	if asks += uint64(len(latencies)); sum != asks {
		return nil, fmt.Errorf("the last reply was %d after %d asks", sum, asks)
	}
	slices.Sort(latencies)
	at := func(share float64) float64 { return float64(latencies[int(float64(len(latencies))*share)]) }
	return []sample{
		{metric: "p50", unit: "ns", value: at(0.50)}, {metric: "p99", unit: "ns", value: at(0.99)},
	}, nil
}

func askEight[A, G any](s System[A, G], b budget) ([]sample, error) {
	tallies := newBoard().tallies(1, ^uint64(0))
	address := s.Spawn(&tallies[0])
	var stop, measured atomic.Bool
	var all, counted atomic.Uint64
	var done sync.WaitGroup
	for range clients {
		done.Add(1)
		go func() {
			defer done.Done()
			ownAll, ownCounted := uint64(0), uint64(0)
			for !stop.Load() {
				s.Ask(address, 1)
				ownAll++
				if measured.Load() {
					ownCounted++
				}
			}
			all.Add(ownAll)
			counted.Add(ownCounted)
		}()
	}
	time.Sleep(b.warmUp)
	begun := time.Now()
	measured.Store(true)
	time.Sleep(b.seconds)
	measured.Store(false)
	elapsed := time.Since(begun)
	stop.Store(true)
	done.Wait()
	if sum := s.Ask(address, 1); sum != all.Load()+1 {
		return nil, fmt.Errorf("the actor counted %d of %d asks", sum, all.Load()+1)
	}
	rate := float64(counted.Load()) * 1000 / float64(elapsed.Nanoseconds())
	return []sample{{metric: "rate", unit: "M/s", value: rate}}, nil
}

func publish[A, G any](s System[A, G], b budget, subscribers int) ([]sample, error) {
	board := newBoard()
	group := s.Group(board.tallies(subscribers, publishes))
	if _, err := board.started.wait(); err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	elapsed, err := b.run(func() (time.Duration, error) {
		board.sum.Store(0)
		board.handled.expect(subscribers)
		begun := time.Now()
		for number := uint64(1); number <= publishes; number++ {
			s.Publish(group, number)
		}
		ended, err := board.handled.wait()
		expected := uint64(subscribers) * (publishes * (publishes + 1) / 2)
		if err == nil && board.sum.Load() != expected {
			err = fmt.Errorf("subscribers added up to %d instead of %d", board.sum.Load(), expected)
		}
		return ended.Sub(begun), err
	})
	each := elapsed / float64(subscribers*publishes)
	return []sample{{"per-subscriber", "ns", each, s.PublishesBy()}}, err
}

func lifecycle[A, G any](s System[A, G], b budget, metric string) ([]sample, error) {
	note := ""
	if most := s.LifecycleMax(); most > 0 && b.messages > most {
		b.messages = most
		note = fmt.Sprintf("%d actors at a time", most)
	}
	elapsed, err := b.run(func() (time.Duration, error) {
		board := newBoard()
		tallies := board.tallies(int(b.messages), ^uint64(0))
		addresses := make([]A, len(tallies))
		begun := time.Now()
		for i := range tallies {
			addresses[i] = s.Spawn(&tallies[i])
		}
		ended, err := board.started.wait()
		if err != nil {
			return 0, fmt.Errorf("start: %w", err)
		}
		spawned := ended.Sub(begun)
		begun = time.Now()
		for _, address := range addresses {
			s.Stop(address)
		}
		if ended, err = board.stopped.wait(); err != nil {
			return 0, fmt.Errorf("stop: %w", err)
		}
		if metric == "spawn" {
			return spawned, nil
		}
		return ended.Sub(begun), nil
	})
	return []sample{{metric, "ns", elapsed / float64(b.messages), note}}, err
}

func memory[A, G any](s System[A, G], b budget) ([]sample, error) {
	early, earlyTallies, err := spawnAndTell(s, warmUpActors)
	if err != nil {
		return nil, err
	}
	before, err := residentBytes()
	if err != nil {
		return nil, err
	}
	addresses, tallies, err := spawnAndTell(s, int(b.messages))
	if err != nil {
		return nil, err
	}
	after, err := residentBytes()
	// The benchmark's own state is 32 bytes per actor; it is not the library's.
	each := float64(after-before)/float64(b.messages) - 32
	runtime.KeepAlive(early)
	runtime.KeepAlive(earlyTallies)
	runtime.KeepAlive(addresses)
	runtime.KeepAlive(tallies)
	return []sample{{metric: "resident", unit: "bytes", value: each}}, err
}

func spawnAndTell[A, G any](s System[A, G], actors int) ([]A, []Tally, error) {
	board := newBoard()
	board.handled.expect(actors)
	tallies := board.tallies(actors, 1)
	addresses := make([]A, actors)
	for i := range tallies {
		addresses[i] = s.Spawn(&tallies[i])
		s.Tell(addresses[i], 1)
	}
	_, err := board.handled.wait()
	if err == nil && board.sum.Load() != uint64(actors) {
		err = errors.New("an actor handled another message than its own")
	}
	return addresses, tallies, err
}

// residentBytes returns what is resident after a collection that gives free memory back.
func residentBytes() (int64, error) {
	debug.FreeOSMemory()
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, err
	}
	pages, err := strconv.ParseInt(strings.Fields(string(statm))[1], 10, 64)
	return pages * int64(os.Getpagesize()), err
}
