// Inflicts the faults of the drill `exactness`: kills workers while keys are at their limits, freezes some for longer than
// their locks last, and kills Redis once.
import { setTimeout as sleep } from 'node:timers/promises'
import { blockingConnection } from '@bullpen/bullmq/internal'
import type { DrillSetup } from '../environment/drill-setup.ts'
import type { WorkerProcess } from '../environment/fleet.ts'
import { pauseWhen } from '../environment/paused-worker.ts'
import type { RestartableRedis } from '../environment/restartable-redis.ts'
import { attemptKey, interruptedBy, openAttempts } from '../ledger/attempts.ts'
import type { Effect } from '../ledger/effects.ts'
import type { Interruption } from '../ledger/ledger.ts'
import { pick, type Random, shuffled } from '../ledger/random.ts'
import { type Death, type Freeze, type Limits, replay } from './occupancy.ts'
import type { Plan } from './plan.ts'

export interface Inflicted {
  readonly deaths: readonly Death[]
  readonly freezes: readonly Freeze[]
  readonly interruptions: readonly Interruption[]
  /** Kills and freezes that hit a worker while it ran no task of a limit that was reached. */
  readonly faultsWithoutEffect: number
}

export interface InflictOptions {
  readonly plan: Plan
  readonly queue: string
  readonly limits: Limits
  readonly random: Random
  readonly setup: DrillSetup
  readonly redis: RestartableRedis
}

type Fault = 'kill' | 'kill leader' | 'freeze' | 'restart'

/** How long a fault waits for a worker that runs a task of a limit that is reached. */
const WITHIN_MS = 30_000
/** How long Redis takes at most to carry out what a worker sent before it was frozen. */
const SENT_MS = 100
const SILENT = { debug() {}, info() {}, warn() {}, error() {} }

/** Every second worker that is killed is the leader. Resolves when all killed workers have been replaced, and the frozen ones continue. */
export async function inflictAll(options: InflictOptions): Promise<Inflicted> {
  const { plan, queue, limits, random, setup, redis } = options
  const { fleet, leader, effects, redisUrl, namespace } = setup
  const deaths: Death[] = []
  const freezes: Freeze[] = []
  const interruptions: Interruption[] = []
  let faultsWithoutEffect = 0
  const rest: Promise<unknown>[] = []
  const frozen = new Set<WorkerProcess>()

  const anyOther = async (): Promise<WorkerProcess | undefined> => {
    const others = fleet.workers.filter((worker) => !frozen.has(worker))
    return others.length === 0 ? undefined : pick(others, random)
  }
  const leading = async (): Promise<WorkerProcess | undefined> => {
    const found = await leader().catch(() => undefined)
    return found === undefined || frozen.has(found) ? anyOther() : found
  }
  /** Pauses a worker, and returns it with the ledger at that time. */
  const pauseAtLimit = async (choose: () => Promise<WorkerProcess | undefined>) => {
    const look = ({ name }: WorkerProcess): readonly Effect[] | undefined => {
      const known = effects()
      const full = replay(known, limits, { deaths, freezes }).fullLimitsOf(name, Date.now())
      return full.length > 0 ? known : undefined
    }
    const { worker, found } = await pauseWhen(choose, look, WITHIN_MS)
    if (found === undefined) faultsWithoutEffect++
    return { worker, known: found ?? effects() }
  }
  const kill = async (choose: () => Promise<WorkerProcess | undefined>): Promise<void> => {
    const { worker, known } = await pauseAtLimit(choose)
    const at = await worker.kill()
    // The worker may have written a line before the signal stopped it.
    const last = effects().findLastIndex((effect) => effect.worker === worker.name)
    deaths.push({ worker: worker.name, effects: Math.max(known.length, last + 1) })
    interruptions.push(...interruptedBy(effects(), worker.name, at))
    rest.push(fleet.start())
  }
  const freeze = async (): Promise<void> => {
    const { worker, known } = await pauseAtLimit(anyOther)
    const at = Date.now()
    frozen.add(worker)
    await sleep(SENT_MS)
    const active = await activeLocks(redisUrl, `{${namespace}.${queue}}:${queue}:`)
    // An attempt that is no longer active has already lost its lock.
    const lost = openAttempts(known, worker.name).map((attempt) => [attemptKey(attempt), at] as const)
    freezes.push({ worker: worker.name, locks: new Map([...lost, ...active]) })
    interruptions.push(...interruptedBy(effects(), worker.name, at))
    const thaw = async (): Promise<void> => {
      await sleep(plan.freezeMs)
      frozen.delete(worker)
      worker.resume()
    }
    rest.push(thaw())
  }
  const inflict: Readonly<Record<Fault, () => Promise<void>>> = {
    kill: () => kill(anyOther),
    'kill leader': () => kill(leading),
    freeze,
    restart: () => redis.restart(),
  }

  const kills = Array.from({ length: plan.kills }, (_, n): Fault => (n % 2 === 0 ? 'kill leader' : 'kill'))
  const faults = shuffled<Fault>([...kills, ...Array<Fault>(plan.freezes).fill('freeze'), 'restart'], random)
  for (const fault of faults) {
    await sleep(2 * plan.faultEveryMs * random())
    await inflict[fault]()
  }
  await Promise.all(rest)
  return { deaths, freezes, interruptions, faultsWithoutEffect }
}

/** Lua: for each active task, its id, the number of its last start, and when its lock expires, as unix time in ms. */
const ACTIVE_LOCKS = `
local found = {}
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for _, id in ipairs(redis.call('LRANGE', KEYS[1] .. 'active', 0, -1)) do
  table.insert(found, id)
  table.insert(found, redis.call('HGET', KEYS[1] .. id, 'ats'))
  local lock = redis.call('HGET', KEYS[1] .. id, 'lock') or ''
  table.insert(found, math.max(now, tonumber(string.sub(lock, 1, 13)) or 0))
end
return found`

/** Returns when the lock of each active attempt of a queue expires. */
async function activeLocks(redisUrl: string, base: string): Promise<Freeze['locks']> {
  const redis = blockingConnection(redisUrl, SILENT)
  try {
    const found = (await redis.eval(ACTIVE_LOCKS, 1, base)) as (string | number)[]
    const locks = new Map<string, number>()
    for (let i = 0; i < found.length; i += 3) {
      const [id = '', fencingToken, expiresAt] = found.slice(i, i + 3)
      locks.set(attemptKey({ id: String(id), fencingToken: Number(fencingToken) }), Number(expiresAt))
    }
    return locks
  } finally {
    redis.disconnect()
  }
}
