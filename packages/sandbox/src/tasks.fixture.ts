// Defines the tasks for the sandbox's tests. Their handlers are in handlers.fixture.ts.
import { defineTask, type TaskName } from '@bullpen/contract'
import { z } from 'zod'

const task = <const Name extends TaskName, I extends z.ZodType, O extends z.ZodType>(name: Name, input: I, output: O) =>
  defineTask({ name, queue: 'q', input, output })
const none = z.object({})

/** Returns the process and thread in which it ran, and its parsed input. */
export const where = task(
  'test.where',
  z.object({ n: z.string().transform(Number).default(1) }),
  z.object({ pid: z.int(), thread: z.int(), n: z.number() }),
)
export const args = task('test.args', none, z.object({ args: z.array(z.string()) }))
export const fail = task('test.fail', none, none)
export const panic = task('test.panic', z.object({ what: z.enum(['error', 'text']) }), none)
export const classified = defineTask({
  name: 'test.classified',
  queue: 'q',
  input: none,
  output: none,
  classify: (error) => (error instanceof RangeError ? { code: 'out_of_range', retryable: false } : undefined),
})
export const badClassifier = defineTask({
  name: 'test.bad-classifier',
  queue: 'q',
  input: none,
  output: none,
  classify: () => {
    throw new Error('a classifier that throws')
  },
})
export const output = task(
  'test.output',
  z.object({ what: z.enum(['wrong', 'function', 'bigint', 'cycle', 'date', 'nothing']) }),
  z.unknown().refine((value) => value !== 'wrong'),
)
export const escaping = task(
  'test.escape',
  z.object({ how: z.enum(['timer', 'rejection', 'forgotten', 'listener', 'text']) }),
  none,
)
/** Leaves something behind that takes effect when `trigger` runs. */
export const leave = task(
  'test.leave',
  z.object({ what: z.enum(['throw', 'reject', 'exit', 'log', 'progress']) }),
  none,
)
/** Triggers what `leave` left behind, and waits for the effect. */
export const trigger = task('test.trigger', none, z.object({ pid: z.int(), thread: z.int() }))
/** Leaves behind an error that escapes when no task is running. */
export const idleEscape = task('test.idle-escape', none, none)
export const exit = task('test.exit', z.object({ code: z.int() }), none)
/** Logs 'looping' and loops forever. */
export const loop = task('test.loop', none, none)
/** Logs 'waiting' and waits for its signal in the given way. */
export const wait = task(
  'test.wait',
  z.object({ for: z.enum(['timer', 'fetch', 'checkpoint', 'nothing']), url: z.string().default('') }),
  z.object({ reason: z.string() }),
)
export const progress = task(
  'test.progress',
  z.object({ fractions: z.array(z.number()) }),
  z.object({ order: z.unknown() }),
)
/** Each step returns its key, except 'throws' and 'cycle'. */
export const steps = task('test.steps', z.object({ steps: z.array(z.string()) }), z.object({ order: z.unknown() }))
export const children = task(
  'test.children',
  z.object({ keys: z.array(z.string()) }),
  z.object({ order: z.array(z.string()) }),
)
export const compensated = task('test.compensated', none, none)
export const snoozing = task('test.snoozing', none, none)
export const limited = task('test.limited', none, none)
export const log = task('test.log', none, none)
export const context = task('test.context', z.object({ a: z.int().default(7) }), z.unknown())
export const resource = task(
  'test.resource',
  none,
  z.object({ first: z.int(), second: z.string(), pid: z.int(), thread: z.int() }),
)
export const memory = task(
  'test.memory',
  z.object({ how: z.enum(['objects', 'array', 'map', 'json', 'buffers']) }),
  none,
)
/** Allocates bytes and never frees them. With `wait`, it never ends. */
export const keep = task(
  'test.keep',
  z.object({ bytes: z.int(), wait: z.boolean().default(false) }),
  z.object({ pid: z.int(), thread: z.int() }),
)
/** Starts a program, logs 'started' with its process id, and then ends in the given way, or never. */
export const program = task('test.program', z.object({ next: z.enum(['return', 'exit', 'loop', 'wait']) }), none)
/** Its module, broken.fixture.ts, throws when it is imported. */
export const broken = task('test.broken', none, none)
/** Calls a JavaScript function from WebAssembly `calls` times. */
export const wasm = task('test.wasm', z.object({ calls: z.int() }), z.object({ called: z.int() }))
