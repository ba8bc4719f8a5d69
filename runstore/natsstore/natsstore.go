package natsstore

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/option"
	"github.com/agentevents/agentevents/runstore"
)

// Options name the stream and the buckets of a store. The zero Options are usable.
type Options struct {
	// Name names the stream and the bucket of snapshots, and begins the subjects and the name of the
	// bucket of claims. It has letters, digits, - and _. Empty means agentevents.
	Name string
	// Replicas is the number of servers that keep each event: 1, 3 or 5. 0 means 1. Only [Create]
	// uses it.
	Replicas int `least:"0"`
	// MaxBytes bounds the stream: an append beyond it fails. 0 means no bound. Only [Create] uses it.
	MaxBytes int64 `least:"0"`
}

func (o Options) name() string { return cmp.Or(o.Name, "agentevents") }

func (o Options) claims() string { return o.name() + "-claims" }

// maxConsumers is how many calls of Load and Watch may go on at the same time. Without it nats-server
// 2.15 has a limit of 1,000 for a stream, also where stream and account state none.
const maxConsumers = 100_000

// Create makes the stream and the buckets of a store, or changes those that exist to the options. It
// may be called again. The server needs JetStream and version 2.12 or later. Up to 100,000 calls of
// Load and Watch may go on at the same time in a stream that Create has made.
func Create(ctx context.Context, js jetstream.JetStream, o Options) error {
	if js == nil {
		return errors.New("natsstore: no JetStream")
	}
	if err := option.Check("natsstore.Options", o); err != nil {
		return err
	}
	limit := cmp.Or(o.MaxBytes, -1)
	config := jetstream.StreamConfig{
		Name: o.name(), Subjects: []string{o.name() + ".*"}, Description: "Events of agent runs, a subject for each run",
		Storage: jetstream.FileStorage, Replicas: max(1, o.Replicas), MaxBytes: limit, Discard: jetstream.DiscardNew,
		MaxConsumers:       maxConsumers,
		AllowAtomicPublish: true,
	}
	stream, err := js.CreateOrUpdateStream(ctx, config)
	if err != nil {
		if old, gone := js.Stream(ctx, o.name()); gone == nil { // perhaps a server that does not change the number
			config.MaxConsumers = old.CachedInfo().Config.MaxConsumers
			stream, err = js.CreateOrUpdateStream(ctx, config)
		}
	}
	if err != nil {
		return fmt.Errorf("natsstore: creating stream %q: %w", o.name(), err)
	}
	if !stream.CachedInfo().Config.AllowAtomicPublish { // an older server leaves out settings that it does not know
		return fmt.Errorf("natsstore: creating stream %q: the server has no atomic batches, it is %s, legal: 2.12 or later",
			o.name(), js.Conn().ConnectedServerVersion())
	}
	_, err = js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: o.name(), Description: "The latest snapshots of agent runs",
		History: 1, Storage: jetstream.FileStorage, Replicas: max(1, o.Replicas),
	})
	if err != nil {
		return fmt.Errorf("natsstore: creating bucket %q: %w", o.name(), err)
	}
	_, err = js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: o.claims(), Description: "The claims of workers", History: 1,
		Storage: jetstream.FileStorage, Replicas: max(1, o.Replicas),
		LimitMarkerTTL: time.Minute,
	})
	if err != nil {
		return fmt.Errorf("natsstore: creating bucket %q: %w", o.claims(), err)
	}
	return nil
}

// A Store is a [runstore.Store] in NATS JetStream. It comes from [Open]. Its methods may be called
// concurrently.
type Store struct {
	js        jetstream.JetStream
	stream    jetstream.Stream
	snapshots jetstream.KeyValue
	claims    jetstream.KeyValue
	prefix    string          // of subjects
	base      context.Context // ends with Close
	end       context.CancelFunc

	mu     sync.Mutex
	tails  map[string]tail // of runs that this store has written, by their ids
	listed listing
}

// A tail is the position of a run.
type tail struct {
	runstore.RunInfo
	seq   uint64 // of the last message of the run in the stream; 0 without one
	claim int64  // token of the latest claim, negative once it was released; 0 without one
}

// maxTails bounds the runs whose tails are kept. An append to another run asks the server first.
const maxTails = 10_000

// A listing has the ids of all runs in order.
type listing struct {
	ids []string
	at  time.Time
}

// listingAge is how long the pages of a list come from one listing.
const listingAge = 2 * time.Second

// Open returns the store in the stream and the buckets that [Create] has made. The connection
// stays the caller's.
func Open(ctx context.Context, js jetstream.JetStream, o Options) (*Store, error) {
	if js == nil {
		return nil, errors.New("natsstore: no JetStream")
	}
	if err := option.Check("natsstore.Options", o); err != nil {
		return nil, err
	}
	stream, err := js.Stream(ctx, o.name())
	if err != nil {
		return nil, fmt.Errorf("natsstore: opening stream %q (Create makes it): %w", o.name(), err)
	}
	config := stream.CachedInfo().Config
	if !config.AllowAtomicPublish || len(config.Subjects) != 1 || config.Subjects[0] != o.name()+".*" {
		return nil,
			fmt.Errorf("natsstore: stream %q has another configuration than that of Create: is it another program's?", o.name())
	}
	bucket, err := js.KeyValue(ctx, o.name())
	if err != nil {
		return nil, fmt.Errorf("natsstore: opening bucket %q (Create makes it): %w", o.name(), err)
	}
	claims, err := js.KeyValue(ctx, o.claims())
	if err != nil {
		return nil, fmt.Errorf("natsstore: opening bucket %q (Create makes it): %w", o.claims(), err)
	}
	s := &Store{
		js: js, stream: stream, snapshots: bucket, claims: claims, prefix: o.name() + ".", tails: map[string]tail{},
	}
	s.base, s.end = context.WithCancel(context.Background())
	return s, nil
}

// Close ends watches. Other calls then fail with [agentevents.ErrClosed]. The connection stays open.
// It returns nil.
func (s *Store) Close() error {
	if s.end != nil {
		s.end()
	}
	return nil
}

// begin returns the context of a call, which also ends with the store, and an error if the store is
// closed or does not come from [Open].
func (s *Store) begin(ctx context.Context) (context.Context, context.CancelFunc, error) {
	if s.base == nil || s.base.Err() != nil {
		return ctx, func() {}, agentevents.ErrClosed
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.base, cancel)
	return ctx, func() { stop(); cancel() }, ctx.Err()
}

// failed adds the failed operation to an error.
func (s *Store) failed(err error, doing, runID string) error {
	switch {
	case err == nil:
		return nil
	case s.base == nil || s.base.Err() != nil:
		err = agentevents.ErrClosed
	case errors.Is(err, nats.ErrTimeout) || errors.Is(err, context.DeadlineExceeded):
		// The server does not answer a request that it refuses: it tells the connection.
		if last := s.js.Conn().LastError(); errors.Is(last, nats.ErrPermissionViolation) {
			err = fmt.Errorf("%w: %w", err, last)
		}
	}
	// The client adds its prefix to the error of a publish, which has it.
	if api, ok := errors.Unwrap(err).(*jetstream.APIError); ok && err.Error() == "nats: "+api.Error() {
		err = api
	}
	if runID != "" {
		doing += fmt.Sprintf(" run %.64q", runID)
	}
	return fmt.Errorf("natsstore: %s: %w", doing, err)
}

// maxRunID is the length in bytes of the longest run id. A server refuses lines of its protocol
// above 4,096 bytes, and a subject has four bytes for three of the id.
const maxRunID = 1500

func (s *Store) subject(runID string) string {
	return s.prefix + base64.RawURLEncoding.EncodeToString([]byte(runID))
}

// The headers of a message.
const (
	headerFirst    = "Agentevents-First"
	headerNext     = "Agentevents-Next"
	headerBegun    = "Agentevents-Begun"
	headerUpdated  = "Agentevents-Updated"
	headerTerminal = "Agentevents-Terminal"
	headerClaim    = "Agentevents-Claim"
)

// header returns the headers of a message whose first event has that sequence. A message without
// events has the run's next sequence there.
func header(first uint64, info *runstore.RunInfo, claim int64) nats.Header {
	h := nats.Header{headerFirst: {strconv.FormatUint(first, 10)}, headerNext: {strconv.FormatUint(info.Next, 10)}}
	for name, at := range map[string]time.Time{headerBegun: info.Begun, headerUpdated: info.Updated} {
		if !at.IsZero() {
			h[name] = []string{at.UTC().Format(time.RFC3339Nano)}
		}
	}
	if info.Terminal != "" {
		h[headerTerminal] = []string{string(info.Terminal)}
	}
	if claim != 0 {
		h[headerClaim] = []string{strconv.FormatInt(claim, 10)}
	}
	return h
}

// first returns the sequence of a message's first event.
func first(h nats.Header) (uint64, error) {
	return strconv.ParseUint(h.Get(headerFirst), 10, 64)
}

func infoOf(runID string, h nats.Header) (info runstore.RunInfo, err error) {
	info.RunID, info.Terminal = runID, agentevents.Kind(h.Get(headerTerminal))
	if info.Next, err = strconv.ParseUint(h.Get(headerNext), 10, 64); err != nil {
		return info, fmt.Errorf("a message has no header %s: is it another program's? %w", headerNext, err)
	}
	info.Begun, _ = time.Parse(time.RFC3339Nano, h.Get(headerBegun))
	info.Updated, _ = time.Parse(time.RFC3339Nano, h.Get(headerUpdated))
	return info, nil
}

// tail returns the position of a run, as the leader of the stream knows it.
func (s *Store) tail(ctx context.Context, runID string) (tail, error) {
	msg, err := s.stream.GetLastMsgForSubject(ctx, s.subject(runID))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return tail{}, nil
	}
	if err != nil {
		return tail{}, err
	}
	t := tail{seq: msg.Sequence}
	if text := msg.Header.Get(headerClaim); text != "" {
		if t.claim, err = strconv.ParseInt(text, 10, 64); err != nil {
			return tail{}, fmt.Errorf("header %s: %w", headerClaim, err)
		}
	}
	t.RunInfo, err = infoOf(runID, msg.Header)
	return t, err
}

// keep notes the position of a run, or forgets it.
func (s *Store) keep(runID string, t tail) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.seq == 0 {
		delete(s.tails, runID)
		return
	}
	if _, known := s.tails[runID]; !known && len(s.tails) >= maxTails {
		for other := range s.tails {
			delete(s.tails, other) // any of them: the server knows it
			break
		}
	}
	s.tails[runID] = t
}

func (s *Store) kept(runID string) tail {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tails[runID]
}

// Append implements [runstore.Store].
func (s *Store) Append(ctx context.Context, runID string, expect uint64, entries ...runstore.Entry) error {
	return s.AppendClaimed(ctx, runstore.Claim{RunID: runID}, expect, entries...)
}

// AppendClaimed implements [runstore.Claimer].
func (s *Store) AppendClaimed(ctx context.Context, c runstore.Claim, expect uint64, entries ...runstore.Entry) error {
	return runstore.AppendTo(ctx, s, c.RunID, expect, entries,
		func(expect uint64, entries []runstore.Entry) (uint64, error) {
			next, err := s.add(ctx, c.RunID, c.Token, expect, entries)
			return next, s.failed(err, "appending to", c.RunID)
		})
}

// add adds the entries if expect is the next sequence of the run and no other claim was given. It
// returns that sequence.
func (s *Store) add(ctx context.Context, runID string, token uint64,
	expect uint64, entries []runstore.Entry) (uint64, error) {
	ctx, done, err := s.begin(ctx)
	defer done()
	if err != nil {
		return 0, err
	}
	if len(runID) > maxRunID {
		return 0, fmt.Errorf("%w: its id has %d bytes, legal: up to %d", runstore.ErrRefused, len(runID), maxRunID)
	}
	t := s.kept(runID)
	for {
		if t.seq == 0 || t.Next != expect || !t.accepts(token) || len(entries) == 0 {
			if t, err = s.tail(ctx, runID); err == nil && !t.accepts(token) {
				err = s.holder(ctx, runID)
			}
			if err != nil || t.Next != expect {
				return t.Next, err
			}
		}
		if len(entries) == 0 {
			return expect, nil
		}
		messages, info, err := s.messages(runID, t, entries)
		if err != nil {
			return 0, err
		}
		s.keep(runID, tail{}) // until the outcome is known
		seq, err := s.publish(ctx, messages, t.seq)
		if err == nil {
			s.keep(runID, tail{info, seq, t.claim})
			return expect, nil
		}
		if !wrongLast(err) {
			return 0, err
		}
		t = tail{} // another writer or a claim has been there, or this append before
	}
}

// wrongLast reports whether the server refuses a message because its subject has another last
// message than the writer expects. Replicated streams have a code of their own for that.
func wrongLast(err error) bool {
	var e *jetstream.APIError
	return errors.As(err, &e) &&
		(e.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence ||
			e.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}

// headroom is the part of max_payload that is left to the headers of a message.
const headroom = 1024

// messages returns the messages with the entries, and the position of the run after them.
func (s *Store) messages(runID string, t tail, entries []runstore.Entry) ([]*nats.Msg, runstore.RunInfo, error) {
	info := t.RunInfo
	limit := int(s.js.Conn().MaxPayload()) - headroom
	var all []*nats.Msg
	for len(entries) > 0 {
		n, size := 0, 0
		for n < len(entries) && size+len(entries[n].Line) <= limit {
			size += len(entries[n].Line) + len("\n")
			n++
		}
		if n == 0 {
			return nil, info, fmt.Errorf("%w: the line of sequence %d has %d bytes, legal: up to %d (max_payload of the server)",
				runstore.ErrRefused, entries[0].Event.Sequence, len(entries[0].Line), limit)
		}
		data := make([]byte, 0, size)
		for i := range entries[:n] {
			e := &entries[i]
			if !utf8.ValidString(e.Line) {
				return nil, info, fmt.Errorf("%w: the line of sequence %d is not UTF-8", runstore.ErrRefused, e.Event.Sequence)
			}
			info.Add(&e.Event)
			data = append(append(data, e.Line...), '\n')
		}
		all = append(all, &nats.Msg{
			Subject: s.subject(runID), Data: data[:len(data)-1], Header: header(entries[0].Event.Sequence, &info, t.claim),
		})
		entries = entries[n:]
	}
	return all, info, nil
}

// limits are the settings of a stream that refuse a message, by the description of the error.
var limits = map[string]string{
	"maximum bytes exceeded": "max_bytes (Options.MaxBytes)", "maximum messages exceeded": "max_msgs",
}

// publish stores the messages, all or none, if after is the sequence of the last message of their
// subject. It returns the sequence of the last one.
func (s *Store) publish(ctx context.Context, messages []*nats.Msg, after uint64) (uint64, error) {
	seq, err := s.send(ctx, messages, after)
	var refused *jetstream.APIError
	if errors.As(err, &refused) && limits[refused.Description] != "" {
		err = fmt.Errorf("stream %q is full, its limit is %s: %w",
			s.stream.CachedInfo().Config.Name, limits[refused.Description], refused)
	}
	return seq, err
}

func (s *Store) send(ctx context.Context, messages []*nats.Msg, after uint64) (uint64, error) {
	if len(messages) == 1 {
		ack, err := s.js.PublishMsg(ctx, messages[0], jetstream.WithExpectLastSequencePerSubject(after),
			jetstream.WithRetryAttempts(0))
		if err != nil {
			return 0, err
		}
		return ack.Sequence, nil
	}
	batch := nats.NewInbox()[len("_INBOX."):]
	for i, m := range messages {
		m.Header["Nats-Batch-Id"] = []string{batch}
		m.Header["Nats-Batch-Sequence"] = []string{strconv.Itoa(i + 1)}
	}
	messages[0].Header[jetstream.ExpectedLastSubjSeqHeader] = []string{strconv.FormatUint(after, 10)}
	last := len(messages) - 1
	messages[last].Header["Nats-Batch-Commit"] = []string{"1"}
	for i, m := range messages {
		if i > 0 && i < last { // only the first one and the last one are answered
			if err := s.js.Conn().PublishMsg(m); err != nil {
				return 0, err
			}
			continue
		}
		answer, err := s.request(ctx, m)
		if err != nil {
			return 0, err
		}
		if i == last {
			return answer, nil
		}
	}
	return 0, errors.New("an empty batch")
}

// request sends a message of a batch, and returns the sequence in the answer.
func (s *Store) request(ctx context.Context, m *nats.Msg) (uint64, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.js.Options().DefaultTimeout)
		defer cancel()
	}
	answer, err := s.js.Conn().RequestMsgWithContext(ctx, m)
	if err != nil {
		return 0, err
	}
	var ack struct {
		Seq   uint64              `json:"seq"`
		Error *jetstream.APIError `json:"error"`
	}
	if len(answer.Data) > 0 { // the first message is answered without data
		if err := json.Unmarshal(answer.Data, &ack); err != nil {
			return 0, fmt.Errorf("the server answers a batch with %.64q: %w", answer.Data, err)
		}
	}
	if ack.Error != nil {
		return 0, ack.Error
	}
	return ack.Seq, nil
}

// Commit implements [runstore.Store]. An append that has returned is durable, so it returns nil.
func (s *Store) Commit(ctx context.Context) error {
	_, done, err := s.begin(ctx)
	done()
	return s.failed(err, "committing", "")
}

// Load implements [runstore.Store].
func (s *Store) Load(ctx context.Context, runID string, from uint64) iter.Seq2[runstore.Entry, error] {
	return func(yield func(runstore.Entry, error) bool) {
		if err := s.load(ctx, runID, from, func(e runstore.Entry) bool { return yield(e, nil) }); err != nil {
			yield(runstore.Entry{}, s.failed(err, "loading", runID))
		}
	}
}

func (s *Store) load(ctx context.Context, runID string, from uint64, yield func(runstore.Entry) bool) error {
	ctx, done, err := s.begin(ctx)
	defer done()
	if err != nil {
		return err
	}
	t, err := s.tail(ctx, runID)
	if err != nil || t.Next <= from {
		return err
	}
	return s.read(ctx, runID, from, t, t.seq, yield)
}

// Watch implements [runstore.Store]. While the server is away it waits.
func (s *Store) Watch(ctx context.Context, runID string, from uint64) iter.Seq2[runstore.Entry, error] {
	return func(yield func(runstore.Entry, error) bool) {
		err := s.watch(ctx, runID, from, func(e runstore.Entry) bool { return yield(e, nil) })
		if err != nil && ctx.Err() == nil && !errors.Is(err, agentevents.ErrClosed) && s.base.Err() == nil {
			yield(runstore.Entry{}, s.failed(err, "watching", runID))
		}
	}
}

func (s *Store) watch(ctx context.Context, runID string, from uint64, yield func(runstore.Entry) bool) error {
	ctx, done, err := s.begin(ctx)
	defer done()
	if err != nil {
		return err
	}
	t, err := s.tail(ctx, runID)
	if err != nil {
		return err
	}
	return s.read(ctx, runID, from, t, 0, yield)
}

// read yields the events of a run from a sequence on, up to the message last, or for ever if last
// is 0. t is the run's position.
func (s *Store) read(ctx context.Context, runID string, from uint64,
	t tail, last uint64, yield func(runstore.Entry) bool) error {
	start, err := s.place(ctx, runID, from, t)
	if err != nil {
		return err
	}
	consumer, err := s.stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{s.subject(runID)}, DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: start,
		InactiveThreshold: time.Minute,
	})
	if err != nil {
		return err
	}
	defer s.drop(ctx, consumer)
	messages, err := consumer.Messages()
	if err != nil {
		return err
	}
	defer messages.Stop()
	for {
		m, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return err
		}
		meta, err := m.Metadata()
		if err != nil {
			return err
		}
		ok, err := entries(m.Data(), runID, from, yield)
		if err != nil {
			return fmt.Errorf("message %d of the stream: %w", meta.Sequence.Stream, err)
		}
		if !ok {
			return nil
		}
		if meta.Sequence.Stream == last {
			return nil
		}
	}
}

// drop removes a consumer from the server, which would keep it for a minute, and has a limit for them.
// If the server is away, it forgets the consumer by itself.
func (s *Store) drop(ctx context.Context, c jetstream.Consumer) {
	info := c.CachedInfo()
	if info == nil || !s.js.Conn().IsConnected() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = s.stream.DeleteConsumer(ctx, info.Name)
}

// entries yields the events of a run's message from a sequence on. It reports whether the loop goes
// on.
func entries(data []byte, runID string, from uint64, yield func(runstore.Entry) bool) (bool, error) {
	if len(data) == 0 { // a claim
		return true, nil
	}
	for line := range strings.SplitSeq(string(data), "\n") {
		e, err := runstore.ParseEntry(line)
		if err == nil && e.Event.RunID != runID {
			err = fmt.Errorf("it has an event of run %.64q", e.Event.RunID)
		}
		if err != nil {
			return false, err
		}
		if e.Event.Sequence >= from && !yield(e) {
			return false, nil
		}
	}
	return true, nil
}

// place returns the stream's sequence from which the events of a run from a sequence on are read.
// It finds the message in some twenty questions, because messages of a run lie apart.
func (s *Store) place(ctx context.Context, runID string, from uint64, t tail) (uint64, error) {
	if t.seq == 0 || from == 0 {
		return 1, nil
	}
	if from >= t.Next {
		return t.seq + 1, nil
	}
	low, high := uint64(1), t.seq // the message at or after low may be too early, the one at high is not looked at
	for low < high {
		middle := low + (high-low+1)/2
		m, err := s.stream.GetMsg(ctx, middle, jetstream.WithGetMsgSubject(s.subject(runID)))
		if err != nil {
			return 0, err
		}
		begins, err := first(m.Header)
		if err != nil {
			return 0, err
		}
		if begins <= from {
			low = min(m.Sequence, high)
			if m.Sequence >= t.seq {
				return low, nil
			}
		} else {
			high = middle - 1
		}
	}
	return low, nil
}

// Run implements [runstore.Store].
func (s *Store) Run(ctx context.Context, runID string) (runstore.RunInfo, error) {
	info, err := s.run(ctx, runID)
	return info, s.failed(err, "asking for", runID)
}

func (s *Store) run(ctx context.Context, runID string) (runstore.RunInfo, error) {
	ctx, done, err := s.begin(ctx)
	defer done()
	if err != nil {
		return runstore.RunInfo{}, err
	}
	t, err := s.tail(ctx, runID)
	if err == nil && t.Next == 0 {
		err = runstore.ErrNoRun
	}
	return t.RunInfo, err
}

// Runs implements [runstore.Store]. It asks the server for the names of all subjects of the stream,
// which take about 100 bytes of memory for each run, and then for the runs of a page at a time. A
// call with a run id in after, at most two seconds after the last list of subjects, uses that list.
func (s *Store) Runs(ctx context.Context, after string) iter.Seq2[runstore.RunInfo, error] {
	return func(yield func(runstore.RunInfo, error) bool) {
		ids, err := s.ids(ctx, after)
		for err == nil && len(ids) > 0 {
			page := ids[:min(len(ids), pageSize)]
			var infos []runstore.RunInfo
			if infos, err = s.page(ctx, page); err != nil {
				break
			}
			for _, info := range infos {
				if info.Next > 0 && !yield(info, nil) { // else it was deleted, or has only a claim
					return
				}
			}
			ids = ids[len(page):]
		}
		if err != nil {
			yield(runstore.RunInfo{}, s.failed(err, "listing", ""))
		}
	}
}

// ids returns the ids of the runs after one, in order.
func (s *Store) ids(ctx context.Context, after string) ([]string, error) {
	ctx, done, err := s.begin(ctx)
	defer done()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	list := s.listed
	s.mu.Unlock()
	if after == "" || time.Since(list.at) > listingAge {
		info, err := s.stream.Info(ctx, jetstream.WithSubjectFilter(s.prefix+"*"))
		if err != nil {
			return nil, err
		}
		list = listing{make([]string, 0, len(info.State.Subjects)), time.Now()}
		for subject := range info.State.Subjects {
			id, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(subject, s.prefix))
			if err != nil {
				return nil, fmt.Errorf("subject %.64q is not a run's: is it another program's? %w", subject, err)
			}
			list.ids = append(list.ids, string(id))
		}
		slices.Sort(list.ids)
		s.mu.Lock()
		s.listed = list
		s.mu.Unlock()
	}
	i, found := slices.BinarySearch(list.ids, after)
	if found {
		i++
	}
	return list.ids[i:], nil
}

// pageSize is the number of runs that one page asks for at the same time.
const pageSize = 64

// page returns the positions of runs. One that is not there has no position.
func (s *Store) page(ctx context.Context, ids []string) ([]runstore.RunInfo, error) {
	ctx, done, err := s.begin(ctx)
	defer done()
	if err != nil {
		return nil, err
	}
	infos, errs := make([]runstore.RunInfo, len(ids)), make([]error, len(ids))
	var all sync.WaitGroup
	for i, id := range ids {
		all.Go(func() {
			t, err := s.tail(ctx, id)
			infos[i], errs[i] = t.RunInfo, err
		})
	}
	all.Wait()
	return infos, errors.Join(errs...)
}

// SaveSnapshot implements [runstore.Store]. The snapshot is compressed; it must fit into the server's
// max_payload.
func (s *Store) SaveSnapshot(ctx context.Context, snapshot *agentevents.RunSnapshot) error {
	id := ""
	if snapshot != nil {
		id = snapshot.RunID
	}
	return s.failed(s.save(ctx, snapshot, id), "saving the snapshot of", id)
}

func (s *Store) save(ctx context.Context, snapshot *agentevents.RunSnapshot, id string) error {
	ctx, done, err := s.begin(ctx)
	defer done()
	if err != nil {
		return err
	}
	var t tail
	if id != "" && len(id) <= maxRunID {
		if t, err = s.tail(ctx, id); err != nil {
			return err
		}
	}
	if err := runstore.CheckSnapshot(snapshot, t.Next); err != nil {
		return err
	}
	value, err := pack(snapshot)
	if err != nil {
		return err
	}
	if limit := int(s.js.Conn().MaxPayload()) - headroom; len(value) > limit {
		return fmt.Errorf("it has %d bytes, legal: up to %d (max_payload of the server)", len(value), limit)
	}
	key := s.subject(id)[len(s.prefix):]
	for {
		old, err := s.snapshots.Get(ctx, key)
		switch {
		case errors.Is(err, jetstream.ErrKeyNotFound):
			_, err = s.snapshots.Create(ctx, key, value)
		case err != nil:
			return err
		case nextOf(old.Value()) > snapshot.NextSequence && nextOf(old.Value()) <= t.Next:
			return nil // a newer one is there
		default:
			_, err = s.snapshots.Update(ctx, key, value, old.Revision())
		}
		if err == nil || !wrongLast(err) && !errors.Is(err, jetstream.ErrKeyExists) {
			return err
		}
	}
}

// pack returns a snapshot as it is stored: its next sequence, a newline, and its JSON compressed.
func pack(snapshot *agentevents.RunSnapshot) ([]byte, error) {
	out := bytes.NewBuffer(append(strconv.AppendUint(nil, snapshot.NextSequence, 10), '\n'))
	w := gzip.NewWriter(out)
	if _, err := w.Write(snapshot.AppendJSON(nil)); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// nextOf returns the next sequence of a stored snapshot, or 0.
func nextOf(value []byte) uint64 {
	text, _, _ := bytes.Cut(value, []byte("\n"))
	next, _ := strconv.ParseUint(string(text), 10, 64)
	return next
}

// LoadSnapshot implements [runstore.Store].
func (s *Store) LoadSnapshot(ctx context.Context, runID string) (*agentevents.RunSnapshot, error) {
	snapshot, err := s.loadSnapshot(ctx, runID)
	return snapshot, s.failed(err, "loading the snapshot of", runID)
}

func (s *Store) loadSnapshot(ctx context.Context, runID string) (*agentevents.RunSnapshot, error) {
	ctx, done, err := s.begin(ctx)
	defer done()
	if err != nil {
		return nil, err
	}
	if runID == "" || len(runID) > maxRunID {
		return nil, runstore.ErrNoSnapshot
	}
	entry, err := s.snapshots.Get(ctx, s.subject(runID)[len(s.prefix):])
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, runstore.ErrNoSnapshot
	}
	if err != nil {
		return nil, err
	}
	_, packed, _ := bytes.Cut(entry.Value(), []byte("\n"))
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("it is damaged: %w", err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("it is damaged: %w", err)
	}
	snapshot := new(agentevents.RunSnapshot)
	if err := json.Unmarshal(text, snapshot); err != nil {
		return nil, fmt.Errorf("it is damaged: %w", err)
	}
	return snapshot, nil
}

// Delete removes a run and its snapshot. It is for runs that nobody writes or resumes any more; a
// run with the same id begins anew. A run that the store does not know is not an error.
func (s *Store) Delete(ctx context.Context, runID string) error {
	return s.failed(s.delete(ctx, runID), "deleting", runID)
}

func (s *Store) delete(ctx context.Context, runID string) error {
	ctx, done, err := s.begin(ctx)
	defer done()
	if err != nil || runID == "" || len(runID) > maxRunID {
		return err
	}
	s.keep(runID, tail{})
	subject := s.subject(runID)
	for _, bucket := range []jetstream.KeyValue{s.snapshots, s.claims} {
		if err := bucket.Purge(ctx, subject[len(s.prefix):]); err != nil {
			return err
		}
	}
	return s.stream.Purge(ctx, jetstream.WithPurgeSubject(subject))
}
