// Simulates one program with a broker, workers that have one pool each, and the history of their events.
import { defineHandler, type TaskId, type TaskRecord } from '@bullpen/contract'
import { toHandlers } from '@bullpen/contract/internal'
import type { NewTask } from '@bullpen/engine'
import { type Clock, createRegistry, DEFAULT_TIMEOUTS, type Pool } from '@bullpen/engine/internal'
import { attemptContext } from '@bullpen/engine/node'
import { testPool } from '@bullpen/testkit/internal'
import type { OpenBackend } from '../conformance/backend.ts'
import { History } from './history.ts'
import { plannedHandler } from './planned-handler.ts'
import type { Program, TaskPlan } from './program.ts'
import { catalogue, child, endless, plannedTask, QUEUE, rendezvous } from './tasks.ts'

const GRACE_MS = 5
const MAX_STUCK_HANDLERS = 2

export interface SimulatedWorker {
  readonly name: string
  readonly pool: Pool
  readonly parent: AbortController
}

export async function openSimulation({ concurrency, keyLimits }: Program, open: OpenBackend, clock: Clock) {
  const { queues } = catalogue
  const backend = await open({ queues, sizeLimit: 100_000, onExpired: () => {}, locks: 'quick', clock })
  const { broker } = backend
  const history = new History()
  const context = attemptContext()
  const plans = new Map<TaskId, TaskPlan>()
  const workers: SimulatedWorker[] = []
  const release = Promise.withResolvers<void>()
  const meeting = createMeeting()
  let draining = 0

  const handler = plannedHandler({
    clock,
    context,
    child,
    planOf: (id) => plans.get(id),
    released: release.promise,
    onStart: (id, fencingToken) => history.handled(id, fencingToken),
  })
  const special: Readonly<Record<string, unknown>> = {
    [rendezvous.name]: meeting.attend,
    [endless.name]: untilSignalled,
  }
  const handlers = toHandlers(
    catalogue,
    Object.fromEntries(
      catalogue.definitions.map((task) => [
        task.name,
        defineHandler(task, import.meta.url, (special[task.name] ?? handler) as never),
      ]),
    ),
  )
  const registry = createRegistry(catalogue, handlers, { timeouts: { ...DEFAULT_TIMEOUTS, graceMs: GRACE_MS } })

  const drain = ({ pool }: SimulatedWorker, drainMs: number): void => {
    draining++
    void pool.drain({ drainMs, graceMs: GRACE_MS }).then(({ abandoned }) => {
      draining--
      history.ownerLost(...abandoned.map(({ id }) => id))
    })
  }

  return {
    backend,
    history,
    workers,
    planned: (): readonly TaskId[] => [...plans.keys()],
    /** Returns the workers whose pool is fetching tasks or is paused. */
    running: (): readonly SimulatedWorker[] => workers.filter(({ pool }) => pool.state() === 'BG_RUNNING'),
    drain,
    isDraining: () => draining > 0,
    enqueue: (task: NewTask) => broker.enqueue(task),
    async plan(task: TaskPlan): Promise<void> {
      const planned = plannedTask(task, clock.now())
      plans.set(planned.id, task)
      await broker.enqueue(planned)
    },
    async startWorker(): Promise<void> {
      const name = `w${workers.length + 1}`
      const parent = new AbortController()
      const pool = testPool(broker, registry, backend.consumer({ concurrency, worker: name, keyLimits }), {
        clock,
        queue: QUEUE,
        concurrency,
        context,
        worker: name,
        maxStuckHandlers: MAX_STUCK_HANDLERS,
        parent: parent.signal,
        graceMs: GRACE_MS,
        sink: (event) => history.add(name, event),
      })
      workers.push({ name, pool, parent })
      await pool.start()
    },
    /** Reads every task of the program and its children, and checks each record against those that were observed before. */
    async observe(): Promise<readonly TaskRecord[]> {
      const children = history.events.flatMap((event) => (event.event === 'task.enqueued' ? [event.id as TaskId] : []))
      const records = await Promise.all([...new Set([...plans.keys(), ...children])].map(broker.find))
      return records.map((record) => {
        if (record === undefined) throw new Error('a stored task has disappeared')
        history.observe(record)
        return record
      })
    },
    /** Ends every handler that hangs. */
    release: () => release.resolve(),
    meeting,
    async close(): Promise<void> {
      release.resolve()
      meeting.dismiss()
      for (const { pool } of workers) void pool.drain({ drainMs: 0, graceMs: 0 })
      await backend.close()
    },
  }
}

export type Simulation = Awaited<ReturnType<typeof openSimulation>>

/** Creates handlers that return when a given number of them run at once. */
function createMeeting() {
  const all = Promise.withResolvers<void>()
  let expected = Number.POSITIVE_INFINITY
  let present = 0
  return {
    expect(handlers: number): void {
      expected = handlers
    },
    isComplete: () => present >= expected,
    dismiss: () => all.resolve(),
    attend: async ({ fencingToken }: { readonly fencingToken: number }): Promise<{ n: number }> => {
      if (++present >= expected) all.resolve()
      await all.promise
      return { n: fencingToken }
    },
  }
}

function untilSignalled({ signal }: { readonly signal: AbortSignal }): Promise<never> {
  return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
}
