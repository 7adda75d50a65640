// Package sdk lets two people talk through the official Go SDK, unmodified, in both formats.
package sdk

import (
	"fmt"
	"strings"
	"testing"

	"github.com/centrifugal/centrifuge-go"
)

const roomsMany = 2_000

type identified struct {
	ID string `json:"id"`
}

// house is two people in one room; bo's connection can be cut.
type house struct {
	server  *server
	proxy   *proxy
	ada, bo *person
	room    string
}

func open(t *testing.T, speaks format) *house {
	t.Helper()
	h := &house{server: startServer(t)}
	h.proxy = startProxy(t, h.server)
	straight := fmt.Sprintf("ws://%s/connection/websocket%s", h.server.address, speaks.query)
	h.ada = connect(t, h.server.signUp("ada"), straight, speaks)
	h.bo = connect(t, h.server.signUp("bo"), h.proxy.url(speaks.query), speaks)
	h.room = rpc[identified](h.ada, "room.create", map[string]any{"name": "Tea"}).ID
	invite := rpc[struct{ Code string }](h.ada, "invite.create", map[string]any{"room": h.room})
	rpc[map[string]any](h.bo, "invite.accept", map[string]any{"code": invite.Code})
	return h
}

func inEachFormat(t *testing.T, test func(*testing.T, format)) {
	for _, speaks := range formats {
		t.Run(speaks.name, func(t *testing.T) { test(t, speaks) })
	}
}

func numbered(word string, count int) []string {
	texts := make([]string, count)
	for index := range texts {
		texts[index] = fmt.Sprintf("%s %d", word, index)
	}
	return texts
}

func (h *house) say(by *person, body string) {
	by.t.Helper()
	key := strings.ReplaceAll(body, "\n", " ")
	rpc[map[string]any](by, "message.send", map[string]any{"room": h.room, "key": key, "body": body})
}

func TestAConversationReachesEveryoneInOrder(t *testing.T) {
	inEachFormat(t, func(t *testing.T, speaks format) {
		h := open(t, speaks)
		adas, bos := h.ada.subscribe("room:"+h.room), h.bo.subscribe("room:"+h.room)
		take(t, adas.subscribed, "ada's subscription")
		take(t, bos.subscribed, "bo's subscription")
		adas.say(map[string]any{"body": "hello", "key": "first"})
		h.say(h.bo, "Grüße ☕\nsecond line")
		// Two publishes without a key are two messages, though they say the same.
		adas.say(map[string]any{"body": "again"})
		adas.say(map[string]any{"body": "again"})
		for _, heard := range []*stream{adas, bos} {
			heard.expectExactly("hello", "Grüße ☕\nsecond line", "again", "again")
		}
		for {
			if told := take(t, h.bo.own, "the room in bo's own stream"); told.Type == "room_added" {
				break
			}
		}
	})
}

func TestHistoryIsReadInPages(t *testing.T) {
	inEachFormat(t, func(t *testing.T, speaks format) {
		h := open(t, speaks)
		heard := h.ada.subscribe("room:" + h.room)
		take(t, heard.subscribed, "the subscription")
		said := numbered("message", 25)
		for _, body := range said {
			h.say(h.ada, body)
		}
		top := heard.page(centrifuge.WithHistoryLimit(0))
		if len(top.Publications) != 0 {
			t.Fatalf("a limit of 0 asks for the position alone: %d", len(top.Publications))
		}
		since := &centrifuge.StreamPosition{Offset: top.Offset - uint64(len(said)), Epoch: top.Epoch}
		var read []string
		for {
			page := heard.page(centrifuge.WithHistoryLimit(10), centrifuge.WithHistorySince(since))
			if len(page.Publications) == 0 {
				break
			}
			for _, published := range page.Publications {
				read = append(read, decode(t, published).Body)
				since.Offset = published.Offset
			}
		}
		if fmt.Sprint(read) != fmt.Sprint(said) {
			t.Fatalf("pages of ten give %v", read)
		}
		last := heard.page(centrifuge.WithHistoryLimit(2), centrifuge.WithHistoryReverse(true)).Publications
		if len(last) != 2 || last[0].Offset != top.Offset || last[1].Offset != top.Offset-1 {
			t.Fatalf("from the end: %v", last)
		}
	})
}

func TestWhatWasMissedWhileCutOrKilledArrivesOnceAndInOrder(t *testing.T) {
	inEachFormat(t, func(t *testing.T, speaks format) {
		h := open(t, speaks)
		bos := h.bo.subscribe("room:" + h.room)
		take(t, bos.subscribed, "the subscription")
		for _, isKilled := range []bool{false, true} {
			missed := numbered(fmt.Sprintf("missed, killed %v,", isKilled), 20)
			h.proxy.cut()
			take(t, h.bo.connecting, "the cut")
			for _, body := range missed {
				h.say(h.ada, body)
			}
			if isKilled {
				h.server.kill()
				h.server.launch()
			}
			h.proxy.restore()
			if again := take(t, bos.subscribed, "the subscription"); !again.Recovered {
				t.Fatalf("not recovered: %+v", again)
			}
			bos.expectExactly(missed...)
		}
		// The restarted server is at another port, which ada's client cannot know; bo's is the proxy's.
		h.say(h.bo, "alive")
		bos.expectExactly("alive")
		if len(bos.events) != 0 {
			t.Fatalf("more came than was said: %+v", <-bos.events)
		}
	})
}

func TestRefusalsCarryTheirCodes(t *testing.T) {
	inEachFormat(t, func(t *testing.T, speaks format) {
		h := open(t, speaks)
		h.ada.refused(104, "room.explode", map[string]any{})
		h.ada.refused(400, "message.send", map[string]any{"room": h.room, "key": "k", "body": " "})
		h.say(h.ada, "taken")
		h.ada.refused(409, "message.send", map[string]any{"room": h.room, "key": "taken", "body": "other"})
		eve := connect(t, h.server.signUp("eve"), h.proxy.url(speaks.query), speaks)
		eve.refused(103, "message.send", map[string]any{"room": h.room, "key": "k", "body": "let me in"})
		mallory := newPerson(t, account{Token: "fm_wrong"}, h.proxy.url(speaks.query), speaks)
		if err := mallory.client.Connect(); err != nil {
			t.Fatal(err)
		}
		if code := take(t, mallory.disconnected, "the end of a wrong token"); code != 3500 {
			t.Fatalf("a wrong token ends with %d", code)
		}
	})
}

func TestAPersonIsIn2000RoomsAndHearsEach(t *testing.T) {
	h := open(t, formats[0])
	rooms := make([]string, roomsMany)
	heard := make([]*stream, roomsMany)
	for index := range rooms {
		rooms[index] = rpc[identified](h.ada, "room.create", map[string]any{"name": fmt.Sprintf("Room %d", index)}).ID
	}
	for index, room := range rooms {
		heard[index] = h.ada.subscribe("room:" + room)
	}
	for _, room := range heard {
		take(t, room.subscribed, room.Channel)
	}
	for index, room := range heard {
		room.say(map[string]any{"body": fmt.Sprintf("in %d", index)})
	}
	for index, room := range heard {
		room.expectExactly(fmt.Sprintf("in %d", index))
	}
}
