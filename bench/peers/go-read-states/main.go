// Read states in Go: golang-lru in shards, a mutex each, values behind pointers so that an update is
// one look-up; or a slab without pointers behind a map of numbers, which the collector need not scan.
// Arguments: lru or slab, seconds, operations a thread; or lru or slab, "paced", seconds.
// Prints one "name value" a line.
package main

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

const (
	users    = 200_000
	rooms    = 40
	entries  = users * rooms
	exponent = 0.99
	shards   = 64
)

type key struct{ user, room uint64 }

type state struct {
	lastRead uint64
	mentions uint32
}

// One operation each; false if the entry is not there.
type cache interface {
	put(key)
	acknowledge(k key, message uint64) bool
	read(key) bool
}

func spread(k key) uint64 {
	mixed := (k.user ^ k.user>>32) * 0x9e37_79b9_7f4a_7c15
	return (mixed ^ mixed>>29) * 0xbf58_476d_1ce4_e5b9 >> 58
}

type lruShard struct {
	sync.Mutex
	lru *simplelru.LRU[key, *state]
}

type lruCache [shards]lruShard

func newLRU() *lruCache {
	c := new(lruCache)
	for n := range c {
		// Room for all, with what chance adds to a shard.
		c[n].lru, _ = simplelru.NewLRU[key, *state](entries/shards*5/4, nil)
	}
	return c
}

func (c *lruCache) put(k key) {
	s := &c[spread(k)]
	s.Lock()
	s.lru.Add(k, &state{lastRead: 1})
	s.Unlock()
}

func (c *lruCache) acknowledge(k key, message uint64) bool {
	s := &c[spread(k)]
	s.Lock()
	v, ok := s.lru.Get(k)
	if ok && message >= v.lastRead {
		v.lastRead, v.mentions = message, 0
	}
	s.Unlock()
	return ok
}

func (c *lruCache) read(k key) bool {
	s := &c[spread(k)]
	s.Lock()
	_, ok := s.lru.Get(k)
	s.Unlock()
	return ok
}

// An exact list of least use, in indexes.
type slot struct {
	key
	state
	before, after uint32
}

type slabShard struct {
	sync.Mutex
	index map[key]uint32
	slots []slot
	// Most and least recently used.
	first, last uint32
}

const none = math.MaxUint32

type slabCache [shards]slabShard

func newSlab() *slabCache {
	c := new(slabCache)
	for n := range c {
		c[n] = slabShard{index: make(map[key]uint32, entries/shards*5/4), slots: make([]slot, 0, entries/shards*5/4), first: none, last: none}
	}
	return c
}

func (s *slabShard) unlink(at uint32) {
	v := &s.slots[at]
	if v.before == none {
		s.first = v.after
	} else {
		s.slots[v.before].after = v.after
	}
	if v.after == none {
		s.last = v.before
	} else {
		s.slots[v.after].before = v.before
	}
}

func (s *slabShard) toFront(at uint32) {
	v := &s.slots[at]
	v.before, v.after = none, s.first
	if s.first != none {
		s.slots[s.first].before = at
	} else {
		s.last = at
	}
	s.first = at
}

func (c *slabCache) put(k key) {
	s := &c[spread(k)]
	s.Lock()
	at := uint32(len(s.slots))
	s.slots = append(s.slots, slot{key: k, state: state{lastRead: 1}})
	s.index[k] = at
	s.toFront(at)
	s.Unlock()
}

func (c *slabCache) use(k key, message uint64) bool {
	s := &c[spread(k)]
	s.Lock()
	defer s.Unlock()
	at, ok := s.index[k]
	if !ok {
		return false
	}
	if s.first != at {
		s.unlink(at)
		s.toFront(at)
	}
	if v := &s.slots[at]; message >= v.lastRead {
		v.lastRead, v.mentions = message, 0
	}
	return true
}

func (c *slabCache) acknowledge(k key, message uint64) bool { return c.use(k, message) }
func (c *slabCache) read(k key) bool                        { return c.use(k, 0) }

func room(user, n uint64) uint64 { return (user*31 + n) * 0x9e37_79b9_7f4a_7c15 }

// Gray et al., "Quickly generating billion-record synthetic databases", 1994.
type zipf struct {
	zeta, eta, alpha float64
	random           uint64
}

func newZipf(seed uint64, zeta float64) *zipf {
	eta := (1 - math.Pow(2/float64(entries), 1-exponent)) / (1 - (1+math.Pow(0.5, exponent))/zeta)
	return &zipf{zeta, eta, 1 / (1 - exponent), seed}
}

func (z *zipf) next() uint64 {
	z.random ^= z.random << 13
	z.random ^= z.random >> 7
	z.random ^= z.random << 17
	return z.random
}

func (z *zipf) rank() uint64 {
	uniform := float64(z.next()>>11) / (1 << 53)
	scaled := uniform * z.zeta
	if scaled < 1 {
		return 0
	}
	if scaled < 1+math.Pow(0.5, exponent) {
		return 1
	}
	return min(uint64(entries*math.Pow(z.eta*uniform-z.eta+1, z.alpha)), entries-1)
}

type pick struct {
	key
	changes bool
}

func (z *zipf) picks(count int) []pick {
	picks := make([]pick, count)
	for n := range picks {
		scattered := z.rank() * 0x2545_f491_4f6c_dd1d % entries
		user := scattered / rooms
		picks[n] = pick{key{user, room(user, scattered%rooms)}, z.next()%5 != 0}
	}
	return picks
}

func operate(c cache, p *pick, message uint64) {
	found := false
	if p.changes {
		found = c.acknowledge(p.key, message)
	} else {
		found = c.read(p.key)
	}
	if !found {
		panic("a read state is not there")
	}
}

func resident() float64 {
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		panic(err)
	}
	pages, err := strconv.ParseFloat(strings.Fields(string(statm))[1], 64)
	if err != nil {
		panic(err)
	}
	return pages * 4096
}

func number(text string) float64 {
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic(err)
	}
	return value
}

func main() {
	before := resident()
	var c cache
	if os.Args[1] == "lru" {
		c = newLRU()
	} else {
		c = newSlab()
	}
	for user := range uint64(users) {
		for n := range uint64(rooms) {
			c.put(key{user, room(user, n)})
		}
	}
	runtime.GC()
	memory := (resident() - before) / entries
	zeta := 0.0
	for rank := 1; rank <= entries; rank++ {
		zeta += math.Pow(float64(rank), -exponent)
	}
	if os.Args[2] == "paced" {
		paced(c, int(number(os.Args[3])), newZipf(77, zeta).picks(1_000_000))
		return
	}
	seconds, timed := number(os.Args[2]), int(number(os.Args[3]))
	var over atomic.Bool
	var done atomic.Int64
	var all sync.WaitGroup
	work := make([][]pick, runtime.GOMAXPROCS(0))
	for n := range work {
		work[n] = newZipf(uint64(n)*2+1, zeta).picks(timed)
	}
	for _, picks := range work {
		all.Go(func() {
			message := uint64(1 << 20)
			for !over.Load() {
				for stretch := range slices.Chunk(picks, 1000) {
					for n := range stretch {
						message++
						operate(c, &stretch[n], message)
					}
					done.Add(int64(len(stretch)))
					if over.Load() {
						return
					}
				}
			}
		})
	}
	time.Sleep(time.Duration(seconds / 4 * float64(time.Second)))
	from, begun := done.Load(), time.Now()
	time.Sleep(time.Duration(seconds * float64(time.Second)))
	to, took := done.Load(), time.Since(begun)
	over.Store(true)
	all.Wait()
	times := make([]time.Duration, timed)
	picks := newZipf(77, zeta).picks(timed)
	for n := range picks {
		begun := time.Now()
		operate(c, &picks[n], 1<<40+uint64(n))
		times[n] = time.Since(begun)
	}
	slices.Sort(times)
	fmt.Println("rate", float64(to-from)/took.Seconds()/1e6)
	fmt.Println("p50", times[timed/2].Nanoseconds())
	fmt.Println("p99.9", times[timed*999/1000].Nanoseconds())
	fmt.Println("memory", memory)
}
