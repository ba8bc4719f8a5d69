package servertest

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
)

// The test binary is also the server and the writers: an environment variable selects the program.
const roleEnv = "AGENTEVENTS_SERVERTEST"

func TestMain(m *testing.M) {
	switch os.Getenv(roleEnv) {
	case "server":
		serve(os.Args[1:])
	case "writer":
		if err := write(context.Background(), os.Args[1:]); err != nil {
			fmt.Println("error", err)
			os.Exit(3)
		}
	default:
		os.Exit(m.Run())
	}
}

// serve is the main function of nats-server.
func serve(args []string) {
	fs := flag.NewFlagSet("nats-server", flag.ExitOnError)
	options, err := server.ConfigureOptions(fs, args, func() {}, fs.Usage, func() {})
	if err == nil {
		var s *server.Server
		if s, err = server.NewServer(options); err == nil {
			s.ConfigureLogger()
			if err = server.Run(s); err == nil {
				s.WaitForShutdown()
				return
			}
		}
	}
	fmt.Println(err)
	os.Exit(1)
}

// A node is a server process. It can be killed and started again with the same files and ports.
type node struct {
	t      testing.TB
	name   string
	config string
	log    string
	url    string
	cmd    *exec.Cmd
}

func (n *node) start() {
	n.cmd = program(n.t, "server", "-c", n.config, "-l", n.log)
	require.NoError(n.t, n.cmd.Start())
}

// kill ends the process at once, as a crash does.
func (n *node) kill() {
	if n.cmd != nil {
		_ = n.cmd.Process.Kill()
		_ = n.cmd.Wait()
		n.cmd = nil
	}
}

// program returns this binary as another program.
func program(t testing.TB, role string, args ...string) *exec.Cmd {
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), roleEnv+"="+role)
	cmd.Stderr = os.Stderr
	return cmd
}

// ports returns free ports of loopback.
func ports(t testing.TB, n int) (all []int) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer l.Close()
		all = append(all, l.Addr().(*net.TCPAddr).Port)
	}
	return all
}

// cluster starts n servers, which end with the test. extra is added to their configuration.
func cluster(t testing.TB, n int, extra string) []*node {
	dir := t.TempDir()
	clients, routes := ports(t, n), ports(t, n)
	var peers []string
	for _, p := range routes {
		peers = append(peers, fmt.Sprintf("nats://127.0.0.1:%d", p))
	}
	nodes := make([]*node, n)
	for i := range nodes {
		name := fmt.Sprintf("n%d", i)
		text := fmt.Sprintf("server_name: %s\nlisten: 127.0.0.1:%d\njetstream { store_dir: %q }\n%s\n", name, clients[i], filepath.Join(dir, name), extra)
		if n > 1 {
			text += fmt.Sprintf("cluster { name: test, listen: 127.0.0.1:%d, routes: [%s] }\n", routes[i], strings.Join(peers, ", "))
		}
		config := filepath.Join(dir, name+".conf")
		require.NoError(t, os.WriteFile(config, []byte(text), 0o600))
		nodes[i] = &node{t: t, name: name, config: config, log: filepath.Join(dir, name+".log"), url: fmt.Sprintf("nats://127.0.0.1:%d", clients[i])}
		nodes[i].start()
		t.Cleanup(nodes[i].kill)
	}
	return nodes
}

// connect returns JetStream of the servers, once it answers.
func connect(t testing.TB, nodes ...*node) jetstream.JetStream {
	js := dial(t, urls(nodes))
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		_, err := js.AccountInfo(ctx)
		return err == nil
	}, time.Minute, 50*time.Millisecond, "JetStream does not answer")
	return js
}

func urls(nodes []*node) string {
	var all []string
	for _, n := range nodes {
		all = append(all, n.url)
	}
	return strings.Join(all, ",")
}

func dial(t testing.TB, url string) jetstream.JetStream {
	nc, err := nats.Connect(url, nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectWait(100*time.Millisecond))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	return js
}
