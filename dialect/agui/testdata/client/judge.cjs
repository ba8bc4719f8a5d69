// Plays threads to the client of AG-UI and prints how it ends. Each line of stdin is a
// task, and each line of stdout is its answer, both JSON:
//
//   {"lines":[…],"state":…}  the lines of a thread, and the state that the client is to end
//                            with, or null
//   {"url":…,"thread":…,"questions":[…]}  a server: each question begins a run of the thread
//
// An answer has the messages, the client's errors and warnings, and the state if it is another
// one. A thread of lines is played twice: run by run, with an answer to each interrupt, and
// connected to as a whole.
const { AbstractAgent, HttpAgent } = require("@ag-ui/client");
const { from } = require("rxjs");
const { isDeepStrictEqual } = require("util");

class Player extends AbstractAgent {
  run() {
    return from(this.events);
  }
  connect() {
    return from(this.events);
  }
}

let warnings = [];
console.warn = (...text) => warnings.push(text.join(" "));
console.error = () => {}; // the error comes as one, too

const shown = (messages) =>
  messages.map(({ id, role, content, toolCallId, toolCalls }) => ({
    id,
    role,
    content,
    toolCallId,
    calls: toolCalls?.map((call) => ({ id: call.id, name: call.function.name, arguments: call.function.arguments })),
  }));

// plain copies a value as the client does: -0 becomes 0, and 1e400 null.
const plain = (value) => JSON.parse(JSON.stringify(value));

// ran runs an agent, which answers the questions of the run before.
const ran = async (agent, errors) => {
  const resume = agent.pendingInterrupts.map(({ id }) => ({ interruptId: id, status: "resolved", payload: { approved: true } }));
  await agent.runAgent(resume.length > 0 ? { resume } : {}).catch((e) => errors.push(e.message));
};

const played = async ({ lines, state }) => {
  const events = lines.map((line) => JSON.parse(line));
  const runs = [];
  for (const event of events) {
    if (event.type === "RUN_STARTED" || runs.length === 0) runs.push([]);
    runs.at(-1).push(event);
  }
  const errors = [];
  const agent = new Player();
  for (agent.events of runs) await ran(agent, errors);
  const whole = new Player();
  whole.events = events;
  await whole.connectAgent().catch((e) => errors.push("connected: " + e.message));
  for (const what of ["messages", "state"]) {
    if (!isDeepStrictEqual(agent[what], whole[what])) errors.push(`connected, the client has other ${what}: ${JSON.stringify(whole[what])}`);
  }
  return { errors, messages: shown(agent.messages), state: state === null || isDeepStrictEqual(plain(agent.state), plain(state)) ? undefined : JSON.stringify(agent.state) };
};

const asked = async ({ url, thread, questions }) => {
  const errors = [];
  const agent = new HttpAgent({ url, threadId: thread });
  let failed; // a run that fails leaves its interrupts pending
  agent.subscribe({ onRunErrorEvent: () => void (failed = true) });
  for (const [i, content] of questions.entries()) {
    agent.messages.push({ id: `question-${i}`, role: "user", content });
    do {
      failed = false;
      await ran(agent, errors);
    } while (agent.pendingInterrupts.length > 0 && !failed && errors.length === 0);
  }
  return { errors, messages: shown(agent.messages), state: JSON.stringify(agent.state) };
};

// An error that the client throws outside of its run leaves the run without an end.
let lost;
process.on("uncaughtException", (e) => lost(e));

(async () => {
  process.env.SUPPRESS_TRANSFORMATION_WARNINGS = "1"; // members of ours that the client removes
  for await (const line of require("readline").createInterface({ input: process.stdin, crlfDelay: Infinity })) {
    const task = JSON.parse(line);
    warnings = [];
    const thrown = new Promise((_, reject) => (lost = reject));
    const answer = await Promise.race([thrown, task.url ? asked(task) : played(task)]).catch((e) => ({ errors: ["thrown: " + e.stack] }));
    process.stdout.write(JSON.stringify({ ...answer, warnings }) + "\n");
  }
})();
