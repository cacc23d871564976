// An in-memory fleet for tests of the API. Tests add workers to it and provide their answers.
import { isDeepStrictEqual } from 'node:util'
import { recipients } from '@bullpen/bullmq/internal'
import { BullpenError } from '@bullpen/contract'
import {
  type CommandAnswer,
  type CommandRecord,
  type Fleet,
  outcomeOf,
  type QueueSettings,
  type RegisteredWorker,
  type WorkerStatus,
} from '@bullpen/engine/internal'

export interface FakeFleet extends Fleet {
  trouble: 'none' | 'down' | 'deaf'
  /** Resolves when the first caller waits for answers. */
  readonly firstWaiter: Promise<void>
  put(worker: Partial<RegisteredWorker>): RegisteredWorker
  set(queue: string, settings: Partial<QueueSettings>): void
}

const OPEN: QueueSettings = { paused: false, drain: undefined, concurrency: undefined, rate: undefined }

export function fakeFleet(now: () => number): FakeFleet {
  const workers = new Map<string, RegisteredWorker>()
  const settingsOf = new Map<string, QueueSettings>()
  const records = new Map<string, CommandRecord>()
  const wakes = new Set<() => void>()
  const firstWaiter = Promise.withResolvers<void>()

  const up = async <T>(value: () => T): Promise<T> => {
    if (fleet.trouble === 'down') throw new BullpenError('redis_unavailable', 'Redis did not answer: ECONNREFUSED')
    return value()
  }
  const settle = (id: string, answer: CommandAnswer): void => {
    const record = records.get(id)
    if (record === undefined) throw new Error(`no command ${id}`)
    const answers = record.answers.map((each) =>
      each.worker === answer.worker && each.outcome === 'pending' ? answer : each,
    )
    records.set(id, { ...record, answers })
    for (const wake of wakes) wake()
  }

  const fleet: FakeFleet = {
    trouble: 'none',
    firstWaiter: firstWaiter.promise,
    put(given) {
      const worker = { ...blank, startedAt: now() - 60_000, seenAt: now() - 500, ...given }
      workers.set(worker.worker, worker)
      return worker
    },
    set: (queue, some) => void settingsOf.set(queue, { ...OPEN, ...some }),
    heartbeat: () => Promise.reject(new Error('no worker of these tests sends heartbeats')),
    leave: async (worker) => void workers.delete(worker),
    answer: (command, answer) => up(() => settle(command, answer)),
    listen: () => () => {},
    workers: () => up(() => ({ now: now(), workers: [...workers.values()] })),
    queueSettings: (queue) => up(() => settingsOf.get(queue) ?? OPEN),
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
        const answers = to.map((worker) => ({ worker, outcome: 'pending' as const }))
        const record = { ...command, at: now(), answers }
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
    async answered(id, signal) {
      for (;;) {
        if (fleet.trouble === 'deaf') throw new BullpenError('redis_unavailable', 'Redis did not answer')
        const { promise: changed, resolve } = Promise.withResolvers<void>()
        wakes.add(resolve)
        signal.addEventListener('abort', () => resolve(), { once: true })
        const record = records.get(id)
        if (record === undefined || outcomeOf(record.answers) !== 'pending' || signal.aborted) return record
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
