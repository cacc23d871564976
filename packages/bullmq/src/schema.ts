// Checks, before anything in a namespace is used, that it was written by a version of Bullpen that this version can read.
import { BullpenError } from '@bullpen/contract'
import type { Redis } from 'ioredis'
import { legacyKeys, queueKeys, SCHEMA_VERSION, schemaKey } from './keys.ts'
import { BACKOFF_TYPE } from './processor.ts'

/**
 * Detects whether Bullpen 0.1.0 wrote a queue. Version 0.1.0 stored no schema version, so its data is recognised by keys that
 * only that version wrote, or by one of its jobs at either end of a place.
 *
 * KEYS: two keys that only 0.1.0 wrote, then wait, active, prioritized, delayed, completed, failed. ARGV: the prefix of
 * jobs, Bullpen's backoff type. Returns 1 or 0.
 */
const IS_LEGACY = `
if redis.call('EXISTS', KEYS[1], KEYS[2]) > 0 then return 1 end
for i = 3, #KEYS do
  for _, at in ipairs({ 0, -1 }) do
    local id = i <= 4 and redis.call('LINDEX', KEYS[i], at) or i > 4 and redis.call('ZRANGE', KEYS[i], at, at)[1]
    local job = id and redis.call('HMGET', ARGV[1] .. id, 'data', 'opts')
    if job and job[1] and job[2] and string.sub(job[1], 1, 7) == '{"v":1,'
      and string.find(job[2], '"type":"' .. ARGV[2] .. '"', 1, true) then return 1 end
  end
end
return 0
`

/**
 * Stores the current version, unless the namespace already has a version or holds data of 0.1.0.
 *
 * KEYS: the schema key, a key that only 0.1.0 wrote. ARGV: the current version, '1' if 0.1.0 wrote one of the queues. Returns
 * the version of the namespace.
 */
const CLAIM = `
local stored = redis.call('GET', KEYS[1])
if stored then return stored end
if ARGV[2] == '1' or redis.call('EXISTS', KEYS[2]) == 1 then return '1' end
redis.call('SET', KEYS[1], ARGV[1])
return ARGV[1]
`

export interface SchemaGuard {
  /**
   * Returns undefined once the namespace is known to be compatible. Until then it returns a promise, which rejects with
   * `incompatible_schema` or with the error from Redis; the next call then checks again. A check takes one round trip, and two
   * more for a new namespace.
   */
  check(): Promise<void> | undefined
}

export function createSchemaGuard(redis: Redis, namespace: string, queues: readonly string[]): SchemaGuard {
  let isCompatible = false
  let checking: Promise<void> | undefined
  return {
    check() {
      if (isCompatible) return undefined
      checking ??= checkSchema(redis, namespace, queues)
        .then(() => {
          isCompatible = true
        })
        .finally(() => {
          checking = undefined
        })
      return checking
    },
  }
}

async function checkSchema(redis: Redis, namespace: string, queues: readonly string[]): Promise<void> {
  const version = Number((await redis.get(schemaKey(namespace))) ?? (await claim(redis, namespace, queues)))
  if (version === SCHEMA_VERSION) return
  const needs = `this version needs schema ${SCHEMA_VERSION}`
  throw new BullpenError(
    'incompatible_schema',
    version < SCHEMA_VERSION
      ? `namespace '${namespace}' was written by Bullpen 0.1.0 (schema ${version}); ${needs}: use another namespace, or drain it with 0.1.0 and delete its keys`
      : `namespace '${namespace}' was written by a newer Bullpen (schema ${version}); ${needs}: upgrade this process, or use another namespace`,
  )
}

/** Processes that claim a namespace at the same time get the same version, because a new namespace holds no data of 0.1.0. */
async function claim(redis: Redis, namespace: string, queues: readonly string[]): Promise<string> {
  const answers = await Promise.all(queues.map((queue) => isLegacy(redis, namespace, queue)))
  const { fleet } = legacyKeys(namespace, '')
  const hasLegacyQueue = answers.includes(true) ? '1' : ''
  return (await redis.eval(CLAIM, 2, schemaKey(namespace), fleet, SCHEMA_VERSION, hasLegacyQueue)) as string
}

async function isLegacy(redis: Redis, namespace: string, queue: string): Promise<boolean> {
  const { wait, active, prioritized, delayed, completed, failed, job } = queueKeys(namespace, queue)
  const keys = [...legacyKeys(namespace, queue).queue, wait, active, prioritized, delayed, completed, failed]
  return (await redis.eval(IS_LEGACY, keys.length, ...keys, job(''), BACKOFF_TYPE)) === 1
}
