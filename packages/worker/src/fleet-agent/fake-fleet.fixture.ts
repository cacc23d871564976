// An in-memory fleet with one worker. A test sends commands, changes the settings of queues, and reads heartbeats and answers.
import { BullpenError } from '@bullpen/contract'
import type { CommandSpec } from '@bullpen/contract/internal'
import type { Command, CommandAnswer, Fleet, QueueSettings, WorkerStatus } from '@bullpen/engine/internal'
import type { FakeClock } from '@bullpen/testkit'

const OFF: QueueSettings = { paused: false, drain: undefined, concurrency: undefined, rate: undefined }

export function fakeFleet(clock: FakeClock, worker: string) {
  const heartbeats: WorkerStatus[] = []
  const answers: (CommandAnswer & { readonly command: string })[] = []
  const pending = new Map<string, Command>()
  const settingsOf = new Map<string, QueueSettings>()
  const remaining = new Map<string, number>()
  const left: string[] = []
  const wakes = new Set<() => void>()
  /**
   * `away`: Redis does not answer. `refused`: there is no connection. `broken`: every call fails. `dropsAnswers`: answers are
   * lost.
   */
  const faults = { away: false, refused: false, broken: false, dropsAnswers: false }
  let commands = 0

  const reach = (): void => {
    if (faults.away) throw new BullpenError('redis_unavailable', 'Redis did not answer')
    if (faults.refused) {
      const cause = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
      throw new BullpenError('redis_unavailable', 'Redis is not reachable', { cause })
    }
    if (faults.broken) throw new Error('no permission')
  }
  const wake = (): void => {
    for (const each of wakes) each()
  }
  const unused = (): never => {
    throw new Error('not used by workers')
  }

  const fleet: Fleet = {
    async heartbeat(status) {
      reach()
      heartbeats.push(status)
      const settings = new Map(status.pools.map(({ queue }) => [queue, settingsOf.get(queue) ?? OFF]))
      return { commands: [...pending.values()], queueSettings: settings }
    },
    async leave(name) {
      reach()
      left.push(name)
    },
    async answer(command, answer) {
      reach()
      if (faults.dropsAnswers) throw new BullpenError('redis_unavailable', 'Redis did not answer')
      answers.push({ ...answer, command })
      pending.delete(command)
    },
    listen(name, wakeUp) {
      if (name !== worker) throw new Error(`expected worker ${worker}, got ${name}`)
      wakes.add(wakeUp)
      return () => wakes.delete(wakeUp)
    },
    async remaining(queue) {
      reach()
      return remaining.get(queue) ?? 0
    },
    workers: unused,
    queueSettings: unused,
    send: unused,
    command: unused,
    answered: unused,
    commands: unused,
    close: async () => {},
  }
  return {
    fleet,
    heartbeats,
    answers,
    remaining,
    left,
    faults,
    wake,
    listeners: () => wakes.size,
    /** Sends a command, which the worker answers within a turn of the event loop. */
    async send(spec: CommandSpec, id = `c${++commands}`) {
      pending.set(id, { id, spec, by: 'ops', at: clock.now() })
      wake()
      await clock.advance(0)
      return answers.findLast(({ command }) => command === id)
    },
    async switchDrain(queue: string, drain: Omit<NonNullable<QueueSettings['drain']>, 'since'> | undefined) {
      settingsOf.set(queue, { ...OFF, drain: drain && { ...drain, since: clock.now() } })
      wake()
      await clock.advance(0)
    },
  }
}
