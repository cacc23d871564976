// An in-memory fleet with one worker. A test sends commands, changes queues' settings, and reads heartbeats and responses.
import { BullpenError } from '@bullpen/contract'
import type { CommandSpec } from '@bullpen/contract/internal'
import type {
  Command,
  CommandResponse,
  Fleet,
  LogLevelOverride,
  QueueSettings,
  WorkerStatus,
} from '@bullpen/engine/internal'
import type { FakeClock } from '@bullpen/testkit'

const OFF: QueueSettings = {
  paused: false,
  drain: undefined,
  concurrency: undefined,
  rate: undefined,
  maxTasks: undefined,
  maxBytes: undefined,
  maxAgeMs: undefined,
}

export function fakeFleet(clock: FakeClock, worker: string) {
  const heartbeats: WorkerStatus[] = []
  const responses: (CommandResponse & { readonly command: string })[] = []
  const pending = new Map<string, Command>()
  const settingsOf = new Map<string, QueueSettings>()
  const remaining = new Map<string, number>()
  const left: string[] = []
  const wakes = new Set<() => void>()
  /** The log level of all processes. */
  const ofAll: { level: LogLevelOverride | undefined } = { level: undefined }
  /**
   * `away` means that Redis does not respond, `refused` that there is no connection, `broken` that every call fails, and
   * `dropsResponses` that responses are lost.
   */
  const faults = { away: false, refused: false, broken: false, dropsResponses: false }
  let commands = 0

  const reach = (): void => {
    if (faults.away) throw new BullpenError('redis_unavailable', 'Redis did not respond')
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
      return { commands: [...pending.values()], queueSettings: settings, logLevel: ofAll.level }
    },
    async leave(name) {
      reach()
      left.push(name)
    },
    async respond(command, response) {
      reach()
      if (faults.dropsResponses) throw new BullpenError('redis_unavailable', 'Redis did not respond')
      responses.push({ ...response, command })
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
    limitSettings: unused,
    logLevel: unused,
    send: unused,
    command: unused,
    awaitResponses: unused,
    commands: unused,
    close: async () => {},
  }
  return {
    fleet,
    heartbeats,
    responses,
    remaining,
    left,
    faults,
    wake,
    listeners: () => wakes.size,
    /** Sends a command, to which the worker responds within a turn of the event loop. */
    async send(spec: CommandSpec, id = `c${++commands}`) {
      pending.set(id, { id, spec, by: 'ops', at: clock.now() })
      wake()
      await clock.advance(0)
      return responses.findLast(({ command }) => command === id)
    },
    /** Sets the log level of all processes, as the store returns it. */
    async setLogLevel(level: LogLevelOverride | undefined) {
      ofAll.level = level
      wake()
      await clock.advance(0)
    },
    async switchDrain(queue: string, drain: Omit<NonNullable<QueueSettings['drain']>, 'since'> | undefined) {
      settingsOf.set(queue, { ...OFF, drain: drain && { ...drain, since: clock.now() } })
      wake()
      await clock.advance(0)
    },
  }
}
