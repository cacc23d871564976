// The world of one program: a broker, processes with a pool each, and a chronicle of what is told there.
import { defineHandler, type Handlers, type TaskId, type TaskRecord } from '@bullpen/contract'
import type { NewTask } from '@bullpen/engine'
import { type Clock, createRegistry, DEFAULT_TIMEOUTS, type Pool } from '@bullpen/engine/internal'
import { attemptContext } from '@bullpen/engine/node'
import { testPool } from '@bullpen/testkit/internal'
import type { OpenBackend } from '../conformance/backend.ts'
import { actor } from './actor.ts'
import { Chronicle } from './history.ts'
import type { Program, TaskPlan } from './program.ts'
import { catalogue, child, muster, plannedTask, QUEUE, stay } from './tasks.ts'

const GRACE_MS = 5
const MAX_LEFTOVERS = 2

export interface Process {
  readonly name: string
  readonly pool: Pool
  readonly parent: AbortController
}

export async function openWorld({ concurrency }: Program, open: OpenBackend, clock: Clock) {
  const { queues } = catalogue
  const backend = await open({ queues, sizeLimit: 100_000, onExpired: () => {}, locks: 'quick', clock })
  const { broker } = backend
  const chronicle = new Chronicle()
  const context = attemptContext()
  const plans = new Map<TaskId, TaskPlan>()
  const processes: Process[] = []
  const release = Promise.withResolvers<void>()
  const roll = rollCall()
  let draining = 0

  const act = actor({
    clock,
    context,
    child,
    planOf: (id) => plans.get(id),
    released: release.promise,
    onStart: (id, start) => chronicle.handled(id, start),
  })
  const special: Readonly<Record<string, unknown>> = { [muster.name]: roll.answer, [stay.name]: untilTold }
  const handlers = Object.fromEntries(
    catalogue.definitions.map((task) => [
      task.name,
      defineHandler(task, import.meta.url, (special[task.name] ?? act) as never),
    ]),
    // Made from the catalogue itself, so that each task has its own; the type of a made record can't say so.
  ) as unknown as Handlers<typeof catalogue>
  const registry = createRegistry(catalogue, handlers, { limits: { ...DEFAULT_TIMEOUTS, graceMs: GRACE_MS } })

  const drain = ({ pool }: Process, drainMs: number): void => {
    draining++
    void pool.drain({ drainMs, graceMs: GRACE_MS }).then(({ abandoned }) => {
      draining--
      chronicle.tookFromOwner(...abandoned.map(({ id }) => id))
    })
  }

  return {
    backend,
    chronicle,
    processes,
    planned: (): readonly TaskId[] => [...plans.keys()],
    /** Those that take tasks, or would. */
    living: (): readonly Process[] => processes.filter(({ pool }) => pool.state() === 'BG_RUNNING'),
    drain,
    isDraining: () => draining > 0,
    enqueue: (task: NewTask) => broker.enqueue(task),
    async plan(task: TaskPlan): Promise<void> {
      const made = plannedTask(task, clock.now())
      plans.set(made.id, task)
      await broker.enqueue(made)
    },
    async openProcess(): Promise<void> {
      const name = `p${processes.length + 1}`
      const parent = new AbortController()
      const pool = testPool(broker, registry, backend.feed({ concurrency, process: name }), {
        clock,
        queue: QUEUE,
        concurrency,
        context,
        process: name,
        maxStuckHandlers: MAX_LEFTOVERS,
        parent: parent.signal,
        graceMs: GRACE_MS,
        sink: (event) => chronicle.hear(name, event),
      })
      processes.push({ name, pool, parent })
      await pool.start()
    },
    /** Every task of the program, and what those enqueued. */
    async look(): Promise<readonly TaskRecord[]> {
      const born = chronicle.events.flatMap((event) => (event.event === 'task.enqueued' ? [event.id as TaskId] : []))
      const records = await Promise.all([...new Set([...plans.keys(), ...born])].map(broker.find))
      return records.map((record) => {
        if (record === undefined) throw new Error('a task is not there any more')
        chronicle.saw(record)
        return record
      })
    },
    /** Lets all handlers go that hang. */
    release: () => release.resolve(),
    roll,
    async close(): Promise<void> {
      release.resolve()
      roll.dismiss()
      for (const { pool } of processes) void pool.drain({ drainMs: 0, graceMs: 0 })
      await backend.close()
    },
  }
}

export type World = Awaited<ReturnType<typeof openWorld>>

/** Handlers that end when so many of them are there at once. */
function rollCall() {
  const all = Promise.withResolvers<void>()
  let called = Number.POSITIVE_INFINITY
  let present = 0
  return {
    call(many: number): void {
      called = many
    },
    isComplete: () => present >= called,
    dismiss: () => all.resolve(),
    answer: async ({ start }: { readonly start: number }): Promise<{ n: number }> => {
      if (++present >= called) all.resolve()
      await all.promise
      return { n: start }
    },
  }
}

function untilTold({ signal }: { readonly signal: AbortSignal }): Promise<never> {
  return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
}
