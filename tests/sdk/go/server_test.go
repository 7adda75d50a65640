package sdk

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"time"
)

// A start replays the log; a cold machine needs a while.
const startMax = 20 * time.Second

// What a person may do by default in a minute is less than these tests do.
const settings = "[limits]\nmessages_per_second = 0\nrooms_per_minute = 0\nchanges_per_minute = 0\nquestions_per_minute = 0\n"

var announced = regexp.MustCompile(`http://(127\.0\.0\.1:\d+)`)

// server is the real program with a data directory of its own. Its address changes with every start.
type server struct {
	t       *testing.T
	data    string
	process *exec.Cmd
	address string
}

func startServer(t *testing.T) *server {
	t.Helper()
	s := &server{t: t, data: t.TempDir()}
	if err := os.WriteFile(filepath.Join(s.data, "folkmoot.toml"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	s.launch()
	t.Cleanup(s.kill)
	return s
}

// launch starts the process and returns once it listens.
func (s *server) launch() {
	s.t.Helper()
	binary := os.Getenv("FOLKMOOT_BINARY")
	if binary == "" {
		s.t.Fatal("FOLKMOOT_BINARY must name the server; run `make test-sdk-go`")
	}
	s.process = exec.Command(binary, "--listen", "127.0.0.1:0", "--data", filepath.Join(s.data, "data"),
		"--config", filepath.Join(s.data, "folkmoot.toml"))
	output, writer := io.Pipe()
	s.process.Stdout, s.process.Stderr = writer, writer
	if err := s.process.Start(); err != nil {
		s.t.Fatal(err)
	}
	found := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(output)
		for lines.Scan() {
			if address := announced.FindStringSubmatch(lines.Text()); address != nil {
				select {
				case found <- address[1]:
				default:
				}
			}
		}
	}()
	select {
	case s.address = <-found:
	case <-time.After(startMax):
		s.t.Fatalf("no address after %v", startMax)
	}
}

// kill ends the process by SIGKILL and returns once it is gone.
func (s *server) kill() {
	_ = s.process.Process.Kill()
	_ = s.process.Wait()
}

type account struct {
	User struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	} `json:"user"`
	Token string `json:"token"`
}

func (s *server) signUp(name string) account {
	s.t.Helper()
	body, _ := json.Marshal(map[string]string{"name": name, "password": name + "'s password", "device": "test"})
	response, err := http.Post("http://"+s.address+"/api/v1/accounts", "application/json", bytes.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	var made account
	if response.StatusCode != http.StatusCreated || json.Unmarshal(text, &made) != nil {
		s.t.Fatalf("sign-up of %s: %d %s", name, response.StatusCode, text)
	}
	return made
}

// proxy forwards connections to the server as it is at the time of each; it can be cut.
type proxy struct {
	server   *server
	listener net.Listener
	mutex    sync.Mutex
	isOpen   bool
	held     map[net.Conn]struct{}
}

func startProxy(t *testing.T, s *server) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{server: s, listener: listener, isOpen: true, held: map[net.Conn]struct{}{}}
	go p.accept()
	t.Cleanup(func() {
		p.cut()
		_ = listener.Close()
	})
	return p
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mutex.Lock()
		target, isOpen := p.server.address, p.isOpen
		p.mutex.Unlock()
		upstream, err := net.Dial("tcp", target)
		if !isOpen || err != nil {
			_ = client.Close()
			continue
		}
		p.mutex.Lock()
		p.held[client], p.held[upstream] = struct{}{}, struct{}{}
		p.mutex.Unlock()
		for _, pair := range [][2]net.Conn{{client, upstream}, {upstream, client}} {
			go func() {
				_, _ = io.Copy(pair[1], pair[0])
				_ = pair[1].Close()
			}()
		}
	}
}

// cut ends every connection and refuses new ones until restore.
func (p *proxy) cut() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.isOpen = false
	for held := range p.held {
		_ = held.Close()
	}
	p.held = map[net.Conn]struct{}{}
}

func (p *proxy) restore() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.isOpen = true
}

func (p *proxy) url(query string) string {
	return fmt.Sprintf("ws://%s/connection/websocket%s", p.listener.Addr(), query)
}
