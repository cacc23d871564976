// An in-memory fleet for tests of the API. Tests add workers to it and provide the workers' responses.
import { isDeepStrictEqual } from 'node:util'
import { recipients } from '@bullpen/bullmq/internal'
import { BullpenError } from '@bullpen/contract'
import {
  type CommandRecord,
  type CommandResponse,
  type Fleet,
  type LimitSettings,
  type LogLevelOverride,
  outcomeOf,
  type QueueSettings,
  type RegisteredWorker,
  type WorkerStatus,
} from '@bullpen/engine/internal'

export interface FakeFleet extends Fleet {
  trouble: 'none' | 'down' | 'deaf'
  /** The log level that a command has set for all processes. */
  level: LogLevelOverride | undefined
  /** Resolves when the first caller waits for responses. */
  readonly firstWaiter: Promise<void>
  put(worker: Partial<RegisteredWorker>): RegisteredWorker
  set(queue: string, settings: Partial<QueueSettings>): void
  /** The limits of API keys, of concurrency keys and of limiters. */
  keyLimits: Omit<LimitSettings, 'settings'>
}

const OPEN: QueueSettings = {
  paused: false,
  drain: undefined,
  concurrency: undefined,
  rate: undefined,
  maxTasks: undefined,
  maxBytes: undefined,
  maxAgeMs: undefined,
}

export function fakeFleet(now: () => number): FakeFleet {
  const workers = new Map<string, RegisteredWorker>()
  const settingsOf = new Map<string, QueueSettings>()
  const records = new Map<string, CommandRecord>()
  const wakes = new Set<() => void>()
  const firstWaiter = Promise.withResolvers<void>()

  const up = async <T>(value: () => T): Promise<T> => {
    if (fleet.trouble === 'down') throw new BullpenError('redis_unavailable', 'Redis did not respond: ECONNREFUSED')
    return value()
  }
  const settle = (id: string, response: CommandResponse): void => {
    const record = records.get(id)
    if (record === undefined) throw new Error(`no command ${id}`)
    const responses = record.responses.map((each) =>
      each.worker === response.worker && each.outcome === 'pending' ? response : each,
    )
    records.set(id, { ...record, responses })
    for (const wake of wakes) wake()
  }

  const fleet: FakeFleet = {
    trouble: 'none',
    level: undefined,
    firstWaiter: firstWaiter.promise,
    put(given) {
      const worker = { ...blank, startedAt: now() - 60_000, seenAt: now() - 500, ...given }
      workers.set(worker.worker, worker)
      return worker
    },
    keyLimits: {
      limiters: undefined,
      perApiKey: new Map(),
      perConcurrencyKey: { concurrency: undefined, rate: undefined },
      singleKeys: [],
    },
    set: (queue, some) => void settingsOf.set(queue, { ...OPEN, ...some }),
    heartbeat: () => Promise.reject(new Error('no worker of these tests sends heartbeats')),
    leave: async (worker) => void workers.delete(worker),
    respond: (command, response) => up(() => settle(command, response)),
    listen: () => () => {},
    workers: () => up(() => ({ now: now(), workers: [...workers.values()] })),
    queueSettings: (queue) => up(() => settingsOf.get(queue) ?? OPEN),
    limitSettings: (queue) => up(() => ({ settings: settingsOf.get(queue) ?? OPEN, ...fleet.keyLimits })),
    logLevel: () => up(() => fleet.level),
    remaining: () => up(() => 0),
    send: (command) =>
      up(() => {
        const before = records.get(command.id)
        if (before !== undefined) {
          if (isDeepStrictEqual(before.spec, command.spec)) return before
          throw new BullpenError('command_id_reused', `${command.id} is another command`)
        }
        const to = recipients(command.spec, [...workers.values()], now())
        const worker = 'worker' in command.spec ? command.spec.worker : undefined
        if (worker !== undefined && to.length === 0) {
          throw new BullpenError('worker_not_found', `no live worker is ${worker}`)
        }
        const responses = to.map((worker) => ({ worker, outcome: 'pending' as const }))
        const record = { ...command, at: now(), responses }
        records.set(command.id, record)
        const { spec, id } = command
        if (worker === undefined && spec.queue !== undefined) {
          const setDrain = (drain: QueueSettings['drain']): void => fleet.set(spec.queue ?? '', { drain })
          if (spec.action === 'drain') {
            setDrain({ mode: spec.mode, timeoutMs: undefined, since: now(), command: id })
          } else if (spec.action === 'resume') setDrain(undefined)
        }
        return record
      }),
    command: (id) => up(() => records.get(id)),
    async awaitResponses(id, signal) {
      for (;;) {
        if (fleet.trouble === 'deaf') throw new BullpenError('redis_unavailable', 'Redis did not respond')
        const { promise: changed, resolve } = Promise.withResolvers<void>()
        wakes.add(resolve)
        signal.addEventListener('abort', () => resolve(), { once: true })
        const record = records.get(id)
        if (record === undefined || outcomeOf(record.responses) !== 'pending' || signal.aborted) return record
        firstWaiter.resolve()
        await changed
        wakes.delete(resolve)
      }
    },
    commands: (limit) => up(() => [...records.values()].reverse().slice(0, limit)),
    close: async () => {},
  }
  return fleet
}

export const P1 = 'pod-1:7:ab12cd34'

const blank: Omit<WorkerStatus, 'startedAt'> = {
  worker: P1,
  host: 'pod-1',
  pid: 7,
  version: '1.2.3',
  draining: false,
  skewMs: 0,
  drainTimeoutMs: 20_000,
  graceMs: 5_000,
  pools: [
    {
      queue: 'cpu',
      state: 'BG_RUNNING',
      paused: false,
      concurrency: 2,
      busy: 0,
      stuckHandlers: 0,
      notReady: undefined,
      slots: [],
    },
  ],
}
