// Measures how long the tasks of many groups wait in groupmq, a library for groups of tasks on Redis, behind the backlog of one group.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Queue } from 'groupmq'
import { Redis } from 'ioredis'
import { waitFigures, waitsOf } from '../autoscale/waits.ts'
import { openRedis } from '../environment/drill-setup.ts'
import { openFleet } from '../environment/fleet.ts'
import { holdsWithin } from '../holds-within.ts'
import { type Effect, readEffects, wholeLines } from '../ledger/effects.ts'
import type { GroupmqData } from '../programs/groupmq-main.ts'
import type { Baseline } from '../report.ts'
import { inBurst } from './burst.ts'
import { NOISY_KEY, otherKey, type Plan } from './plan.ts'

const NAMESPACE = 'drill'
const WITHIN_MS = 600_000
const POLL_MS = 100

/**
 * groupmq runs one task of a group at a time, so the noisy group's backlog would take hours. The measurement ends when the tasks of the
 * other groups have ended.
 */
export async function measureGroupmq(plan: Plan): Promise<Baseline> {
  const { processes, slots, backlog, keys, tasksPerKey, taskMs } = plan
  await using opened = new AsyncDisposableStack()
  const { url } = opened.adopt(await openRedis(), (redis) => redis.end())
  const dir = opened.adopt(mkdtempSync(join(tmpdir(), 'bullpen-drill-groupmq-')), (each) =>
    rmSync(each, { recursive: true, force: true }),
  )
  const redis = opened.adopt(new Redis(url), (each) => each.disconnect())
  const ledger = join(dir, 'effects.log')
  const fleet = opened.adopt(
    openFleet({
      ledger,
      metricsOf: () => '',
      log: join(dir, 'workers.log'),
      system: 'groupmq',
      config: { redisUrl: url, namespace: NAMESPACE, pools: { [NAMESPACE]: slots } },
    }),
    (each) => each.close(),
  )
  const effects = (): readonly Effect[] => readEffects(wholeLines(ledger))
  const queue = new Queue<GroupmqData>({ redis, namespace: NAMESPACE })
  const enqueue = async (groupId: string): Promise<string> => (await queue.add({ groupId, data: { ms: taskMs } })).id

  await inBurst(backlog, () => enqueue(NOISY_KEY))
  await Promise.all(Array.from({ length: processes }, () => fleet.start()))
  await untilEnded(effects, (ended) => ended.size > 0)
  const others = new Map<string, { readonly enqueuedAt: number }>()
  await inBurst(keys * tasksPerKey, async (n) => {
    const enqueuedAt = Date.now()
    const id = await enqueue(otherKey(n, plan))
    others.set(id, { enqueuedAt })
    return id
  })
  await untilEnded(effects, (ended) => [...others.keys()].every((id) => ended.has(id)))
  const done = effects()
  return {
    ...waitFigures(waitsOf(others, done)),
    noisyStarts: done.filter(({ what, id }) => what === 'start' && !others.has(id)).length,
    from: 'groupmq 1.1, which runs one task of a group at a time, until the tasks of the other groups have ended',
  }
}

async function untilEnded(
  effects: () => readonly Effect[],
  isEnough: (ended: ReadonlySet<string>) => boolean,
): Promise<void> {
  const holds = await holdsWithin(WITHIN_MS, async () => {
    await sleep(POLL_MS)
    return isEnough(new Set(effects().flatMap(({ what, id }) => (what === 'end' ? [id] : []))))
  })
  if (!holds) throw new Error('groupmq has not run the tasks in time')
}
