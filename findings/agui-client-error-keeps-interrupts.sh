#!/usr/bin/env bash
# @ag-ui/client 1.0.0 (npm, Node 20 or newer): a run that ends with RUN_ERROR leaves the interrupts of
# the run before pending, although it got an answer to each. A run that ends with RUN_FINISHED clears
# them, so a front end goes on asking what a person has answered.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --silent --ignore-scripts --no-audit --no-fund @ag-ui/client@1.0.0 @ag-ui/core@1.0.0 rxjs@7.8.1 zod@3.25.76 > /dev/null
cat > play.cjs <<'JS'
const { AbstractAgent } = require("@ag-ui/client");
const { from } = require("rxjs");
console.error = console.warn = () => {};
class Player extends AbstractAgent {
  run() { return from(this.events); }
}
const play = async (end) => {
  const agent = new Player();
  const turn = async (events, input) => {
    agent.events = events;
    await agent.runAgent(input).catch(() => {});
    return agent.pendingInterrupts.length;
  };
  const start = (runId) => ({ type: "RUN_STARTED", threadId: "t", runId });
  const asked = await turn([start("one"), { type: "RUN_FINISHED", threadId: "t", runId: "one", outcome: { type: "interrupt", interrupts: [{ id: "i", reason: "confirmation", message: "Delete?" }] } }], {});
  const answered = await turn([start("two"), end], { resume: [{ interruptId: "i", status: "resolved", payload: { approved: true } }] });
  return `${end.type}: ${asked} pending, after the answer ${answered}`;
};
(async () => {
  console.log(await play({ type: "RUN_FINISHED", threadId: "t", runId: "two" }));
  console.log(await play({ type: "RUN_ERROR", message: "the disk is full" }));
})();
JS
seen=$(node play.cjs)
want='RUN_FINISHED: 1 pending, after the answer 0
RUN_ERROR: 1 pending, after the answer 1'
echo "$seen"
[ "$seen" = "$want" ] || { echo "the behaviour has changed"; exit 1; }
