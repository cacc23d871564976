// A fleet in memory, of one worker: the test sends commands, sets switches, and sees what the worker tells and answers.
import { BullpenError } from '@bullpen/contract'
import type { CommandSpec } from '@bullpen/contract/internal'
import type { Command, CommandAnswer, Fleet, QueueSettings, WorkerStatus } from '@bullpen/engine/internal'
import type { FakeClock } from '@bullpen/testkit'

const OFF: QueueSettings = { paused: false, drain: undefined, concurrency: undefined, rate: undefined }

export function fakeFleet(clock: FakeClock, worker: string) {
  const beats: WorkerStatus[] = []
  const answers: (CommandAnswer & { readonly command: string })[] = []
  const pending = new Map<string, Command>()
  const switches = new Map<string, QueueSettings>()
  const remaining = new Map<string, number>()
  const left: string[] = []
  const wakes = new Set<() => void>()
  /** `deaf`: answers do not arrive. */
  const faults = { away: false, broken: false, deaf: false }
  let commands = 0

  const reach = (): void => {
    if (faults.away) throw new BullpenError('redis_unavailable', 'Redis did not answer')
    if (faults.broken) throw new Error('no permission')
  }
  const wake = (): void => {
    for (const each of wakes) each()
  }
  const unused = (): never => {
    throw new Error('no worker asks for this')
  }

  const fleet: Fleet = {
    async beat(status) {
      reach()
      beats.push(status)
      const told = new Map(status.pools.map(({ queue }) => [queue, switches.get(queue) ?? OFF]))
      return { commands: [...pending.values()], switches: told }
    },
    async leave(who) {
      reach()
      left.push(who)
    },
    async answer(command, answer) {
      reach()
      if (faults.deaf) throw new BullpenError('redis_unavailable', 'Redis did not answer')
      answers.push({ ...answer, command })
      pending.delete(command)
    },
    listen(who, tell) {
      if (who !== worker) throw new Error(`nobody is called ${who}`)
      wakes.add(tell)
      return () => wakes.delete(tell)
    },
    async remaining(queue) {
      reach()
      return remaining.get(queue) ?? 0
    },
    workers: unused,
    switches: unused,
    send: unused,
    command: unused,
    answered: unused,
    commands: unused,
    close: async () => {},
  }
  return {
    fleet,
    beats,
    answers,
    remaining,
    left,
    faults,
    wake,
    listeners: () => wakes.size,
    /** Tells the worker, which answers within a turn of the loop. */
    async send(order: CommandSpec, id = `c${++commands}`) {
      pending.set(id, { id, spec: order, by: 'ops', at: clock.now() })
      wake()
      await clock.advance(0)
      return answers.findLast(({ command }) => command === id)
    },
    async switchDrain(queue: string, drain: Omit<NonNullable<QueueSettings['drain']>, 'since'> | undefined) {
      switches.set(queue, { ...OFF, drain: drain && { ...drain, since: clock.now() } })
      wake()
      await clock.advance(0)
    },
  }
}
