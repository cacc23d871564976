// The fields that a log line may carry, with one meaning everywhere: whoever queries logs relies on them.

export const LOG_FIELDS = {
  task: "the definition's name",
  id: "the task's id",
  start: 'how many times a handler was started for this task, from 1',
  attempt: 'how many of those the retry policy counts, from 1',
  queue: "the queue's name",
  state: 'the state that the attempt ended in',
  reason: 'why it ended so, from a closed list',
  code: "the declared failure's own code",
  verdict: 'what follows for the task',
  durationMs: "from the handler's start to the attempt's end",
  waitedMs: "from the moment that the task was ready to the handler's start",
  delayMs: 'until the next attempt',
  overrunMs: "from the attempt's end to the handler's late return",
  from: 'the state that a pool was in',
  to: 'the state that a pool is in now',
  correlationId: 'follows one request through every line',
  requestId: "one HTTP request's",
  method: "the request's",
  route: "the route's pattern, never the URL",
  status: 'the HTTP status that was answered',
  url: 'where this process listens',
  signal: 'that the process was told to end with',
  abandoned: 'how many tasks were still running at the end of the drain',
  dropped: 'how many times a line like this was left unsaid since the last one',
  resource: "the name of a worker's resource",
  err: 'type, message, code, stack and causes',
} as const satisfies Readonly<Record<string, string>>

export type LogField = keyof typeof LOG_FIELDS
