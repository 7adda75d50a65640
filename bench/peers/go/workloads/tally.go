// Package workloads holds the shared workloads for the Go peers: the same loops, the same stop of
// the clock and the same checks as bench/workloads has for the Rust systems.
package workloads

import (
	"fmt"
	"sync/atomic"
	"time"
)

// waitMax is the longest wait for one batch; a slower system has lost messages or hangs.
const waitMax = 120 * time.Second

// Countdown counts arrivals; the last one stamps the time itself.
type Countdown struct {
	left  atomic.Int64
	ended chan time.Time
}

func newCountdown() *Countdown { return &Countdown{ended: make(chan time.Time, 1)} }

func (c *Countdown) expect(members int) { c.left.Store(int64(members)) }

func (c *Countdown) arrive() {
	if c.left.Add(-1) == 0 {
		c.ended <- time.Now()
	}
}

func (c *Countdown) wait() (time.Time, error) {
	select {
	case ended := <-c.ended:
		return ended, nil
	case <-time.After(waitMax):
		return time.Time{}, fmt.Errorf("%d arrivals missing after %v", c.left.Load(), waitMax)
	}
}

// board is where the actors of one run report to.
type board struct {
	handled, started, stopped *Countdown
	sum                       atomic.Uint64
}

func newBoard() *board {
	return &board{handled: newCountdown(), started: newCountdown(), stopped: newCountdown()}
}

// Tally is the state of a benchmark actor: it adds, and notices the last message of a batch.
type Tally struct {
	sum, left, batch uint64
	board            *board
}

func (b *board) tallies(members int, batch uint64) []Tally {
	b.started.expect(members)
	b.stopped.expect(members)
	tallies := make([]Tally, members)
	for i := range tallies {
		tallies[i] = Tally{left: batch, batch: batch, board: b}
	}
	return tallies
}

// Add handles one message and returns the sum so far in this batch.
func (t *Tally) Add(number uint64) uint64 {
	t.sum += number
	t.left--
	if t.left == 0 {
		sum := t.sum
		t.sum, t.left = 0, t.batch
		t.board.sum.Add(sum)
		t.board.handled.arrive()
		return sum
	}
	return t.sum
}

// Started is to be called when the actor has started.
func (t *Tally) Started() { t.board.started.arrive() }

// Stopped is to be called when the actor has stopped.
func (t *Tally) Stopped() { t.board.stopped.arrive() }
