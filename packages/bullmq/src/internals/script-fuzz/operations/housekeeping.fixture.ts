// The fuzz's operations of the leader and of time, and those that repair what another tool has broken.
import { expect } from 'vitest'
import { createRecordCounts } from '../../../admission/record-counts.ts'
import { runnerOn, runScript } from '../../../scripts/script.ts'
import { ALL_EVENTS_UNTIL, askForAllEvents } from '../../../store/backend-events.ts'
import { countActiveScript, noteLostScript } from '../../../store/scripts.ts'
import { QUEUE } from '../../index-model/worker.fixture.ts'
import { repairIndex } from '../../status/index-repair.ts'
import { DELAYED_SCORE_STEP } from '../../status/places.ts'
import { type FuzzWorld, OTHER_QUEUE } from '../fuzz-world.fixture.ts'
import { at, type FuzzOperation, type FuzzOperations } from '../operation.fixture.ts'

const HOUR = 3_600_000

/** Lets the delays of all tasks pass, as if it were two hours later. */
const PASS = `
local base, ago = ARGV[1], tonumber(ARGV[2])
for _, set in ipairs({ 'delayed', 'scheduled', 'retrying', 'postponed' }) do
  local all = redis.call('ZRANGE', base .. set, 0, -1, 'WITHSCORES')
  for i = 1, #all, 2 do
    redis.call('ZADD', base .. set, string.format('%.0f', all[i + 1] - ago), all[i])
  end
end
`

export async function passDelays({ redis, keys }: Pick<FuzzWorld, 'redis' | 'keys'>): Promise<void> {
  await redis.eval(PASS, 0, keys.base, 2 * HOUR * DELAYED_SCORE_STEP)
}

/** Ends all throttles and rates, for which a worker has waited. */
export async function passThrottles({ redis, keys }: Pick<FuzzWorld, 'redis' | 'keys'>): Promise<void> {
  const rates = await redis.keys(`${keys.base.replaceAll(/[[\]*?\\]/g, '\\$&')}key-rate:*`)
  await redis.del(keys.limiter, keys.keyThrottles, ...rates)
  for (const lane of await redis.zrange(keys.laneTimes, '0', '-1')) await redis.zadd(keys.laneTimes, 'XX', 1, lane)
  if ((await redis.hexists(keys.meta, 'paused')) === 0) await redis.zadd(keys.marker, 0, '0')
}

/** What another tool may break and the leader repairs. */
const BREAKS: readonly ((world: FuzzWorld, pick: number) => Promise<unknown>)[] = [
  ({ redis, keys }) => redis.hincrby(keys.totals, 'bytes', 100),
  ({ redis, keys }) => redis.hincrby(keys.apiKeyTasks, 'k0', 2),
  ({ redis, keys }) => redis.hincrby(keys.totals, 'accepted', 1),
  async ({ redis, keys }, pick) => {
    const id = at(await redis.zrange(keys.delayed, '0', '-1'), pick)
    return id === undefined
      ? 0
      : redis.zrem(keys.scheduled, id).then((removed) => removed || redis.zrem(keys.retrying, id))
  },
  ({ redis, keys }) => redis.zadd(keys.cancelled, 7, 'gone'),
  async ({ redis, keys }, pick) => {
    const id = at(await redis.zrange(keys.dead, '0', '-1'), pick)
    const [fingerprint] = ((id && (await redis.hget(keys.job(id), 'fingerprint'))) || '').split(' ')
    if (id === undefined || !fingerprint) return
    await redis.hdel(keys.job(id), 'fingerprint')
    if ((await redis.zrem(keys.fingerprint(fingerprint), id)) && !(await redis.exists(keys.fingerprint(fingerprint))))
      await redis.hdel(keys.fingerprints, fingerprint)
  },
  async ({ redis, keys }) => {
    for (const fingerprint of (await redis.hkeys(keys.fingerprints)).slice(0, 1))
      await redis.zadd(keys.fingerprint(fingerprint), 7, 'gone')
  },
]

const repair: FuzzOperation = async (world, pick) => {
  const { redis, keys } = world
  for (const each of BREAKS) await each(world, pick)
  await repairIndex(redis, keys)
  // A second pass finds what the first one had to compare twice.
  await repairIndex(redis, keys)
  await redis.hdel(keys.totals, 'drift')
}

export const HOUSEKEEPING: FuzzOperations = {
  'the leader visits the queue': [6, ({ leader }) => leader.visit(QUEUE, 0)],
  'the leader visits the queue two hours later': [2, ({ leader }) => leader.visit(QUEUE, 2 * HOUR)],
  'forward the outbox': [12, ({ leader }) => leader.forward(QUEUE)],
  'a dead forwarder has left its claims': [2, ({ leader }) => leader.hurry([QUEUE])],
  'all delays pass': [6, passDelays],
  'all throttles pass': [8, passThrottles],
  'count the active tasks again': [
    2,
    async ({ redis, keys }) =>
      expect(await runScript(redis, countActiveScript, keys, { fencing: 1, base: keys.base })).toBe(0),
  ],
  'compare the index': [1, async ({ redis, keys }) => expect(await repairIndex(redis, keys)).toBe(0)],
  'repair what another tool has broken': [2, repair],
  'delete an orphan': [
    1,
    async ({ redis, keys, broker }) => {
      const key = keys.deadProgress('none')
      await redis.hset(key, 'changed', 1)
      await broker.orphans.delete([{ key }])
      expect(await redis.exists(key)).toBe(0)
    },
  ],
  'note which tasks are lost': [
    1,
    async ({ redis, keys, last }) => {
      const ids = Object.keys(await redis.hgetall(keys.totals)).length > 0 && last !== undefined ? [`${last.id} `] : []
      const [, lost] = await runScript(redis, noteLostScript, keys, { base: keys.base, process: 'p', keptMs: 60_000 }, [
        ...ids,
        'never-stored ',
      ])
      expect(lost).not.toContain(last?.id)
    },
  ],
  'count the records of idempotency keys': [
    1,
    async ({ redis, namespace }, _, n) => {
      const counts = createRecordCounts({ redis, namespace, queues: [QUEUE], now: Date.now })
      counts.expect(QUEUE, 60 + (n % 60))(true)
      await counts.exchange()
    },
  ],
  'a reader asks for all events': [
    2,
    async ({ redis, keys }) => void (await askForAllEvents(runnerOn(redis), keys.meta)()),
  ],
  'no reader asks for all events': [2, ({ redis, keys }) => redis.hset(keys.meta, ALL_EVENTS_UNTIL, 1)],
  'empty the other queue': [
    2,
    async ({ broker }) => {
      const other = broker.boardQueues.find(({ name }) => name === OTHER_QUEUE)
      await other?.obliterate({ force: true })
    },
  ],
}
