package main

import (
	"encoding/json"
	"net/http"

	ae "github.com/agentevents/agentevents"
)

func (rt *runtime) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /runs", rt.postRun)
	mux.HandleFunc("GET /runs", rt.getRuns)
	mux.Handle("GET /runs/{run}", rt.page.SnapshotHandler())
	mux.Handle("GET /runs/{run}/events", rt.page.EventsHandler())
	mux.HandleFunc("POST /runs/{run}/approvals/{approval}", rt.post(answer))
	mux.HandleFunc("POST /runs/{run}/pause",
		rt.post(func(run *ae.Run, _ *http.Request) error { return rt.halt(run, errPaused) }))
	mux.HandleFunc("POST /runs/{run}/cancel",
		rt.post(func(run *ae.Run, _ *http.Request) error { return rt.halt(run, errCancelled) }))
	mux.HandleFunc("POST /runs/{run}/resume", rt.post(func(run *ae.Run, _ *http.Request) error { return rt.resume(run) }))
	return http.MaxBytesHandler(mux, 1<<20)
}

func (rt *runtime) postRun(w http.ResponseWriter, req *http.Request) {
	var in inputs
	if err := json.NewDecoder(req.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	run, err := rt.start(in)
	if err != nil { // the server is shutting down
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	s := run.State()
	reply(w, http.StatusCreated, row{RunID: s.RunID, Status: s.Status, Events: s.NextSequence})
}

// A row is a run in the list of runs.
type row struct {
	RunID   string       `json:"runId"`
	Status  ae.RunStatus `json:"status"`
	Events  uint64       `json:"events"`
	CostUSD float64      `json:"costUsd,omitzero"`
}

func (rt *runtime) getRuns(w http.ResponseWriter, _ *http.Request) {
	rows := []row{}
	for _, r := range rt.page.Runs() {
		if s := rt.page.Snapshot(r.ID); s != nil {
			rows = append(rows, row{s.RunID, s.Status, s.NextSequence, s.Usage.CostUSD.V})
		}
	}
	reply(w, http.StatusOK, rows)
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the reader may be gone
}

// post returns a handler that does something to an open run. An act that the run does not allow now
// is a conflict.
func (rt *runtime) post(do func(*ae.Run, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		run, ok := rt.em.Lookup(req.PathValue("run"))
		if !ok {
			http.Error(w, "no such run is open", http.StatusNotFound)
			return
		}
		if err := do(run, req); err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}
}

// answer answers an approval. Of two answers the second one is a conflict.
func answer(run *ae.Run, req *http.Request) error {
	var in struct {
		Granted  bool   `json:"granted"`
		By       string `json:"by"`
		Feedback string `json:"feedback"`
	}
	if err := json.NewDecoder(req.Body).Decode(&in); err != nil {
		return err
	}
	id := req.PathValue("approval")
	if in.Granted {
		return run.Answer(req.Context(), &ae.ApprovalGranted{ApprovalID: id, ApprovedBy: in.By, Feedback: in.Feedback})
	}
	return run.Answer(req.Context(), &ae.ApprovalRejected{ApprovalID: id, RejectedBy: in.By, Feedback: in.Feedback})
}
