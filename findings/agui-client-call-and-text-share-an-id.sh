#!/usr/bin/env bash
# @ag-ui/client 1.0.0 (npm, Node 20 or newer) gives a tool call without parentMessageId a message with
# the call's id. A text message with the same id is then appended to that message, so one message
# has the call and the text. The order matters: with the text first the call comes to the text's
# message too. The same stream with another id for the text gives two messages. All lines are
# valid for @ag-ui/core 1.0.0.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --silent --ignore-scripts --no-audit --no-fund @ag-ui/client@1.0.0 @ag-ui/core@1.0.0 rxjs@7.8.1 zod@3.25.76 > /dev/null
cat > play.cjs <<'JS'
const { AbstractAgent } = require("@ag-ui/client");
const { from } = require("rxjs");
class Player extends AbstractAgent {
  run() { return from(this.events); }
}
const play = async (textID) => {
  const agent = new Player();
  agent.events = [
    { type: "RUN_STARTED", threadId: "t", runId: "r" },
    { type: "TOOL_CALL_START", toolCallId: "same", toolCallName: "read" },
    { type: "TOOL_CALL_ARGS", toolCallId: "same", delta: "{}" },
    { type: "TOOL_CALL_END", toolCallId: "same" },
    { type: "TEXT_MESSAGE_START", messageId: textID, role: "assistant" },
    { type: "TEXT_MESSAGE_CONTENT", messageId: textID, delta: "Done." },
    { type: "TEXT_MESSAGE_END", messageId: textID },
    { type: "RUN_FINISHED", threadId: "t", runId: "r" },
  ];
  await agent.runAgent({});
  return agent.messages.map((m) => `${m.id}: ${m.toolCalls ? m.toolCalls.length : 0} call, text ${JSON.stringify(m.content ?? "")}`);
};
(async () => {
  console.log((await play("same")).join(" | "));
  console.log((await play("other")).join(" | "));
})();
JS
seen=$(node play.cjs)
want='same: 1 call, text "Done."
same: 1 call, text "" | other: 0 call, text "Done."'
echo "$seen"
[ "$seen" = "$want" ] || { echo "the behaviour has changed"; exit 1; }
