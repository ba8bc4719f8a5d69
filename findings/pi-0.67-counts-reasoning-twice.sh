#!/usr/bin/env bash
# pi 0.67.6 adds the reasoning tokens of an OpenAI-compatible answer to its completion tokens, which include
# them: of 11 completion tokens with 1 of reasoning its session has output 12 and totalTokens 1012. Version
# 0.73.1 has 11 and 1011. A reader of sessions cannot tell the surplus from the file of the older version.
set -euo pipefail
dir=$(mktemp -d)
trap 'kill $(jobs -p) 2> /dev/null || true; rm -rf "$dir"' EXIT
cd "$dir"
cat > model.js <<'JS'
// A model that answers every request with the same text.
const chunks = [
  { choices: [{ index: 0, delta: { role: "assistant", content: "Done." } }] },
  { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] },
  { choices: [], usage: { prompt_tokens: 1000, completion_tokens: 11, total_tokens: 1011,
    completion_tokens_details: { reasoning_tokens: 1 } } },
];
require("http").createServer((request, response) => {
  request.resume();
  request.on("end", () => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const c of chunks) {
      response.write("data: " + JSON.stringify({ id: "a", object: "chat.completion.chunk", created: 1, model: "demo-model", ...c }) + "\n\n");
    }
    response.end("data: [DONE]\n\n");
  });
}).listen(0, "127.0.0.1", function () { require("fs").writeFileSync("port", String(this.address().port)); });
JS
node model.js &
while [ ! -s port ]; do sleep 0.1; done
seen=
for version in 0.67.6 0.73.1; do
	mkdir -p "$version/home/.pi/agent" "$version/work"
	npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$version" "@mariozechner/pi-coding-agent@$version" > /dev/null 2>&1
	printf '{"providers":{"demo":{"baseUrl":"http://127.0.0.1:%s/v1","api":"openai-completions","apiKey":"none","models":[{"id":"demo-model","reasoning":true}]}}}' "$(cat port)" > "$version/home/.pi/agent/models.json"
	(cd "$version/work" && env -i PATH="$PATH" HOME="$dir/$version/home" PI_OFFLINE=1 PI_SKIP_VERSION_CHECK=1 PI_TELEMETRY=0 \
		timeout 120 "$dir/$version/node_modules/.bin/pi" --provider demo --model demo-model -p hello < /dev/null > /dev/null)
	usage=$(cat "$version"/home/.pi/agent/sessions/*/*.jsonl | node -e '
		for (const line of require("fs").readFileSync(0, "utf8").trim().split("\n")) {
			const u = JSON.parse(line).message?.usage;
			if (u) console.log("output " + u.output + ", totalTokens " + u.totalTokens);
		}')
	seen="$seen$version: $usage
"
done
printf '%s' "$seen"
[ "$seen" = "0.67.6: output 12, totalTokens 1012
0.73.1: output 11, totalTokens 1011
" ] || { echo "the behaviour has changed"; exit 1; }
