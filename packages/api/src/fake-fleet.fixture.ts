// A fleet in memory for tests of the API: processes that are put there, and answer when they are told to.
import { isDeepStrictEqual } from 'node:util'
import { BullpenError } from '@bullpen/contract'
import {
  type CommandAnswer,
  type CommandRecord,
  type Fleet,
  outcomeOf,
  type ProcessStatus,
  type QueueSwitches,
  type RegisteredProcess,
  recipients,
} from '@bullpen/engine'

export interface FakeFleet extends Fleet {
  trouble: 'none' | 'down' | 'deaf'
  /** Resolves when somebody waits for answers. */
  readonly firstWaiter: Promise<void>
  put(process: Partial<RegisteredProcess>): RegisteredProcess
  switch(queue: string, switches: Partial<QueueSwitches>): void
}

const OPEN: QueueSwitches = { paused: false, drain: undefined, concurrency: undefined, rate: undefined }

export function fakeFleet(now: () => number): FakeFleet {
  const processes = new Map<string, RegisteredProcess>()
  const switches = new Map<string, QueueSwitches>()
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
      each.process === answer.process && each.outcome === 'pending' ? answer : each,
    )
    records.set(id, { ...record, answers })
    for (const wake of wakes) wake()
  }

  const fleet: FakeFleet = {
    trouble: 'none',
    firstWaiter: firstWaiter.promise,
    put(given) {
      const process = { ...blank, startedAt: now() - 60_000, seenAt: now() - 500, ...given }
      processes.set(process.process, process)
      return process
    },
    switch: (queue, some) => void switches.set(queue, { ...OPEN, ...some }),
    beat: () => Promise.reject(new Error('no process of these tests beats')),
    leave: async (process) => void processes.delete(process),
    answer: (command, answer) => up(() => settle(command, answer)),
    listen: () => () => {},
    processes: () => up(() => ({ now: now(), processes: [...processes.values()] })),
    switches: (queue) => up(() => switches.get(queue) ?? OPEN),
    remaining: () => up(() => 0),
    send: (command) =>
      up(() => {
        const before = records.get(command.id)
        if (before !== undefined) {
          if (isDeepStrictEqual(before.order, command.order)) return before
          throw new BullpenError('command_id_reused', `${command.id} is another command`)
        }
        const to = recipients(command.order, [...processes.values()], now())
        const process = 'process' in command.order ? command.order.process : undefined
        if (process !== undefined && to.length === 0) {
          throw new BullpenError('process_not_found', `no live process is ${process}`)
        }
        const answers = to.map((process) => ({ process, outcome: 'pending' as const }))
        const record = { ...command, at: now(), answers }
        records.set(command.id, record)
        const { order, id } = command
        if (process === undefined && order.queue !== undefined) {
          const set = (drain: QueueSwitches['drain']): void => fleet.switch(order.queue ?? '', { drain })
          if (order.action === 'drain') {
            set({ mode: order.mode, timeoutMs: undefined, since: now(), command: id })
          } else if (order.action === 'resume') set(undefined)
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

const blank: Omit<ProcessStatus, 'startedAt'> = {
  process: P1,
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
      leftovers: 0,
      notReady: undefined,
      workers: [],
    },
  ],
}
